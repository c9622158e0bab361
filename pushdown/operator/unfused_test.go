package operator

import (
	"context"
	"fmt"
	"io"
	"sort"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/downsample"
)

// Downsample returns an operator that downsamples the points of in as the plan of part
// says. in is the operator of the same part with a plan that does not downsample.
// Together they yield, span by span, what the operator of the part itself yields, but
// they hold all of its points in memory and not one row. It is the plainest definition
// of what the fused pass must yield.
func Downsample(in Operator, part *scanplan.Part, opts Options) (Operator, error) {
	if part.Plan.Downsample == nil {
		return nil, fmt.Errorf("%w: there is nothing to downsample", ErrBadPlan)
	}
	b, err := bucketer(&part.Plan)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPlan, err)
	}
	opts = opts.withDefaults()
	e := emitter{writer: batch.NewSeriesWriter(opts.Mem), limit: opts.FlushBytes}
	return &unfused{in: in, part: part, bucketer: b, emit: e, index: map[string]int{}}, nil
}

type unfused struct {
	in       Operator
	part     *scanplan.Part
	bucketer *downsample.Bucketer
	emit     emitter
	index    map[string]int
	series   []batch.Series
	read     bool
	closed   bool
	err      error
}

// Next reads all of the input, then returns batch after batch.
func (u *unfused) Next(ctx context.Context) (batch.Record, error) {
	if u.err == nil && u.closed {
		u.err = ErrClosed
	}
	if u.err == nil && !u.read {
		u.err = u.drain(ctx)
	}
	if u.err == nil && len(u.emit.ready) == 0 {
		u.err = io.EOF
	}
	if u.err != nil {
		return nil, u.err
	}
	return u.emit.nextRecord(), nil
}

func (u *unfused) drain(ctx context.Context) error {
	u.read = true
	for {
		r, err := u.in.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		err = u.collect(r)
		r.Release()
		if err != nil {
			return err
		}
	}
	for i := range u.series {
		u.downsample(&u.series[i])
		u.emit.append(&u.series[i])
	}
	u.series = nil
	u.emit.cut()
	return nil
}

// collect copies a record's points to their spans.
func (u *unfused) collect(r batch.Record) error {
	reader, err := batch.NewSeriesReader(r)
	if err != nil {
		return err
	}
	var s batch.Series
	for i := range reader.Len() {
		if err := reader.At(i, &s); err != nil {
			return err
		}
		at, ok := u.index[string(s.Span)]
		if !ok {
			at = len(u.series)
			u.index[string(s.Span)] = at
			u.series = append(u.series, batch.Series{Span: append([]byte(nil), s.Span...)})
		}
		to := &u.series[at]
		to.Raw.AppendPoints(s.Raw)
		for _, n := range s.Notes {
			to.Notes = append(to.Notes, append([]byte(nil), n...))
		}
	}
	return nil
}

// downsample replaces the points of s that are in whole buckets by these buckets.
func (u *unfused) downsample(s *batch.Series) {
	from, to := u.whole(s.Raw.Time)
	if from >= to {
		return
	}
	inner := s.Raw.Slice(from, to)
	u.bucketer.Reset()
	u.bucketer.Points(inner.Time, inner.AppendDoubles(nil))
	times, values := u.bucketer.Finish()
	s.Time, s.Value = append(s.Time, times...), append(s.Value, values...)
	outer := encoding.Points{}
	outer.AppendPoints(s.Raw.Slice(0, from))
	outer.AppendPoints(s.Raw.Slice(to, s.Raw.Len()))
	if outer.Len() == 0 && len(times) == 0 {
		outer.AppendPoints(s.Raw.Slice(0, 1)) // see series.addPresence
	}
	s.Raw = outer
}

// whole returns the range of the points whose buckets are completely in the part.
func (u *unfused) whole(times []int64) (from, to int) {
	d, starts, ends := u.part.Plan.Downsample, u.part.Starts(), u.part.Ends()
	n := len(times)
	switch {
	case n == 0 || starts && ends || d.DividesHour():
		return 0, n
	case d.All || d.Calendar:
		return 0, 0
	}
	from, to = 0, n
	if !starts {
		first := u.bucketer.BucketStart(times[0])
		from = sort.Search(n, func(i int) bool { return u.bucketer.BucketStart(times[i]) != first })
	}
	if !ends {
		last := u.bucketer.BucketStart(times[n-1])
		to = sort.Search(n, func(i int) bool { return u.bucketer.BucketStart(times[i]) == last })
	}
	return from, to
}

// Stats are those of the input, with this operator's batches.
func (u *unfused) Stats() Stats {
	s := u.in.Stats()
	s.Batches, s.ShippedBytes = u.emit.batches, u.emit.shipped
	return s
}

// Close ends the input too.
func (u *unfused) Close() error {
	if u.closed {
		return nil
	}
	u.closed = true
	u.emit.release()
	return u.in.Close()
}
