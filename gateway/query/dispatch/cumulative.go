package dispatch

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// cumulativeBytes holds the bytes of a plan's rows, all salt buckets together: element
// i is the bytes of all hours before the plan's i-th, the last element is the total.
//
// A position in it is a number of hours since the plan's first. A key inside an hour
// has the position of the hour's middle, because it is unknown how many of the hour's
// bytes come before it.
type cumulativeBytes []float64

// accumulate makes cumulativeBytes from the bytes of each hour.
func accumulate(hours []float64) cumulativeBytes {
	c := make(cumulativeBytes, len(hours)+1)
	for i, bytes := range hours {
		c[i+1] = c[i] + bytes
	}
	return c
}

func (c cumulativeBytes) total() float64 { return c[len(c)-1] }

// before returns the number of bytes before a position.
func (c cumulativeBytes) before(position float64) float64 {
	h := int(position)
	if h >= len(c)-1 {
		return c.total()
	}
	return c[h] + (c[h+1]-c[h])*(position-float64(h))
}

// cuts divides the hours between two positions into ranges of about size bytes. It
// returns the hour at which each range except the first begins. An hour is never
// divided. firstHour is the number of the plan's first hour since 1970.
func (c cumulativeBytes) cuts(firstHour int64, from, to, size float64) (hours []int) {
	for {
		goal := c.before(from) + size
		// A rest of up to one and a half sizes stays one range.
		if c.before(to) < goal+size/2 {
			return hours
		}
		h := c.cut(firstHour, int(from)+1, goal, size/2)
		if float64(h) >= to {
			return hours
		}
		hours, from = append(hours, h), float64(h)
	}
}

// cut returns an hour, not before from, that has about goal bytes before it. Among the
// hours that miss the goal by at most slack it takes the one whose number since 1970 is
// divisible by the highest power of two. So a moving time window is cut at the same
// hours, no matter where it begins, and the cached answers of its parts are found. from
// and the result count hours from the plan's first, whose number since 1970 is
// firstHour. All hours together have more bytes than the goal.
func (c cumulativeBytes) cut(firstHour int64, from int, goal, slack float64) (best int) {
	h := from
	for c[h] < goal-slack {
		h++
	}
	// h may already be beyond the slack, if an hour is very large. Then the hour before it, which has less than the
	// slack, is taken if that one is nearer.
	if h > from && goal-c[h-1] <= c[h]-goal {
		return h - 1
	}

	twos := -1
	for ; h < len(c) && (twos < 0 || c[h] <= goal+slack); h++ {
		if n := bits.TrailingZeros64(uint64(firstHour + int64(h))); n > twos {
			best, twos = h, n
		}
	}
	return best
}

// hourPositions returns the positions at which a key range of the plan begins and
// ends. A range that is not inside one salt bucket spans all hours.
func hourPositions(plan *scanplan.Plan, r scanplan.KeyRange) (from, to float64) {
	head := plan.Schema.BaseTimeAt()
	to = float64((plan.To - plan.From) / encoding.RowSeconds)
	if len(r.Start) < head {
		return 0, to
	}

	from = min(max(hourPosition(plan, r.Start[head:]), 0), to)
	// A stop in another salt bucket or metric comes after all hours of this one.
	if bytes.HasPrefix(r.Stop, r.Start[:head]) {
		to = min(max(hourPosition(plan, r.Stop[head:]), from), to)
	}
	return from, to
}

// hourPosition returns the position of a key without its salt and metric: base time
// and tags. The key may be cut short anywhere.
func hourPosition(plan *scanplan.Plan, key []byte) float64 {
	var base [encoding.BaseTimeWidth]byte
	copy(base[:], key)
	t := int64(binary.BigEndian.Uint32(base[:])) - plan.From
	hour := math.Floor(float64(t) / encoding.RowSeconds)
	if t%encoding.RowSeconds != 0 || len(key) > encoding.BaseTimeWidth {
		return hour + 0.5 // inside the hour: its middle, see cumulativeBytes
	}
	return hour
}

// hourRange returns the plan's hours that a key range touches, half-open.
func hourRange(plan *scanplan.Plan, r scanplan.KeyRange) (from, to int) {
	a, b := hourPositions(plan, r)
	return int(a), int(math.Ceil(b))
}
