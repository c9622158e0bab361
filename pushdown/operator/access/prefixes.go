package access

import (
	"bytes"
	"cmp"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Prefixes are the known key prefixes of one tag key; the empty one is always among
// them. Once a value is shared it does not change.
type Prefixes struct {
	tagk  encoding.UID
	width int // of a tag pair
	// prefixes are the key prefixes in ascending order, each followed by the tag key.
	// In this order the ranges of keys that follow them are disjoint and ascend: a
	// prefix that extends another one extends it with a smaller tag key.
	prefixes [][]byte
}

// NewPrefixes returns the empty prefix of a tag key.
func NewPrefixes(s encoding.Schema, tagk encoding.UID) *Prefixes {
	return &Prefixes{tagk: tagk, width: s.TagWidth(), prefixes: [][]byte{tagk}}
}

// Of returns the prefix in the tags of a row: its leading pairs with smaller tag
// keys.
func (p *Prefixes) Of(tags []byte) []byte {
	n := 0
	for n+p.width <= len(tags) && bytes.Compare(tags[n:n+len(p.tagk)], p.tagk) < 0 {
		n += p.width
	}
	return tags[:n]
}

// Add adds the prefix in the tags of a row.
func (p *Prefixes) Add(tags []byte) {
	prefix := slices.Concat(p.Of(tags), []byte(p.tagk))
	if i, found := slices.BinarySearchFunc(p.prefixes, prefix, bytes.Compare); !found {
		p.prefixes = slices.Insert(p.prefixes, i, prefix)
	}
}

// union returns the prefixes of both, because other hours may have other prefixes. If
// that would be more than MaxPrefixes it returns the newer ones. Either may be nil.
func union(newer, older *Prefixes) *Prefixes {
	if newer == nil || older == nil || len(newer.prefixes)+len(older.prefixes) > MaxPrefixes {
		return cmp.Or(newer, older)
	}

	all := slices.Concat(newer.prefixes, older.prefixes)
	slices.SortFunc(all, bytes.Compare)
	return &Prefixes{tagk: newer.tagk, width: newer.width, prefixes: slices.CompactFunc(all, bytes.Equal)}
}

// bytes is about the memory of the prefixes; p may be nil.
func (p *Prefixes) bytes() int {
	if p == nil {
		return 8 // its pointer
	}
	n := 64 // without the prefixes
	for _, prefix := range p.prefixes {
		n += 24 + cap(prefix) // its slice header and its bytes
	}
	return n
}

// Len is the number of prefixes.
func (p *Prefixes) Len() int { return len(p.prefixes) }

// MaxRanges is the largest number of ranges that Append appends for a number of
// values.
func (p *Prefixes) MaxRanges(values int) int { return len(p.prefixes) * (values + 1) }

// Append appends the key ranges of one hour that can hold rows whose tag has one of
// values, which ascend. The ranges ascend and are disjoint; some may touch. hour is
// the beginning of the hour's keys: salt, metric and base time.
func (p *Prefixes) Append(dst []store.KeyRange, hour []byte, values []encoding.UID) []store.KeyRange {
	// In each round, at is the first key that is not yet decided on.
	at := hour
	for _, prefix := range p.prefixes {
		key := slices.Concat(hour, prefix)

		// The keys up to this prefix and tag key: rows with prefixes that are not
		// known. For the tag key with UID 1 there are none, because no tag key is
		// smaller.
		if encoding.UIDNumber(p.tagk) > 1 {
			dst = append(dst, store.KeyRange{Start: at, Stop: key})
		}

		for _, v := range values {
			wanted := slices.Concat(key, v)
			dst = append(dst, store.KeyRange{Start: wanted, Stop: encoding.PrefixEnd(wanted)})
		}

		// All other keys with this prefix are skipped.
		at = encoding.PrefixEnd(key[:len(key)-len(p.tagk)])
	}
	return dst // the empty prefix comes last, and its end is the end of the hour
}

// Intersect returns the ranges of keys that are in a range of both lists. In each list
// ranges ascend and are disjoint.
func Intersect(a, b []store.KeyRange) (both []store.KeyRange) {
	for len(a) > 0 && len(b) > 0 {
		start, stop := a[0].Start, a[0].Stop
		if bytes.Compare(b[0].Start, start) > 0 {
			start = b[0].Start
		}
		first := endsFirst(a[0].Stop, b[0].Stop)
		if !first {
			stop = b[0].Stop
		}
		if len(stop) == 0 || bytes.Compare(start, stop) < 0 {
			both = append(both, store.KeyRange{Start: start, Stop: stop})
		}

		// The range that ends first cannot meet another one.
		if first {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return both
}

// endsFirst reports whether a range with stop a ends no later than one with stop b.
// An empty stop is the table's end.
func endsFirst(a, b []byte) bool {
	return len(b) == 0 || len(a) != 0 && bytes.Compare(a, b) <= 0
}
