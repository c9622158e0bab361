package store

import "bytes"

// Scan is which rows and cells to read. The zero value of every field except Table means "no
// restriction".
type Scan struct {
	Table  string
	Start  []byte // first key
	Stop   []byte // first key not to return; empty: the table's end
	Family string

	// Filter names the rows wanted inside [Start, Stop).
	Filter RowFilter
	// Columns restricts cells to qualifier ranges, ascending and disjoint; a row without such a
	// cell is not returned or counted. Several ranges cost HBase least if each has all qualifiers
	// that begin with its Start.
	Columns []KeyRange
	// MostInColumns is a hint: most cells may be of Columns, so that reading all cells may cost
	// less than a filter. It changes no answer.
	MostInColumns bool
	// Since restricts cells to those written at or after it, ms since 1970.
	Since int64
	// MaxRows ends the scan after that many rows.
	MaxRows int
	// KeysOnly requests keys with one cell per row. The cell has no value if the server can omit
	// it.
	KeysOnly bool
	// Sealed takes the values of append columns as the embedded store keeps old ones, see encoding.Sealer, for those
	// who read them by encoding.RowDecoder. Without it there are entries alone. Other stores have no such values.
	Sealed bool
	// BlockBytes is a hint about the size of the blocks that Next returns.
	BlockBytes int
}

// KeyRange is a half-open interval of byte strings. An empty Stop has no end.
type KeyRange struct{ Start, Stop []byte }

// Contains reports whether key is in the range.
func (r KeyRange) Contains(key []byte) bool {
	return bytes.Compare(key, r.Start) >= 0 && (len(r.Stop) == 0 || bytes.Compare(key, r.Stop) < 0)
}

// RowFilter selects rows by their key alone. Both parts must admit a row; a part that
// is not set admits all. A store may return more rows than the filter admits.
type RowFilter struct {
	// Ranges are the wanted keys as ascending, disjoint ranges inside the scan. The
	// store seeks from one range to the next.
	Ranges []KeyRange
	// Pattern restricts the elements of a key, which follow its first bytes.
	Pattern *KeyPattern
}

// Matches reports whether the filter admits key.
func (f RowFilter) Matches(key []byte) bool {
	return (len(f.Ranges) == 0 || inRanges(f.Ranges, key)) && (f.Pattern == nil || f.Pattern.Matches(key))
}

// KeyPattern matches keys that consist of a part of fixed length, which may be
// anything, and elements of fixed length in ascending order, each a name and a value:
//
//	Head bytes | name value | name value | …
//
// Every Want must be found among the elements, in order, possibly with other elements
// in between. It is equivalent to the regular expression on row keys
// ^.{Head}(?:.{w})*?name(?:v1|v2)…, where w is the length of an element.
type KeyPattern struct {
	Head     int // length of what precedes the elements
	NameLen  int
	ValueLen int
	Wants    []Want // ascending by Name
	Exact    bool   // the key has no other elements than Wants
}

// Want requires an element with a name and, unless Values is empty, one of its values.
type Want struct {
	Name   []byte
	Values [][]byte // ascending, each ValueLen bytes; empty: any
}

// Matches reports whether key has the wanted elements.
func (p *KeyPattern) Matches(key []byte) bool {
	step := p.NameLen + p.ValueLen
	if step <= 0 { // elements have no bytes, so there are none
		return len(key) == p.Head && len(p.Wants) == 0
	}

	if len(key) < p.Head || (len(key)-p.Head)%step != 0 {
		return false
	}
	elements, wants := key[p.Head:], p.Wants
	if p.Exact && len(elements) != len(wants)*step {
		return false
	}

	// Elements and wants both ascend, so one pass over the elements finds all.
	for ; len(elements) > 0 && len(wants) > 0; elements = elements[step:] {
		if !bytes.Equal(elements[:p.NameLen], wants[0].Name) {
			continue
		}
		if !wants[0].admits(elements[p.NameLen:step]) {
			return false
		}
		wants = wants[1:]
	}
	return len(wants) == 0
}

// admits reports whether a value is wanted.
func (w Want) admits(v []byte) bool {
	if len(w.Values) == 0 {
		return true
	}

	lo, hi := 0, len(w.Values)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch c := bytes.Compare(w.Values[mid], v); {
		case c == 0:
			return true
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return false
}

// inRanges reports whether one of ascending, disjoint ranges contains key.
func inRanges(ranges []KeyRange, key []byte) bool {
	// Only the first range that ends after key may contain it.
	lo, hi := 0, len(ranges)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if r := ranges[mid]; len(r.Stop) != 0 && bytes.Compare(r.Stop, key) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(ranges) && ranges[lo].Contains(key)
}
