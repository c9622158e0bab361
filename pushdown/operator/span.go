package operator

import (
	"bytes"

	"downpour/encoding"
	"downpour/pushdown/downsample"
)

// spanTable knows the spans met so far. A lookup allocates only for a span that
// is new.
type spanTable struct {
	index map[string]int32
	spans []*span
	key   []byte // scratch
	bytes int64  // what the spans themselves take
}

// spanOverhead is about what a span takes beside its key and its points.
const spanOverhead = 256

// span is the state of one series under one salt.
type span struct {
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
	until    int64 // end of the newest bucket counted for the memory bound
}

// find returns the span of a row key, nil if admit rejects it.
func (t *spanTable) find(s encoding.Schema, key []byte, admit func(span []byte) bool) *span {
	t.key = s.AppendSpan(t.key[:0], key)
	if i, ok := t.index[string(t.key)]; ok {
		return t.spans[i]
	}
	if !admit(t.key) {
		return nil
	}
	sp := &span{id: bytes.Clone(t.key), first: -1, last: -1}
	if t.index == nil {
		t.index = map[string]int32{}
	}
	t.index[string(sp.id)] = int32(len(t.spans))
	t.spans = append(t.spans, sp)
	t.bytes += int64(len(sp.id)) + spanOverhead
	return sp
}
