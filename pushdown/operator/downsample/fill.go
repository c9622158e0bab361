package downsample

import (
	"errors"
	"math"
	"slices"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
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

// checkBuckets is after how many buckets of a grid the guard is asked.
const checkBuckets = 1 << 16

// GridLen is about the number of buckets of the grid, at most a few per cent too
// small for calendar buckets: to refuse a query before its grid is made.
func (b *Bucketer) GridLen() int64 {
	if !b.Fills() {
		return 0
	}
	return (b.gridTo-b.gridFrom)/b.width + 2
}

// Guarded has the grid and all that is filled made within a guard's bounds.
func (b *Bucketer) Guarded(g aggregate.Guard) { b.guard = g }

// gridBytes is what a bucket of the grid takes: its stamp and its start.
const gridBytes = 16

// Grid is the stamps in ms of all buckets that a filled series has, the same for
// every series; nil if the plan does not fill. Some may lie before the scan range
// or outside the query; rates need them. Its errors are the guard's.
func (b *Bucketer) Grid() ([]int64, error) {
	if b.grid != nil || !b.Fills() {
		return b.grid, nil
	}
	about := b.GridLen()
	if err := b.guard.Reserve(about * gridBytes); err != nil {
		return nil, err
	}

	var err error
	b.grid, b.match, err = b.bucketing.grid(b.gridFrom, b.gridTo, int(about), b.guard.Check)
	return b.grid, err
}

// Missing is the value of an empty bucket.
func (b *Bucketer) Missing() float64 {
	if b.fill == scanplan.FillZero {
		return 0
	}
	return math.NaN()
}

// Fill appends to dst one value for each entry of Grid: that of the series'
// bucket which starts there, as Finish returned it, or the fill value. Calendar
// buckets of another phase than the grid's are lost, as in OpenTSDB: what lies
// behind the grid is passed over, what lies ahead waits. The caller has reserved
// the memory of dst; errors are those of Grid.
// Source: FillingDownsampler.next.
func (b *Bucketer) Fill(dst []float64, times []int64, values []float64) ([]float64, error) {
	if _, err := b.Grid(); err != nil {
		return nil, err
	}

	dst = slices.Grow(dst, len(b.match))
	missing := b.Missing()
	k := 0
	for stretch := range slices.Chunk(b.match, checkBuckets) {
		if err := b.guard.Check(); err != nil {
			return nil, err
		}
		for _, start := range stretch {
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
	}
	return dst, nil
}
