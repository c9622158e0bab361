package aggregate

import (
	"fmt"
	"math"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// Series is one member of a group as the aggregation sees it: the stored points
// of a span, or what downsampling and rate made of them. The columns have equal
// lengths; times ascend.
type Series struct {
	Time []int64 // ms
	// Value holds doubles. It may be nil when Bits and Float are given.
	Value []float64
	// Bits and Float are stored points, encoding.Value's columns; nil when all
	// values are doubles.
	Bits  []uint64
	Float []bool
}

// Query says which times a group is made for.
type Query struct {
	From, To   int64 // scan range, s: members begin at From, nothing is emitted after To
	Start, End int64 // ms, both inclusive: what is emitted
	Rate       bool  // members are rates: held until the next one, never interpolated
	// Fix lists the errors put right. With FixRateStart members have no rate at
	// their first point, see rate.DropFirst.
	Fix scanplan.Fixes
}

// bogusStart tells whether the first rate of each member is the one from 1970,
// which is used up.
func (q *Query) bogusStart() bool { return q.Rate && q.Fix&scanplan.FixRateStart == 0 }

// ownOnly tells whether a function sees only the members that have a point at a
// time.
func (q *Query) ownOnly(f *Function) bool {
	return q.Fix&scanplan.FixGaps != 0 && (f.Name == "count" || f.Name == "first" || f.Name == "last")
}

// InfinityError is the end of a query whose answer would hold an infinite value;
// JSON has no way to write it. Source: AggregationIterator.doubleValue.
type InfinityError struct {
	Value float64
	Time  int64 // ms
}

// Error begins as OpenTSDB's message does.
func (e *InfinityError) Error() string {
	sign := ""
	if e.Value < 0 {
		sign = "-"
	}
	return fmt.Sprintf("Got Infinity: %sInfinity in this SpanGroup.Iterator(timestamp=%d)", sign, e.Time)
}

// Group aggregates groups one after the other and keeps its scratch memory in
// between. It is for one goroutine.
type Group struct {
	// Guard bounds the memory and the time of Aggregate; nil does not.
	Guard Guard

	members []member
	times   timeline
	float   []bool // by timestamp: the output is a double
	columns columns
	ownOnly bool // members contribute at their own times alone
	doubles scratch[float64]
	longs   scratch[int64]
	arena   arena
}

// scratch is the memory of one typed pass over a block.
type scratch[T any] struct{ contribution, result []T }

// pointBytes is what a point of the result takes: time, bits, type.
const pointBytes = 17

// checkMembers is after how many members of a block the guard is asked: each of
// them takes at most blockTimes steps.
const checkMembers = 64

// blockTimes is the number of timestamps worked on together: few enough for
// accumulators and contributions to stay in the processor's cache.
const blockTimes = 2048

// gatherValues bounds the memory in which a holistic function gathers a block.
const gatherValues = 1 << 20

// Aggregate appends to out one point for each time at which a member has one,
// in the value type that OpenTSDB gives it: an integer if no member has a float
// as its current or its next point there. members stand in span order. It
// returns an *InfinityError for an infinite value inside [Start, End], and the
// guard's errors.
// Source: AggregationIterator, SpanGroup.
func (g *Group) Aggregate(f *Function, q Query, members []Series, out *encoding.Points) error {
	if g.Guard == nil {
		g.Guard = Unguarded{}
	}
	g.arena.reset()
	times, kind, err := g.prepare(q, members)
	if err != nil {
		return err
	}
	if f.Name == "none" && len(g.members) > 1 {
		return fmt.Errorf("aggregate: %d members in a group of none, want 1", len(g.members))
	}
	method := f.Interpolation
	if q.Rate {
		method = PREV
	}
	g.ownOnly = q.ownOnly(f)

	if err := g.Guard.Reserve(int64(len(times)) * pointBytes); err != nil {
		return err
	}
	out.Time = slices.Grow(out.Time, len(times))
	out.Bits = slices.Grow(out.Bits, len(times))
	out.Float = slices.Grow(out.Float, len(times))
	size := g.blockSize(f)
	for begin := 0; begin < len(times); begin += size {
		block := times[begin:min(begin+size, len(times))]
		var float []bool
		if kind == mixed {
			float = g.float[begin:][:len(block)]
		}
		if err := g.Guard.Check(); err != nil {
			return err
		}
		if err := g.block(f, method, block, kind.of(float), float, out); err != nil {
			return err
		}
	}
	return nil
}

// blockSize is the number of timestamps of a block.
func (g *Group) blockSize(f *Function) int {
	g.columns.width = len(g.members)
	if f.Class != Holistic || g.columns.width == 0 {
		return blockTimes
	}
	return min(blockTimes, max(16, gatherValues/g.columns.width))
}

// typing tells which types a run of outputs has.
type typing uint8

const (
	integers typing = iota
	floats
	mixed
)

// of narrows a mixed typing by the flags of a block.
func (k typing) of(float []bool) typing {
	if k != mixed {
		return k
	}
	seen := [2]bool{}
	for _, f := range float {
		if f {
			seen[1] = true
		} else {
			seen[0] = true
		}
	}
	switch {
	case !seen[1]:
		return integers
	case !seen[0]:
		return floats
	}
	return mixed
}

// block aggregates one block of timestamps and appends it to out.
func (g *Group) block(f *Function, method Interpolation, block []int64, kind typing, float []bool, out *encoding.Points) error {
	for i := range g.members {
		g.members[i].locate(block)
	}
	if kind != floats {
		if err := pass(g, &g.longs, f.long, longPolicies.of(method), block, (*member).longValues); err != nil {
			return err
		}
	}
	if kind != integers {
		if err := pass(g, &g.doubles, f.double, doublePolicies.of(method), block, (*member).doubleValues); err != nil {
			return err
		}
	}
	for i := range g.members {
		g.members[i].next = g.members[i].end
	}
	for j, t := range block {
		if kind == integers || kind == mixed && !float[j] {
			out.Append(t, encoding.IntValue(g.longs.result[j]))
			continue
		}
		v := g.doubles.result[j]
		if math.IsInf(v, 0) {
			return &InfinityError{Value: v, Time: t}
		}
		out.Append(t, encoding.FloatValue(v))
	}
	return nil
}

// addOwn adds a member's points inside the block, each at its own time.
func addOwn[T int64 | float64](f columnFunctions[T], c *columns, m *member, block []int64, own []T) {
	for k, at := m.next, m.at; k < m.end; k, at = k+1, at+1 {
		for block[at] != m.time[k] {
			at++
		}
		f.add(c, at, own[k:k+1])
	}
}

// pass walks the members in span order, adds what each contributes to the
// block's accumulators, and computes the results. Its errors are the guard's.
func pass[T int64 | float64](g *Group, s *scratch[T], f columnFunctions[T], p policy[T], block []int64, values func(*member) []T) error {
	c := &g.columns
	f.reset(c, len(block))
	s.contribution = sized(s.contribution, len(block), 0)
	for i := range g.members {
		if i%checkMembers == checkMembers-1 {
			if err := g.Guard.Check(); err != nil {
				return err
			}
		}
		m := &g.members[i]
		n := m.to - m.at
		switch own := values(m); {
		case n == 0:
		case g.ownOnly:
			addOwn(f, c, m, block, own)
		case m.end-m.next == n: // a point at every time
			f.add(c, m.at, own[m.next:m.end])
		default:
			contribute(p, s.contribution[:n], block[m.at:m.to], m.time, own, m.next)
			f.add(c, m.at, s.contribution[:n])
		}
	}
	s.result = sized(s.result, len(block), 0)
	f.finish(c, s.result)
	return nil
}
