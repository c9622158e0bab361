package gexp

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"downpour/encoding"
	"downpour/gateway/query"
)

// highestMax returns the n series with the largest values. Source: HighestMax.
func highestMax(ev *evaluation, args [][]value, params []string) ([]value, error) {
	keep := func(*value) bool { return true }
	return ev.highest(args, params, keep, func(r *ranks, longs []int64, doubles []float64) {
		for i, v := range longs {
			r.longs[i] = max(r.longs[i], v)
		}
		for i, v := range doubles {
			r.doubles[i] = max(r.doubles[i], v)
		}
	})
}

// highestCurrent returns the n series with the largest last values. Source:
// HighestCurrent, which drops series without points.
func highestCurrent(ev *evaluation, args [][]value, params []string) ([]value, error) {
	keep := func(v *value) bool { return v.Points.Len() > 0 }
	return ev.highest(args, params, keep, func(r *ranks, longs []int64, doubles []float64) {
		// A list has a place for each series, and zeros where values are missing.
		if len(longs) > 0 {
			clear(r.longs[copy(r.longs, longs):])
		} else {
			clear(r.doubles[copy(r.doubles, doubles):])
		}
	})
}

// ranks are the numbers by which series are sorted, by the index of the series. There is one of integers and
// one of doubles: the values at a time change one of both, by the type that an aggregate of all series would
// have there.
type ranks struct {
	longs                []int64
	doubles              []float64
	hasLongs, hasDoubles bool // some time has changed them
}

// of returns the rank of place i.
func (r *ranks) of(i int) float64 {
	switch {
	case r.hasLongs && r.hasDoubles:
		return max(float64(r.longs[i]), r.doubles[i])
	case r.hasLongs:
		return float64(r.longs[i])
	}
	return r.doubles[i]
}

// rankUpdate changes the ranks by the values of the series at one time: either longs or doubles, the other
// is empty.
type rankUpdate func(r *ranks, longs []int64, doubles []float64)

// highest returns the first n of the series that keep admits, sorted by rank. At every time
// of any series, the values of all series that have begun and not ended are listed,
// interpolated, and update gets the list. As in OpenTSDB, a value counts for the series at
// its place in the list, which is another one where an earlier series has no value.
func (ev *evaluation) highest(args [][]value, params []string, keep func(*value) bool,
	update rankUpdate) ([]value, error) {
	n, err := parseTop(params)
	if err != nil {
		return nil, err
	}
	all, err := ev.finishAll(args)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(v value) bool { return !keep(&v) })

	// Two numbers for each series here, and about ten in rankAtEachTime.
	if err := ev.Guard.Reserve(int64(len(all)) * 100); err != nil {
		return nil, err
	}
	r := &ranks{longs: make([]int64, len(all)), doubles: make([]float64, len(all))}
	for i := range all {
		// As in OpenTSDB: Java's Double.MIN_VALUE is not the lowest double, but the smallest
		// above 0.
		r.longs[i], r.doubles[i] = math.MinInt64, math.SmallestNonzeroFloat64
	}
	if err := ev.rankAtEachTime(all, r, update); err != nil {
		return nil, err
	}

	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareJava(r.of(b), r.of(a)) })
	out := make([]value, min(n, len(all)))
	for i := range out {
		out[i] = all[order[i]]
	}
	return out, nil
}

// compareJava orders numbers as Double.compare does: NaN is the greatest.
func compareJava(a, b float64) int {
	switch {
	case a != a && b == b:
		return 1
	case a == a && b != b:
		return -1
	}
	return cmp.Compare(a, b)
}

// parseTop reads the parameter of the highest functions.
func parseTop(params []string) (int, error) {
	if len(params) == 0 {
		// OpenTSDB's text, which speaks of another function.
		return 0, query.RunFault("Need aggregation window for moving average")
	}
	n, err := strconv.ParseInt(params[0], 10, 32)
	switch {
	case err != nil || strings.Trim(params[0], "0123456789") != "":
		return 0, query.RunFault("Unparseable top n value: %s", params[0])
	case n == 0:
		return 0, query.RunFault("Top n value must be greater than zero: 0")
	}
	return int(n), nil
}

// cursor is a position in the points of one series.
type cursor struct {
	p encoding.Points
	i int // the present point, -1 before the first
}

// next returns the time of the next point.
func (c *cursor) next() (int64, bool) {
	if c.i+1 >= c.p.Len() {
		return 0, false
	}
	return c.p.Time[c.i+1], true
}

// rankAtEachTime calls update with the values of all series at each time of any of them, in order of
// time, so that r has the final ranks. A value is one of an aggregate: interpolated, and a double if one
// series has doubles there. Source: AggregationIterator.
func (ev *evaluation) rankAtEachTime(all []value, r *ranks, update rankUpdate) error {
	cursors := ev.cursors(all)
	longs, doubles := make([]int64, 0, len(all)), make([]float64, 0, len(all))

	for steps := 0; ; {
		t, any := nextTime(cursors)
		if !any || t > ev.End {
			return nil
		}

		// As in OpenTSDB, one series whose present or next point is a double makes all doubles.
		integers := true
		for i := range cursors {
			c := &cursors[i]
			if next, ok := c.next(); ok && next == t {
				c.i++
			}
			integers = integers && !c.hasFloat(t)

			if err := ev.check(steps); err != nil {
				return err
			}
			steps++
		}

		longs, doubles = longs[:0], doubles[:0]
		for i := range cursors {
			c := &cursors[i]
			switch {
			case !c.has(t):
			case integers:
				longs = append(longs, c.long(t))
			default:
				doubles = append(doubles, c.double(t))
			}
		}
		r.hasLongs, r.hasDoubles = r.hasLongs || integers, r.hasDoubles || !integers
		update(r, longs, doubles)
	}
}

// cursors returns a cursor before the first point of each series. A series has the points of the query and
// one after its end, to interpolate towards; one that begins after the end has none.
func (ev *evaluation) cursors(all []value) []cursor {
	cursors := make([]cursor, len(all))
	for i := range all {
		// Inside adds 1 to its last argument, which must not overflow.
		cursors[i] = cursor{Inside(&all[i].Points, ev.Start, math.MaxInt64-1), -1}
		if next, ok := cursors[i].next(); ok && next > ev.End {
			cursors[i].p = encoding.Points{}
		}
	}
	return cursors
}

// nextTime returns the earliest time of a next point; ok is false if no cursor has one.
func nextTime(cursors []cursor) (t int64, ok bool) {
	t = math.MaxInt64
	for i := range cursors {
		if next, more := cursors[i].next(); more {
			t, ok = min(t, next), true
		}
	}
	return t, ok
}

// has reports whether the series has a value at t: a point, or points around it.
func (c *cursor) has(t int64) bool {
	return c.i >= 0 && (c.p.Time[c.i] == t || c.i+1 < c.p.Len())
}

// hasFloat reports whether the present or the next point is a double, from which OpenTSDB
// takes the type of an aggregate.
func (c *cursor) hasFloat(t int64) bool {
	return c.i >= 0 && c.has(t) && c.p.Float[c.i] || c.i+1 < c.p.Len() && c.p.Float[c.i+1]
}

// long returns the value at t of a series of integers, interpolated as Java does.
func (c *cursor) long(t int64) int64 {
	x0, v0 := c.p.At(c.i)
	if x0 == t {
		return v0.Int()
	}
	x1, v1 := c.p.At(c.i + 1)
	return v0.Int() + (t-x0)*(v1.Int()-v0.Int())/(x1-x0)
}

// double returns the value at t.
func (c *cursor) double(t int64) float64 {
	x0, v0 := c.p.At(c.i)
	if x0 == t {
		return v0.Double()
	}
	x1, v1 := c.p.At(c.i + 1)
	return v0.Double() + float64(t-x0)*(v1.Double()-v0.Double())/float64(x1-x0)
}
