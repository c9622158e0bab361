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

// partOperator executes one part. With per-series aggregation it returns the columns of
// series as soon as they make a batch. With partial aggregation it keeps the buckets of
// all series until the end and aggregates them then, see grouping.
type partOperator struct {
	from        store.Reader
	part        *scanplan.Part
	opts        Options
	admit       admission
	downsampler downsampler

	cancel  context.CancelFunc
	scanner store.Scanner
	*scratch
	spans  seriesTable
	emit   emitter
	groups *grouping // nil with per-series aggregation
	// aligned replaces downsampler, arena and groups in a part with aligned aggregation; else
	// it is nil.
	aligned *aligned
	// histograms replaces decoder, downsampler, arena and groups in a part that reads
	// histograms; else it is nil.
	histograms *histograms

	stats      Stats
	largest    int64 // bytes that the largest block of rows took
	splitBytes int64 // memory of rows that off-hour rows were split into
	spent      spending
	memory     *memory.Lease // of the context's account: all that is held except returned records
	done       bool          // the scan has ended, and emit has all that is to be returned
	ending
}

// scratch is memory that a part works in and the next one uses again.
type scratch struct {
	decoder encoding.RowDecoder
	row     encoding.Points // of the present row
	arena   arena
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// putBack lets another part use the memory, unless unusual rows have made it much
// larger than usual, in bytes.
func (s *scratch) putBack(usual int) {
	s.arena.reset()
	if s.arena.capacity() <= 4*usual && cap(s.row.Time)*pointBytes <= usual {
		scratches.Put(s)
	}
}

func newPartOperator(from store.Reader, part *scanplan.Part, f downsampler, opts Options) *partOperator {
	o := &partOperator{
		from:        from,
		part:        part,
		opts:        opts,
		admit:       newAdmission(part),
		downsampler: f,
		scratch:     scratches.Get().(*scratch),
	}
	o.decoder.FixDuplicates = part.Plan.FixDuplicates
	o.emit = emitter{writer: batch.NewSeriesWriter(opts.Mem), limit: opts.FlushBytes}
	return o
}

// Next returns the next batch; see Operator.
func (o *partOperator) Next(ctx context.Context) (batch.Record, error) {
	return o.nextUnlessEnded(ctx, o.next, o.release)
}

// next returns the next batch. It reads blocks of rows until one is ready.
func (o *partOperator) next(ctx context.Context) (batch.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}

	// The context of the first call bounds the operator, that of a later one its call.
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
		if err := o.readBlock(); err != nil {
			return nil, withCause(ctx, err)
		}
		if err := o.spent.spend(ctx, o.opts.Budget, o.stats); err != nil {
			return nil, withCause(ctx, err)
		}
	}

	r := o.emit.nextRecord()
	if o.groups != nil || o.aligned != nil {
		// finishGroups and finishAligned reserved the memory of all records; this one is the
		// caller's now.
		o.memory.Release(RecordBytes(r))
	}
	return r, nil
}

// withCause returns err with the reason why the context ended, if that led to err and err does not
// contain it.
func withCause(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// open starts the scan. Its context is the operator's, so that it outlives the
// call and ends with Close.
func (o *partOperator) open(ctx context.Context) error {
	o.memory = memory.NewLease(ctx)

	var inner context.Context
	inner, o.cancel = context.WithCancel(ctx)

	// The choice of the access path uses what is learned here. A long part learns as it reads.
	b := &accessBuilder{plan: &o.part.Plan, part: o.part, tags: o.part.Plan.Tags}
	if b.probedRanges(o.opts.Prefixes) == 0 {
		o.stats.Probes = learnPrefixes(inner, o.from, o.part, o.opts.Prefixes)
	}
	path := ChooseAccess(o.part, o.opts.Prefixes)
	scan, ok := scanOf(o.part, path)
	if !ok {
		o.done = true
		return nil
	}

	o.stats.Ranges = int64(len(path.Filter.Ranges))
	scan.BlockBytes = o.opts.BlockBytes
	// Rows of rollup tables have a column for each aggregator, and the plan needs one or two of
	// them. If few others were written, HBase needs no filter because of the hint.
	if f, ok := o.downsampler.(*rollupRows); ok {
		scan.Columns, scan.MostInColumns = f.columns(), true
	}

	var err error
	o.scanner, o.splitBytes, err = openScan(inner, o.from, o.part, path, o.opts.Prefixes, scan, &o.stats)
	if err != nil {
		return withCause(ctx, fmt.Errorf("operator: cannot scan %s: %w", o.part.Plan.Table, err))
	}
	return nil
}

// readBlock reads the next block of rows and works on each of them, or finishes the
// part if there is none.
func (o *partOperator) readBlock() error {
	// Many parts may wait for memory at a time: they wait before they allocate it.
	o.largest = max(o.largest, o.scanner.NextBytes())
	if err := o.reserve(); err != nil {
		return err
	}
	began := time.Now()
	before := o.stats
	rows, err := o.scanner.Next()
	o.stats.setScan(o.scanner.Stats())
	o.measureBlock(before) // its memory, for reserve
	got := time.Now()
	o.stats.ScanTime += got.Sub(began)

	if err == io.EOF {
		defer func() { o.stats.EmitTime += time.Since(got) }()
		// Only a complete scan shows whether known key prefixes would have saved reads.
		RecordScan(o.opts.Prefixes, o.part, o.stats)
		return o.finish()
	}

	defer func() { o.stats.DecodeTime += time.Since(got) }()
	if err != nil {
		return fmt.Errorf("operator: cannot scan %s: %w", o.part.Plan.Table, err)
	}
	for i := range rows {
		err := o.addRow(&rows[i])
		if errors.Is(err, errUnaligned) {
			o.refuseAligned()
			return nil
		}
		if err != nil {
			return err
		}
	}
	return o.reserve()
}

// reserve reserves the memory that the part holds. It is called before and after each
// block: what rows of one block add is little compared to what a request may have.
func (o *partOperator) reserve() error {
	held := o.arena.memory() + o.emit.most + o.downsampler.pending() + o.spans.bytes + o.largest + o.splitBytes
	if o.histograms != nil {
		held += o.histograms.memory()
	}
	if o.aligned != nil {
		held += o.aligned.bytes
	}
	return o.memory.Grow(held)
}

// Bytes of a row and of a cell, without keys and values.
const (
	rowBytes  = int64(unsafe.Sizeof(store.Row{}))
	cellBytes = int64(unsafe.Sizeof(store.Cell{}))
)

// measureBlock updates largest: the scanner holds the block that it has returned, and the bytes of
// the one that it is requesting. before are the counts before the block.
func (o *partOperator) measureBlock(before Stats) {
	o.largest = max(o.largest, blockBytes(before, o.stats))
}

// blockBytes is about the bytes that a scanner holds for a block, given the counts before
// and after it.
func blockBytes(before, after Stats) int64 {
	return 2*(after.Bytes-before.Bytes) + ((after.Rows-before.Rows)*rowBytes+(after.Cells-before.Cells)*cellBytes)*5/4
}

// addRow adds one row, or skips it if it is damaged and the plan permits that.
func (o *partOperator) addRow(r *store.Row) error {
	return o.stats.leaveOut(&o.part.Plan, o.tryRow(r))
}

// tryRow checks the key of a row, decodes the cells, and adds what the plan needs of them to its series. It adds
// nothing of a row that cannot be read, because addRow may leave that row out. Only a DataError can be left out: other
// errors, such as that of an off-hour row, are returned as they are.
func (o *partOperator) tryRow(r *store.Row) error {
	p := &o.part.Plan
	key, err := p.Schema.ParseRowKey(r.Key)
	if err != nil {
		return dataError(p, r.Key, err)
	}

	if err := o.admit.refuseOffHour(r.Key, key); err != nil {
		return err
	}

	// The store may return more rows than the plan admits.
	if !o.admit.row(r.Key, key) {
		o.stats.Rejected++
		return nil
	}

	sp := o.spans.find(p.Schema, r.Key, o.admit.span)
	if sp == nil {
		o.stats.Rejected++
		return nil
	}

	if o.histograms != nil {
		return o.addHistograms(sp, r, key.BaseTime)
	}
	if f, ok := o.downsampler.(*rollupRows); ok {
		return o.addRollups(f, sp, r, key.BaseTime)
	}
	err = o.decodeRow(sp, r, key.BaseTime)
	if errors.Is(err, errUnaligned) {
		return err
	}
	if err != nil {
		return dataError(p, r.Key, err)
	}
	o.arena.addAnnotations(sp, o.decoder.Annotations())
	o.stats.Skipped += int64(o.decoder.Skipped())
	return o.checkMemory()
}

// addRollups adds a row of rollups to the arena. It takes no annotations from the operator's
// decoder, which has not read this row and may still hold one of another part.
func (o *partOperator) addRollups(f *rollupRows, sp *series, r *store.Row, base uint32) error {
	n, skipped, err := f.add(&o.arena, sp, base, r.Cells)
	o.stats.Points += int64(n)
	o.stats.Skipped += int64(skipped)
	if err != nil {
		return dataError(&o.part.Plan, r.Key, err)
	}
	return o.checkMemory()
}

// decodeRow decodes a row and adds what the plan needs of it to the arena.
func (o *partOperator) decodeRow(sp *series, r *store.Row, base uint32) error {
	if o.aligned != nil {
		n, err := o.addAligned(sp, r, base)
		o.stats.Points += int64(n)
		return err
	}
	if f, ok := o.downsampler.(*windowDownsampler); ok {
		n, err := f.addHour(&o.arena, sp, base, &o.decoder, r.Cells)
		o.stats.Points += int64(n)
		return err
	}
	if f, ok := o.downsampler.(*hourDownsampler); ok {
		n, err := f.addHour(&o.arena, sp, base, &o.decoder, r.Cells)
		o.stats.Points += int64(n)
		// All points are in buckets, so none is needed as a presence marker.
		sp.hasPoint = sp.hasPoint || n > 0
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
		sp.setFirst(&o.row)
		o.downsampler.(pointDownsampler).add(&o.arena, sp, &o.row)
	}
	return nil
}

// addCells adds all cells of a row to the decoder.
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

// checkMemory ends the part if it needs more than the plan allows. With per-series
// aggregation it makes a batch of the arena if there is enough for one.
func (o *partOperator) checkMemory() error {
	// The bound is on the whole result: returned batches count, too.
	need := o.emit.shipped + int64(o.arena.size()) + o.downsampler.pending() + o.spans.bytes
	if o.histograms != nil {
		need += o.histograms.memory()
	}
	if o.aligned != nil {
		need += o.aligned.bytes
	}

	if limit := o.part.Plan.MaxBytes; limit > 0 && need > limit {
		return &LimitError{Limit: limit, Need: need}
	}

	// The merge adds histograms of batches up, so the ones here can be sent.
	if o.histograms != nil {
		if o.histograms.memory() >= int64(o.opts.FlushBytes) {
			o.histograms.flush(&o.emit)
		}
		return nil
	}

	// Partial aggregates need the buckets of all series, in span order: the arena keeps them.
	if o.groups == nil && o.aligned == nil && o.arena.size() >= o.opts.FlushBytes {
		o.emit.flush(&o.arena)
	}
	return nil
}

// checkSpans is the number of spans after which it is checked again whether the
// request has ended.
const checkSpans = 256

// finish completes all series after the last row and makes the last batches.
func (o *partOperator) finish() error {
	if o.groups != nil {
		return o.finishGroups()
	}
	if o.aligned != nil {
		return o.finishAligned()
	}
	if o.histograms != nil {
		o.histograms.flush(&o.emit)
		o.done = true
		return o.checkShipped()
	}

	for i, sp := range o.spans.spans {
		if i%checkSpans == 0 {
			if err := o.memory.Check(); err != nil {
				return err
			}
		}
		o.downsampler.finish(&o.arena, sp)
		// Only now is it known whether the span has shipped a bucket or a point.
		sp.addPresence(&o.arena)
		o.flushFull()
	}
	if f, ok := o.downsampler.(*windowDownsampler); ok {
		f.finishGroups(&o.arena, &o.spans, o.flushFull)
	}

	o.emit.flush(&o.arena)
	o.done = true
	return o.checkShipped()
}

// flushFull makes batches of what the arena has, if that is enough for one.
func (o *partOperator) flushFull() {
	if o.arena.size() >= o.opts.FlushBytes {
		o.emit.flush(&o.arena)
	}
}

// checkShipped ends the part if its batches take more memory than the plan allows.
func (o *partOperator) checkShipped() error {
	if limit := o.part.Plan.MaxBytes; limit > 0 && o.emit.shipped > limit {
		return &LimitError{Limit: limit, Need: o.emit.shipped}
	}
	return nil
}

// setFirst keeps the first point of a span. row has at least one.
func (sp *series) setFirst(row *encoding.Points) {
	if !sp.hasPoint {
		sp.hasPoint = true
		sp.firstTime, sp.firstValue = row.At(0)
	}
}

// addPresence ships a presence marker: one point of a span whose points are all outside the buckets
// (before the plan's first whole one, or outside the query if its interval is "all"). The span has
// no value but it has data, and OpenTSDB answers a group of such spans differently from a group
// without spans or with annotations only. Downsampling drops the point.
func (sp *series) addPresence(a *arena) {
	if !sp.hasPoint || sp.shipped {
		return
	}
	s := a.open()
	a.raw.Append(sp.firstTime, sp.firstValue)
	a.close(sp, s)
}

// Stats returns the counts so far.
func (o *partOperator) Stats() Stats {
	s := o.stats
	s.Spans = int64(len(o.spans.spans))
	s.Batches, s.ShippedBytes = o.emit.batches, o.emit.shipped
	return s
}

// release frees everything but the counts. It may be called more than once.
func (o *partOperator) release() {
	if o.closed {
		return
	}
	o.closed = true

	// A part that did not end is read again elsewhere.
	if !o.done {
		o.opts.Budget.Refund(o.spent.points, o.spent.bytes)
	}

	if o.cancel != nil {
		o.cancel()
	}
	if o.scanner != nil {
		o.stats.setScan(o.scanner.Stats())
		_ = o.scanner.Close() // its error changes nothing that was returned
	}

	o.emit.release()
	if o.histograms != nil {
		o.histograms.writer.Release()
	}
	if o.memory != nil {
		o.memory.Close()
	}
	o.scratch.putBack(o.opts.FlushBytes) // at which per-series aggregation empties the arena
	o.scratch = nil
}

// Close ends the work; see Operator.
func (o *partOperator) Close() error {
	o.release()
	return nil
}
