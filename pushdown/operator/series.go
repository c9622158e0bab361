package operator

import (
	"bytes"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/operator/downsample"
)

// seriesTable knows the spans met so far. Rows come hour by hour, in each in the
// order of their series, so the span of the next row mostly is the one behind the
// last row's, or a new one behind all others: both are seen without looking for
// it. Only where a series begins later than others, or others have holes, is it
// looked for: in order, and once there is none any more by an index.
type seriesTable struct {
	spans []*series        // as first met
	index map[string]int32 // of spans, by id; nil while they ascend
	next  int              // of spans: behind the last one found
	key   []byte           // scratch
	bytes int64            // what the spans themselves take
	free  []series         // not given out yet
	ids   []byte           // room for further ids
}

// spanOverhead is about what a span takes beside its key and its points.
const spanOverhead = 256

// series is the state of one series under one salt.
type series struct {
	id     []byte // salt, metric, tags
	listed bool   // in the arena's list of spans to emit
	first  int32  // its chain of segments in the arena, -1 for none
	last   int32
	notes  [][]byte

	// hasPoint, firstTime, firstValue are the span's first point; shipped
	// tells whether a batch holds anything of its points.
	hasPoint   bool
	firstTime  int64
	firstValue encoding.Value
	shipped    bool

	// Used where buckets reach over rows, see fold.go.
	pending  encoding.Points
	headDone bool
	whole    *downsample.Bucketer
}

// find returns the span of a row key, nil if admit rejects it.
func (t *seriesTable) find(s encoding.Schema, key []byte, admit func(span []byte) bool) *series {
	t.key = s.AppendSpan(t.key[:0], key)
	i, ok := t.search()
	if !ok {
		if !admit(t.key) {
			return nil
		}
		t.insert(i)
		i = len(t.spans) - 1
	}
	t.next = i + 1
	return t.spans[i]
}

// search returns the place of the span named key, or where it would have to be in
// order.
func (t *seriesTable) search() (i int, found bool) {
	n := len(t.spans)
	switch {
	case t.next < n && bytes.Equal(t.spans[t.next].id, t.key):
		return t.next, true
	case t.index != nil:
		at, ok := t.index[string(t.key)]
		return int(at), ok
	case n == 0 || bytes.Compare(t.spans[n-1].id, t.key) < 0:
		return n, false
	}
	return slices.BinarySearchFunc(t.spans, t.key, func(sp *series, key []byte) int { return bytes.Compare(sp.id, key) })
}

// insert makes key the newest span; in order it would be the i-th.
func (t *seriesTable) insert(i int) {
	if t.index == nil && i < len(t.spans) {
		t.index = make(map[string]int32, 2*len(t.spans))
		for k, sp := range t.spans {
			t.index[string(sp.id)] = int32(k)
		}
	}
	sp := t.newSeries()
	if t.index != nil {
		t.index[string(sp.id)] = int32(len(t.spans))
	}
	t.spans = append(t.spans, sp)
	t.bytes += int64(len(sp.id)) + spanOverhead
}

// Spans and their ids are allocated many at a time, from the least to the largest
// number.
const (
	leastSpans   = 8
	largestSpans = 1024
)

// newSeries returns a span named key.
func (t *seriesTable) newSeries() *series {
	if len(t.free) == 0 {
		t.free = make([]series, min(max(leastSpans, len(t.spans)), largestSpans))
	}
	if cap(t.ids)-len(t.ids) < len(t.key) {
		t.ids = make([]byte, 0, len(t.key)*max(len(t.free), leastSpans))
	}
	from := len(t.ids)
	t.ids = append(t.ids, t.key...)
	sp := &t.free[0]
	t.free = t.free[1:]
	*sp = series{id: t.ids[from:len(t.ids):len(t.ids)], first: -1, last: -1}
	return sp
}
