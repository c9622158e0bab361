// Package live keeps the answers of live queries up to date. Each distinct query has
// one evaluator, which serves all its subscribers. Every second the evaluator gets the
// news from the query's Source, or runs the query again and compares. The package knows
// no sockets, rows or stores. Package changefeed is the source that reads only what has
// changed; package incremental has its arithmetic.
//
// A subscriber is a cursor: its place in its evaluator's history. It is woken, requests what it has
// not seen (Subscription.Next), and gets one delta for all ticks that it has missed, or a snapshot
// when the history does not reach back that far. So a slow subscriber needs no queue and blocks no
// other.
//
//	Source ──▶ evaluator ──▶ state at seq 41, history 31…41
//	                        ├── subscriber at 41: up to date
//	                        ├── subscriber at 38: one delta, 39 to 41 merged
//	                        └── subscriber at 12: a snapshot
//
// The tests hold the package to one law: a snapshot with its deltas applied equals
// the answer of the same query, run now.
package live

import (
	"math"
	"sort"

	"downpour/encoding"
)

// Result is one group of an answer. After it was returned to the hub, neither its
// map nor its columns may change.
type Result struct {
	QueryIndex    int    // the sub-query, or the output of expressions, from 0
	Metric        string // or the output's id
	Tags          map[string]string
	AggregateTags []string

	// Key identifies the group from one answer to the next while Tags and
	// AggregateTags may change, for example by the values of the group-by tags. If
	// it is empty the group is identified by its metric and tags, and a change of
	// those removes it and adds another group.
	Key string

	Points    encoding.Points // ms since 1970, ascending
	NaNIsNull bool            // the fill policy is null: NaN means that there is no value
}

// Answer is what Config.Ask or Source.Next returns: all groups, or what has changed.
type Answer struct {
	Results []Result

	// Kept are the sub-queries that have no groups in Results: their groups are
	// those of the answer before, with Changes applied. If it is nil, Results has
	// all groups.
	Kept    map[int]bool
	Changes []Change

	// Missing are the key ranges, in hex, that could not be read for an answer that
	// may be incomplete.
	Missing [][2]string

	// Damaged is how many unreadable rows were skipped because of fix=damaged.
	Damaged int64

	// Held is the memory that the source holds for this query, bytes.
	Held int64

	// Rows is how many rows the store delivered when the query was last run in
	// full; 0 is unknown.
	Rows int64

	// FinalBefore is the answer's watermark (ms): no later answer differs before it
	// as long as points come in order. A late, overwritten or deleted point, a new
	// series, and one that comes back after a long silence may change more, and so
	// may a moving start at its edge. 0 promises nothing.
	FinalBefore int64
}

// Change is the difference of one group of a kept sub-query from the answer before.
type Change struct {
	QueryIndex int
	Key        string // as Result.Key, not empty
	// Full, if not nil, is the whole group, which is new or has another
	// description. Otherwise Windows hold the changed points.
	Full    *Result
	Windows []Window
}

// Window replaces the points of a group from From to To, both inclusive, by Points.
// It consists of whole seconds: From is the first ms of a second, To the last. The
// windows of a change ascend and do not overlap.
type Window struct {
	From, To int64 // ms
	Points   encoding.Points
}

// points are the points of a group in the client's unit of time, as columns. They
// never change once they are part of a state.
type points struct {
	time  []int64
	bits  []uint64
	float []bool
}

var canonicalNaN = math.Float64bits(math.NaN())

// takePoints converts points to the client's unit of time, s or ms. Of several points
// in one second the last wins, as it does for a reader of OpenTSDB's JSON map of
// times. The columns of p are taken over and changed: the caller must not use them again.
func takePoints(p encoding.Points, seconds bool) points {
	c := points{time: p.Time, bits: p.Bits, float: p.Float}
	if seconds {
		c.time = make([]int64, len(p.Time))
		for i, ms := range p.Time {
			c.time[i] = floorDiv(ms, 1000)
		}
	}
	c = c.keepLastOfEachTime()
	for i, isFloat := range c.float {
		if isFloat && math.IsNaN(math.Float64frombits(c.bits[i])) {
			c.bits[i] = canonicalNaN // all NaNs are spelled alike, so they must be equal
		}
	}
	return c
}

// keepLastOfEachTime returns c with the last of each run of points of one time. It moves points within the
// columns of c.
func (c points) keepLastOfEachTime() points {
	n := 0 // how many are kept
	for i := range c.time {
		if n > 0 && c.time[n-1] == c.time[i] {
			n-- // this one replaces it
		}
		c.time[n], c.bits[n], c.float[n] = c.time[i], c.bits[i], c.float[i]
		n++
	}
	return points{c.time[:n], c.bits[:n], c.float[:n]}
}

// value returns the value at i.
func (c points) value(i int) encoding.Value {
	return encoding.Value{Float: c.float[i], Bits: c.bits[i]}
}

// equalAt reports whether the value at i equals d's at j, type included: 1 is not 1.0.
func (c points) equalAt(i int, d points, j int) bool {
	return c.float[i] == d.float[j] && c.bits[i] == d.bits[j]
}

// push appends d's point at j.
func (c *points) push(d points, j int) {
	c.time = append(c.time, d.time[j])
	c.bits = append(c.bits, d.bits[j])
	c.float = append(c.float, d.float[j])
}

// replaceWindows returns new columns, in which the points of the windows, which ascend, replace those of c
// there. For each window it calls replaced with the points of c and the new ones. It takes over the columns of the
// windows, as takePoints does.
func (c points) replaceWindows(windows []Window, seconds bool, replaced func(old, new points)) points {
	most := len(c.time)
	for _, w := range windows {
		most += len(w.Points.Time)
	}
	out := points{make([]int64, 0, most), make([]uint64, 0, most), make([]bool, 0, most)}

	copied := 0 // the points of c before it are in out, or replaced
	for _, w := range windows {
		begin, end := w.From, w.To
		if seconds {
			begin, end = floorDiv(begin, 1000), floorDiv(end, 1000)
		}
		i, _ := c.search(begin)
		j, _ := c.search(end + 1)

		part := takePoints(w.Points, seconds)
		replaced(c.slice(i, j), part)
		out.add(c.slice(copied, i))
		out.add(part)
		copied = j
	}
	out.add(c.slice(copied, len(c.time)))
	return out
}

// slice returns a view of the points i to j, half-open.
func (c points) slice(i, j int) points { return points{c.time[i:j], c.bits[i:j], c.float[i:j]} }

// add appends all points of d.
func (c *points) add(d points) {
	c.time = append(c.time, d.time...)
	c.bits = append(c.bits, d.bits...)
	c.float = append(c.float, d.float...)
}

// search returns the index of the first point at or after time t, and whether it is at t.
func (c points) search(t int64) (int, bool) {
	i := sort.Search(len(c.time), func(i int) bool { return c.time[i] >= t })
	return i, i < len(c.time) && c.time[i] == t
}

// floorDiv returns a/b rounded down, also of a negative a.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
