package gateway_test

import (
	"testing"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/integration/conformance"
)

// session is a recorded HTTP session, see integration/conformance.
type session struct{ Steps []conformance.Query }

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
	list("of an extra, see TestSession_gexp", 114)
	return out
}()

// Every step of the recorded session is answered as OpenTSDB did, except for those in unbuilt.
func TestSession(t *testing.T) {
	var s session
	gatewaytest.Decode(t, "api", &s)
	b := open(t, func(cfg *gateway.Config) { cfg.AllowOrigins, cfg.AllowDelete = []string{"http://ok.example"}, true })
	b.AssignTags()
	equal := 0
	for i, st := range s.Steps {
		difference := b.Replay(st)
		reason, listed := unbuilt[i]
		switch {
		case difference != "" && !listed:
			t.Errorf("step %d: %s %s %s: %s", i, st.Method, st.Path, st.Body, difference)
		case difference == "" && listed:
			t.Errorf("step %d: %s %s is answered as recorded: take it from the list (%s)",
				i, st.Method, st.Path, reason)
		case difference == "":
			equal++
		}
	}
	t.Logf("%d of %d steps are equal, %d are listed", equal, len(s.Steps), len(unbuilt))
}
