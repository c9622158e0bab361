package downsample

import (
	"errors"
	"math"
	"slices"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
)

// checkFill returns OpenTSDB's error for a fill policy that OpenTSDB parses but cannot
// execute.
func checkFill(fill scanplan.Fill) error {
	if fill != "" && !slices.Contains(scanplan.Fills, fill) {
		return errors.New("unhandled fill policy")
	}
	return nil
}

// Fills reports whether empty buckets have a value. One bucket for the whole query is
// never filled.
func (b *Bucketer) Fills() bool {
	_, fills := b.fill.Value()
	return b.width > 0 && fills
}

// checkBuckets is the number of buckets of a grid after which the guard is checked again.
const checkBuckets = 1 << 16

// GridLen is about the number of buckets of the grid; for calendar buckets it may be a
// few per cent too small. With it a query can be refused before its grid is made.
func (b *Bucketer) GridLen() int64 {
	if !b.Fills() {
		return 0
	}
	return (b.gridTo-b.gridFrom)/b.width + 2
}

// Guarded sets the guard of Grid and Fill.
func (b *Bucketer) Guarded(g aggregate.Guard) { b.guard = g }

// gridBytes is the bytes of a bucket of the grid: its stamp and its start.
const gridBytes = 16

// Grid returns the stamps, in ms, of all buckets that a filled series has. They are the
// same for every series; nil if the plan does not fill. Some may be before the scan
// range or outside the query: rates need them. Errors are the guard's.
func (b *Bucketer) Grid() ([]int64, error) {
	if b.grid != nil || !b.Fills() {
		return b.grid, nil
	}

	about := b.GridLen()
	if err := b.guard.Reserve(about * gridBytes); err != nil {
		return nil, err
	}

	var err error
	b.grid, b.gridStarts, err = b.bucketing.grid(b.gridFrom, b.gridTo, int(about), b.guard.Check)
	return b.grid, err
}

// Missing is the value of an empty bucket.
func (b *Bucketer) Missing() float64 {
	if v, fills := b.fill.Value(); fills { //fault:zero-filled-with-nan TestConformance
		return v
	}
	return math.NaN()
}

// Fill appends to dst one value for each entry of Grid: the value of the series' bucket
// that starts there, or the fill value. times and values are what Finish returned.
// Calendar buckets that do not start at an entry of the grid are lost, as in OpenTSDB.
// The caller has reserved the memory of dst. Errors are those of Grid.
// Source: FillingDownsampler.next.
func (b *Bucketer) Fill(dst []float64, times []int64, values []float64) ([]float64, error) {
	if _, err := b.Grid(); err != nil {
		return nil, err
	}

	dst = slices.Grow(dst, len(b.gridStarts))
	missing := b.Missing()
	k := 0
	// A stamp of Grid may differ from the start of the bucket that it stands for: buckets are
	// found by their starts.
	for stretch := range slices.Chunk(b.gridStarts, checkBuckets) {
		if err := b.guard.Check(); err != nil {
			return nil, err
		}

		for _, start := range stretch {
			// Buckets before start were used, or are not in the grid; one after it waits for its entry.
			for k < len(times) && times[k] < start {
				k++
			}
			if k < len(times) && times[k] == start {
				dst = append(dst, values[k])
				continue
			}
			dst = append(dst, missing)
		}
	}
	return dst, nil
}
