package live

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// query is what the hub must know of a query; the rest is Ask's affair.
type query struct {
	key     string          // equal for queries that may share an evaluator
	body    json.RawMessage // as the client wrote it
	live    bool            // names no end
	seconds bool            // times in the answer
}

func readQuery(r Request) (query, error) {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(r.Query))
	d.UseNumber() // 9007199254740993 must not meet 9007199254740992
	if err := d.Decode(&fields); err != nil || fields == nil {
		return query{}, &Error{Code: 400, Message: fmt.Sprintf("Unable to parse the given query: want a JSON object as for POST /api/query%s", because(err))}
	}
	q := query{body: r.Query, live: blank(fields["end"]), seconds: !r.Millis && !truth(fields["msResolution"])}
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

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

func blank(v any) bool { return v == nil || v == "" }

func truth(v any) bool { return v == true || v == "true" }
