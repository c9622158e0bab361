package stage

import (
	"fmt"
	"testing"

	"downpour/encoding"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
)

// Cached groups share no memory with the groups of the merge, and their size is not underestimated.
func TestNewCachedGroups(t *testing.T) {
	points := encoding.Points{Time: make([]int64, 10), Bits: make([]uint64, 10), Float: make([]bool, 10)}
	span := []byte("000001000001000001")
	g := merge.Group{
		Key:        span[6:12],
		Spans:      [][]byte{span, span},
		Tags:       []encoding.TagPair{{K: span[6:12], V: span[12:18]}},
		Aggregated: []encoding.UID{span[:6]},
		TSUIDs:     []encoding.UID{span, span},
		Points:     points,
		Notes:      [][]byte{span},
	}
	want := g
	want.Spans = want.Spans[:1]
	r := newCachedGroups([]merge.Group{g, {}}, dispatch.Stats{Trace: make([]dispatch.Attempt, 1)})
	text := func(g merge.Group) string {
		return fmt.Sprintf("%x %x %x %x %x %x %v", g.Key, g.Spans, g.Tags, g.Aggregated, g.TSUIDs, g.Notes, g.Points)
	}
	if r.stats.Trace != nil {
		t.Error("the attempts of the first query are kept, too")
	}
	before := text(want)
	clear(span)
	if got := text(r.groups[0]); got != before {
		t.Errorf("cached is\n%s, want\n%s", got, before)
	}
	const uids, header = 7, 24 // lists of bytes with their headers: one span, two TSUIDs, one note and three of tags
	if least := int64(2*groupBytes + 10*17 + 6 + 4*18 + uids*header + 3*6); r.Bytes() < least {
		t.Errorf("%d bytes, want at least %d", r.Bytes(), least)
	}
}
