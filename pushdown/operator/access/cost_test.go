package access

import "testing"

// A part of few hours, or of few ranges, has no look.
func TestLong(t *testing.T) {
	for _, c := range []struct {
		hours  int64
		ranges int
		want   bool
	}{
		{0, 3, false}, {24, 3, false}, {600, 3, false}, {63, 1000, false},
		{64, 100, true}, {700, 3, true}, {500_000, 1, true}, {500_000, 0, false},
	} {
		if got := Long(c.hours, c.ranges); got != c.want {
			t.Errorf("%d hours with %d ranges: %t, want %t", c.hours, c.ranges, got, c.want)
		}
	}
}

// Seeking pays where an hour has more than four rows for each range. A look takes what seeking takes
// in four hours, and at least 128 rows.
func TestLook(t *testing.T) {
	for _, c := range []struct {
		rows, hours int64
		ranges      int
		want        bool
	}{
		{128, 1, 2, true},     // a thousand hosts
		{128, 16, 2, false},   // as many rows as seeking would cost
		{129, 16, 2, true},    // one more
		{128, 128, 2, false},  // a row an hour
		{400, 1, 101, false},  // fewer rows than a hundred values are worth
		{1616, 1, 101, true},  // as many as a look of them reads, in one hour
		{1616, 4, 101, false}, // in four
	} {
		if got := (Look{Rows: c.rows, Hours: c.hours}).Seeks(c.ranges); got != c.want {
			t.Errorf("%d rows in %d hours with %d ranges: %t, want %t", c.rows, c.hours, c.ranges, got, c.want)
		}
	}
	for ranges, want := range map[int]int{1: 128, 2: 128, 101: 1616} {
		if got := LookRows(ranges); got != want {
			t.Errorf("a look of %d ranges an hour reads %d rows, want %d", ranges, got, want)
		}
	}
}

// A stretch has four times the hours that are known to be like it, and shrinks by half where they
// are not, down to 64 hours.
func TestStretch(t *testing.T) {
	for _, c := range []struct{ before, hours, want int64 }{{0, 1, 64}, {0, 100, 400}, {400, 100, 1600}, {64, 1, 256}} {
		if got := (Look{Hours: c.hours}).Stretch(c.before); got != c.want {
			t.Errorf("after %d hours, a look of %d: %d, want %d", c.before, c.hours, got, c.want)
		}
	}
	n, looks := int64(1000), 0
	for more := true; more; looks++ {
		n, more = Shorter(n)
	}
	if n != 64 || looks != 5 {
		t.Errorf("%d hours after %d looks, want 64 after 5", n, looks)
	}
}
