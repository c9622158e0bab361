package incremental

import (
	"downpour/encoding"
	"downpour/pushdown/operator/aggregate"
)

// openBucket is the last bucket of a span with the aggregation of its points, to
// which later points can be added without reading the row.
type openBucket struct {
	known bool            // the other fields describe the last bucket of base
	start int64           // ms
	last  int64           // time of its last point, ms
	state aggregate.State // of the bucket's points
}

// Extend applies points, ascending, that were added to the rows of a span. It returns
// true if the view has applied them. It returns false, and changes nothing, if the rows
// must be read: the points are not later than all others of the span, or the view does
// not know enough about the span's last bucket.
func (t *View) Extend(id []byte, p encoding.Points) (taken bool, err error) {
	s := t.spans[string(id)]
	switch {
	case s == nil: // a new span enters the view with its row
		return false, nil
	case s.group == nil: // a filter refuses the span, with any points
		return true, nil
	case s.base.len() == 0 || p.Len() == 0: // no points to compare
		return false, nil
	case t.bucketer != nil:
		return t.extendBuckets(s, p)
	case p.Time[0] <= s.base.Time[s.base.len()-1]: // a late or an overwritten point
		return false, nil
	}
	return true, t.replaceBase(s, p.Time[0], always.To, storedColumn(p))
}

// extendBuckets adds points to a span's last bucket and makes the buckets after it.
func (t *View) extendBuckets(s *series, p encoding.Points) (taken bool, err error) {
	open, last := &s.open, s.base.Time[s.base.len()-1]
	switch {
	case p.Time[0] >= last+t.interval():
		// The points begin another bucket: the contents of the last one do not matter, and it does
		// not change.
		open.known = false
	// The last bucket's points are not known, or the new one is late.
	case !open.known || open.start != last || p.Time[0] <= open.last:
		return false, nil
	}

	before := open.state.Bytes()
	t.doubles = p.AppendDoubles(t.doubles[:0])
	t.newBuckets.Time, t.newBuckets.Value = t.newBuckets.Time[:0], t.newBuckets.Value[:0]
	for i, at := range p.Time {
		t.addToBucket(open, at, t.doubles[i:i+1])
	}
	t.emitBucket(open)

	t.bytes += open.state.Bytes() - before
	return true, t.replaceBase(s, t.newBuckets.Time[0], always.To, t.newBuckets)
}

// addToBucket adds a point to the open bucket. If the point is in another one, it emits the open
// bucket first and begins the point's.
func (t *View) addToBucket(open *openBucket, at int64, value []float64) {
	if start := t.bucketer.BucketStart(at); !open.known || start != open.start {
		t.emitBucket(open) // nothing if its points are not known
		open.known, open.start = true, start
		t.inBucket.Reset(&open.state)
	}
	t.inBucket.Update(&open.state, value)
	open.last = at
}

// emitBucket appends the value that the open bucket has now to newBuckets.
func (t *View) emitBucket(open *openBucket) {
	if open.known {
		t.newBuckets.Time = append(t.newBuckets.Time, open.start)
		t.newBuckets.Value = append(t.newBuckets.Value, t.inBucket.Value(&open.state))
	}
}

// restoreOpenBucket rebuilds a span's open bucket from the rows just read: read is
// the column that was made of parts. It does nothing if the span's last bucket is
// not among them.
func (t *View) restoreOpenBucket(s *series, read *column, parts []partColumn) {
	n, m := s.base.len(), read.len()
	if t.bucketer == nil || m == 0 || read.Time[m-1] != s.base.Time[n-1] {
		return
	}

	open := &s.open
	open.known, open.start = true, read.Time[m-1]
	before := open.state.Bytes()
	t.inBucket.Reset(&open.state)

	for _, p := range parts {
		// Rows that were read as buckets show values, not the points in them:
		// another point cannot be added to a value.
		open.known = open.known && p.buckets.len() == 0
		i := indexFrom(p.raw.Time, open.start)
		t.doubles = p.raw.AppendDoubles(t.doubles[:0])
		t.inBucket.Update(&open.state, t.doubles[i:])
		if p.raw.Len() > i {
			open.last = p.raw.Time[p.raw.Len()-1]
		}
	}
	t.bytes += open.state.Bytes() - before
}
