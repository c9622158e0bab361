package resultcache

import (
	"context"
	"errors"
	"io"
	"time"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/store"
)

// Open returns the operator of a part, as operator.New does, which answers from
// the cache where it can and keeps what it should. A nil cache, and a store that
// gives no marks, leave operator.New's own.
func Open(c *Cache, from store.Reader, part *scanplan.Part, opts operator.Options) (operator.Operator, error) {
	marker, ok := from.(store.Versioner)
	if c == nil || !ok {
		return operator.New(from, part, opts)
	}
	id, ok := PartKey(part)
	if !ok {
		return operator.New(from, part, opts)
	}
	o := &cachingOperator{cache: c, id: id, part: part, marker: marker, opts: opts}
	o.reader = &stamped{Reader: from, schema: part.Plan.Schema}
	var err error
	o.inner, err = operator.New(o.reader, part, opts)
	return o, err
}

// cachingOperator passes an operator on, or a kept answer in its place.
type cachingOperator struct {
	cache  *Cache
	id     ID
	part   *scanplan.Part
	marker store.Versioner
	opts   operator.Options
	inner  operator.Operator
	reader *stamped

	asked   bool // or nothing is to be asked any more
	verdict outcome
	mark    string
	took    time.Duration // by the mark
	kept    *answer       // with verdict keep: what has been returned so far; nil if it is too large
	done    bool          // it was kept in the end
	replay  *replay       // with verdict hit
}

// Next returns the next batch; see operator.Operator.
func (o *cachingOperator) Next(ctx context.Context) (batch.Record, error) {
	if !o.asked {
		o.asked = true
		if ctx.Err() == nil {
			o.ask(ctx)
		}
	}
	if o.replay != nil {
		return o.replay.Next(ctx)
	}
	r, err := o.inner.Next(ctx)
	if o.kept != nil {
		o.keepRecord(r, err)
	}
	return r, err
}

// ask takes the mark and the cache's verdict.
func (o *cachingOperator) ask(ctx context.Context) {
	began := time.Now()
	p := &o.part.Plan
	mark, err := o.marker.Version(ctx, p.Table, encoding.FamilyData, store.KeyRange{Start: o.part.Range.Start, Stop: o.part.Range.Stop})
	if err != nil && ctx.Err() == nil {
		o.cache.logOnce(err.Error())
	}
	o.took, o.mark = time.Since(began), mark
	var a *answer
	o.verdict, a = o.cache.lookupPart(o.id, mark)
	switch o.verdict {
	case hit:
		o.replay = &replay{answer: a, mem: o.opts.Mem, inner: o.inner}
	case keep:
		o.kept = &answer{}
		o.reader.on = true
	}
}

// keepRecord copies a batch that is about to be returned; at the end the copies are
// kept.
func (o *cachingOperator) keepRecord(r batch.Record, err error) {
	switch {
	case errors.Is(err, io.EOF):
		if o.reader.ofData() {
			o.cache.logOnce("cells of table " + o.part.Plan.Table + " carry the time of their data (tsd.storage.use_otsdb_timestamp)")
		} else {
			o.kept.stats = o.inner.Stats()
			o.done = o.cache.store(o.id, o.mark, o.kept)
		}
	case err == nil:
		if !o.cache.fits(o.kept.Bytes() + operator.RecordBytes(r)) {
			break
		}
		b, failed := batch.Encode(r)
		if failed == nil {
			o.kept.batches = append(o.kept.batches, b)
			return
		}
	}
	o.kept = nil
}

// Stats tells what the part has cost. Of an answer from memory the rows, cells,
// bytes and points are those that it was made of.
func (o *cachingOperator) Stats() operator.Stats {
	if o.replay != nil {
		s := o.replay.stats()
		s.ScanTime, s.CacheHits = o.took, 1
		return s
	}
	s := o.inner.Stats()
	s.ScanTime += o.took
	switch {
	case o.done:
		s.CacheStored = 1
	case o.verdict == changed:
		s.CacheChanged = 1
	}
	return s
}

// Close ends the work; see operator.Operator.
func (o *cachingOperator) Close() error {
	o.asked = true
	if o.replay != nil {
		o.replay.end()
	}
	return o.inner.Close()
}
