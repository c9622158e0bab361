package live

import (
	"cmp"
	"slices"
)

// Listed is one live query, as an operator sees it.
type Listed struct {
	ID          string // names it for End; no other has it, also of other gateways and after a start
	Exp         bool   // of /api/query/exp
	Query       string // the body of the request, shortened
	Subscribers int    // 0 for one that is kept for a client that may come back
	Held        Held
	Error       string // of the last tick; "" if it was answered
}

// maxListed bounds the text of a query in a list, in bytes.
const maxListed = 1 << 10

// List returns the live queries that hold most memory, most of them, and how many more there are.
func (h *Hub) List(most int) (out []Listed, more int) {
	h.mu.Lock()
	for _, e := range h.mu.evaluators {
		out = append(out, e.listed())
	}
	h.mu.Unlock()

	slices.SortFunc(out, func(a, b Listed) int {
		return cmp.Or(cmp.Compare(b.Held.Total(), a.Held.Total()), cmp.Compare(b.Subscribers, a.Subscribers),
			cmp.Compare(a.Query, b.Query))
	})
	n := min(most, len(out))
	for i := range out[:n] {
		out[i].Query = shortened(out[i].Query, maxListed)
		out[i].Error = shortened(out[i].Error, maxListed)
	}
	return out[:n], len(out) - n
}

// listed describes a query.
func (e *evaluator) listed() Listed {
	e.mu.Lock()
	defer e.mu.Unlock()

	l := Listed{
		ID:          e.epoch,
		Exp:         e.query.question.Exp,
		Query:       string(e.query.question.Body),
		Subscribers: len(e.mu.subs),
		Held:        e.mu.held,
	}
	if e.mu.err != nil {
		l.Error = e.mu.err.Message
	}
	return l
}

// End ends a live query for somebody, who is named to its subscribers. It returns false if there is
// none of this id. A later subscription to the same query begins a new one.
func (h *Hub) End(id, by string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.mu.evaluators {
		if e.epoch == id {
			e.endLocked(by)
			return true
		}
	}
	return false
}

// endLocked ends the query, with an error that names who has ended it. Because the error is a conflict,
// clients do not repeat the query automatically. REQUIRES: hub.mu is held.
func (e *evaluator) endLocked(by string) {
	e.mu.Lock()
	defer e.mu.Unlock()

	e.stopLocked()
	e.mu.err, e.mu.errIsFinal = &Error{Code: 409, Message: "The live query was ended by " + by}, true
	e.mu.errCount++
	e.hub.forgetLocked(e)
	for s := range e.mu.subs {
		s.wake()
	}
}

// shortened returns a text of at most so many bytes, or its beginning and an ellipsis.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
