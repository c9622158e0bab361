package merge

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"downpour/encoding"
)

// The tags of a group are those with one value among the spans that have the key, whatever the
// order of spans, and whatever keys each of them has.
func TestDescribeTags(t *testing.T) {
	s := encoding.DefaultSchema()
	rapid.Check(t, func(t *rapid.T) {
		var spans [][]byte
		values := map[uint64]map[uint64]bool{} // by tag key
		for range rapid.IntRange(0, 8).Draw(t, "spans") {
			var pairs []encoding.TagPair
			for k := range uint64(3) {
				v := rapid.Uint64Range(0, 3).Draw(t, "value")
				if v == 0 {
					continue // without the key
				}
				if values[k] == nil {
					values[k] = map[uint64]bool{}
				}
				values[k][v] = true
				pairs = append(pairs, encoding.TagPair{K: uid(k), V: uid(v)})
			}
			spans = append(spans, s.AppendTags(slices.Clone([]byte(uid(1))), pairs))
		}

		var tags []encoding.TagPair
		var aggregated []encoding.UID
		for k := range uint64(3) {
			if len(values[k]) > 1 {
				aggregated = append(aggregated, uid(k))
			}
			for v := range values[k] {
				if len(values[k]) == 1 {
					tags = append(tags, encoding.TagPair{K: uid(k), V: uid(v)})
				}
			}
		}
		gotTags, gotAggregated := DescribeTags(s, spans)
		if d := cmp.Diff(tags, gotTags, cmpopts.EquateEmpty()) +
			cmp.Diff(aggregated, gotAggregated, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("spans %x: want -, got +: %s", spans, d)
		}
	})
}
