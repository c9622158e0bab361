package compare_test

import (
	"slices"
	"testing"

	"downpour/integration/compare"
)

// A difference goes as OpenTSDB's loss of a bucket only if it answers as we do twice after that.
func TestWithSalted(t *testing.T) {
	whole := `[{"metric":"m","tags":{},"aggregateTags":["host"],"dps":{"1":3}}]`
	short := `[{"metric":"m","tags":{},"aggregateTags":["host"],"dps":{"1":2}}]`
	for _, c := range []struct {
		name    string
		answers []string // OpenTSDB's, one after the other
		got     string
		equal   bool
		lost    bool
	}{
		{"equal at once", []string{whole}, whole, true, false},
		{"the first lacks a bucket", []string{short, whole, whole}, whole, true, true},
		{"two lack one", []string{short, short}, whole, false, false},
		{"the third lacks one", []string{short, whole, short}, whole, false, false},
		{"ours lacks one", []string{whole, whole}, short, false, false},
		{"ours is broken", []string{whole}, `[{`, false, false},
	} {
		asked := 0
		ask := func() compare.Answer {
			asked++
			return compare.Answer{Status: 200, Body: []byte(c.answers[asked-1])}
		}
		r, applied, err := compare.WithSalted(ask, compare.Answer{Status: 200, Body: []byte(c.got)})
		if equal := err == nil && r.Equal(); equal != c.equal ||
			slices.Contains(applied, compare.LostBucket) != c.lost || asked != len(c.answers) {
			t.Errorf("%s: equal %t, rules %q, %d questions, error %v; want equal %t, lost %t, %d questions",
				c.name, equal, applied, asked, err, c.equal, c.lost, len(c.answers))
		}
	}
}
