package merge

import (
	"bytes"
	"slices"

	"downpour/encoding"
	"downpour/encoding/batch"
)

// HasData tells whether a row of a batch says that its series has points. A series
// whose points all lie outside the buckets is announced by one of these points, or
// by a row without anything. A row that holds annotations alone says nothing about
// points.
func HasData(s *batch.Series) bool {
	return len(s.Time) > 0 || s.Raw.Len() > 0 || len(s.Notes) == 0
}

// DescribeTags returns what the spans of a group have in common: tags are the tags
// that have one value among all spans that carry the key, aggregated the tag keys
// that have several values. Both are ascending by tag key.
// Source: SpanGroup.computeTags.
func DescribeTags(s encoding.Schema, spans [][]byte) (tags []encoding.TagPair, aggregated []encoding.UID) {
	var several, pairs []encoding.TagPair // several: keys with several values, without a value
	var checked []bool                    // by tag of last: it is among tags
	var last []byte                       // the span that was looked at

	for _, id := range spans {
		// Most spans say nothing new: they have the keys of the one before, and its values of
		// those that all have in common.
		if sameTags(s, last, id, checked) {
			continue
		}

		pairs = s.AppendPairs(pairs[:0], s.SpanTags(id))
		for _, p := range pairs {
			if _, found := search(several, p.K); found {
				continue // its values differ already
			}

			i, found := search(tags, p.K)
			switch {
			case !found:
				tags = slices.Insert(tags, i, p)
			case !bytes.Equal(tags[i].V, p.V):
				tags = slices.Delete(tags, i, i+1)
				j, _ := search(several, p.K)
				several = slices.Insert(several, j, encoding.TagPair{K: p.K})
			}
		}

		last, checked = id, checked[:0]
		for _, p := range pairs {
			_, found := search(tags, p.K)
			checked = append(checked, found)
		}
	}

	for _, p := range several {
		aggregated = append(aggregated, p.K)
	}
	return tags, aggregated
}

// sameTags reports whether a span has the tag keys of another one, and its values of those
// tags that are checked.
func sameTags(s encoding.Schema, a, b []byte, checked []bool) bool {
	if len(a) == 0 || len(a) != len(b) {
		return false
	}
	a, b = s.SpanTags(a), s.SpanTags(b)
	at, step := 0, s.TagWidth()
	for _, value := range checked {
		end := at + s.TagKWidth
		if value {
			end = at + step
		}
		if string(a[at:end]) != string(b[at:end]) {
			return false
		}
		at += step
	}
	return true
}

// search returns the place of a tag key among pairs, which are ascending by key,
// and whether it is there.
func search(pairs []encoding.TagPair, k encoding.UID) (int, bool) {
	return slices.BinarySearchFunc(pairs, k,
		func(p encoding.TagPair, k encoding.UID) int { return bytes.Compare(p.K, k) })
}
