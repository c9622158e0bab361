package dispatch

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// weights are the bytes of a plan's rows by their hours, all salt buckets
// together: of each hour those that lie before it, and at the end all. Places in
// them are hours since the plan's first, and of an hour that is cut its middle,
// for where in it a key lies is not known.
type weights []float64

// weigh makes weights of the bytes of each hour.
func weigh(hours []float64) weights {
	w := make(weights, len(hours)+1)
	for i, bytes := range hours {
		w[i+1] = w[i] + bytes
	}
	return w
}

func (w weights) total() float64 { return w[len(w)-1] }

// before is the number of bytes before a place.
func (w weights) before(place float64) float64 {
	h := int(place)
	if h >= len(w)-1 {
		return w.total()
	}
	return w[h] + (w[h+1]-w[h])*(place-float64(h))
}

// cuts divides the hours from one place to another into stretches of about size
// bytes, and returns the hours at which they begin, but the first. An hour is
// never cut. first is the number of the plan's first hour since 1970.
func (w weights) cuts(first int64, from, to, size float64) (hours []int) {
	for {
		goal := w.before(from) + size
		if w.before(to) < goal+size/2 {
			return hours // one stretch is enough
		}
		h := w.cut(first, int(from)+1, goal, size/2)
		if float64(h) >= to {
			return hours
		}
		hours, from = append(hours, h), float64(h)
	}
}

// cut chooses an hour, from the given one on, before which about goal bytes lie.
// Of those that differ by at most slack, it is the one whose number since 1970 is
// divisible by the highest power of two: so a window that moves is cut at the
// same hours again, whichever it begins with, and what is remembered of its parts
// is found.
func (w weights) cut(first int64, from int, goal, slack float64) (best int) {
	h := from
	for h < len(w)-1 && w[h] < goal-slack {
		h++
	}
	if w[h] > goal+slack && h > from && goal-w[h-1] <= w[h]-goal {
		return h - 1 // none is near, this one is nearer
	}
	twos := -1
	for ; h < len(w) && (twos < 0 || w[h] <= goal+slack); h++ {
		if n := bits.TrailingZeros64(uint64(first + int64(h))); n > twos {
			best, twos = h, n
		}
	}
	return best
}

// places are where a key range of the plan begins and ends.
func places(plan *scanplan.Plan, r scanplan.KeyRange) (from, to float64) {
	head := plan.Schema.BaseTimeAt()
	to = float64((plan.To - plan.From) / encoding.RowSeconds)
	if len(r.Start) < head {
		return 0, to
	}
	from = min(max(place(plan, r.Start[head:]), 0), to)
	if len(r.Stop) > head && bytes.Equal(r.Stop[:head], r.Start[:head]) {
		to = min(max(place(plan, r.Stop[head:]), from), to)
	}
	return from, to
}

// place is where a key lies that has been rid of salt and metric. It may be cut
// short.
func place(plan *scanplan.Plan, rest []byte) float64 {
	var base [encoding.BaseTimeWidth]byte
	copy(base[:], rest)
	t := int64(binary.BigEndian.Uint32(base[:])) - plan.From
	hour := math.Floor(float64(t) / encoding.RowSeconds)
	if t%encoding.RowSeconds != 0 || len(rest) > encoding.BaseTimeWidth {
		return hour + 0.5
	}
	return hour
}

// hoursOf are the plan's hours that a key range touches, half-open: at least one.
func hoursOf(plan *scanplan.Plan, r scanplan.KeyRange) (from, to int) {
	a, b := places(plan, r)
	last := int((plan.To - plan.From) / encoding.RowSeconds)
	from = min(int(a), last-1)
	return from, min(max(int(math.Ceil(b)), from+1), last)
}
