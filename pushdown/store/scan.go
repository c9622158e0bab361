package store

import "bytes"

// Scan says which rows and cells to read. The zero value of every field but
// Table means "no restriction".
type Scan struct {
	Table  string
	Start  []byte // first key
	Stop   []byte // first key not to return; empty: the table's end
	Family string

	// Filter names the rows wanted inside [Start, Stop).
	Filter RowFilter
	// Columns restricts cells to qualifier ranges; a row without such a cell
	// is not returned.
	Columns []KeyRange
	// Since restricts cells to those written at or after it, ms since 1970.
	Since int64
	// MaxRows ends the scan after so many rows.
	MaxRows int
	// KeysOnly asks for keys and one cell a row, its value left out where the
	// server can do that.
	KeysOnly bool
	// BlockBytes is a hint: about how many bytes one block of Next holds.
	BlockBytes int
}

// KeyRange is a half-open interval of byte strings. An empty Stop has no end.
type KeyRange struct{ Start, Stop []byte }

// Contains tells whether key lies in the range.
func (r KeyRange) Contains(key []byte) bool {
	return bytes.Compare(key, r.Start) >= 0 && (len(r.Stop) == 0 || bytes.Compare(key, r.Stop) < 0)
}

// RowFilter selects rows by their key alone. Both parts must admit a row; an
// unset part admits all. It is exact, but a store may return a superset.
type RowFilter struct {
	// Ranges lists wanted keys as sorted, disjoint ranges inside the scan:
	// the store seeks from one to the next.
	Ranges []KeyRange
	// Pattern restricts the elements behind a key's head.
	Pattern *KeyPattern
}

// Matches tells whether the filter admits key.
func (f RowFilter) Matches(key []byte) bool {
	return (len(f.Ranges) == 0 || inRanges(f.Ranges, key)) && (f.Pattern == nil || f.Pattern.Matches(key))
}

// KeyPattern matches keys made of a head of fixed length, followed by elements
// of fixed length in ascending order, each a name followed by a value:
//
//	head (Head bytes) | name value | name value | …
//
// Every Want must be found among the elements, in order; elements between them
// are free. It is what a row-key regular expression
// ^.{Head}(?:.{w})*?name(?:v1|v2)… says.
type KeyPattern struct {
	Head     int
	NameLen  int
	ValueLen int
	Wants    []Want // ascending by Name
	Exact    bool   // no other elements than Wants
}

// Want asks for an element by name, and by value unless Values is empty.
type Want struct {
	Name   []byte
	Values [][]byte // ascending, each ValueLen bytes; empty: any
}

// Matches tells whether key has the wanted elements.
func (p *KeyPattern) Matches(key []byte) bool {
	step := p.NameLen + p.ValueLen
	if step <= 0 { // elements without bytes: there can be none
		return len(key) == p.Head && len(p.Wants) == 0
	}
	if len(key) < p.Head || (len(key)-p.Head)%step != 0 {
		return false
	}
	elements, wants := key[p.Head:], p.Wants
	if p.Exact && len(elements) != len(wants)*step {
		return false
	}
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

// admits searches the sorted values for v.
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

// inRanges searches sorted disjoint ranges for key.
func inRanges(ranges []KeyRange, key []byte) bool {
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
