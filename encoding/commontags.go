package encoding

import (
	"bytes"
	"slices"
)

// CommonTags is what series have in common: the tags that have one value among all series that carry the
// key, and the tag keys that have several. Source: SpanGroup.computeTags.
type CommonTags struct {
	schema  Schema
	tags    []TagPair // ascending by key
	several []TagPair // keys with several values, without a value, ascending

	last    []byte // the tags of the series that changed something last, or could have
	checked []bool // by tag of last: it is among tags
	pairs   []TagPair
}

// NewCommonTags returns the common tags of no series.
func NewCommonTags(s Schema) *CommonTags { return &CommonTags{schema: s} }

// Add adds a series by its tags, as in its row key, and reports whether they said anything new. The series that
// did have the same in common as all.
func (c *CommonTags) Add(tags []byte) (news bool) {
	// Most series say nothing new: they have the keys of the one before, and its values of those that all
	// have in common.
	if c.sameAsLast(tags) {
		return false
	}

	c.last = append(c.last[:0], tags...)
	c.pairs = c.schema.AppendPairs(c.pairs[:0], c.last)
	for _, p := range c.pairs {
		if _, found := searchPairs(c.several, p.K); found {
			continue // its values differ already
		}

		i, found := searchPairs(c.tags, p.K)
		switch {
		case !found:
			p.K, p.V = bytes.Clone(p.K), bytes.Clone(p.V) // the next series takes the memory of last
			c.tags = slices.Insert(c.tags, i, p)
			news = true
		case !bytes.Equal(c.tags[i].V, p.V):
			j, _ := searchPairs(c.several, p.K)
			c.several = slices.Insert(c.several, j, TagPair{K: c.tags[i].K})
			c.tags = slices.Delete(c.tags, i, i+1)
			news = true
		}
	}

	c.checked = c.checked[:0]
	for _, p := range c.pairs {
		_, found := searchPairs(c.tags, p.K)
		c.checked = append(c.checked, found)
	}
	return news
}

// Tags returns the tags that have one value, ascending by key.
func (c *CommonTags) Tags() []TagPair { return c.tags }

// Aggregated returns the tag keys that have several values, ascending.
func (c *CommonTags) Aggregated() (keys []UID) {
	for _, p := range c.several {
		keys = append(keys, p.K)
	}
	return keys
}

// sameAsLast reports whether tags have the keys of the last ones, and their values of those that are checked.
func (c *CommonTags) sameAsLast(tags []byte) bool {
	if len(tags) == 0 || len(tags) != len(c.last) {
		return false
	}
	at, step := 0, c.schema.TagWidth()
	for _, value := range c.checked {
		end := at + c.schema.TagKWidth
		if value {
			end = at + step
		}
		if string(tags[at:end]) != string(c.last[at:end]) {
			return false
		}
		at += step
	}
	return true
}

// searchPairs returns the place of a tag key among pairs, which are ascending by key, and whether it is there.
func searchPairs(pairs []TagPair, k UID) (int, bool) {
	return slices.BinarySearchFunc(pairs, k, func(p TagPair, k UID) int { return bytes.Compare(p.K, k) })
}
