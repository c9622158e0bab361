package incremental

import (
	"slices"
	"sort"

	"downpour/encoding"
	"downpour/pushdown/operator/aggregate"
)

// column is one series' points at some stage, times ascending: doubles, or
// points as stored.
type column struct{ aggregate.Series }

func doubles(times []int64, values []float64) column {
	return column{aggregate.Series{Time: times, Value: values}}
}

func stored(p encoding.Points) column {
	return column{aggregate.Series{Time: p.Time, Bits: p.Bits, Float: p.Float}}
}

func (c *column) points() encoding.Points {
	return encoding.Points{Time: c.Time, Bits: c.Bits, Float: c.Float}
}

func (c *column) len() int { return len(c.Time) }

// Bytes that a point takes.
const pointBytes = 17

// slice is a view of the points i to j.
func (c *column) slice(i, j int) column {
	s := column{aggregate.Series{Time: c.Time[i:j]}}
	if c.Value != nil {
		s.Value = c.Value[i:j]
	}
	if c.Bits != nil {
		s.Bits, s.Float = c.Bits[i:j], c.Float[i:j]
	}
	return s
}

// same tells whether point i equals d's point j, in time, type and bits. A NaN
// equals one of other bits too, which at worst is sent again.
func (c *column) same(i int, d *column, j int) bool {
	if c.Time[i] != d.Time[j] {
		return false
	}
	if c.Bits != nil {
		return c.Bits[i] == d.Bits[j] && c.Float[i] == d.Float[j]
	}
	a, b := c.Value[i], d.Value[j]
	return a == b || a != a && b != b
}

// replace puts with in the place of points i to j, by copying: views of the old
// points stay as they were only until the next change.
func (c *column) replace(i, j int, with *column) {
	c.Time = spliced(c.Time, i, j, with.Time)
	if c.Bits != nil || with.Bits != nil {
		c.Bits, c.Float = spliced(c.Bits, i, j, with.Bits), spliced(c.Float, i, j, with.Float)
	} else {
		c.Value = spliced(c.Value, i, j, with.Value)
	}
}

// spliced replaces s[i:j]. It copies what lies behind, at most.
func spliced[T any](s []T, i, j int, with []T) []T {
	if d := len(with) - (j - i); d > 0 {
		s = slices.Grow(s, d)[:len(s)+d]
		copy(s[i+len(with):], s[j:len(s)-d])
	} else if d < 0 {
		copy(s[i+len(with):], s[j:])
		s = s[:len(s)+d]
	}
	copy(s[i:], with)
	return s
}

// from is the index of the first time that is not before t. Most of what is
// asked for lies at the end.
func from(times []int64, t int64) int {
	n := len(times)
	for k := range 4 {
		if n-k == 0 || times[n-k-1] < t {
			return n - k
		}
	}
	return sort.Search(n, func(i int) bool { return times[i] >= t })
}

// after is the index of the first time later than t.
func after(times []int64, t int64) int { return from(times, t+1) }
