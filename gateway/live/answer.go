// Package live keeps the answers of live queries up to date. Each distinct
// query has one evaluator, which has its Source say every second what is new, or
// asks it again and finds what is different, and serves all its subscribers; it
// knows nothing of sockets, rows and stores. Package follow is the source that
// reads only what has changed, package standing its arithmetic.
//
// A subscriber is a cursor: how far it has got in its evaluator's history. It is
// woken, asks for what it has not seen (Subscription.Next), and gets one delta
// however many ticks it missed, or a snapshot when the history does not reach
// back that far. So a slow subscriber costs no queue and holds nobody up.
//
//	Source ──▶ evaluator ──▶ state at seq 41, history 31…41
//	                        ├── subscriber at 41: up to date
//	                        ├── subscriber at 38: one delta, 39 to 41 merged
//	                        └── subscriber at 12: a snapshot
//
// The law that the tests hold it to: snapshot and deltas, applied, are the
// answer of the same query asked afresh.
package live

import (
	"math"
	"sort"

	"downpour/encoding"
)

// Result is one group of an answer. Whoever returns it from Ask gives it away:
// neither maps nor columns may change afterwards.
type Result struct {
	QueryIndex    int // the sub-query, from 0
	Metric        string
	Tags          map[string]string
	AggregateTags []string

	// Key is what stays the same from one answer to the next when Tags or
	// AggregateTags change, such as the values of the group-by tags. Empty, the
	// group is known by its metric and tags, and a change of those removes it
	// and adds another.
	Key string

	Points    encoding.Points // ms since 1970, ascending
	NaNIsNull bool            // the fill policy is null: NaN stands for no value
}

// Answer is what Ask or Source.Next found: all groups, or what is new of them.
type Answer struct {
	Results []Result

	// Kept are the sub-queries of which Results says nothing: their groups are
	// those of the answer before, but for Changes. nil: Results is everything.
	Kept    map[int]bool
	Changes []Change

	// Missing are the key ranges, hex, that lack of an answer that may be
	// incomplete.
	Missing [][2]string

	// Held is what the source keeps in memory for this query, bytes.
	Held int64

	// Rows is how many rows the store delivered for the answer when it was last
	// read whole; 0 is unknown.
	Rows int64

	// FinalBefore promises that no later answer differs before this time (ms) as
	// long as points come in order. A late, overwritten or deleted point, a new
	// series, and one that comes back after a long silence, may change more, and
	// so may a moving start at its edge. 0 promises nothing.
	FinalBefore int64
}

// Change is what became of one group of a kept sub-query since the answer before.
type Change struct {
	QueryIndex int
	Key        string // as Result.Key, not empty
	// Full, if not nil, is the whole group, which is new or described anew. Else
	// Windows hold what is new.
	Full    *Result
	Windows []Window
}

// Window replaces what a group had from From to To, both inclusive, by Points.
// The bounds lie between seconds: From is the first ms of one, To the last.
// Windows of a change ascend and do not overlap.
type Window struct {
	From, To int64 // ms
	Points   encoding.Points
}

// cells are the points of a group in the client's unit of time: columns that
// never change once made.
type cells struct {
	time  []int64
	bits  []uint64
	float []bool
}

var canonicalNaN = math.Float64bits(math.NaN())

// toCells converts points to the client's unit, s or ms. Of several points in
// one unit the last wins, as it does for a reader of the JSON map of times.
func toCells(p encoding.Points, seconds bool) cells {
	c := cells{time: p.Time, bits: p.Bits, float: p.Float}
	if seconds {
		c.time = make([]int64, len(p.Time))
		for i, ms := range p.Time {
			c.time[i] = floorDiv(ms, 1000)
		}
	}
	c = c.lastOfEach()
	for i, isFloat := range c.float {
		if isFloat && math.IsNaN(math.Float64frombits(c.bits[i])) {
			c.bits[i] = canonicalNaN // one NaN, so that equal spellings compare equal
		}
	}
	return c
}

// lastOfEach keeps the last of each run of equal times. The columns are ours,
// so it moves them in place.
func (c cells) lastOfEach() cells {
	n := 0
	for i := range c.time {
		if n > 0 && c.time[n-1] == c.time[i] {
			n--
		}
		c.time[n], c.bits[n], c.float[n] = c.time[i], c.bits[i], c.float[i]
		n++
	}
	return cells{c.time[:n], c.bits[:n], c.float[:n]}
}

// value returns the value at i.
func (c cells) value(i int) encoding.Value { return encoding.Value{Float: c.float[i], Bits: c.bits[i]} }

// same tells whether the value at i equals d's at j, type included: 1 is not 1.0.
func (c cells) same(i int, d cells, j int) bool {
	return c.float[i] == d.float[j] && c.bits[i] == d.bits[j]
}

// push adds d's value at j.
func (c *cells) push(d cells, j int) {
	c.time = append(c.time, d.time[j])
	c.bits = append(c.bits, d.bits[j])
	c.float = append(c.float, d.float[j])
}

// with returns new columns in which windows are replaced, and tells each what
// stood there and what stands there now.
func (c cells) with(windows []Window, seconds bool, each func(old, now cells)) cells {
	grown := len(c.time)
	for _, w := range windows {
		grown += len(w.Points.Time)
	}
	out := cells{make([]int64, 0, grown), make([]uint64, 0, grown), make([]bool, 0, grown)}
	at := 0
	for _, w := range windows {
		begin, end := w.From, w.To
		if seconds {
			begin, end = floorDiv(begin, 1000), floorDiv(end, 1000)
		}
		i, _ := c.find(begin)
		j, _ := c.find(end + 1)
		part := toCells(w.Points, seconds)
		each(c.slice(i, j), part)
		out.add(c.slice(at, i))
		out.add(part)
		at = j
	}
	out.add(c.slice(at, len(c.time)))
	return out
}

func (c cells) slice(i, j int) cells { return cells{c.time[i:j], c.bits[i:j], c.float[i:j]} }

func (c *cells) add(d cells) {
	c.time = append(c.time, d.time...)
	c.bits = append(c.bits, d.bits...)
	c.float = append(c.float, d.float...)
}

// find returns the place of time t.
func (c cells) find(t int64) (int, bool) {
	i := sort.Search(len(c.time), func(i int) bool { return c.time[i] >= t })
	return i, i < len(c.time) && c.time[i] == t
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
