package dispatch

import (
	"bytes"
	"slices"
	"sort"

	"downpour/encoding/scanplan"
)

// coverage records which key intervals of a plan were accepted. It stores the opposite:
// the wanted intervals not yet accepted. It is for one goroutine.
type coverage struct {
	holes []scanplan.KeyRange // ascending, disjoint
}

// newCoverage wants the given ranges, which are ascending and disjoint.
func newCoverage(wanted []scanplan.KeyRange) *coverage {
	return &coverage{holes: slices.Clone(wanted)}
}

// accept marks an interval as accepted. It returns false, and changes nothing, if any
// key of the interval is not wanted or was accepted before. The caller must then
// discard its records.
func (c *coverage) accept(r scanplan.KeyRange) bool {
	if empty(r) {
		return false
	}

	// The only hole that may have all of it is the last one that does not start behind it.
	i := sort.Search(len(c.holes), func(i int) bool { return bytes.Compare(c.holes[i].Start, r.Start) > 0 }) - 1
	if i < 0 || !stopsBy(r.Stop, c.holes[i].Stop) { //fault:interval-accepted-unwanted TestCoverage
		return false
	}

	// The hole's ends remain.
	hole := c.holes[i]
	var rest []scanplan.KeyRange
	if left := (scanplan.KeyRange{Start: hole.Start, Stop: r.Start}); !bytes.Equal(hole.Start, r.Start) {
		rest = append(rest, left)
	}
	if right := (scanplan.KeyRange{Start: r.Stop, Stop: hole.Stop}); !bytes.Equal(hole.Stop, r.Stop) {
		rest = append(rest, right)
	}
	c.holes = slices.Replace(c.holes, i, i+1, rest...) //fault:attempt-merged-twice TestCoverage
	return true
}

// missing lists the wanted intervals not yet accepted, ascending.
func (c *coverage) missing() []scanplan.KeyRange { return slices.Clone(c.holes) }

// complete reports whether everything wanted was accepted.
func (c *coverage) complete() bool { return len(c.holes) == 0 } //fault:hole-not-issued-again TestRun_chaos

// stopsBy reports whether an interval with the given stop key ends at or before
// bound. An empty key is the table's end.
func stopsBy(stop, bound []byte) bool {
	return len(bound) == 0 || len(stop) > 0 && bytes.Compare(stop, bound) <= 0
}

func empty(r scanplan.KeyRange) bool {
	return len(r.Stop) > 0 && bytes.Compare(r.Start, r.Stop) >= 0
}
