package operator

import (
	"sort"

	"downpour/encoding/batch"
)

// emitter makes records of what an arena holds.
type emitter struct {
	writer  *batch.SeriesWriter
	limit   int // bytes of a record, about
	series  batch.Series
	pending int // bytes in the writer
	ready   []batch.Record
	waiting int64 // bytes of ready
	most    int64 // the most bytes that records took at a time, in the writer and ready
	shipped int64 // bytes of all records made
	batches int64 // number of all records made
}

// flush makes records of everything in the arena, in the order in which spans were
// first seen, and empties it.
func (e *emitter) flush(a *arena) {
	e.writer.Grow(min(len(a.values), e.limit/bucketBytes), min(a.raw.Len(), e.limit/pointBytes))
	for _, sp := range a.order {
		a.gather(sp, &e.series)
		e.append(&e.series)
	}
	a.reset()
	e.cut()
}

// append writes the data of one span. If it is larger than a record should be it
// becomes a row in each of several records.
func (e *emitter) append(s *batch.Series) {
	if seriesBytes(s) <= e.limit {
		e.write(s)
		return
	}

	// In time: raw points before the buckets, the buckets, raw points after them. Without
	// buckets all points come before. Annotations go with the first chunk.
	before := sort.Search(s.Raw.Len(), func(i int) bool { return len(s.Time) > 0 && s.Raw.Time[i] >= s.Time[0] })
	chunk := batch.Series{Span: s.Span, Notes: s.Notes}
	for _, part := range [...]struct{ rawFrom, rawTo, buckets int }{
		{0, before, 0}, {before, before, len(s.Time)}, {before, s.Raw.Len(), 0},
	} {
		e.appendChunks(&chunk, s, part.rawFrom, part.rawTo, part.buckets)
	}

	// There was no chunk: the annotations alone are larger than a record.
	if chunk.Notes != nil {
		e.writeAlone(&chunk)
	}
}

// appendChunks writes the raw points [rawFrom, rawTo) of s and then its first buckets,
// in chunks of about the size of a record.
func (e *emitter) appendChunks(chunk, s *batch.Series, rawFrom, rawTo, buckets int) {
	step := max(1, e.limit/pointBytes)
	for i := rawFrom; i < rawTo; i += step {
		chunk.Raw = s.Raw.Slice(i, min(i+step, rawTo))
		e.writeAlone(chunk)
	}

	chunk.Raw = s.Raw.Slice(0, 0)
	for i := 0; i < buckets; i += step {
		j := min(i+step, buckets)
		chunk.Time, chunk.Value = s.Time[i:j], s.Value[i:j]
		e.writeAlone(chunk)
	}
	chunk.Time, chunk.Value = nil, nil
}

// writeAlone writes a chunk of a span as a record of its own, because a record has one
// row for each span.
func (e *emitter) writeAlone(chunk *batch.Series) {
	e.cut()
	e.write(chunk)
	e.cut()
	chunk.Notes = nil
}

// write adds a row to the record under construction, or to a new one if it would become
// too large.
func (e *emitter) write(s *batch.Series) {
	n := seriesBytes(s)
	if e.pending+n > e.limit {
		e.cut()
	}

	e.writer.Append(s)
	e.pending += n
	e.most = max(e.most, e.waiting+int64(e.pending))
}

// cut ends the record under construction.
func (e *emitter) cut() {
	if e.pending == 0 {
		return
	}
	e.push(e.writer.Record())
	e.pending = 0
}

// nextRecord removes and returns the oldest record.
func (e *emitter) nextRecord() batch.Record {
	r := e.ready[0]
	e.ready[0] = nil // so that the slice does not keep it alive
	if e.ready = e.ready[1:]; len(e.ready) == 0 {
		e.ready = nil
	}
	e.waiting -= RecordBytes(r)
	return r
}

// release frees the records that were not returned.
func (e *emitter) release() {
	for _, r := range e.ready {
		r.Release()
	}
	e.ready = nil
	e.writer.Release()
}

// seriesBytes returns about the bytes of a row in a batch.
func seriesBytes(s *batch.Series) int {
	n := len(s.Span) + len(s.Time)*bucketBytes + s.Raw.Len()*pointBytes
	for _, note := range s.Notes {
		n += len(note)
	}
	return n
}
