package background

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
)

// Two names of one UID, as a rename that was cut off leaves them, are one metric, else the pass
// would find the first of them for ever. It is kept as the one that is kept longest.
func TestOnce(t *testing.T) {
	got := once([]Metric{{encoding.UID{0, 0, 2}, 0}, {encoding.UID{0, 0, 1}, 7200}, {encoding.UID{0, 0, 1}, 3600}})
	if d := cmp.Diff([]Metric{{encoding.UID{0, 0, 1}, 3600}, {encoding.UID{0, 0, 2}, 0}}, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
