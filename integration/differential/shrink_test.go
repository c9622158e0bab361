package differential

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Shrink keeps what a failure depends on, here one series, the fill policy zero and a late end, and
// drops everything else.
func TestShrink(t *testing.T) {
	d := Generate(3, schemas[0])
	r := rand.New(rand.NewPCG(3, 3))
	culprit := d.Of("diff.int")[3].TSUID
	fails := func(q Query) bool {
		return slices.ContainsFunc(q.Subs, func(s Sub) bool {
			asked := slices.ContainsFunc(d.asked(s), func(o Series) bool { return o.TSUID == culprit })
			return asked && strings.Contains(s.Downsample, "-zero") && readTime(q.End) > d.Era*1000+hour
		})
	}
	shrunk := 0
	for i := 0; i < 4000 && shrunk < 10; i++ {
		q := Random(r, d)
		if !fails(q) || strings.Contains(q.Start+q.End, "/") {
			continue
		}
		shrunk++
		small := Shrink(q, d, 2000, fails)
		s := small.Subs[0]
		if !fails(small) || len(small.Subs) != 1 || len(s.Filters) > 0 && len(s.TSUIDs) == 0 && !s.ExplicitTags ||
			s.Rate || small.AsGET || small.MS || small.ShowTSUIDs {
			t.Fatalf("%s\nshrunk to %s", q.Body(), small.Body())
		}
		if !s.ExplicitTags && !slices.Equal(s.TSUIDs, []string{culprit}) && !strings.EqualFold(s.TSUIDs[0], culprit) {
			t.Fatalf("%s\nshrunk to %s, want %s alone", q.Body(), small.Body(), culprit)
		}
	}
	if shrunk < 5 {
		t.Errorf("shrunk %d queries, want at least 5", shrunk)
	}
}

// Shrink makes no more attempts than it may, and returns the query unchanged if no smaller one
// fails.
func TestShrink_bounds(t *testing.T) {
	d := Generate(4, schemas[0])
	q := Random(rand.New(rand.NewPCG(4, 4)), d)
	asked := 0
	Shrink(q, d, 10, func(Query) bool { asked++; return asked%2 == 0 })
	if asked != 10 {
		t.Errorf("asked %d times, want 10", asked)
	}
	if small := Shrink(q, d, 1000, func(Query) bool { return false }); small.Body() != q.Body() {
		t.Errorf("%s became %s, want no change", q.Body(), small.Body())
	}
}
