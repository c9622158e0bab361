package stage

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/query/merge"
)

// pointsAt returns a point at each time, all with one value, which tells where they come from.
func pointsAt(value int64, times ...int64) (p encoding.Points) {
	for _, t := range times {
		p.Append(t, encoding.IntValue(value))
	}
	return p
}

// Groups of rollups and of raw data are joined by their keys: rollups up to the cut and raw data
// from it on. A tag is kept unless the two groups have different values for it, or one of them has
// aggregated it.
func TestJoinAt(t *testing.T) {
	uid := func(n byte) encoding.UID { return encoding.UID{n} }
	tag := func(k, v byte) encoding.TagPair { return encoding.TagPair{K: uid(k), V: uid(v)} }
	before := []merge.Group{
		{Key: []byte("a"), Spans: [][]byte{{1}}, Tags: []encoding.TagPair{tag(1, 1), tag(2, 1), tag(3, 1)}, Aggregated: []encoding.UID{uid(5)}, TSUIDs: []encoding.UID{uid(1), uid(3)}, Points: pointsAt(1, 10, 20, 30)},
		{Key: []byte("c"), Points: pointsAt(1, 10, 20)},
	}
	after := []merge.Group{
		{Key: []byte("a"), Spans: [][]byte{{2}}, Tags: []encoding.TagPair{tag(1, 1), tag(2, 2), tag(4, 1), tag(5, 1)}, TSUIDs: []encoding.UID{uid(2), uid(3)}, Points: pointsAt(2, 10, 20, 30)},
		{Key: []byte("b"), Points: pointsAt(2, 20)},
	}
	want := []merge.Group{
		{Key: []byte("a"), Spans: [][]byte{{1}, {2}}, Tags: []encoding.TagPair{tag(1, 1), tag(3, 1), tag(4, 1)}, Aggregated: []encoding.UID{uid(2), uid(5)},
			TSUIDs: []encoding.UID{uid(1), uid(2), uid(3)}, Points: encoding.Points{Time: []int64{10, 20, 30}, Bits: []uint64{1, 2, 2}, Float: []bool{false, false, false}}},
		{Key: []byte("b"), Points: pointsAt(2, 20)},
		{Key: []byte("c"), Points: pointsAt(1, 10)},
	}
	if d := cmp.Diff(want, joinAt(before, after, 20)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
