package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/uid"
	"downpour/integration/compare"
	"downpour/integration/conformance"
)

// session is a recorded HTTP session, see integration/conformance.
type session struct{ Steps []step }

type step struct {
	Method, Path, Body string
	Headers            map[string]string
	Status             int
	Response           json.RawMessage
	ResponseHeaders    map[string]string `json:"response_headers"`
}

// unbuilt has the steps that are not answered as recorded, and why. The test fails for a listed
// step that is, so that the list stays true.
var unbuilt = func() map[int]string {
	out := map[int]string{}
	list := func(reason string, steps ...int) {
		for _, s := range steps {
			out[s] = reason
		}
	}
	list("deliberately answered: documented by OpenTSDB, and not registered there", 91)
	return out
}()

// free are the differences that no client can depend on.
var free = append([]compare.Permit{
	{Path: compare.Path{"*", "examples"}, Kinds: []compare.Kind{compare.Value}, Reason: "help in our own words"},
	{Path: compare.Path{"*", "description"}, Kinds: []compare.Kind{compare.Value}, Reason: "help in our own words"},
}, compare.Standard...)

func loadJSON(t *testing.T, name string, into any) {
	t.Helper()
	if err := conformance.Decode(name, into); err != nil {
		t.Fatal(err)
	}
}

// Every step of the recorded session is answered as OpenTSDB did, but for those in unbuilt.
func TestSession(t *testing.T) {
	var s session
	loadJSON(t, "api", &s)
	b := open(t, func(cfg *gateway.Config) { cfg.AllowOrigins, cfg.AllowDelete = []string{"http://ok.example"}, true })
	assignTags(b)
	equal := 0
	for i, st := range s.Steps {
		difference := replayStep(b, st)
		reason, listed := unbuilt[i]
		switch {
		case difference != "" && !listed:
			t.Errorf("step %d: %s %s %s: %s", i, st.Method, st.Path, st.Body, difference)
		case difference == "" && listed:
			t.Errorf("step %d: %s %s is answered as recorded: take it from the list (%s)", i, st.Method, st.Path, reason)
		case difference == "":
			equal++
		}
	}
	t.Logf("%d of %d steps are equal, %d are listed", equal, len(s.Steps), len(unbuilt))
}

// assignTags gives the session's tags the UIDs that they had in OpenTSDB, which assigned them in
// the order of a Java hash map. Recorded TSUIDs have them.
func assignTags(b *bench) {
	b.Helper()
	d := uid.New(uid.Config{Store: b.store, Table: "tsdb-uid", Schema: b.cfg.Schema()})
	for kind, names := range map[encoding.UIDKind]string{encoding.UIDTagK: "host dc os", encoding.UIDTagV: "web01 lga web02 linux web00 sjc"} {
		for _, name := range strings.Fields(names) {
			if _, err := d.Assign(b.Context(), kind, name); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// replayStep sends one request and returns the first difference, "" if there is none.
func replayStep(b *bench, st step) string {
	b.Helper()
	var headers []string
	for k, v := range st.Headers {
		headers = append(headers, k, v)
	}
	a := b.do(st.Method, st.Path, strings.NewReader(st.Body), headers...)
	if d := textDifference(st, a); d != "" {
		return d
	}
	for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers"} {
		if got, want := a.header.Get(name), st.ResponseHeaders[name]; len(st.Headers) > 0 && got != want {
			return fmt.Sprintf("%s: %q, want %q", name, got, want)
		}
	}
	return ""
}

func textDifference(st step, a answer) string {
	want := []byte(st.Response)
	if string(want) == "null" {
		want = nil
	}
	var plain struct{ Text *string }
	if json.Unmarshal(want, &plain) == nil && plain.Text != nil {
		if a.status != st.Status || !strings.HasPrefix(*plain.Text, "<!DOCTYPE") && a.body != *plain.Text {
			return fmt.Sprintf("%d %.200s, want %d %.200s", a.status, a.body, st.Status, *plain.Text)
		}
		return ""
	}
	r, err := compare.Comparer{Permits: free}.Answers(compare.Answer{Status: st.Status, Body: want}, compare.Answer{Status: a.status, Body: []byte(a.body)})
	if err != nil {
		return err.Error()
	}
	if !r.Equal() {
		return fmt.Sprintf("%d differences, the first: %s", len(r.Differences), r.Differences[0])
	}
	return ""
}
