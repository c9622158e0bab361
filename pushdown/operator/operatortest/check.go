package operatortest

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"downpour/encoding/batch"
	"downpour/pushdown/operator"
)

// Checked wraps an operator. It checks that the operator and its caller keep the
// contract of operator.Operator, and calls report for every breach.
func Checked(op operator.Operator, report func(format string, args ...any)) operator.Operator {
	return &checked{op: op, report: report, last: map[string]int64{}}
}

// CheckedWindows is Checked for an operator of a plan of windows, whose values and points may be at the same times.
func CheckedWindows(op operator.Operator, report func(format string, args ...any)) operator.Operator {
	return &checked{op: op, report: report, last: map[string]int64{}, windows: true}
}

// checked is what Checked returns.
type checked struct {
	op      operator.Operator
	report  func(format string, args ...any)
	busy    atomic.Bool
	closed  bool
	windows bool
	err     error
	last    map[string]int64 // newest time of each span
}

// enter reports a call during another one. The caller defers what it returns.
func (c *checked) enter(call string) func() {
	if !c.busy.CompareAndSwap(false, true) {
		c.report("%s while another call runs", call)
		return func() {}
	}
	return func() { c.busy.Store(false) }
}

// Next calls Next of the operator and checks what it returns.
func (c *checked) Next(ctx context.Context) (batch.Record, error) {
	defer c.enter("Next")()
	if ctx == nil {
		c.report("Next without a context")
	}

	r, err := c.op.Next(ctx)
	switch {
	case (r == nil) == (err == nil):
		c.report("Next returned record %v and error %v, want one of them", r, err)
	case c.err != nil && !errors.Is(err, c.err):
		c.report("Next returned %v after error %v", err, c.err)
	case c.closed && err == nil:
		c.report("Next returned a record after Close")
	case c.closed && c.err == nil && !errors.Is(err, operator.ErrClosed):
		c.report("Next after Close returned %v, want %v", err, operator.ErrClosed)
	}

	if err != nil {
		c.err = err
		return nil, err
	}
	if r == nil { // reported above
		return nil, nil
	}
	c.record(r)
	return r, nil
}

// record checks that the times of each span ascend, also from batch to batch.
func (c *checked) record(r batch.Record) {
	if batch.IsPartial(r) {
		return // it has no columns of series
	}
	reader, err := batch.NewSeriesReader(r)
	if err != nil {
		c.report("Next: %v", err)
		return
	}
	var s batch.Series
	seen := map[string]bool{}
	for i := range reader.Len() {
		if err := reader.At(i, &s); err != nil {
			c.report("Next: %v", err)
			return
		}
		if seen[string(s.Span)] {
			c.report("span %X stands twice in one batch", s.Span)
		}
		seen[string(s.Span)] = true
		c.times(&s)
	}
}

// times checks the times of one row: raw points before the buckets, the buckets, raw
// points after them.
func (c *checked) times(s *batch.Series) {
	buckets := len(s.Time)
	before := 0
	for buckets > 0 && before < s.Raw.Len() && s.Raw.Time[before] < s.Time[0] {
		before++
	}
	if c.windows {
		c.ascend("values of ", s.Span, s.Time)
		c.ascend("", s.Span, s.Raw.Time)
		return
	}
	c.ascend("", s.Span, s.Raw.Time[:before])
	c.ascend("", s.Span, s.Time)
	c.ascend("", s.Span, s.Raw.Time[before:])
}

// ascend checks that times continue those of the span before, of what there is of it.
func (c *checked) ascend(what string, span []byte, times []int64) {
	key := what + string(span)
	for _, t := range times {
		if last, ok := c.last[key]; ok && t <= last {
			c.report("%sspan %X has time %d after %d", what, span, t, last)
		}
		c.last[key] = t
	}
}

// Stats returns the operator's counts.
func (c *checked) Stats() operator.Stats {
	defer c.enter("Stats")()
	return c.op.Stats()
}

// Close closes the operator twice, because that must be harmless.
func (c *checked) Close() error {
	defer c.enter("Close")()
	c.closed = true
	err := c.op.Close()
	if again := c.op.Close(); again != nil {
		c.report("second Close returned %v", again)
	}
	return err
}

// Poisoned wraps an allocator. It overwrites memory that is freed, so that a batch that
// is used after its release is noticed.
func Poisoned(mem batch.Allocator) batch.Allocator { return poisoned{mem} }

type poisoned struct{ batch.Allocator }

// Free overwrites what it frees.
func (p poisoned) Free(b []byte) {
	poison(b)
	p.Allocator.Free(b)
}

// Reallocate always moves, and overwrites the old memory.
func (p poisoned) Reallocate(size int, b []byte) []byte {
	fresh := p.Allocator.Allocate(size)
	copy(fresh, b)
	p.Free(b)
	return fresh
}

func poison(b []byte) {
	for i := range b {
		b[i] = 0xDB
	}
}

// Drain reads op to its end and closes it. It calls each with every record, which each
// must not keep. It returns nil if the part is complete.
func Drain(ctx context.Context, op operator.Operator, each func(batch.Record) error) error {
	defer op.Close()
	for {
		r, err := op.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		err = each(r)
		r.Release()
		if err != nil {
			return err
		}
	}
}
