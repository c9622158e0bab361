package sim

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"downpour/integration/compare"
	"downpour/integration/conformance"
	"downpour/integration/differential"
)

// recorded are rows as a TSD has stored them, drawn questions about them in every form of a query,
// and what a real OpenTSDB has answered. The rows do not change: whatever happens, an answer
// without an error is the recorded one.
type recorded struct {
	lenient     bool
	settings    map[string]string // with which it was recorded
	data        *differential.Data
	queries     []differential.Query
	expressions []differential.Exp
	answers     conformance.Answers
}

// recordedSeed is that of the recordings of package replay, and the numbers are how many questions there are of each.
const recordedSeed, recordedQueries, recordedExpressions = 1, 300 / 4, 500 / 4

// recordings are of the plain layout, strict and lenient: without and with tsd.storage.fix_duplicates.
var recordings = [2]func() *recorded{
	sync.OnceValue(func() *recorded { return record(0) }),
	sync.OnceValue(func() *recorded { return record(1) }),
}

func record(arrangement int) *recorded {
	a := differential.Arrangements(recordedSeed)[arrangement]
	r := &recorded{data: a.Data(), lenient: a.Lenient}
	if a.Lenient {
		r.settings = map[string]string{
			"DOWNPOUR_FIX_DUPLICATES":        "true",
			"DOWNPOUR_SKIP_UNRESOLVED_TAGVS": "true",
			"DOWNPOUR_EXPANSION_LIMIT":       strconv.Itoa(differential.ExpansionLimit),
		}
	}
	r.queries, r.expressions = a.Questions(r.data, recordedQueries, recordedExpressions)
	if err := conformance.Decode(a.Recording(recordedSeed), &r.answers); err != nil {
		panic(err)
	}
	if r.answers.Rows != r.data.Digest() {
		panic(fmt.Sprintf("the recording is of the rows %s, got %s of the generator", r.answers.Rows, r.data.Digest()))
	}
	return r
}

// answer is OpenTSDB's answer to a question.
func (r *recorded) answer(q differential.Request) compare.Answer {
	a := r.answers.Asked[conformance.Key(q.Path, q.Body)]
	return compare.Answer{Status: a.Status, Body: []byte(a.Body)}
}

// askRecorded asks recorded questions until the world stops.
func (c *clients) askRecorded(reader int) {
	r := c.w.rand(fmt.Sprint("reader of what is recorded ", reader))
	for c.w.pause(r, 4*time.Second) {
		c.askOneRecorded(r.IntN(len(c.w.gateways)), r.IntN(len(c.w.recorded.queries)+len(c.w.recorded.expressions)))
	}
}

// askOneRecorded asks question i. It returns false without an answer.
func (c *clients) askOneRecorded(gateway, i int) bool {
	var refused *answer
	pair := differential.Pair{Theirs: c.w.recorded.answer, Ours: func(q differential.Request) compare.Answer {
		method := "POST"
		if q.Body == "" {
			method = "GET"
		}
		a := c.ask(gateway, method, q.Path, q.Body)
		if a.err != nil || temporary(a.status) {
			refused = &a
		}
		return compare.Answer{Status: a.status, Body: a.body}
	}}
	var got differential.Comparison
	var request differential.Request
	if n := len(c.w.recorded.queries); i < n {
		q := c.w.recorded.queries[i]
		request, got = q.Request(), pair.Compare(q)
	} else {
		e := c.w.recorded.expressions[i-n]
		request, got = e.Request(), pair.CompareExp(e)
	}
	c.w.counted(func(n *Counts) { n.Queries++ })
	if refused != nil {
		c.w.counted(func(n *Counts) { n.QueriesRefused++ })
		c.w.note("gateway %d: question %d: %v", gateway, i, refused)
		return false
	}
	c.w.checked("recorded")
	if !got.Equal() {
		c.wrong(gateway, "question %d, %s %s: error %v, %v\nOpenTSDB: %d %.600s\nours:     %d %.600s",
			i, request.Path, request.Body, got.Err, got.Report, got.Want.Status, got.Want.Body, got.Got.Status,
			got.Got.Body)
	}
	return true
}

// temporary reports whether a status says that the same may work later.
func temporary(status int) bool {
	return status == 408 || status == 424 || status == 500 || status == 502 || status == 503 || status == 504
}
