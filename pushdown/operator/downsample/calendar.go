package downsample

import (
	"fmt"
	"math"

	"downpour/encoding/scanplan"
	"downpour/encoding/zones"
)

// calendar is buckets of n units on the calendar of a zone. The first bucket of a series
// is found from its first point, and the others follow by steps from there. So a bucket
// may cross the start of a day or year at which the first bucket of another series
// begins. Source: DateTime.previousInterval, Downsampler.ValuesInInterval.
type calendar struct {
	wallClock
	n    int
	unit string

	// chain is the steps from the anchor used last, for units whose steps need the
	// calendar. Series of a query mostly share an anchor.
	chain []int64
}

// elapsed is the ms of the units whose steps are elapsed time, without the calendar.
var elapsed = map[string]int64{"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}

// alignment is the number of these units in the next larger unit of the clock. Buckets
// that divide it are anchored at its beginning, others at the beginning of the unit
// above that.
var alignment = map[string]int{"ms": 1000, "s": 60, "m": 60, "h": 24}

// newCalendar returns the calendar buckets of a downsampling. A plan's validation leaves zone,
// unit and count to it. The error of the zone has OpenTSDB's wording.
func newCalendar(d *scanplan.Downsample) (*calendar, error) {
	zone, err := zones.Load(d.Zone)
	if err != nil {
		return nil, fmt.Errorf("The timezone specification could not be found: %w", err)
	}
	switch d.Unit {
	case "ms", "s", "m", "h", "d", "w", "n", "y":
	default:
		return nil, fmt.Errorf("downsample: calendar unit %q, want ms, s, m, h, d, w, n or y", d.Unit)
	}
	if d.Count <= 0 {
		return nil, fmt.Errorf("downsample: %d calendar units, want more than 0", d.Count)
	}
	return &calendar{wallClock: wallClock{zone}, n: d.Count, unit: d.Unit}, nil
}

// bounds finds the first bucket of a series, with prev math.MinInt64, from its first point,
// and each other one by steps from prev, the end of the bucket before.
func (c *calendar) bounds(t, prev int64) (start, end int64) {
	if start = prev; prev == math.MinInt64 {
		start = c.previous(t)
	}

	if ms, ok := elapsed[c.unit]; ok {
		width := int64(c.n) * ms
		// A first bucket that begins after t stays: when clocks are set back, an hour is counted from
		// the later one of its two beginnings.
		start += max(0, t-start) / width * width
		return start, start + width
	}

	for end = c.step(start, 1); t >= end; start, end = end, c.step(end, 1) {
	}
	return start, end
}

// seek returns where the reading of a series begins: at the start of a bucket, so that
// the first one is not cut.
func (c *calendar) seek(from int64) int64 {
	start := c.previous(from)
	if from > start {
		start = c.step(start, 1)
	}
	return start
}

// grid steps from the bucket of from to the one before the bucket of to; there is at
// least one. As in OpenTSDB stamps have steps of their own, which begin one bucket
// earlier: after a change of clocks at midnight they can differ from the starts. about is
// the expected number of buckets.
func (c *calendar) grid(from, to int64, about int, check func() error) (stamps, starts []int64, err error) {
	start, end := c.previous(from), c.previous(to)
	if start == end {
		end = c.step(end, 1)
	}

	stamps, starts = make([]int64, 0, about), make([]int64, 0, about)
	stamp := c.step(start, -1)
	for ; start < end; start = c.step(start, 1) {
		if len(stamps)%checkBuckets == 0 {
			if err := check(); err != nil {
				return nil, nil, err
			}
		}

		stamp = c.step(stamp, 1)
		stamps, starts = append(stamps, stamp), append(starts, start)
	}
	return stamps, starts, nil
}

// step returns the time k buckets after ms.
func (c *calendar) step(ms int64, k int) int64 {
	if unit, ok := elapsed[c.unit]; ok {
		return ms + int64(k*c.n)*unit
	}
	return c.add(ms, c.unit, k*c.n)
}

// previous returns the start of the bucket of t for a series whose first point is at t.
// It steps from the anchor until after t, and then one step back. The step back is on
// the calendar too: after a change of clocks it does not always lead to where the last
// step began. Weeks are stepped one by one, even if a bucket has several.
func (c *calendar) previous(t int64) int64 {
	anchor := c.anchor(t)
	if anchor == t {
		return anchor
	}

	unit, n := c.unit, c.n
	if unit == "w" {
		unit, n = "d", 7
	}

	// Units of clock time have one length each and need no steps.
	if ms, ok := elapsed[unit]; ok {
		width := int64(n) * ms
		if anchor > t { // the later one of two equal local times
			return anchor - width
		}
		return t - (t-anchor)%width
	}

	return c.add(c.firstAfter(anchor, t, unit, n), unit, -n)
}

// firstAfter returns the first step from the anchor that is after t.
func (c *calendar) firstAfter(anchor, t int64, unit string, n int) int64 {
	if len(c.chain) == 0 || c.chain[0] != anchor {
		c.chain = append(c.chain[:0], anchor)
	}
	for last := c.chain[len(c.chain)-1]; last <= t; {
		last = c.add(last, unit, n)
		c.chain = append(c.chain, last)
	}

	// Times of a series ascend, so the step is near the end of the chain.
	for i := len(c.chain) - 1; ; i-- {
		if i == 0 || c.chain[i-1] <= t {
			return c.chain[i]
		}
	}
}

// anchor returns the time from which the buckets around t are counted: a start of a
// local second, minute, hour, day, week, month or year.
func (c *calendar) anchor(t int64) int64 {
	w := c.wall(t)
	w.ms = 0

	// Buckets that divide the next larger unit are counted from its start, others from
	// the start of the unit above that: 15m from the hour, 7m from the day. From here
	// on unit is the largest whose buckets are counted from the same start.
	unit := c.unit
	if alignment[unit]%c.n != 0 { // of days and what is larger it is 0
		unit = map[string]string{"ms": "s", "s": "m", "m": "h", "h": "d"}[unit]
		if unit == "d" { // hours that do not divide the day
			return c.instant(wallTime{year: w.year, month: w.month, day: 1})
		}
	}

	switch unit {
	case "ms":
		return c.instant(w)
	case "s":
		w.second = 0
		return c.instant(w)
	case "m":
		w.second, w.minute = 0, 0
		return c.instant(w)
	}

	// Hours are counted from the day, single days from the month, and all larger units
	// but weeks from the year.
	w.second, w.minute, w.hour = 0, 0, 0
	switch {
	case unit == "w":
		return c.instant(weekAnchor(w, c.n))
	case unit == "d" && c.n == 1:
		w.day = 1
	case unit != "h":
		w.day, w.month = 1, 1
	}
	return c.instant(w)
}

// weekAnchor returns the Sunday of the week for buckets of one or two weeks. For more
// weeks it is the Sunday of that week of January which has the same number in its
// month. Steps from there lead to the same weeks, except for changes of clocks between.
func weekAnchor(w wallTime, n int) wallTime {
	if n <= 2 {
		w.day -= w.weekday()
		return w
	}

	first := wallTime{year: w.year, month: w.month, day: 1}
	week := (w.day - 1 + first.weekday()) / 7
	january := wallTime{year: w.year, month: 1, day: 1}
	january.day += 7*week - january.weekday()
	return january
}
