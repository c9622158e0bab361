package access_test

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"downpour/encoding"
	_ "downpour/encoding/seedtest" // gives rapid its seed
	"downpour/pushdown/operator/access"
	"downpour/pushdown/store"
)

// uids are few, so that rows share tags. Some end with FF, so that the end of a range carries
// over.
var uids = []encoding.UID{{0, 0, 1}, {0, 0, 2}, {0, 0, 255}, {0, 1, 0}, {0, 255, 255}, {255, 255, 254}, {255, 255, 255}}

func drawUID(t *rapid.T, name string) encoding.UID { return rapid.SampledFrom(uids).Draw(t, name) }

// drawTags draws the tags of a row.
func drawTags(t *rapid.T) []byte {
	keys := rapid.SliceOfNDistinct(rapid.SampledFrom(uids), 0, 5,
		func(u encoding.UID) string { return string(u) }).Draw(t, "tag keys")
	var pairs []encoding.TagPair
	for _, k := range keys {
		pairs = append(pairs, encoding.TagPair{K: k, V: drawUID(t, "tag value")})
	}
	return encoding.DefaultSchema().AppendTags(nil, pairs)
}

func drawValues(t *rapid.T) []encoding.UID {
	values := rapid.SliceOfNDistinct(rapid.SampledFrom(uids), 1, 4,
		func(u encoding.UID) string { return string(u) }).Draw(t, "values")
	slices.SortFunc(values, func(a, b encoding.UID) int { return bytes.Compare(a, b) })
	return values
}

var hour = []byte{0, 0, 1, 0x50, 0xE2, 0x27, 0x00}

func inside(ranges []store.KeyRange, key []byte) bool {
	return slices.ContainsFunc(ranges, func(r store.KeyRange) bool { return r.Contains(key) })
}

// Regardless of the known prefixes, a row with the wanted tag is in a range; a row
// without it is in none if its prefix is known. Ranges ascend and are disjoint.
func TestPrefixes_anyRows(t *testing.T) {
	s := encoding.DefaultSchema()
	rapid.Check(t, func(t *rapid.T) {
		tagk, values := drawUID(t, "wanted tag"), drawValues(t)
		prefixes := access.NewPrefixes(s, tagk)
		known := map[string]bool{"": true}
		for range rapid.IntRange(0, 6).Draw(t, "known") {
			tags := drawTags(t)
			prefixes.Add(tags)
			known[string(prefixes.Of(tags))] = true
		}
		ranges := prefixes.Append(nil, hour, values)
		if prefixes.Len() != len(known) || len(ranges) > prefixes.MaxRanges(len(values)) {
			t.Fatalf("%d prefixes, want %d; %d ranges, want at most %d", prefixes.Len(), len(known), len(ranges),
				prefixes.MaxRanges(len(values)))
		}
		for i := 1; i < len(ranges); i++ {
			if bytes.Compare(ranges[i-1].Stop, ranges[i].Start) > 0 {
				t.Fatalf("range %x begins before the end of %x", ranges[i], ranges[i-1])
			}
		}
		for range 20 {
			tags := drawTags(t)
			key := slices.Concat(hour, tags)
			v, has := s.Tag(tags, tagk)
			wanted := has && slices.ContainsFunc(values, func(w encoding.UID) bool { return bytes.Equal(v, w) })
			rest := tags[len(prefixes.Of(tags)):]
			switch in := inside(ranges, key); {
			case wanted && !in:
				t.Fatalf("row %x of tag %s, values %s is in none of %x", key, tagk, values, ranges)
			case !wanted && in && len(rest) > 0 && known[string(prefixes.Of(tags))]:
				t.Fatalf("row %x of a known prefix, not wanted, is in one of %x", key, ranges)
			}
		}
	})
}

// The intersection of two lists holds what both hold.
func TestIntersect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (ranges []store.KeyRange) {
			bounds := rapid.SliceOfNDistinct(rapid.Byte(), 0, 12, rapid.ID).Draw(t, name)
			slices.Sort(bounds)
			for ; len(bounds) >= 2; bounds = bounds[2:] {
				ranges = append(ranges, store.KeyRange{Start: bounds[:1], Stop: bounds[1:2]})
			}
			if len(bounds) == 1 {
				ranges = append(ranges, store.KeyRange{Start: bounds[:1]})
			}
			return ranges
		}
		a, b := draw("a"), draw("b")
		both := access.Intersect(a, b)
		for i := range 256 {
			key := []byte{byte(i)}
			if got, want := inside(both, key), inside(a, key) && inside(b, key); got != want {
				t.Fatalf("key %x is in the intersection of %x and %x: %t, want %t", key, a, b, got, want)
			}
		}
		for i, r := range both {
			if len(r.Stop) > 0 && bytes.Compare(r.Start, r.Stop) >= 0 ||
				i > 0 && bytes.Compare(both[i-1].Stop, r.Start) > 0 {
				t.Fatalf("%x is empty or out of order", both)
			}
		}
	})
}

// No tag key is before the first one: rows that have it have nothing before it.
func TestPrefixes_firstTagKey(t *testing.T) {
	p := access.NewPrefixes(encoding.DefaultSchema(), encoding.UID{0, 0, 1})
	value := encoding.UID{0, 0, 5}
	got := p.Append(nil, hour, []encoding.UID{value})
	if want := slices.Concat(hour, []byte{0, 0, 1}, []byte(value)); !bytes.Equal(got[0].Start, want) {
		t.Errorf("the ranges %v begin with %X, want %X", got, got[0].Start, want)
	}
}
