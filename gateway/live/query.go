package live

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// query is the hub's part of a query. Config.Ask and the source interpret the rest of the body.
type query struct {
	key      string // equal for queries that may share an evaluator
	question Question
	live     bool // it names no end
	seconds  bool // the times of the answer are seconds, not ms
	ignored  []string
}

// readQuery reads a request's query. The error is an *Error.
func readQuery(r Request) (query, error) {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(r.Query))
	d.UseNumber() // as a float, 9007199254740993 would equal 9007199254740992
	// The body null leaves fields nil.
	if err := d.Decode(&fields); err != nil || fields == nil {
		return query{}, &Error{
			Code: 400,
			Message: fmt.Sprintf("Unable to parse the given query: want a JSON object as for POST %s%s", r.path(),
				reason(err)),
		}
	}

	q := query{question: Question{Exp: r.Exp, Body: r.Query}}
	if r.Exp {
		q.readExp(fields)
	} else {
		q.readPlain(fields, r.Millis)
	}
	canonical, err := json.Marshal(fields) // keys in order
	if err != nil {
		return query{}, &Error{Code: 400, Message: "Unable to parse the given query: " + err.Error()}
	}
	q.key = fmt.Sprintf("%t %t %s", r.Exp, q.seconds, canonical)
	return q, nil
}

// path returns the route of HTTP that answers the same query.
func (r *Request) path() string {
	if r.Exp {
		return "/api/query/exp"
	}
	return "/api/query"
}

// readPlain reads the fields of a POST /api/query. It takes out those in which queries
// may differ and still share an evaluator: how they leave the end out.
func (q *query) readPlain(fields map[string]any, millis bool) {
	q.live, q.seconds = isBlank(fields["end"]), !millis && !isTrue(fields["msResolution"])
	if q.live {
		delete(fields, "end")
	}
	delete(fields, "msResolution") // the key has it as seconds
}

// readExp reads the fields of a POST /api/query/exp and removes, as readPlain does, what may
// differ: the request's name, which a live answer does not have, and the form of a missing end.
// Times are always in ms.
func (q *query) readExp(fields map[string]any) {
	delete(fields, "name")

	// A time that is no object leaves span nil, and is refused when the query is run.
	span, _ := fields["time"].(map[string]any)
	q.live = isBlank(span["end"])
	if q.live {
		delete(span, "end")
	}
}

// reason returns the text of an error after a colon, "" for nil.
func reason(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

func isBlank(v any) bool { return v == nil || v == "" }

func isTrue(v any) bool { return v == true || v == "true" }
