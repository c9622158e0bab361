package merge

import (
	"downpour/encoding"
	"downpour/encoding/batch"
)

// HasData reports whether a row of a batch says that its series has points. A series
// whose points all lie outside the buckets is announced by one of these points, or
// by a row without anything. A row that holds annotations alone says nothing about
// points.
func HasData(s *batch.Series) bool {
	return len(s.Time) > 0 || s.Raw.Len() > 0 || len(s.Notes) == 0
}

// DescribeTags returns what the spans of a group have in common: tags are the tags
// that have one value among all spans that carry the key, aggregated the tag keys
// that have several values. Both are ascending by tag key.
func DescribeTags(s encoding.Schema, spans [][]byte) (tags []encoding.TagPair, aggregated []encoding.UID) {
	c := encoding.NewCommonTags(s)
	for _, id := range spans {
		c.Add(s.SpanTags(id))
	}
	return c.Tags(), c.Aggregated()
}
