package operator

import (
	"sort"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/downsample"
	"downpour/pushdown/store"
)

// fold is the stage behind decoding: it puts a row's points into the arena as
// the plan wants them. There are four, by what a part of the plan's rows can
// know of a bucket (reference: a row is one hour of one series):
//
//	rawFold    no downsampling, or buckets whose place depends on points that
//	           another part may have (calendar, all): the points themselves
//	hourFold   buckets divide the hour: every bucket lies in one row
//	edgeFold   other fixed buckets: the first and the last of a span may have
//	           points in another part and are shipped as points, unless the
//	           part starts or ends its salt bucket
//	wholeFold  the part is all of its salt bucket: any bucket is whole
type fold interface {
	// add takes a row's points, of which there is at least one; they stay
	// valid until the call returns.
	add(a *arena, sp *span, row *encoding.Points)
	// finish is called once per span, behind its last row.
	finish(a *arena, sp *span)
	// pending is the memory in bytes that is held outside the arena.
	pending() int64
}

// newFold chooses. An error says that the downsampling is not known here.
func newFold(part *scanplan.Part) (fold, error) {
	d := part.Plan.Downsample
	if d == nil {
		return rawFold{}, nil
	}
	b, err := bucketer(&part.Plan)
	if err != nil {
		return nil, err
	}
	starts, ends := part.Starts(), part.Ends()
	switch {
	case d.DividesHour():
		return &hourFold{run: run{bucketer: b}}, nil
	case starts && ends:
		return &wholeFold{fresh: *b}, nil
	case d.All || d.Calendar:
		return rawFold{}, nil
	}
	return &edgeFold{run: run{bucketer: b}, starts: starts, ends: ends}, nil
}

type rawFold struct{}

func (rawFold) add(a *arena, sp *span, row *encoding.Points) {
	s := a.open()
	a.raw.AppendPoints(*row)
	a.close(sp, s)
}

func (rawFold) finish(*arena, *span) {}
func (rawFold) pending() int64       { return 0 }

// run makes buckets of points that hold none but whole buckets.
type run struct {
	bucketer *downsample.Bucketer
	doubles  []float64
}

func (r *run) add(a *arena, sp *span, p encoding.Points) {
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

// hourFold makes buckets of a row without its points in between, see hour.
type hourFold struct{ run }

func (f *hourFold) add(a *arena, sp *span, row *encoding.Points) { f.run.add(a, sp, *row) }
func (f *hourFold) finish(*arena, *span)                         {}
func (f *hourFold) pending() int64                               { return 0 }

// hour decodes a row, puts its buckets into the arena and returns the number of
// its points.
func (f *hourFold) hour(a *arena, sp *span, base uint32, d *encoding.RowDecoder, cells []store.Cell) (points int, err error) {
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
func (f *hourFold) even(a *arena, sp *span, base uint32, d *encoding.RowDecoder, c *store.Cell) (points int) {
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

// edgeFold keeps per span the points of its newest bucket, which the next row
// may add to.
type edgeFold struct {
	run
	starts, ends bool
	room         int64 // points that all spans' pending have room for
}

func (f *edgeFold) add(a *arena, sp *span, row *encoding.Points) {
	p := &sp.pending
	before := cap(p.Time)
	p.AppendPoints(*row)
	f.room += int64(cap(p.Time) - before)
	f.take(a, sp, f.bucketStarts(p, f.run.bucketer.BucketStart(p.Time[p.Len()-1])))
}

// bucketStarts is the index of the first point that lies in or behind the
// bucket that starts at ms.
func (f *edgeFold) bucketStarts(p *encoding.Points, ms int64) int {
	return sort.Search(p.Len(), func(i int) bool { return p.Time[i] >= ms })
}

// take moves the first n pending points, which end with a bucket, on.
func (f *edgeFold) take(a *arena, sp *span, n int) {
	if n == 0 {
		return
	}
	p := &sp.pending
	head := 0
	if !f.starts && !sp.headDone {
		first := f.run.bucketer.BucketStart(p.Time[0])
		head = sort.Search(n, func(i int) bool { return f.run.bucketer.BucketStart(p.Time[i]) > first })
		rawFold{}.add(a, sp, ptr(p.Slice(0, head)))
	}
	sp.headDone = true
	f.run.add(a, sp, p.Slice(head, n))
	f.drop(p, n)
}

// drop removes the first n points of p.
func (f *edgeFold) drop(p *encoding.Points, n int) {
	p.Time = append(p.Time[:0], p.Time[n:]...)
	p.Bits = append(p.Bits[:0], p.Bits[n:]...)
	p.Float = append(p.Float[:0], p.Float[n:]...)
}

// finish closes the newest bucket if nothing can follow, else ships its points.
func (f *edgeFold) finish(a *arena, sp *span) {
	p := &sp.pending
	if f.ends {
		f.take(a, sp, p.Len())
		return
	}
	rawFold{}.add(a, sp, p)
	f.drop(p, p.Len())
}

func (f *edgeFold) pending() int64 { return f.room * pointBytes }

func ptr(p encoding.Points) *encoding.Points { return &p }

// wholeFold has a bucketer for each span, because a span's buckets may depend on
// its first point; results come at the end.
type wholeFold struct {
	fresh   downsample.Bucketer // never used itself; to make one is dear: time zones
	doubles []float64
	held    int64
}

// bucketerBytes is about what a bucketer takes beside what it holds.
const bucketerBytes = 320

func (f *wholeFold) add(_ *arena, sp *span, row *encoding.Points) {
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

func (f *wholeFold) finish(a *arena, sp *span) {
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

func (f *wholeFold) pending() int64 { return f.held }
