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

// columns makes of each span the columns that the aggregation wants: downsample,
// fill, rate, in this order. Its memory is used again from group to group.
type columns struct {
	rate     *scanplan.Rate
	fix      scanplan.Fixes
	bucketer *downsample.Bucketer // nil without downsampling
	limit    int64                // bytes of a filled series
	within   *Merger              // whose memory the columns take

	raw     encoding.Points // one span's points, joined
	doubles []float64
	times   arena[int64]
	buckets shared // times of buckets, in that arena
	values  arena[float64]
	bits    arena[uint64]
	floats  arena[bool]
}

func (c *columns) init(p *scanplan.Plan, within *Merger) (err error) {
	c.rate, c.fix, c.limit, c.within = p.Rate, p.Fix, p.MaxBytes, within
	if p.Downsample == nil {
		return nil
	}
	c.bucketer, err = downsample.New(p.Downsample, p.From, p.To, p.Start, p.End)
	if err != nil {
		return err
	}
	if n := c.bucketer.GridLen() * bucketBytes; c.limit > 0 && n > c.limit {
		return &MemoryError{Need: n, Limit: c.limit}
	}
	c.bucketer.Guarded(within)
	return nil
}

// need is the most that a span's columns may take, in bytes, beside its segments:
// it is counted before they are made.
func (c *columns) need(segments []*segment) int64 {
	switch {
	case c.bucketer == nil && c.rate == nil:
		return 0 // reserve has counted them
	case c.bucketer != nil && c.bucketer.Fills():
		n := c.bucketer.GridLen()
		need := n * 8 // values
		if c.rate != nil {
			need += n * 8 // and times of their own, where resets are dropped
		}
		if int64(cap(c.doubles)) < n {
			need += n * 8
		}
		return need
	case c.rate == nil && len(segments) == 1 && segments[0].raw.Len() == 0:
		return 0 // buckets as they came
	}
	n := int64(0)
	for _, s := range segments {
		n += int64(len(s.time) + s.raw.Len())
	}
	return n * pointBytes
}

// reset forgets the columns of all spans.
func (c *columns) reset() {
	c.times.reset()
	c.buckets = shared{}
	c.values.reset()
	c.bits.reset()
	c.floats.reset()
}

// reserve makes room for the points of a group.
func (c *columns) reserve(points int) error {
	if c.bucketer != nil || c.rate != nil || points <= len(c.times.chunk) {
		return nil
	}
	if err := c.within.grow(int64(points) * pointBytes); err != nil {
		return err
	}
	c.times.reserve(points)
	c.bits.reserve(points)
	c.floats.reserve(points)
	return nil
}

// of returns the columns of a span, given its segments in time order.
func (c *columns) of(segments []*segment) (s aggregate.Series, err error) {
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
	if s, ok := c.ready(segments); ok {
		return s, nil
	}
	b := c.bucketer
	b.Reset()
	for i := range segments {
		c.feed(segments[i])
	}
	times, values := b.Finish()
	if b.Fills() {
		if c.doubles, err = b.Fill(c.doubles[:0], times, values); err != nil {
			return s, err
		}
		if times, err = b.Grid(); err != nil {
			return s, err
		}
		values = c.doubles
		s.Time = times // one for all series
	}
	if c.rate != nil {
		outTimes, outValues := c.times.alloc(len(times))[:0], c.values.alloc(len(times))[:0]
		s.Time, s.Value, err = rate.Doubles(c.rate, times, values, outTimes, outValues)
		c.start(&s, times)
		return s, err
	}
	if s.Time == nil {
		s.Time = c.buckets.of(times, c.times.copy)
	}
	s.Value = c.values.copy(values)
	return s, nil
}

// ready returns the buckets of a span as they came, if nothing is to be done.
func (c *columns) ready(segments []*segment) (aggregate.Series, bool) {
	one := segments[0]
	if len(segments) > 1 || one.raw.Len() > 0 || c.rate != nil || c.bucketer.Fills() {
		return aggregate.Series{}, false
	}
	return aggregate.Series{Time: one.time, Value: one.value}, true
}

// feed gives a segment to the bucketer: its buckets lie between its points
// before and its points after them.
func (c *columns) feed(s *segment) {
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
	c.start(&s, p.Time)
	return s, err
}

// start lets the rates of a series with these times begin at its second point, if
// the plan says so.
func (c *columns) start(s *aggregate.Series, times []int64) {
	if c.fix&scanplan.FixRateStart != 0 && len(times) > 0 {
		s.Time, s.Value = rate.DropFirst(times[0], s.Time, s.Value)
	}
}

// joined returns a span's points in one piece, valid until the next call.
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

// stored returns a span's points as they are.
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

// checkOrder refuses segments that do not follow each other in time: a row was
// merged twice, or a part sent nonsense, and the answer would be wrong.
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
		if ok && first <= last {
			return fmt.Errorf("a part begins at %d, another goes on until %d", first, last)
		}
		if ok {
			last = end
		}
	}
	return nil
}

// extent is the first and the last time of a segment, false if it has none.
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
