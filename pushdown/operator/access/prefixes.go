package access

import (
	"bytes"
	"cmp"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Prefixes are known heads of one tag key, the empty one always among them. A value
// that others may read is not added to any more.
type Prefixes struct {
	tagk  encoding.UID
	width int // of a tag pair
	// stems are the heads, each followed by the tag key. In their order the
	// stretches behind them are disjoint and ascend: a head that is longer
	// than another, but begins with it, goes on with a smaller tag key.
	stems [][]byte
}

// NewPrefixes knows the empty head of a tag key.
func NewPrefixes(s encoding.Schema, tagk encoding.UID) *Prefixes {
	return &Prefixes{tagk: tagk, width: s.TagWidth(), stems: [][]byte{tagk}}
}

// Of is the head in a row's tags: the leading pairs with smaller tag keys.
func (h *Prefixes) Of(tags []byte) []byte {
	n := 0
	for n+h.width <= len(tags) && bytes.Compare(tags[n:n+len(h.tagk)], h.tagk) < 0 {
		n += h.width
	}
	return tags[:n]
}

// Add makes the head of a row's tags known.
func (h *Prefixes) Add(tags []byte) {
	stem := slices.Concat(h.Of(tags), []byte(h.tagk))
	if i, found := slices.BinarySearchFunc(h.stems, stem, bytes.Compare); !found {
		h.stems = slices.Insert(h.stems, i, stem)
	}
}

// join is what two know together, the first of them, if that is not too much; other
// hours may have other heads. Either may be nil.
func join(h, old *Prefixes) *Prefixes {
	if h == nil || old == nil || len(h.stems)+len(old.stems) > MaxHeads {
		return cmp.Or(h, old)
	}
	all := slices.Concat(h.stems, old.stems)
	slices.SortFunc(all, bytes.Compare)
	return &Prefixes{tagk: h.tagk, width: h.width, stems: slices.CompactFunc(all, bytes.Equal)}
}

// bytes is the memory of the heads, about; nil has none.
func (h *Prefixes) bytes() int {
	if h == nil {
		return 8
	}
	n := 64
	for _, stem := range h.stems {
		n += 24 + cap(stem)
	}
	return n
}

// Len is the number of known heads.
func (h *Prefixes) Len() int { return len(h.stems) }

// Count is how many ranges at most Append makes of so many values.
func (h *Prefixes) Count(values int) int { return len(h.stems) * (values + 1) }

// Append appends the ranges of one hour that can hold rows whose tag has one of
// values, which ascend: ascending and disjoint, some may touch. hour is the
// beginning of its keys: salt, metric and base time.
func (h *Prefixes) Append(dst []store.KeyRange, hour []byte, values []encoding.UID) []store.KeyRange {
	at := hour
	for _, stem := range h.stems {
		key := slices.Concat(hour, stem)
		if encoding.UIDNumber(h.tagk) > 1 { // no tag key is smaller than 1
			dst = append(dst, store.KeyRange{Start: at, Stop: key})
		}
		for _, v := range values {
			wanted := slices.Concat(key, v)
			dst = append(dst, store.KeyRange{Start: wanted, Stop: encoding.PrefixEnd(wanted)})
		}
		at = encoding.PrefixEnd(key[:len(key)-len(h.tagk)])
	}
	return dst // the empty head comes last, and ends the hour
}

// Intersect is what lies in a range of both lists, which ascend and are disjoint.
func Intersect(a, b []store.KeyRange) (both []store.KeyRange) {
	for len(a) > 0 && len(b) > 0 {
		start, stop := a[0].Start, a[0].Stop
		if bytes.Compare(b[0].Start, start) > 0 {
			start = b[0].Start
		}
		first := ends(a[0].Stop, b[0].Stop)
		if !first {
			stop = b[0].Stop
		}
		if len(stop) == 0 || bytes.Compare(start, stop) < 0 {
			both = append(both, store.KeyRange{Start: start, Stop: stop})
		}
		if first {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return both
}

// ends tells whether a range that stops at a ends no later than one at b; an empty
// stop is the table's end.
func ends(a, b []byte) bool {
	return len(b) == 0 || len(a) != 0 && bytes.Compare(a, b) <= 0
}
