package merge

import (
	"fmt"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/operator/downsample"
	"downpour/pushdown/operator/rate"
)

// columns makes of each span's segments the columns that the aggregation needs:
// downsampled, filled, made into rates, in this order. Its memory is used again from
// group to group.
type columns struct {
	rate     *scanplan.Rate
	fix      scanplan.Fixes
	bucketer *downsample.Bucketer // nil without downsampling
	windows  *windows             // nil without windows
	maxBytes int64                // of the plan
	merger   *Merger              // whose bounds the columns keep

	raw     encoding.Points // points of one span, joined
	doubles []float64
	times   arena[int64]
	buckets sharedTimes // in times
	values  arena[float64]
	bits    arena[uint64]
	floats  arena[bool]
}

// init prepares columns for a plan. The error is a *MemoryError if the buckets of a
// single filled series exceed the plan's MaxBytes.
func (c *columns) init(p *scanplan.Plan, merger *Merger) (err error) {
	c.rate, c.fix, c.maxBytes, c.merger = p.Rate, p.Fix, p.MaxBytes, merger
	if p.Window != nil {
		c.windows, err = newWindows(merger)
		return err
	}
	if p.Downsample == nil {
		return nil
	}

	c.bucketer, err = downsample.New(p.Downsample, p.From, p.To, p.Start, p.End)
	if err != nil {
		return err
	}
	// A plan that does not fill has no grid: n is 0.
	if n := c.bucketer.GridLen() * bucketBytes; c.maxBytes > 0 && n > c.maxBytes {
		return &MemoryError{Need: n, Limit: c.maxBytes}
	}
	c.bucketer.Guarded(merger)
	return nil
}

// bytesNeeded returns the most that a span's columns may take in addition to its
// segments. It is counted before they are made.
func (c *columns) bytesNeeded(segments []*segment) int64 {
	switch {
	case c.windows != nil:
		return c.windows.bytesNeeded(segments)
	case c.bucketer == nil && c.rate == nil:
		return 0 // reserve has counted them
	case c.bucketer != nil && c.bucketer.Fills():
		n := c.bucketer.GridLen()
		need := n * 8 // values
		if c.rate != nil {
			need += n * 8 // times of their own, where counter resets are dropped
		}
		if int64(cap(c.doubles)) < n { // it has to grow for the first span
			need += n * 8
		}
		return need
	case c.rate == nil && len(segments) == 1 && segments[0].raw.Len() == 0:
		return 0 // buckets are used as they came
	}

	n := int64(0)
	for _, s := range segments {
		n += int64(len(s.time) + s.raw.Len())
	}
	return n * pointBytes
}

// reset frees the columns of all spans for the next group.
func (c *columns) reset() {
	c.times.reset()
	c.buckets = sharedTimes{}
	c.values.reset()
	c.bits.reset()
	c.floats.reset()
}

// reserve begins a group: it makes room for its stored points, and counts it.
func (c *columns) reserve(points int) error {
	if c.windows != nil {
		return c.windows.begin()
	}
	// What buckets and rates take is counted series by series, see bytesNeeded.
	if c.bucketer != nil || c.rate != nil || points <= len(c.times.chunk) {
		return nil
	}
	if err := c.merger.account(int64(points) * pointBytes); err != nil {
		return err
	}
	c.times.reserve(points)
	c.bits.reserve(points)
	c.floats.reserve(points)
	return nil
}

// ofSeries returns the columns of a span, given its segments in time order.
func (c *columns) ofSeries(span []byte, segments []*segment) (s aggregate.Series, err error) {
	if c.windows != nil {
		return c.windows.ofSeries(span, segments)
	}
	if err := checkOrder(segments); err != nil {
		return s, err
	}
	switch {
	case c.bucketer != nil:
		s, err = c.downsampled(segments)
	case c.rate != nil:
		s, err = c.rates(segments)
	default:
		s = c.stored(segments)
	}
	return s, err
}

// downsampled makes buckets of a span's segments.
func (c *columns) downsampled(segments []*segment) (s aggregate.Series, err error) {
	if s, ok := c.asReceived(segments); ok {
		return s, nil
	}

	b := c.bucketer
	b.Reset()
	for i := range segments {
		c.addToBuckets(segments[i])
	}
	times, values := b.Finish()

	if b.Fills() { //fault:fill-dropped TestConformance
		if c.doubles, err = b.Fill(c.doubles[:0], times, values); err != nil {
			return s, err
		}
		if times, err = b.Grid(); err != nil {
			return s, err
		}
		values = c.doubles
		s.Time = times // one column for all series
	}

	if c.rate != nil {
		outTimes, outValues := c.times.alloc(len(times))[:0], c.values.alloc(len(times))[:0]
		s.Time, s.Value, err = rate.Doubles(c.rate, times, values, outTimes, outValues)
		c.dropFirstRate(&s, times)
		return s, err
	}

	// The bucketer's memory is used again for the next span.
	if s.Time == nil {
		s.Time = c.buckets.copyOf(times, c.times.copy)
	}
	s.Value = c.values.copy(values)
	return s, nil
}

// asReceived returns the buckets of a span as they came, false if something has to be
// done with them.
func (c *columns) asReceived(segments []*segment) (aggregate.Series, bool) {
	one := segments[0]
	if len(segments) > 1 || one.raw.Len() > 0 || c.rate != nil || c.bucketer.Fills() {
		return aggregate.Series{}, false
	}
	return aggregate.Series{Time: one.time, Value: one.value}, true
}

// addToBuckets gives a segment to the bucketer, which takes it in time order. The
// segment's raw points belong to buckets that the part left open; they lie before and after
// the buckets that it finished.
func (c *columns) addToBuckets(s *segment) {
	before := s.raw.Len()
	if len(s.time) > 0 {
		before, _ = slices.BinarySearch(s.raw.Time, s.time[0])
	}
	c.doubles = s.raw.AppendDoubles(c.doubles[:0])
	c.bucketer.Points(s.raw.Time[:before], c.doubles[:before])
	c.bucketer.Buckets(s.time, s.value)
	c.bucketer.Points(s.raw.Time[before:], c.doubles[before:])
}

// rates makes rates of a span's points.
func (c *columns) rates(segments []*segment) (s aggregate.Series, err error) {
	p := c.joined(segments)
	outTimes, outValues := c.times.alloc(p.Len())[:0], c.values.alloc(p.Len())[:0]
	s.Time, s.Value, err = rate.Points(c.rate, p, outTimes, outValues)
	c.dropFirstRate(&s, p.Time)
	return s, err
}

// dropFirstRate removes the rate at a series' first point, which has no point before it,
// if the plan has this OpenTSDB error fixed. times are the series' own.
func (c *columns) dropFirstRate(s *aggregate.Series, times []int64) {
	if c.fix&scanplan.FixRateStart != 0 && len(times) > 0 {
		s.Time, s.Value = rate.DropFirst(times[0], s.Time, s.Value)
	}
}

// joined returns a span's points in one column each, valid until the next call.
func (c *columns) joined(segments []*segment) encoding.Points {
	if len(segments) == 1 {
		return segments[0].raw
	}
	c.raw.Reset()
	for i := range segments {
		c.raw.AppendPoints(segments[i].raw)
	}
	return c.raw
}

// stored returns a span's points as they are stored.
func (c *columns) stored(segments []*segment) aggregate.Series {
	if p := segments[0].raw; len(segments) == 1 {
		return aggregate.Series{Time: p.Time, Bits: p.Bits, Float: p.Float}
	}

	n := 0
	for _, s := range segments {
		n += s.raw.Len()
	}
	out := aggregate.Series{Time: c.times.alloc(n), Bits: c.bits.alloc(n), Float: c.floats.alloc(n)}
	n = 0
	for _, s := range segments {
		copy(out.Time[n:], s.raw.Time)
		copy(out.Bits[n:], s.raw.Bits)
		copy(out.Float[n:], s.raw.Float)
		n += s.raw.Len()
	}
	return out
}

// checkOrder returns an error if segments do not follow each other in time: a row was
// added twice, or a part returned something impossible, and the answer would be wrong.
func checkOrder(segments []*segment) error {
	last := int64(-1)
	for i := range segments {
		s := segments[i]
		for _, times := range [2][]int64{s.time, s.raw.Time} {
			for k := 1; k < len(times); k++ {
				if times[k] <= times[k-1] {
					return fmt.Errorf("time %d follows %d, want ascending times", times[k], times[k-1])
				}
			}
		}

		first, end, ok := extent(s)
		if ok && first <= last { //fault:overlap-not-noticed TestOverlap
			return fmt.Errorf("a part begins at %d, another goes on until %d", first, last)
		}
		if ok {
			last = end
		}
	}
	return nil
}

// extent returns the first and the last time of a segment, false if it has none.
func extent(s *segment) (first, last int64, ok bool) {
	for _, times := range [2][]int64{s.time, s.raw.Time} {
		if len(times) == 0 {
			continue
		}
		if !ok {
			first, last, ok = times[0], times[len(times)-1], true
		}
		first, last = min(first, times[0]), max(last, times[len(times)-1])
	}
	return first, last, ok
}
