package aggregate

import (
	"fmt"
	"math"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// Series is one member of a group: the stored points of a span, or the result of downsampling and
// rate. The columns have equal lengths; times ascend.
type Series struct {
	Time []int64 // ms
	// Value are the values as doubles. It may be nil if Bits and Float are set.
	Value []float64
	// Bits and Float are the values as encoding.Points has them; nil if all are
	// doubles.
	Bits  []uint64
	Float []bool
}

// Query is for which times a group is aggregated, and how.
type Query struct {
	From, To   int64 // scan range, s: members begin at From, nothing is emitted after To
	Start, End int64 // ms, both inclusive: times that are emitted
	Rate       bool  // members are rates: each holds until the next one and is not interpolated
	// Fix are the errors of OpenTSDB that are corrected. With FixRateStart members
	// have no rate at their first point, see rate.DropFirst.
	Fix scanplan.Fixes
}

// BogusStart reports whether the first rate of each member is the one measured from
// 1970. It is not emitted, but contributes up to the second one.
func (q *Query) BogusStart() bool { return q.Rate && q.Fix&scanplan.FixRateStart == 0 }

// skipsGaps reports whether a member contributes only at the times of its own points, and is not
// interpolated in the gaps between them.
func (q *Query) skipsGaps(f *Function) bool {
	return f.gapsFixable && q.Fix&scanplan.FixGaps != 0
}

// InfinityError is returned when an answer would have an infinite value, for which
// JSON has no number. Source: AggregationIterator.doubleValue.
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

// Group aggregates groups one after the other. Its memory is used again from group
// to group. It is for one goroutine.
type Group struct {
	// Guard bounds the memory and the time of Aggregate; nil is no bound.
	Guard Guard

	members   []member
	times     timeline
	float     []bool // by timestamp: the output is a double
	columns   columns
	skipsGaps bool // of the query: members are not interpolated between their points
	doubles   scratch[float64]
	longs     scratch[int64]
	arena     arena
}

// scratch is the memory of one typed pass over a block.
type scratch[T any] struct{ contribution, result []T }

// pointBytes is the memory of a point of the result: time, bits, type.
const pointBytes = 17

// checkMembers is the number of members of a block after which the guard is checked again; each of
// them takes at most blockTimes steps.
const checkMembers = 64

// blockTimes is the number of timestamps that are worked on together: few enough
// for accumulators and contributions to stay in the processor's cache.
const blockTimes = 2048

// gatherValues is the largest number of values that a holistic function gathers at
// once.
const gatherValues = 1 << 20

// Aggregate appends to out one point for each time at which a member has a point: f of the values
// of all members there, interpolated where a member has none. The
// type is the one that OpenTSDB gives it: an integer if no member has a float as its
// current or its next point there. members are in span order. The error is an
// *InfinityError for an infinite value inside [Start, End], or the guard's.
// Source: AggregationIterator, SpanGroup.
func (g *Group) Aggregate(f *Function, q Query, members []Series, out *encoding.Points) error {
	if g.Guard == nil {
		g.Guard = Unguarded{}
	}
	g.arena.reset()

	times, kind, err := g.prepare(q, members) // sets g.members, and g.float if kind is mixed
	if err != nil {
		return err
	}

	if f.identity && len(g.members) > 1 {
		return fmt.Errorf("aggregate: %d members in a group of the aggregator none, want 1", len(g.members))
	}

	method := f.Interpolation
	if q.Rate {
		method = PREV // a rate holds until the next one
	}
	g.skipsGaps = q.skipsGaps(f)

	if err := g.Guard.Reserve(int64(len(times)) * pointBytes); err != nil {
		return err
	}
	out.Time = slices.Grow(out.Time, len(times))
	out.Bits = slices.Grow(out.Bits, len(times))
	out.Float = slices.Grow(out.Float, len(times))

	// Block by block, so that accumulators and contributions stay in the processor's cache.
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

// blockSize returns the number of timestamps of a block. For holistic functions it
// depends on the number of members.
func (g *Group) blockSize(f *Function) int {
	g.columns.width = len(g.members)
	if f.Class != Holistic || g.columns.width == 0 {
		return blockTimes
	}
	return min(blockTimes, max(16, gatherValues/g.columns.width))
}

// typing is the types of the points in a range of the result.
type typing uint8

const (
	integers typing = iota
	floats
	mixed
)

// of returns the typing of one block: a mixed result often has blocks of one type,
// which need one pass instead of two.
func (k typing) of(float []bool) typing {
	if k != mixed {
		return k
	}

	seen := [2]bool{} // an integer, a float
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

// block aggregates one block of timestamps, appends it to out, and moves the members past it. float is, for each time
// of a mixed block, whether its point is a double; other blocks have none.
func (g *Group) block(f *Function, method Interpolation, block []int64, kind typing, float []bool,
	out *encoding.Points) error {
	// At which of the block's times does each member contribute? Also between its
	// points, by interpolation.
	for i := range g.members {
		g.members[i].locate(block)
	}

	// Integers and doubles have their own arithmetic. In a mixed block both are
	// computed for all times, and each time takes the one of its type.
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

	// Not before both passes, which read from next on.
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

// addOwnPoints adds to c the points that a member has inside the block, each at its own time, which
// is among the block's. values are those of all points of the member.
func addOwnPoints[T int64 | float64](f columnFunctions[T], c *columns, m *member, block []int64, values []T) {
	for k, at := m.next, m.at; k < m.end; k, at = k+1, at+1 {
		for block[at] != m.time[k] {
			at++
		}
		f.add(c, at, values[k:k+1])
	}
}

// pass adds what each member contributes to the accumulators of the block, in span
// order, and computes the results. Its errors are the guard's.
func pass[T int64 | float64](g *Group, s *scratch[T], f columnFunctions[T], p policy[T], block []int64,
	values func(*member) []T) error {
	c := &g.columns
	f.reset(c, len(block))
	s.contribution = sized(s.contribution, len(block), 0)

	for i := range g.members {
		// Not at the first member: Aggregate checks the guard before each block.
		if i%checkMembers == checkMembers-1 {
			if err := g.Guard.Check(); err != nil {
				return err
			}
		}

		m := &g.members[i]
		n := m.to - m.at
		switch own := values(m); {
		case n == 0: // the member contributes nothing to this block
		case g.skipsGaps:
			addOwnPoints(f, c, m, block, own)
		case m.end-m.next == n: // a point at every time: there is no gap
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
