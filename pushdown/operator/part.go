package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
	"unsafe"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// partOperator is the fused operator of one part. Of a partial part it keeps the
// series' buckets until the end and makes states of them, see grouping.
type partOperator struct {
	from  store.Reader
	part  *scanplan.Part
	opts  Options
	admit admission
	fold  downsampler

	cancel  context.CancelFunc
	scanner store.Scanner
	*scratch
	spans  seriesTable
	emit   emitter
	groups *grouping // of a partial part, else nil

	stats   Stats
	largest int64 // bytes that the largest block of rows takes
	spent   spending
	budget  *Budget       // of the context
	memory  *memory.Lease // of the context's account: what is held beside emitted records
	done    bool          // the scan has ended and all is in emit
	closed  bool
	err     error
}

// scratch is the memory that a part works in; parts of one process take turns.
type scratch struct {
	decoder encoding.RowDecoder
	row     encoding.Points // of the present row
	arena   arena
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// give hands the memory on, unless a part of unusual rows has made it large.
func (s *scratch) give(usual int) {
	s.arena.reset()
	if s.arena.capacity() <= 4*usual && cap(s.row.Time)*pointBytes <= usual {
		scratches.Put(s)
	}
}

func newPartOperator(from store.Reader, part *scanplan.Part, f downsampler, opts Options) *partOperator {
	o := &partOperator{from: from, part: part, opts: opts, admit: newAdmission(part), fold: f, scratch: scratches.Get().(*scratch)}
	o.decoder.FixDuplicates = part.Plan.FixDuplicates
	o.emit = emitter{writer: batch.NewSeriesWriter(opts.Mem), limit: opts.FlushBytes}
	return o
}

// Next returns the next batch; see Operator.
func (o *partOperator) Next(ctx context.Context) (batch.Record, error) {
	if o.err != nil {
		return nil, o.err
	}
	if o.closed {
		o.err = ErrClosed
		return nil, o.err
	}
	r, err := o.next(ctx)
	if err != nil {
		o.err = err
		o.end()
		return nil, err
	}
	return r, nil
}

func (o *partOperator) next(ctx context.Context) (batch.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if o.scanner == nil && !o.done {
		if err := o.open(ctx); err != nil {
			return nil, err
		}
	} else {
		defer context.AfterFunc(ctx, o.cancel)()
	}
	for len(o.emit.ready) == 0 {
		if o.done {
			return nil, io.EOF
		}
		if err := o.block(); err != nil {
			return nil, stopped(ctx, err)
		}
		if err := o.spent.spend(ctx, o.stats); err != nil {
			return nil, stopped(ctx, err)
		}
	}
	r := o.emit.nextRecord()
	if o.groups != nil {
		o.memory.Release(RecordBytes(r)) // it is the caller's now; see finishGroups
	}
	return r, nil
}

// stopped names the reason why a context ended before what that led to.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// open starts the scan. Its context is the operator's, so that it outlives the
// call and ends with Close.
func (o *partOperator) open(ctx context.Context) error {
	o.budget = BudgetOf(ctx)
	o.memory = memory.NewLease(ctx)
	var inner context.Context
	inner, o.cancel = context.WithCancel(ctx)
	o.stats.Probes = learn(inner, o.from, o.part, o.opts.Seek)
	access := ChooseAccess(o.part, o.opts.Seek)
	if access.Nothing {
		o.done = true
		return nil
	}
	o.stats.Ranges = int64(len(access.Filter.Ranges))
	var err error
	o.scanner, err = o.from.Scan(inner, store.Scan{
		Table: o.part.Plan.Table, Family: encoding.FamilyData,
		Start: o.part.Range.Start, Stop: o.part.Range.Stop,
		Filter: access.Filter, BlockBytes: o.opts.BlockBytes,
	})
	if err != nil {
		return stopped(ctx, fmt.Errorf("operator: scan of %s: %w", o.part.Plan.Table, err))
	}
	return nil
}

// block works on the next rows of the store.
func (o *partOperator) block() error {
	began := time.Now()
	before := o.stats
	rows, err := o.scanner.Next()
	o.stats.setScan(o.scanner.Stats())
	o.measure(before)
	got := time.Now()
	o.stats.ScanTime += got.Sub(began)
	if errors.Is(err, io.EOF) {
		defer func() { o.stats.EmitTime += time.Since(got) }()
		Note(o.opts.Seek, o.part, o.stats)
		return o.finish()
	}
	defer func() { o.stats.FoldTime += time.Since(got) }()
	if err != nil {
		return fmt.Errorf("operator: scan of %s: %w", o.part.Plan.Table, err)
	}
	for i := range rows {
		if err := o.addRow(&rows[i]); err != nil {
			return err
		}
	}
	return o.reserve()
}

// reserve brings the account of memory up to what the part holds: once a block,
// because what one block adds is little beside what a request may have.
func (o *partOperator) reserve() error {
	return o.memory.Grow(o.arena.taken() + o.emit.most + o.fold.pending() + o.spans.bytes + o.largest)
}

// Bytes of a row and of a cell beside keys and values.
const (
	rowBytes  = int64(unsafe.Sizeof(store.Row{}))
	cellBytes = int64(unsafe.Sizeof(store.Cell{}))
)

// measure notes what the scanner holds, if it is more than before: the block that
// it has returned, and the bytes of the one that it asks for.
func (o *partOperator) measure(before Stats) {
	bytes, rows, cells := o.stats.Bytes-before.Bytes, o.stats.Rows-before.Rows, o.stats.Cells-before.Cells
	o.largest = max(o.largest, 2*bytes+(rows*rowBytes+cells*cellBytes)*5/4)
}

// addRow works on one row and hands on what has been collected if it is enough.
func (o *partOperator) addRow(r *store.Row) error {
	s := o.part.Plan.Schema
	key, err := s.ParseRowKey(r.Key)
	if err != nil {
		return dataError(s, r.Key, err)
	}
	if !o.admit.row(r.Key, key) {
		o.stats.Rejected++
		return nil
	}
	sp := o.spans.find(s, r.Key, o.admit.span)
	if sp == nil {
		o.stats.Rejected++
		return nil
	}
	if err := o.fill(sp, r, key.BaseTime); err != nil {
		return dataError(s, r.Key, err)
	}
	o.arena.addNotes(sp, o.decoder.Annotations())
	o.stats.Skipped += int64(o.decoder.Skipped())
	return o.bound()
}

// fill decodes a row and puts what the plan wants of it into the arena.
func (o *partOperator) fill(sp *series, r *store.Row, base uint32) error {
	if f, ok := o.fold.(*hourDownsampler); ok {
		n, err := f.hour(&o.arena, sp, base, &o.decoder, r.Cells)
		o.stats.Points += int64(n)
		sp.hasPoint = sp.hasPoint || n > 0 // all in buckets: none needs a witness
		return err
	}
	if err := addCells(&o.decoder, base, r.Cells); err != nil {
		return err
	}
	o.row.Reset()
	if err := o.decoder.Finish(&o.row); err != nil {
		return err
	}
	o.stats.Points += int64(o.row.Len())
	if o.row.Len() > 0 {
		sp.note(&o.row)
		o.fold.add(&o.arena, sp, &o.row)
	}
	return nil
}

// addCells gives a row to the decoder.
func addCells(d *encoding.RowDecoder, base uint32, cells []store.Cell) error {
	d.Reset(base)
	for i := range cells {
		c := &cells[i]
		if err := d.Add(c.Qualifier, c.Value, c.Timestamp); err != nil {
			return err
		}
	}
	return nil
}

// bound keeps the memory within the plan's bound and the arena small.
func (o *partOperator) bound() error {
	need := o.emit.shipped + int64(o.arena.held()) + o.fold.pending() + o.spans.bytes
	if limit := o.part.Plan.MaxBytes; limit > 0 && need > limit {
		return &LimitError{Limit: limit, Need: need}
	}
	if o.groups == nil && o.arena.held() >= o.opts.FlushBytes {
		o.emit.flush(&o.arena)
	}
	return nil
}

// checkSpans is after how many spans it is asked whether the request has ended.
const checkSpans = 256

// finish closes all spans behind the last row.
func (o *partOperator) finish() error {
	if o.groups != nil {
		return o.finishGroups()
	}
	for i, sp := range o.spans.spans {
		if i%checkSpans == 0 {
			if err := o.memory.Check(); err != nil {
				return err
			}
		}
		o.fold.finish(&o.arena, sp)
		sp.addPresence(&o.arena)
		if o.arena.held() >= o.opts.FlushBytes {
			o.emit.flush(&o.arena)
		}
	}
	o.emit.flush(&o.arena)
	o.done = true
	if limit := o.part.Plan.MaxBytes; limit > 0 && o.emit.shipped > limit {
		return &LimitError{Limit: limit, Need: o.emit.shipped}
	}
	return nil
}

// note remembers a span's first point.
func (sp *series) note(row *encoding.Points) {
	if !sp.hasPoint {
		sp.hasPoint = true
		sp.firstTime, sp.firstValue = row.At(0)
	}
}

// addPresence ships one point of a span whose points all lie outside the buckets
// (before the plan's first whole one, or outside the query of an "all"). The
// span has no value but it has data, and OpenTSDB answers a group of such spans
// otherwise than one that has only annotations, or none. Whoever downsamples
// the point drops it again.
func (sp *series) addPresence(a *arena) {
	if !sp.hasPoint || sp.shipped {
		return
	}
	s := a.open()
	a.raw.Append(sp.firstTime, sp.firstValue)
	a.close(sp, s)
}

// Stats tells what the part has cost so far.
func (o *partOperator) Stats() Stats {
	s := o.stats
	s.Spans = int64(len(o.spans.spans))
	s.Batches, s.ShippedBytes = o.emit.batches, o.emit.shipped
	return s
}

// end frees everything but the counts.
func (o *partOperator) end() {
	if o.closed {
		return
	}
	o.closed = true
	if !o.done {
		o.budget.Refund(o.spent.points, o.spent.bytes)
	}
	if o.cancel != nil {
		o.cancel()
	}
	if o.scanner != nil {
		o.stats.setScan(o.scanner.Stats())
		_ = o.scanner.Close()
	}
	o.emit.release()
	if o.memory != nil {
		o.memory.Close()
	}
	o.scratch.give(o.opts.FlushBytes)
	o.scratch = nil
}

// Close ends the work; see Operator.
func (o *partOperator) Close() error {
	o.end()
	return nil
}
