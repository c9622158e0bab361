package operator

import (
	"sort"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/downsample"
	"downpour/pushdown/store"
)

// downsampler is the stage behind decoding: it puts a row's points into the arena as
// the plan wants them. There are four, by what a part of the plan's rows can
// know of a bucket (reference: a row is one hour of one series):
//
//	rawDownsampler    no downsampling, or buckets whose place depends on points that
//	           another part may have (calendar, all): the points themselves
//	hourDownsampler   buckets divide the hour: every bucket lies in one row
//	edgeDownsampler   other fixed buckets: the first and the last of a span may have
//	           points in another part and are shipped as points, unless the
//	           part starts or ends its salt bucket
//	wholeDownsampler  the part is all of its salt bucket: any bucket is whole
type downsampler interface {
	// add takes a row's points, of which there is at least one; they stay
	// valid until the call returns.
	add(a *arena, sp *series, row *encoding.Points)
	// finish is called once per span, behind its last row.
	finish(a *arena, sp *series)
	// pending is the memory in bytes that is held outside the arena.
	pending() int64
}

// newDownsampler chooses. An error says that the downsampling is not known here.
func newDownsampler(part *scanplan.Part) (downsampler, error) {
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
	case d.DividesHour():
		return &hourDownsampler{run: run{bucketer: b}}, nil
	case starts && ends:
		return &wholeDownsampler{fresh: *b}, nil
	case d.All || d.Calendar:
		return rawDownsampler{}, nil
	}
	return &edgeDownsampler{run: run{bucketer: b}, starts: starts, ends: ends}, nil
}

type rawDownsampler struct{}

func (rawDownsampler) add(a *arena, sp *series, row *encoding.Points) {
	s := a.open()
	a.raw.AppendPoints(*row)
	a.close(sp, s)
}

func (rawDownsampler) finish(*arena, *series) {}
func (rawDownsampler) pending() int64         { return 0 }

// run makes buckets of points that hold none but whole buckets.
type run struct {
	bucketer *downsample.Bucketer
	doubles  []float64
}

func (r *run) add(a *arena, sp *series, p encoding.Points) {
	if p.Len() == 0 {
		return
	}
	r.doubles = p.AppendDoubles(r.doubles[:0])
	r.bucketer.Reset()
	r.bucketer.Points(p.Time, r.doubles)
	times, values := r.bucketer.Finish()
	s := a.open()
	a.times = append(a.times, times...)
	a.values = append(a.values, values...)
	a.close(sp, s)
}

// hourDownsampler makes buckets of a row without its points in between, see hour.
type hourDownsampler struct{ run }

func (f *hourDownsampler) add(a *arena, sp *series, row *encoding.Points) { f.run.add(a, sp, *row) }
func (f *hourDownsampler) finish(*arena, *series)                         {}
func (f *hourDownsampler) pending() int64                                 { return 0 }

// hour decodes a row, puts its buckets into the arena and returns the number of
// its points.
func (f *hourDownsampler) hour(a *arena, sp *series, base uint32, d *encoding.RowDecoder, cells []store.Cell) (points int, err error) {
	var offsets []int32
	only := false
	if len(cells) == 1 {
		if points = f.even(a, sp, base, d, &cells[0]); points > 0 {
			return points, nil
		}
		offsets, f.doubles, only = d.OnlyCell(cells[0].Qualifier, cells[0].Value, f.doubles)
	}
	if !only {
		if err = addCells(d, base, cells); err == nil {
			offsets, f.doubles, err = d.FinishDoubles(f.doubles)
		}
	}
	if err != nil || len(offsets) == 0 {
		return 0, err
	}
	s := a.open()
	a.times, a.values = f.bucketer.AppendHour(a.times, a.values, int64(base)*1000, offsets, f.doubles)
	a.close(sp, s)
	return len(offsets), nil
}

// even puts a row's buckets into the arena if they can be made without its single
// points, and returns the number of these, else 0.
func (f *hourDownsampler) even(a *arena, sp *series, base uint32, d *encoding.RowDecoder, c *store.Cell) (points int) {
	if !f.bucketer.TakesEven() {
		return 0
	}
	e, ok := d.OnlyEven(c.Qualifier, c.Value)
	if !ok {
		return 0
	}
	s := a.open()
	a.times, a.values = f.bucketer.AppendEven(a.times, a.values, int64(base)*1000, e)
	a.close(sp, s)
	return e.Points
}

// edgeDownsampler keeps per span the points of its newest bucket, which the next row
// may add to.
type edgeDownsampler struct {
	run
	starts, ends bool
	room         int64 // points that all spans' pending have room for
}

func (f *edgeDownsampler) add(a *arena, sp *series, row *encoding.Points) {
	p := &sp.pending
	before := cap(p.Time)
	p.AppendPoints(*row)
	f.room += int64(cap(p.Time) - before)
	f.takeBuckets(a, sp, f.bucketStarts(p, f.run.bucketer.BucketStart(p.Time[p.Len()-1])))
}

// bucketStarts is the index of the first point that lies in or behind the
// bucket that starts at ms.
func (f *edgeDownsampler) bucketStarts(p *encoding.Points, ms int64) int {
	return sort.Search(p.Len(), func(i int) bool { return p.Time[i] >= ms })
}

// takeBuckets moves the first n pending points, which end with a bucket, on.
func (f *edgeDownsampler) takeBuckets(a *arena, sp *series, n int) {
	if n == 0 {
		return
	}
	p := &sp.pending
	head := 0
	if !f.starts && !sp.headDone {
		first := f.run.bucketer.BucketStart(p.Time[0])
		head = sort.Search(n, func(i int) bool { return f.run.bucketer.BucketStart(p.Time[i]) > first })
		rawDownsampler{}.add(a, sp, ptr(p.Slice(0, head)))
	}
	sp.headDone = true
	f.run.add(a, sp, p.Slice(head, n))
	f.drop(p, n)
}

// drop removes the first n points of p.
func (f *edgeDownsampler) drop(p *encoding.Points, n int) {
	p.Time = append(p.Time[:0], p.Time[n:]...)
	p.Bits = append(p.Bits[:0], p.Bits[n:]...)
	p.Float = append(p.Float[:0], p.Float[n:]...)
}

// finish closes the newest bucket if nothing can follow, else ships its points.
func (f *edgeDownsampler) finish(a *arena, sp *series) {
	p := &sp.pending
	if f.ends {
		f.takeBuckets(a, sp, p.Len())
		return
	}
	rawDownsampler{}.add(a, sp, p)
	f.drop(p, p.Len())
}

func (f *edgeDownsampler) pending() int64 { return f.room * pointBytes }

func ptr(p encoding.Points) *encoding.Points { return &p }

// wholeDownsampler has a bucketer for each span, because a span's buckets may depend on
// its first point; results come at the end.
type wholeDownsampler struct {
	fresh   downsample.Bucketer // never used itself; to make one is dear: time zones
	doubles []float64
	held    int64
}

// bucketerBytes is about what a bucketer takes beside what it holds.
const bucketerBytes = 320

func (f *wholeDownsampler) add(_ *arena, sp *series, row *encoding.Points) {
	if sp.whole == nil {
		b := f.fresh
		sp.whole = &b
		sp.whole.Reset()
		f.held += bucketerBytes
	}
	f.doubles = row.AppendDoubles(f.doubles[:0])

	// Of some functions the open bucket has all its points, and one that is as long
	// as the query all that there are.
	before := sp.whole.Held()
	sp.whole.Points(row.Time, f.doubles)
	f.held += sp.whole.Held() - before
}

func (f *wholeDownsampler) finish(a *arena, sp *series) {
	if sp.whole == nil {
		return
	}
	times, values := sp.whole.Finish()
	s := a.open()
	a.times = append(a.times, times...)
	a.values = append(a.values, values...)
	a.close(sp, s)
	sp.whole = nil
}

func (f *wholeDownsampler) pending() int64 { return f.held }
