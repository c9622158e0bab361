package operator

import (
	"downpour/encoding"
	"downpour/encoding/batch"
)

// arena collects buckets and points for the next batches. Rows come hour after hour,
// but a batch lists span after span. So buckets and points are appended to common
// columns as they come, each span has a chain of the segments that belong to it, and
// the emitter gathers them. The memory is used again from batch to batch, and does not
// depend on the number of spans.
type arena struct {
	times           []int64
	values          []float64
	raw             encoding.Points
	segments        []segment
	order           []*series // spans that have something to emit, as first seen
	annotationBytes int
}

// segment is a range of the arena's columns that belongs to one span.
type segment struct {
	bucketFrom, bucketTo int
	rawFrom, rawTo       int
	next                 int32 // index of the span's next segment, -1 for none
}

// Bytes of one bucket (time, value), of one point (time, bits, float), and of a
// segment.
const (
	bucketBytes  = 16
	pointBytes   = 17
	segmentBytes = 40
)

// size is the bytes of what waits to be emitted.
func (a *arena) size() int {
	return len(a.times)*bucketBytes + a.raw.Len()*pointBytes + a.annotationBytes
}

// memory is about the bytes that all of it takes while it waits: rows of one or two
// points take more for their segments than for their points.
func (a *arena) memory() int64 {
	return int64(a.size()+len(a.segments)*segmentBytes+len(a.order)*8) * 5 / 4 // columns grow by a quarter
}

// capacity is about the bytes that the arena keeps after reset.
func (a *arena) capacity() int {
	return cap(a.times)*bucketBytes + cap(a.raw.Time)*pointBytes + cap(a.segments)*segmentBytes
}

// open begins a segment at the end of the columns. The caller appends to them and then
// calls close.
func (a *arena) open() segment {
	return segment{bucketFrom: len(a.times), rawFrom: a.raw.Len(), next: -1}
}

// close ends a segment and adds it to the chain of sp, unless nothing was appended.
func (a *arena) close(sp *series, s segment) {
	s.bucketTo, s.rawTo = len(a.times), a.raw.Len()
	if s.bucketFrom == s.bucketTo && s.rawFrom == s.rawTo {
		return
	}

	a.list(sp)
	sp.shipped = true // it no longer needs a presence marker

	at := int32(len(a.segments))
	a.segments = append(a.segments, s)
	if sp.last < 0 {
		sp.first = at
	} else {
		a.segments[sp.last].next = at
	}
	sp.last = at
}

// addBuckets adds copies of buckets to sp, and returns that of their values.
func (a *arena) addBuckets(sp *series, times []int64, values []float64) []float64 {
	s, from := a.open(), len(a.values)
	a.times = append(a.times, times...)
	a.values = append(a.values, values...)
	a.close(sp, s)
	return a.values[from:]
}

// list makes sp a row of the next batch.
func (a *arena) list(sp *series) {
	if !sp.listed {
		sp.listed = true
		a.order = append(a.order, sp)
	}
}

// addAnnotations keeps copies of annotations, which are views into the store's block.
func (a *arena) addAnnotations(sp *series, annotations [][]byte) {
	for _, n := range annotations {
		sp.annotations = append(sp.annotations, append([]byte(nil), n...))
		a.annotationBytes += len(n)
		a.list(sp)
	}
}

// gather copies the segments of one span to out and clears its chain.
func (a *arena) gather(sp *series, out *batch.Series) {
	out.Span, out.Notes = sp.id, sp.annotations
	out.Time, out.Value = out.Time[:0], out.Value[:0]
	out.Raw.Reset()

	for i := sp.first; i >= 0; i = a.segments[i].next {
		s := &a.segments[i]
		out.Time = append(out.Time, a.times[s.bucketFrom:s.bucketTo]...)
		out.Value = append(out.Value, a.values[s.bucketFrom:s.bucketTo]...)
		out.Raw.AppendPoints(a.raw.Slice(s.rawFrom, s.rawTo))
	}

	sp.first, sp.last, sp.listed, sp.annotations = -1, -1, false, nil
}

// reset empties the arena. All its spans have been gathered.
func (a *arena) reset() {
	clear(a.order) // the arena is used by other parts, and must not keep spans alive
	a.times, a.values, a.segments, a.order = a.times[:0], a.values[:0], a.segments[:0], a.order[:0]
	a.raw.Reset()
	a.annotationBytes = 0
}
