package operator

import (
	"sort"

	"downpour/encoding/batch"
)

// emitter makes records of an arena.
type emitter struct {
	writer  *batch.SeriesWriter
	limit   int // bytes of a record, about
	series  batch.Series
	pending int // bytes in the writer
	ready   []batch.Record
	waiting int64 // bytes of ready
	most    int64 // bytes that records took at a time, in the writer and ready
	shipped int64
	batches int64
}

// flush turns everything in the arena into records, in the order in which the
// spans were first met.
func (e *emitter) flush(a *arena) {
	for _, sp := range a.order {
		a.gather(sp, &e.series)
		e.append(&e.series)
	}
	a.reset()
	e.cut()
}

// append writes one span's data, as several rows of several records when it is
// larger than a record should be.
func (e *emitter) append(s *batch.Series) {
	if seriesBytes(s) <= e.limit {
		e.write(s)
		return
	}
	before := sort.Search(s.Raw.Len(), func(i int) bool { return len(s.Time) > 0 && s.Raw.Time[i] >= s.Time[0] })
	piece := batch.Series{Span: s.Span, Notes: s.Notes}
	for _, part := range [...]struct{ rawFrom, rawTo, buckets int }{
		{0, before, 0}, {before, before, len(s.Time)}, {before, s.Raw.Len(), 0},
	} {
		e.appendPieces(&piece, s, part.rawFrom, part.rawTo, part.buckets)
	}
	if piece.Notes != nil { // they alone are that large
		e.alone(&piece)
	}
}

// appendPieces writes the given points, then the first buckets, of s.
func (e *emitter) appendPieces(piece, s *batch.Series, rawFrom, rawTo, buckets int) {
	step := max(1, e.limit/pointBytes)
	for i := rawFrom; i < rawTo; i += step {
		piece.Raw = s.Raw.Slice(i, min(i+step, rawTo))
		e.alone(piece)
	}
	piece.Raw = s.Raw.Slice(0, 0)
	for i := 0; i < buckets; i += step {
		j := min(i+step, buckets)
		piece.Time, piece.Value = s.Time[i:j], s.Value[i:j]
		e.alone(piece)
	}
	piece.Time, piece.Value = nil, nil
}

// alone writes a piece of a span as a record of its own: a span stands in a
// record once.
func (e *emitter) alone(piece *batch.Series) {
	e.cut()
	e.write(piece)
	e.cut()
	piece.Notes = nil
}

func (e *emitter) write(s *batch.Series) {
	n := seriesBytes(s)
	if e.pending > 0 && e.pending+n > e.limit {
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

// nextRecord removes the oldest record.
func (e *emitter) nextRecord() batch.Record {
	r := e.ready[0]
	e.ready[0] = nil
	if e.ready = e.ready[1:]; len(e.ready) == 0 {
		e.ready = nil
	}
	e.waiting -= RecordBytes(r)
	return r
}

func (e *emitter) release() {
	for _, r := range e.ready {
		r.Release()
	}
	e.ready = nil
	e.writer.Release()
}

func seriesBytes(s *batch.Series) int {
	n := len(s.Span) + len(s.Time)*bucketBytes + s.Raw.Len()*pointBytes
	for _, note := range s.Notes {
		n += len(note)
	}
	return n
}
