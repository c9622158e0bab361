package incremental

import (
	"slices"
	"sort"

	"downpour/encoding"
	"downpour/pushdown/operator/aggregate"
)

// column holds one series' points at one stage of the arithmetic, times ascending.
// It has either Value (buckets and rates) or Bits and Float (points as stored).
type column struct{ aggregate.Series }

// doubleColumn returns a column of buckets or rates. It keeps the slices.
func doubleColumn(times []int64, values []float64) column {
	return column{aggregate.Series{Time: times, Value: values}}
}

// storedColumn returns a column of points as stored. It keeps the slices.
func storedColumn(p encoding.Points) column {
	return column{aggregate.Series{Time: p.Time, Bits: p.Bits, Float: p.Float}}
}

// points returns a view of a column of points as stored.
func (c *column) points() encoding.Points {
	return encoding.Points{Time: c.Time, Bits: c.Bits, Float: c.Float}
}

func (c *column) len() int { return len(c.Time) }

// pointBytes is the memory of a point: time, value, and whether it is a float.
const pointBytes = 17

// slice returns a view of the points i to j, half-open.
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

// equalAt reports whether point i equals d's point j in time, type and value. In a
// column of doubles any two NaNs are equal. In a column of points as stored the bits
// are compared, so a NaN with other bits differs; at worst it is sent again.
func (c *column) equalAt(i int, d *column, j int) bool {
	if c.Time[i] != d.Time[j] {
		return false
	}
	if c.Bits != nil {
		return c.Bits[i] == d.Bits[j] && c.Float[i] == d.Float[j]
	}
	a, b := c.Value[i], d.Value[j]
	return a == b || a != a && b != b
}

// replace puts the points of with in the place of points i to j, half-open. It
// copies within the column's own memory, so views that slice has returned are
// valid only until the next replace.
func (c *column) replace(i, j int, with *column) {
	c.Time = replaceRange(c.Time, i, j, with.Time)
	if c.Bits != nil || with.Bits != nil {
		c.Bits, c.Float = replaceRange(c.Bits, i, j, with.Bits), replaceRange(c.Float, i, j, with.Float)
	} else {
		c.Value = replaceRange(c.Value, i, j, with.Value)
	}
}

// replaceRange replaces s[i:j]. Unlike slices.Replace it does not clear the freed
// end, so it copies at most what follows s[j].
func replaceRange[T any](s []T, i, j int, with []T) []T {
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

// indexFrom returns the index of the first time that is not before t.
func indexFrom(times []int64, t int64) int {
	// Most searches are for the end: try the last four times first.
	n := len(times)
	for k := range 4 {
		if n-k == 0 || times[n-k-1] < t {
			return n - k
		}
	}
	return sort.Search(n, func(i int) bool { return times[i] >= t })
}

// indexAfter returns the index of the first time later than t.
func indexAfter(times []int64, t int64) int { return indexFrom(times, t+1) }
