package gatewaytest

import (
	"encoding/json"
	"fmt"
	"strings"

	"downpour/encoding"
	"downpour/gateway/uid"
	"downpour/integration/compare"
	"downpour/integration/conformance"
)

// free are the differences of recorded sessions that no client can depend on.
var free = append([]compare.Permit{
	{Path: compare.Path{"*", "examples"}, Kinds: []compare.Kind{compare.Value}, Reason: "help in our own words"},
	{Path: compare.Path{"*", "description"}, Kinds: []compare.Kind{compare.Value}, Reason: "help in our own words"},
}, compare.Standard...)

// AssignTags gives the tags of the recording api the UIDs that they had in OpenTSDB, which assigned them in
// the order of a Java hash map. Recorded TSUIDs have them.
func (b *Bench) AssignTags() {
	b.Helper()
	d := uid.New(uid.Config{Store: b.Store, Table: "tsdb-uid", Schema: b.Config.Schema()})
	for kind, names := range map[encoding.UIDKind]string{
		encoding.UIDTagK: "host dc os",
		encoding.UIDTagV: "web01 lga web02 linux web00 sjc",
	} {
		for _, name := range strings.Fields(names) {
			if _, err := d.Assign(b.Context(), kind, name); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// Replay sends a recorded request and returns the first difference, "" if there is none.
func (b *Bench) Replay(st conformance.Query) string {
	b.Helper()
	var headers []string
	for k, v := range st.Headers {
		headers = append(headers, k, v)
	}
	a := b.Do(st.Method, st.Path, strings.NewReader(st.Body), headers...)
	if d := textDifference(st, a); d != "" {
		return d
	}
	for _, name := range []string{
		"Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers",
	} {
		if got, want := a.Header.Get(name), st.ResponseHeaders[name]; len(st.Headers) > 0 && got != want {
			return fmt.Sprintf("%s: %q, want %q", name, got, want)
		}
	}
	return ""
}

func textDifference(st conformance.Query, a Answer) string {
	want := []byte(st.Response)
	if string(want) == "null" {
		want = nil
	}
	var plain struct{ Text *string }
	if json.Unmarshal(want, &plain) == nil && plain.Text != nil {
		if a.Status != st.Status || !strings.HasPrefix(*plain.Text, "<!DOCTYPE") && a.Body != *plain.Text {
			return fmt.Sprintf("%d %.200s, want %d %.200s", a.Status, a.Body, st.Status, *plain.Text)
		}
		return ""
	}
	r, err := compare.Comparer{Permits: free}.Answers(compare.Answer{Status: st.Status, Body: want},
		compare.Answer{Status: a.Status, Body: []byte(a.Body)})
	if err != nil {
		return err.Error()
	}
	if !r.Equal() {
		return fmt.Sprintf("%d differences, the first: %s", len(r.Differences), r.Differences[0])
	}
	return ""
}
