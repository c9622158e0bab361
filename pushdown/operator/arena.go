package operator

import (
	"downpour/encoding"
	"downpour/encoding/batch"
)

// arena holds what the next batches are made of. Rows come hour after hour, a
// batch lists span after span: so buckets and points are put behind one another
// as they come, each span chains its segments, and emit gathers them. Memory is
// reused from batch to batch, whatever the number of spans.
type arena struct {
	times    []int64
	values   []float64
	raw      encoding.Points
	segments []segment
	order    []*series // spans with anything to emit, as first met
	notes    int       // bytes of annotations
}

// segment is a stretch of the arena's columns that belongs to one span.
type segment struct {
	bucketFrom, bucketTo int
	rawFrom, rawTo       int
	next                 int32
}

// Bytes of one bucket (time, value), of one point (time, bits, float), and of a
// segment.
const (
	bucketBytes  = 16
	pointBytes   = 17
	segmentBytes = 40
)

// held is the size of what waits to be emitted.
func (a *arena) held() int {
	return len(a.times)*bucketBytes + a.raw.Len()*pointBytes + a.notes
}

// taken is about the memory that all of it takes while it waits: rows of a point
// or two take more for their segments than for their points.
func (a *arena) taken() int64 {
	return int64(a.held()+len(a.segments)*segmentBytes+len(a.order)*8) * 5 / 4 // columns grow by a quarter
}

// capacity is about the memory that the arena keeps, in bytes.
func (a *arena) capacity() int {
	return cap(a.times)*bucketBytes + cap(a.raw.Time)*pointBytes + cap(a.segments)*segmentBytes
}

// open notes where the columns stand; close gives what was added since to sp.
func (a *arena) open() segment {
	return segment{bucketFrom: len(a.times), rawFrom: a.raw.Len(), next: -1}
}

func (a *arena) close(sp *series, s segment) {
	s.bucketTo, s.rawTo = len(a.times), a.raw.Len()
	if s.bucketFrom == s.bucketTo && s.rawFrom == s.rawTo {
		return
	}
	a.list(sp)
	sp.shipped = true
	at := int32(len(a.segments))
	a.segments = append(a.segments, s)
	if sp.last < 0 {
		sp.first = at
	} else {
		a.segments[sp.last].next = at
	}
	sp.last = at
}

// list makes sp a row of the next batch.
func (a *arena) list(sp *series) {
	if !sp.listed {
		sp.listed = true
		a.order = append(a.order, sp)
	}
}

// addNotes keeps copies of annotations, which are views into the store's block.
func (a *arena) addNotes(sp *series, notes [][]byte) {
	for _, n := range notes {
		sp.notes = append(sp.notes, append([]byte(nil), n...))
		a.notes += len(n)
		a.list(sp)
	}
}

// gather copies one span's segments to out and frees the chain.
func (a *arena) gather(sp *series, out *batch.Series) {
	out.Span, out.Notes = sp.id, sp.notes
	out.Time, out.Value = out.Time[:0], out.Value[:0]
	out.Raw.Reset()
	for i := sp.first; i >= 0; i = a.segments[i].next {
		s := &a.segments[i]
		out.Time = append(out.Time, a.times[s.bucketFrom:s.bucketTo]...)
		out.Value = append(out.Value, a.values[s.bucketFrom:s.bucketTo]...)
		out.Raw.AppendPoints(a.raw.Slice(s.rawFrom, s.rawTo))
	}
	sp.first, sp.last, sp.listed, sp.notes = -1, -1, false, nil
}

// reset empties the arena after all its spans were gathered.
func (a *arena) reset() {
	clear(a.order) // the arena outlives its spans
	a.times, a.values, a.segments, a.order = a.times[:0], a.values[:0], a.segments[:0], a.order[:0]
	a.raw.Reset()
	a.notes = 0
}
