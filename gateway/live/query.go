package live

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// query is what the hub must know about a query. Everything else in the body is up
// to Config.Ask and the source.
type query struct {
	key     string          // equal for queries that may share an evaluator
	body    json.RawMessage // as the client wrote it
	live    bool            // it names no end
	seconds bool            // the times of the answer are seconds, not ms
}

// readQuery reads a request's query. The error is an *Error.
func readQuery(r Request) (query, error) {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(r.Query))
	d.UseNumber() // as a float, 9007199254740993 would equal 9007199254740992
	if err := d.Decode(&fields); err != nil || fields == nil {
		return query{}, &Error{Code: 400, Message: fmt.Sprintf("Unable to parse the given query: want a JSON object as for POST /api/query%s", reason(err))}
	}

	q := query{body: r.Query, live: isBlank(fields["end"]), seconds: !r.Millis && !isTrue(fields["msResolution"])}

	// Queries that differ in what does not matter to the evaluator share one: in
	// the order of fields, in white space, in how they leave the end out.
	if q.live {
		delete(fields, "end")
	}
	delete(fields, "msResolution")
	canonical, err := json.Marshal(fields) // keys in order
	if err != nil {
		return query{}, &Error{Code: 400, Message: "Unable to parse the given query: " + err.Error()}
	}
	q.key = fmt.Sprintf("%t %s", q.seconds, canonical)
	return q, nil
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
