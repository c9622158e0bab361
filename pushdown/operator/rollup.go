package operator

import (
	"bytes"
	"errors"
	"math"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/downsample"
	"downpour/pushdown/store"
)

// rollupRows is the stage of a part that reads a rollup table: it decodes its rows and
// makes buckets of their values. A bucket is never shipped open: it is in one row, or
// the part is all of its salt bucket. For an average it adds up the sums and the counts
// of each bucket and divides once, at the bucket's end. Source: RollupSeq,
// Downsampler.next.
type rollupRows struct {
	plan   *scanplan.Plan
	values encoding.RollupDecoder
	counts *encoding.RollupDecoder // with an average

	// template is the bucketer of the values, of an average that of sums and of counts.
	// Buckets in rows are made by it; otherwise each span has copies of it.
	template downsample.Bucketer
	overRows bool
	held     int64

	row     encoding.Points // of the present row
	count   encoding.Points
	doubles []float64
}

// newRollupRows returns the stage of a part that reads a rollup table.
func newRollupRows(part *scanplan.Part) (*rollupRows, error) {
	p := &part.Plan
	f := &rollupRows{
		plan:     p,
		overRows: !p.BucketsInRows(),
		values:   encoding.RollupDecoder{Layout: p.Rollup.Layout, Column: p.Rollup.Column},
	}
	// The rest of an open bucket would be in another part, and so would its count.
	if f.overRows && !(part.Starts() && part.Ends()) {
		return nil, errors.New("a part of a rollup cuts buckets, want a whole salt bucket")
	}

	d := *p.Downsample
	if p.Rollup.Count != nil {
		f.counts = &encoding.RollupDecoder{Layout: p.Rollup.Layout, Column: *p.Rollup.Count}
		d.Function = "sum" // of sums and of counts; divide makes averages of them
	}
	b, err := downsample.New(&d, p.From, p.To, p.Start, p.End)
	if err != nil {
		return nil, err
	}
	f.template = *b
	return f, nil
}

// columns are the qualifiers that hold the plan's columns, ascending.
func (f *rollupRows) columns() (ranges []store.KeyRange) {
	for _, c := range f.plan.Rollup.Columns() {
		for _, prefix := range c.Prefixes() {
			ranges = append(ranges, store.KeyRange{Start: prefix, Stop: encoding.PrefixEnd(prefix)})
		}
	}
	return disjoint(ranges)
}

// disjoint sorts ranges by their start and joins those that overlap: an ID may be the
// letter that a name begins with. Ranges that touch stay two, because a store may read
// prefixes faster than other ranges.
func disjoint(ranges []store.KeyRange) []store.KeyRange {
	slices.SortFunc(ranges, func(a, b store.KeyRange) int { return bytes.Compare(a.Start, b.Start) })
	out := ranges[:1]
	for _, r := range ranges[1:] {
		last := &out[len(out)-1]
		if len(last.Stop) == 0 || bytes.Compare(r.Start, last.Stop) < 0 {
			if len(last.Stop) > 0 && (len(r.Stop) == 0 || bytes.Compare(r.Stop, last.Stop) > 0) {
				last.Stop = r.Stop
			}
			continue
		}
		out = append(out, r)
	}
	return out
}

// add decodes a row and adds its buckets to the arena, or its values to the span's
// buckets. It returns the number of values and of cells that are none of the plan's.
func (f *rollupRows) add(a *arena, sp *series, base uint32, cells []store.Cell) (points, skipped int, err error) {
	if skipped, err = f.decode(base, cells); err != nil || f.row.Len() == 0 {
		return 0, skipped, err
	}
	sp.setFirst(&f.row)
	points = f.row.Len()

	// Buckets reach over rows: they stay open until finish.
	if f.overRows {
		f.addToSpan(sp)
		return points, skipped, nil
	}

	f.template.Reset()
	f.template.Points(f.row.Time, f.rowDoubles())
	times, values := f.template.Finish()
	sums := a.addBuckets(sp, times, values)

	// decode has kept equal times only, so sums and counts have the same buckets. sums
	// is the arena's copy: the template's own memory is used again for the counts.
	if f.counts != nil {
		f.template.Reset()
		f.template.Points(f.count.Time, f.countDoubles())
		_, counts := f.template.Finish()
		divide(sums, counts)
	}
	return points, skipped, nil
}

// decode reads the row's values, and for an average its counts. An interval that has a sum without
// a count, or a count without a sum, is skipped, as in RollupSeq.
func (f *rollupRows) decode(base uint32, cells []store.Cell) (skipped int, err error) {
	f.row.Reset()
	f.count.Reset()
	f.values.Reset(base)
	if f.counts != nil {
		f.counts.Reset(base)
	}

	for i := range cells {
		c := &cells[i]
		ok, err := f.values.Add(c.Qualifier, c.Value, c.Timestamp)
		if err == nil && !ok && f.counts != nil {
			ok, err = f.counts.Add(c.Qualifier, c.Value, c.Timestamp)
		}
		if err != nil {
			return skipped, err
		}
		if !ok {
			skipped++
		}
	}

	f.values.Finish(&f.row)
	if f.counts != nil {
		f.counts.Finish(&f.count)
		keepCommon(&f.row, &f.count)
	}
	return skipped, nil
}

// keepCommon removes from two columns, sums and counts, the points at times that the other
// does not have.
func keepCommon(a, b *encoding.Points) {
	n, i, j := 0, 0, 0
	for i < a.Len() && j < b.Len() {
		switch {
		case a.Time[i] < b.Time[j]:
			i++
		case a.Time[i] > b.Time[j]:
			j++
		default:
			a.Time[n], a.Bits[n], a.Float[n] = a.Time[i], a.Bits[i], a.Float[i]
			b.Time[n], b.Bits[n], b.Float[n] = b.Time[j], b.Bits[j], b.Float[j]
			n, i, j = n+1, i+1, j+1
		}
	}
	*a, *b = a.Slice(0, n), b.Slice(0, n)
}

// rowDoubles returns the values of the present row.
func (f *rollupRows) rowDoubles() []float64 {
	f.doubles = f.row.AppendDoubles(f.doubles[:0])
	return f.doubles
}

// countDoubles returns the counts of the present row: whole numbers, also where they
// were written as floats. Source: RollupSeq, its valueCount.
func (f *rollupRows) countDoubles() []float64 {
	f.doubles = f.count.AppendDoubles(f.doubles[:0])
	for i, n := range f.doubles {
		f.doubles[i] = math.Trunc(n)
	}
	return f.doubles
}

// addToSpan adds the present row to the span's bucketers.
func (f *rollupRows) addToSpan(sp *series) {
	sp.bucketer = f.addTo(sp.bucketer, f.row.Time, f.rowDoubles())
	if f.counts != nil {
		sp.counts = f.addTo(sp.counts, f.count.Time, f.countDoubles())
	}
}

// addTo adds points to a bucketer, a new one if b is nil, and returns it.
func (f *rollupRows) addTo(b *downsample.Bucketer, times []int64, doubles []float64) *downsample.Bucketer {
	if b == nil {
		one := f.template // which has no points: only buckets in rows are made by it
		b = &one
		f.held += bucketerBytes
	}
	before := b.Held()
	b.Points(times, doubles)
	f.held += b.Held() - before
	return b
}

// divide makes averages of sums. A bucket whose counts add up to 0 has the average 0, as
// in Downsampler.next.
func divide(sums, counts []float64) {
	for i, n := range counts {
		if n == 0 {
			sums[i] = 0
		} else {
			sums[i] /= n
		}
	}
}

// finish adds the span's buckets after its last row.
func (f *rollupRows) finish(a *arena, sp *series) {
	if sp.bucketer == nil { // its buckets are in rows, and add has added them, or it has none
		return
	}

	times, values := sp.bucketer.Finish()
	sums := a.addBuckets(sp, times, values)
	// decode leaves only equal times in both, so sums and counts have the same buckets.
	if sp.counts != nil {
		_, counts := sp.counts.Finish()
		divide(sums, counts)
	}
	sp.bucketer, sp.counts = nil, nil
}

func (f *rollupRows) pending() int64 { return f.held }
