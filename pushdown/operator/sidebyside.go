package operator

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// MaxHoursSideBySide is the most hours that a part reads side by side: each has a scanner and some
// blocks of its own.
const MaxHoursSideBySide = 32

// hoursOperator executes a part with partial aggregation by reading its hours side by side,
// see Options.SideBySide. In each hour rows come in the order of their series, so that
// merging the hours gives the series in span order, each with all its buckets:
//
//	hour 1   a a c d ...  ─┐
//	hour 2   a b c   ...  ─┼─▶  a | b | c | d ...  ─▶  partial aggregates of groups
//	hour 3   b   c d ...  ─┘
//
// A series is added to its group and then at most its name is kept. partOperator instead keeps the
// buckets of all series until the part has ended, because it reads one hour after the other.
type hoursOperator struct {
	from   store.Reader
	part   *scanplan.Part
	opts   Options
	groups *grouping
	emit   emitter
	head   []byte // salt and metric, with which all spans begin
	hours  []*hourScan

	cancel context.CancelFunc
	scans  sync.WaitGroup

	chunk    []byte // memory for further names of spans
	kept     int64  // bytes of names and annotations of series; each hourScan reserves what it holds itself
	reserved int64  // bytes that are reserved for kept, at most as many
	stats    Stats  // without those of the hours
	spent    spending
	memory   *memory.Lease
	done     bool
	ending
}

// newHoursOperator returns nil if the hours of the part cannot be read side by side.
func newHoursOperator(from store.Reader, part *scanplan.Part, d downsampler, groups *grouping,
	opts Options) (*hoursOperator, error) {
	if _, ok := d.(*hourDownsampler); !ok || !opts.SideBySide || groups == nil {
		return nil, nil
	}
	n := (groups.hours.To - groups.hours.From) / encoding.RowSeconds
	if n > MaxHoursSideBySide {
		return nil, nil
	}

	groups.mostStates = mostStates
	o := &hoursOperator{
		from:   from,
		part:   part,
		opts:   opts,
		groups: groups,
		head:   part.Range.Start[:part.Plan.Schema.BaseTimeAt()],
	}
	o.emit = emitter{writer: batch.NewSeriesWriter(opts.Mem), limit: opts.FlushBytes}
	if opts.BlockBytes <= 0 {
		opts.BlockBytes = int(max(leastBlock, mostBlocks/n))
	}
	for at := groups.hours.From; at < groups.hours.To; at += encoding.RowSeconds {
		hour := *part
		hour.Range = scanplan.KeyRange{
			Start: part.Plan.HourKey(part.Range, at),
			Stop:  part.Plan.HourKey(part.Range, at+encoding.RowSeconds),
		}
		b, err := bucketer(&part.Plan)
		if err != nil {
			return nil, err
		}
		o.hours = append(o.hours, newHourScan(from, &hour, opts, hourDownsampler{run{bucketer: b}}))
	}
	return o, nil
}

// mostStates bounds the bytes of partial aggregates. Each group has all buckets of the part:
// where groups have few series, their columns take less.
const mostStates = 32 << 20

// Bytes of the blocks of one hour, and of those of all hours.
const (
	leastBlock = 16 << 10
	mostBlocks = 512 << 10
)

// Next returns the next batch; see Operator.
func (o *hoursOperator) Next(ctx context.Context) (batch.Record, error) {
	return o.nextUnlessEnded(ctx, o.next, o.release)
}

// next reads the whole part the first time, and returns its records one by one.
func (o *hoursOperator) next(ctx context.Context) (batch.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if !o.done {
		if err := o.readAll(ctx); err != nil {
			return nil, withCause(ctx, err)
		}
	}
	if len(o.emit.ready) == 0 {
		return nil, io.EOF
	}
	r := o.emit.nextRecord()
	// finishGroups reserved the memory of all records; this one is the caller's now.
	o.memory.Release(RecordBytes(r))
	return r, nil
}

// readAll reads the hours, adds their series to groups and makes the records.
func (o *hoursOperator) readAll(ctx context.Context) error {
	o.memory = memory.NewLease(ctx)
	ctx, o.cancel = context.WithCancel(ctx)
	// The access paths of the hours use what is learned here.
	o.stats.Probes = learnPrefixes(ctx, o.from, o.part, o.opts.Prefixes)
	for _, h := range o.hours {
		o.scans.Add(1)
		go func() {
			defer o.scans.Done()
			h.run(ctx)
		}()
	}

	if err := o.mergeHours(ctx); err != nil {
		return err
	}
	o.scans.Wait()
	for _, h := range o.hours {
		h.drop()
	}
	began := time.Now()
	if err := o.groups.finish(&o.emit, o.memory, o.opts.Mem); err != nil {
		return err
	}
	o.stats.EmitTime = time.Since(began)
	o.done = true
	if limit := o.part.Plan.MaxBytes; limit > 0 && o.emit.shipped > limit {
		return &LimitError{Limit: limit, Need: o.emit.shipped}
	}
	return nil
}

// mergeHours adds all series to their groups, in span order.
func (o *hoursOperator) mergeHours(ctx context.Context) error {
	var going, same []int // indexes of hours: with rows left, with the present series
	advance := func(i int) (more bool, err error) {
		err = o.hours[i].next(ctx, func(b *hourBlock) error { return o.account(ctx, i, b) })
		if err == io.EOF {
			return false, nil
		}
		return err == nil, err
	}
	for i := range o.hours {
		more, err := advance(i)
		if err != nil {
			return err
		}
		if more {
			going = append(going, i)
		}
	}

	var s batch.Series
	for len(going) > 0 {
		// The least series, and the hours that have it.
		same = append(same[:0], going[0])
		least := o.hours[going[0]].tags
		for _, i := range going[1:] {
			switch c := bytes.Compare(o.hours[i].tags, least); {
			case c < 0:
				same, least = append(same[:0], i), o.hours[i].tags
			case c == 0:
				same = append(same, i)
			}
		}

		s.Time, s.Value, s.Notes = s.Time[:0], s.Value[:0], s.Notes[:0]
		for _, i := range same {
			times, values := o.hours[i].buckets()
			s.Time, s.Value = append(s.Time, times...), append(s.Value, values...)
			s.Notes = o.hours[i].appendNotes(s.Notes)
		}
		if err := o.addSeries(&s, least); err != nil {
			return err
		}

		for _, i := range same {
			more, err := advance(i)
			if err != nil {
				return err
			}
			if !more {
				going = remove(going, i)
			}
		}
	}
	return nil
}

// remove removes v from s, keeping the order.
func remove(s []int, v int) []int {
	rest := s[:0]
	for _, x := range s {
		if x != v {
			rest = append(rest, x)
		}
	}
	return rest
}

// spanBytes is about the bytes that a name takes in addition to its own until the part has ended.
const spanBytes = 32

// addSeries adds a series to its group.
func (o *hoursOperator) addSeries(s *batch.Series, tags []byte) error {
	s.Span = o.name(tags)
	o.stats.Spans++
	listed, err := o.groups.add(s, o.memory)
	if err != nil {
		return err
	}
	if listed {
		o.keep(len(s.Span))
		for _, n := range s.Notes {
			o.keep(len(n))
		}
	} else {
		o.chunk = o.chunk[:len(o.chunk)-len(s.Span)] // the next name takes its memory
	}
	if o.stats.Spans%checkSpans == 0 {
		return o.reserve()
	}
	return nil
}

// keep counts a name or an annotation of n bytes.
func (o *hoursOperator) keep(n int) {
	o.kept += int64(n) + spanBytes
}

// namesAtOnce is how many bytes of names are allocated at once.
const namesAtOnce = 64 << 10

// name returns the span with these tags. It lives until the records are made.
func (o *hoursOperator) name(tags []byte) []byte {
	n := len(o.head) + len(tags)
	if n > cap(o.chunk)-len(o.chunk) {
		o.chunk = make([]byte, 0, max(n, namesAtOnce))
	}
	from := len(o.chunk)
	o.chunk = append(append(o.chunk, o.head...), tags...)
	return o.chunk[from:len(o.chunk):len(o.chunk)]
}

// account counts a block that an hour has read.
func (o *hoursOperator) account(ctx context.Context, hour int, b *hourBlock) error {
	o.hours[hour].taken = b.stats
	if err := o.reserve(); err != nil {
		return err
	}
	return o.spent.spend(ctx, o.opts.Budget, o.Stats())
}

// reserve reserves the memory of names and annotations (o.kept) that is not reserved yet. The groups and
// the hours reserve theirs themselves. It returns a LimitError, which ends the part, if the result needs
// more memory than the plan allows.
func (o *hoursOperator) reserve() error {
	if err := o.memory.Check(); err != nil {
		return err
	}
	if limit, need := o.part.Plan.MaxBytes, o.kept+o.groups.held; limit > 0 && need > limit {
		return &LimitError{Limit: limit, Need: need}
	}
	if err := o.memory.Reserve(o.kept - o.reserved); err != nil {
		return err
	}
	o.reserved = o.kept
	return nil
}

// Stats returns the counts so far.
func (o *hoursOperator) Stats() Stats {
	s := o.stats
	for _, h := range o.hours {
		s.Add(h.taken)
	}
	s.Batches, s.ShippedBytes = o.emit.batches, o.emit.shipped
	return s
}

// release frees everything but the counts. It may be called more than once.
func (o *hoursOperator) release() {
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
		o.scans.Wait() // the store may be closed next
	}
	o.emit.release()
	if o.memory != nil {
		o.memory.Close()
	}
	o.groups, o.chunk = nil, nil
	for _, h := range o.hours {
		h.drop()
	}
}

// Close ends the work; see Operator.
func (o *hoursOperator) Close() error {
	o.release()
	return nil
}
