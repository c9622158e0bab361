package downsample

import (
	"errors"
	"math"

	"downpour/encoding/scanplan"
)

// checkFill refuses a policy that OpenTSDB parses and cannot run, in its words.
func checkFill(fill scanplan.Fill) error {
	switch fill {
	case scanplan.FillNone, scanplan.FillNaN, scanplan.FillNull, scanplan.FillZero, "":
		return nil
	}
	return errors.New("unhandled fill policy")
}

// Fills tells whether empty buckets get a value. One bucket of the whole query
// is never filled.
func (b *Bucketer) Fills() bool {
	return b.width > 0 && b.fill != scanplan.FillNone && b.fill != ""
}

// GridLen is about the number of buckets of the grid, at most a few per cent too
// small for calendar buckets: to refuse a query before its grid is made.
func (b *Bucketer) GridLen() int64 {
	if !b.Fills() {
		return 0
	}
	return (b.gridTo-b.gridFrom)/b.width + 2
}

// Grid is the stamps in ms of all buckets that a filled series has, the same for
// every series; nil if the plan does not fill. Some may lie before the scan range
// or outside the query; rates need them.
func (b *Bucketer) Grid() []int64 {
	if b.grid == nil && b.Fills() {
		b.grid, b.match = b.bucketing.grid(b.gridFrom, b.gridTo)
	}
	return b.grid
}

// Fill appends to dst one value for each entry of Grid: that of the series'
// bucket which starts there, as Finish returned it, or the fill value. Calendar
// buckets of another phase than the grid's are lost, as in OpenTSDB: what lies
// behind the grid is passed over, what lies ahead waits.
// Source: FillingDownsampler.next.
func (b *Bucketer) Fill(dst []float64, times []int64, values []float64) []float64 {
	missing := math.NaN()
	if b.fill == scanplan.FillZero {
		missing = 0
	}
	b.Grid()
	k := 0
	for _, start := range b.match {
		for k < len(times) && times[k] < start {
			k++
		}
		if k < len(times) && times[k] == start {
			dst = append(dst, values[k])
			k++
			continue
		}
		dst = append(dst, missing)
	}
	return dst
}
