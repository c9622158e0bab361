package extra_test

import (
	"testing"

	"downpour/gateway/gatewaytest"
	"downpour/integration/conformance"
)

// The step of the recorded session that the core alone does not answer is answered as OpenTSDB did.
func TestSession_gexp(t *testing.T) {
	var s struct{ Steps []conformance.Query }
	gatewaytest.Decode(t, "api", &s)
	b := open(t, nil)
	b.AssignTags()
	const gexp = 114
	for i, step := range s.Steps[:gexp+1] {
		if difference := b.Replay(step); i == gexp && difference != "" {
			t.Errorf("%s: %s", step.Path, difference)
		}
	}
}
