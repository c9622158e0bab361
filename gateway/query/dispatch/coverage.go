package dispatch

import (
	"bytes"
	"slices"

	"downpour/encoding/scanplan"
)

// coverage keeps which key intervals of a plan have been accepted. It is a pure
// structure for one goroutine.
type coverage struct {
	holes []scanplan.KeyRange // wanted and not accepted yet; ascending, disjoint
}

// newCoverage wants the given ranges, which are ascending and disjoint.
func newCoverage(wanted []scanplan.KeyRange) *coverage {
	return &coverage{holes: slices.Clone(wanted)}
}

// accept takes an interval out of what is wanted. It returns false, and changes
// nothing, if any of it is not wanted or was accepted before: then what came
// with it must be thrown away.
func (l *coverage) accept(r scanplan.KeyRange) bool {
	if empty(r) {
		return false
	}
	for i, h := range l.holes {
		if bytes.Compare(h.Start, r.Start) > 0 || !stopsBy(r.Stop, h.Stop) {
			continue
		}
		var rest []scanplan.KeyRange
		if left := (scanplan.KeyRange{Start: h.Start, Stop: r.Start}); !bytes.Equal(h.Start, r.Start) {
			rest = append(rest, left)
		}
		if right := (scanplan.KeyRange{Start: r.Stop, Stop: h.Stop}); !bytes.Equal(h.Stop, r.Stop) {
			rest = append(rest, right)
		}
		l.holes = slices.Replace(l.holes, i, i+1, rest...)
		return true
	}
	return false
}

// missing lists what was not accepted yet, ascending.
func (l *coverage) missing() []scanplan.KeyRange { return slices.Clone(l.holes) }

// complete tells whether everything wanted was accepted.
func (l *coverage) complete() bool { return len(l.holes) == 0 }

// stopsBy tells whether an interval that ends at stop ends at or before bound;
// an empty key is the table's end.
func stopsBy(stop, bound []byte) bool {
	return len(bound) == 0 || len(stop) > 0 && bytes.Compare(stop, bound) <= 0
}

func empty(r scanplan.KeyRange) bool {
	return len(r.Stop) > 0 && bytes.Compare(r.Start, r.Stop) >= 0
}
