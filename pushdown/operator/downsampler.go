package operator

import (
	"sort"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/downsample"
	"downpour/pushdown/store"
)

// downsampler is the stage after decoding: it adds a row's points, or the buckets
// computed from them, to the arena. For rows of raw data there are four. Which one a
// part needs depends on how much of a bucket it has after a row, which is one hour of
// one series:
//
//	rawDownsampler    no downsampling, or buckets whose place depends on points that
//	                  another part may have (calendar, all): the points themselves
//	hourDownsampler   buckets divide the hour: every bucket is in one row
//	edgeDownsampler   other buckets of fixed width: the first and the last one of a
//	                  span may have points in another part and are shipped as points,
//	                  unless the part starts or ends its salt bucket
//	wholeDownsampler  the part is all of its salt bucket: every bucket is whole
//
// Windows of points have windowDownsampler. Rows of rollup tables have rollupRows, which decodes them, too.
type downsampler interface {
	// finish is called once for each span, after its last row.
	finish(a *arena, sp *series)
	// pending is the bytes of memory held outside the arena.
	pending() int64
}

// pointDownsampler is a downsampler that takes points.
type pointDownsampler interface {
	downsampler
	// add adds the points of a row, at least one. It must not keep row.
	add(a *arena, sp *series, row *encoding.Points)
}

// newDownsampler chooses the downsampler of a part. It fails if the downsampling is not
// known.
func newDownsampler(part *scanplan.Part) (downsampler, error) {
	if part.Plan.Rollup != nil {
		return newRollupRows(part)
	}
	if part.Plan.Window != nil {
		return newWindowDownsampler(part)
	}
	d := part.Plan.Downsample
	if d == nil {
		return rawDownsampler{}, nil
	}

	b, err := bucketer(&part.Plan)
	if err != nil {
		return nil, err
	}

	starts, ends := part.Starts(), part.Ends()
	switch {
	// Every bucket is in one row.
	case d.DividesHour():
		return &hourDownsampler{run: run{bucketer: b}}, nil
	// The part has all rows of its salt bucket: no bucket is cut.
	case starts && ends:
		return &wholeDownsampler{template: *b}, nil
	// The start of a bucket may depend on points of another part.
	case d.All || d.Calendar:
		return rawDownsampler{}, nil
	}
	// Only the first and the last bucket of a span may have points in another part.
	return &edgeDownsampler{run: run{bucketer: b}, starts: starts, ends: ends}, nil
}

// rawDownsampler ships points as they are stored.
type rawDownsampler struct{}

func (rawDownsampler) add(a *arena, sp *series, row *encoding.Points) {
	s := a.open()
	a.raw.AppendPoints(*row)
	a.close(sp, s)
}

func (rawDownsampler) finish(*arena, *series) {}
func (rawDownsampler) pending() int64         { return 0 }

// run computes the buckets of points, all of which are in whole buckets.
type run struct {
	bucketer *downsample.Bucketer
	doubles  []float64
}

// add adds the buckets of p to the arena.
func (r *run) add(a *arena, sp *series, p encoding.Points) {
	if p.Len() == 0 {
		return
	}

	r.doubles = p.AppendDoubles(r.doubles[:0])
	r.bucketer.Reset()
	r.bucketer.Points(p.Time, r.doubles)
	times, values := r.bucketer.Finish()

	a.addBuckets(sp, times, values)
}

// hourDownsampler computes buckets row by row. It has addHour instead of add, so that the row's cells
// need not become points.
type hourDownsampler struct{ run }

func (f *hourDownsampler) finish(*arena, *series) {}
func (f *hourDownsampler) pending() int64         { return 0 }

// addHour decodes a row, adds its buckets to the arena and returns the number of its
// points.
func (f *hourDownsampler) addHour(a *arena, sp *series, base uint32, d *encoding.RowDecoder,
	cells []store.Cell) (points int, err error) {
	s := a.open()
	if a.times, a.values, points, err = f.appendHour(a.times, a.values, base, d, cells); err == nil {
		a.close(sp, s)
	}
	return points, err
}

// appendHour decodes a row, appends its buckets to times and values and returns the number
// of its points. With an error nothing is appended.
func (f *hourDownsampler) appendHour(times []int64, values []float64, base uint32, d *encoding.RowDecoder,
	cells []store.Cell) ([]int64, []float64, int, error) {
	var offsets []int32
	only := false // OnlyCell has decoded the row

	// Most rows have one cell, which has faster ways.
	if len(cells) == 1 {
		c := &cells[0]
		// Points at equal distances need not be decoded one by one.
		if f.bucketer.TakesEvenlySpaced(encoding.IsSealed(c.Qualifier, c.Value)) {
			if e, ok := d.OnlyEvenlySpaced(c.Qualifier, c.Value); ok {
				times, values = f.bucketer.AppendEvenlySpaced(times, values, int64(base)*1000, &e)
				return times, values, e.Points, nil
			}
		}
		offsets, f.doubles, only = d.OnlyCell(c.Qualifier, c.Value, f.doubles)
	}

	if !only {
		err := addCells(d, base, cells)
		if err == nil {
			offsets, f.doubles, err = d.FinishDoubles(f.doubles)
		}
		if err != nil {
			return times, values, 0, err
		}
	}
	if len(offsets) > 0 {
		times, values = f.bucketer.AppendHour(times, values, int64(base)*1000, offsets, f.doubles)
	}
	return times, values, len(offsets), nil
}

// edgeDownsampler keeps, for each span, the points of its newest bucket, because the
// next row may have more of them.
type edgeDownsampler struct {
	run
	starts, ends bool
	room         int64 // points for which the pending of all spans have memory
}

// add adds to the arena the buckets that are complete: those before the one of the
// newest point.
func (f *edgeDownsampler) add(a *arena, sp *series, row *encoding.Points) {
	p := &sp.pending
	before := cap(p.Time)
	p.AppendPoints(*row)
	f.room += int64(cap(p.Time) - before)
	f.addBuckets(a, sp, indexAt(p, f.run.bucketer.BucketStart(p.Time[p.Len()-1])))
}

// indexAt returns the index of the first point that is not before ms.
func indexAt(p *encoding.Points, ms int64) int {
	return sort.Search(p.Len(), func(i int) bool { return p.Time[i] >= ms })
}

// addBuckets adds the buckets of the first n pending points to the arena and removes
// these points. No other points of their buckets follow.
func (f *edgeDownsampler) addBuckets(a *arena, sp *series, n int) {
	if n == 0 {
		return
	}

	// The first bucket of the part may have points in the part before: it is shipped
	// as points.
	p := &sp.pending
	raw := 0
	if !f.starts && !sp.firstDone {
		start := f.run.bucketer.BucketStart(p.Time[0])
		raw = sort.Search(n, func(i int) bool { return f.run.bucketer.BucketStart(p.Time[i]) > start })
		points := p.Slice(0, raw)
		rawDownsampler{}.add(a, sp, &points)
	}
	sp.firstDone = true

	f.run.add(a, sp, p.Slice(raw, n))
	dropFirst(p, n)
}

// dropFirst removes the first n points of p.
func dropFirst(p *encoding.Points, n int) {
	p.Time = append(p.Time[:0], p.Time[n:]...)
	p.Bits = append(p.Bits[:0], p.Bits[n:]...)
	p.Float = append(p.Float[:0], p.Float[n:]...)
}

// finish adds the newest bucket if the plan has no later rows, and otherwise its points.
func (f *edgeDownsampler) finish(a *arena, sp *series) {
	p := &sp.pending
	if f.ends { //fault:bucket-cut-at-a-part TestFusedIsUnfused
		f.addBuckets(a, sp, p.Len())
		return
	}
	rawDownsampler{}.add(a, sp, p)
}

func (f *edgeDownsampler) pending() int64 { return f.room * pointBytes }

// wholeDownsampler has a bucketer for each span, because the place of a span's buckets
// may depend on its first point. The buckets come at the end.
type wholeDownsampler struct {
	template downsample.Bucketer // is copied, because loading a time zone is slow
	doubles  []float64
	held     int64
}

// bucketerBytes is about the bytes of a bucketer without its buckets.
const bucketerBytes = 320

// add adds the points to the span's bucketer. Its buckets are shipped by finish.
func (f *wholeDownsampler) add(_ *arena, sp *series, row *encoding.Points) {
	if sp.bucketer == nil {
		b := f.template // a copy, because loading a time zone is slow; it has no points
		sp.bucketer = &b
		f.held += bucketerBytes
	}

	f.doubles = row.AppendDoubles(f.doubles[:0])

	// For some functions the open bucket holds all its points, and a bucket as long as
	// the query holds all points of the span.
	before := sp.bucketer.Held()
	sp.bucketer.Points(row.Time, f.doubles)
	f.held += sp.bucketer.Held() - before
}

// finish ships the span's buckets. A span that has only annotations has no bucketer.
func (f *wholeDownsampler) finish(a *arena, sp *series) {
	if sp.bucketer == nil {
		return
	}

	times, values := sp.bucketer.Finish()
	a.addBuckets(sp, times, values)
	sp.bucketer = nil
}

func (f *wholeDownsampler) pending() int64 { return f.held }
