package operator

import (
	"bytes"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/operator/downsample"
)

// seriesTable has the spans seen so far. Rows come hour by hour, and in each hour in the
// order of their series. So the span of a row is usually the one after the last row's
// span, or a new one after all others: both cases need no search. Otherwise, because a
// series began later than others or others have holes, it is searched by bisection as
// long as spans ascend, and then in an index.
type seriesTable struct {
	spans []*series        // as first seen
	index map[string]int32 // positions in spans, by id; nil while they ascend
	next  int              // position in spans after the last one found
	key   []byte           // id of the present row's span
	bytes int64            // memory of the spans themselves
	free  []series         // allocated and unused
	ids   []byte           // memory for further ids
}

// spanOverhead is about the bytes of a span without its id and its points.
const spanOverhead = 272

// series is the state of one series under one salt.
type series struct {
	id          []byte   // salt, metric, tags
	listed      bool     // in the arena's order
	first       int32    // first segment of its chain in the arena, -1 for none
	last        int32    // last segment
	annotations [][]byte // JSON, waiting to be emitted

	// hasPoint is set if the span has a point, and firstTime and firstValue are its first; shipped
	// is set if a batch has a bucket or a point of it.
	hasPoint   bool
	firstTime  int64
	firstValue encoding.Value
	shipped    bool

	// In a part with aligned aggregation, set once the span has points.
	group   *alignedGroup
	aligned *alignedMember

	// Used if buckets reach over rows, see edgeDownsampler, wholeDownsampler and rollupRows.
	pending   encoding.Points
	firstDone bool
	bucketer  *downsample.Bucketer
	counts    *downsample.Bucketer // of an average over rollups; bucketer then has the sums
	windows   *seriesWindows
}

// find returns the span of a row key. A new one must pass admit; else it returns nil.
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

// lookUp returns the span with an id, nil if there is none.
func (t *seriesTable) lookUp(id []byte) *series {
	t.key = append(t.key[:0], id...)
	if i, ok := t.search(); ok {
		return t.spans[i]
	}
	return nil
}

// search returns the position of the span key, or the position that it would have if
// spans ascend.
func (t *seriesTable) search() (i int, found bool) {
	n := len(t.spans)
	switch {
	// Hours come one after another, each with its rows in the order of series: usually it is the
	// span after the last row's.
	case t.next < n &&
		bytes.Equal(t.spans[t.next].id, t.key): //fault:span-of-the-next-row-not-compared TestSeriesTable_anyOrder
		return t.next, true
	case t.index != nil:
		at, ok := t.index[string(t.key)]
		return int(at), ok
	// A new span after all others, as each is in the part's first hour.
	case n == 0 || bytes.Compare(t.spans[n-1].id, t.key) < 0:
		return n, false
	}
	// Without an index the spans ascend.
	return slices.BinarySearchFunc(t.spans, t.key,
		func(sp *series, key []byte) int { return bytes.Compare(sp.id, key) })
}

// insert adds the span key; i is what search returned.
func (t *seriesTable) insert(i int) {
	// A span that is not the last in order ends the ascent: from now on there is an
	// index.
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

// Spans and their ids are allocated many at a time: as many as there are, between
// these bounds.
const (
	minSpans = 8
	maxSpans = 1024
)

// newSeries returns a new span with the id key. Spans and their ids are allocated many at a
// time, as many as there are already.
func (t *seriesTable) newSeries() *series {
	if len(t.free) == 0 {
		t.free = make([]series, min(max(minSpans, len(t.spans)), maxSpans))
	}
	if cap(t.ids)-len(t.ids) < len(t.key) {
		t.ids = make([]byte, 0, len(t.key)*max(len(t.free), minSpans))
	}

	from := len(t.ids)
	t.ids = append(t.ids, t.key...)

	sp := &t.free[0]
	t.free = t.free[1:]
	// -1: it has no segments in the arena.
	*sp = series{id: t.ids[from:len(t.ids):len(t.ids)], first: -1, last: -1}
	return sp
}
