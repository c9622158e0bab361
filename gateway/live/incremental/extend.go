package incremental

import (
	"downpour/encoding"
	"downpour/pushdown/operator/aggregate"
)

// tail is the last bucket of a span, which points in order still come to.
type tail struct {
	known bool
	start int64           // ms
	last  int64           // time of its last point
	state aggregate.State // of its points
}

// Extend takes in points that were added to the rows of a span, ascending. It
// returns false and has done nothing unless they are later than all others of the
// span and nothing has to be read to tell what becomes of it.
func (t *Table) Extend(id []byte, p encoding.Points) (taken bool, err error) {
	s := t.spans[string(id)]
	switch {
	case s == nil:
		return false, nil
	case s.group == nil: // filters keep it out, whatever its points
		return true, nil
	case s.base.len() == 0 || p.Len() == 0:
		return false, nil
	case t.bucketer != nil:
		return t.extendBuckets(s, p)
	case p.Time[0] <= s.base.Time[s.base.len()-1]:
		return false, nil
	}
	return true, t.replace(s, p.Time[0], always.To, stored(p))
}

// extendBuckets adds points to a span's last bucket, and makes those behind it.
func (t *Table) extendBuckets(s *series, p encoding.Points) (taken bool, err error) {
	own, last := &s.tail, s.base.Time[s.base.len()-1]
	switch {
	case p.Time[0] >= last+t.interval():
		own.known = false // and need not be: the points begin another bucket
	case !own.known || own.start != last || p.Time[0] <= own.last:
		return false, nil
	}
	before := own.state.Bytes()
	t.doubles = p.AppendDoubles(t.doubles[:0])
	t.grown.Time, t.grown.Value = t.grown.Time[:0], t.grown.Value[:0]
	for i, at := range p.Time {
		t.grow(own, at, t.doubles[i:i+1])
	}
	t.end(own)
	t.bytes += own.state.Bytes() - before
	return true, t.replace(s, t.grown.Time[0], always.To, t.grown)
}

// grow adds a point to a tail's bucket, or ends that and begins the point's.
func (t *Table) grow(own *tail, at int64, value []float64) {
	if start := t.bucketer.BucketStart(at); !own.known || start != own.start {
		t.end(own)
		own.known, own.start = true, start
		t.inBucket.Reset(&own.state)
	}
	t.inBucket.Update(&own.state, value)
	own.last = at
}

// end adds the bucket of a tail, as it is now, to those that have ended.
func (t *Table) end(own *tail) {
	if own.known {
		t.grown.Time = append(t.grown.Time, own.start)
		t.grown.Value = append(t.grown.Value, t.inBucket.Value(&own.state))
	}
}

// keepTail makes the tail of a span of what was read of whole units, if these
// have the span's last bucket. Of what was read as buckets nothing is known but
// their values.
func (t *Table) keepTail(s *series, read *column, pieces []partColumn) {
	n, m := s.base.len(), read.len()
	if t.bucketer == nil || m == 0 || read.Time[m-1] != s.base.Time[n-1] {
		return
	}
	own := &s.tail
	own.known, own.start = true, read.Time[m-1]
	before := own.state.Bytes()
	t.inBucket.Reset(&own.state)
	for _, p := range pieces {
		own.known = own.known && p.buckets.len() == 0
		i := from(p.raw.Time, own.start)
		t.doubles = p.raw.AppendDoubles(t.doubles[:0])
		t.inBucket.Update(&own.state, t.doubles[i:])
		if p.raw.Len() > i {
			own.last = p.raw.Time[p.raw.Len()-1]
		}
	}
	t.bytes += own.state.Bytes() - before
}
