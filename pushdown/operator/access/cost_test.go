package access

import (
	"fmt"
	"testing"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// A part of few hours, or of few ranges, has no probe.
func TestLong(t *testing.T) {
	for _, c := range []struct {
		hours  int64
		ranges int
		want   bool
	}{
		{0, 3, false}, {24, 3, false}, {600, 3, false}, {63, 1000, false},
		{64, 100, true}, {700, 3, true}, {500_000, 1, true}, {500_000, 0, false},
	} {
		if got := NeedsProbe(c.hours, c.ranges); got != c.want {
			t.Errorf("%d hours with %d ranges: %t, want %t", c.hours, c.ranges, got, c.want)
		}
	}
}

// Seeking pays where the rows of an hour are many or large. A probe costs as much as seeking in
// four hours, and reads at least 128 rows or 64 KiB.
func TestProbe(t *testing.T) {
	for _, c := range []struct {
		rows, bytes, hours int64
		ranges             int
		want               bool
	}{
		{128, 128 * 50, 1, 2, true},    // a thousand hosts, of one point
		{128, 128 * 50, 12, 2, true},   // 11 in an hour
		{128, 128 * 50, 13, 2, false},  // 10
		{128, 128 * 260, 18, 2, true},  // 7 in an hour, of sixty points
		{128, 128 * 260, 21, 2, false}, // 6
		{4, 4 * 18_000, 4, 2, true},    // one in an hour, of a cell for each of 360 points
		{128, 128 * 50, 128, 2, false}, // of one point
		{0, 2500, 1, 1, false},         // what costs as much is no gain
		{500, 500 * 50, 1, 101, false}, // fewer than a hundred values are worth
	} {
		if got := (Probe{Rows: c.rows, Bytes: c.bytes, Hours: c.hours}).Seeks(c.ranges); got != c.want {
			t.Errorf("%d rows of %d bytes in %d hours with %d ranges: %t, want %t", c.rows, c.bytes, c.hours, c.ranges,
				got, c.want)
		}
	}
	for ranges, want := range map[int][2]int64{1: {128, 65536}, 2: {128, 65536}, 101: {1122, 1_010_000}} {
		if rows, bytes := ProbeSize(ranges); int64(rows) != want[0] || bytes != want[1] {
			t.Errorf("a probe of %d ranges an hour reads %d rows and %d bytes, want %v", ranges, rows, bytes, want)
		}
	}
}

// A section has four times the hours known to be similar, and is halved if its end is not similar,
// down to 64 hours.
func TestSection(t *testing.T) {
	for _, c := range []struct{ before, hours, want int64 }{{0, 1, 64}, {0, 100, 400}, {400, 100, 1600}, {64, 1, 256}} {
		if got := (Probe{Hours: c.hours}).Section(c.before); got != c.want {
			t.Errorf("after %d hours, a probe of %d: %d, want %d", c.before, c.hours, got, c.want)
		}
	}
	n, probes := int64(1000), 0
	for more := true; more; probes++ {
		n, more = Shorter(n)
	}
	if n != 64 || probes != 5 {
		t.Errorf("%d hours after %d probes, want 64 after 5", n, probes)
	}
}

// Two tables of one schema have two entries.
func TestCacheKey(t *testing.T) {
	p := scanplan.Part{Plan: scanplan.Plan{Table: "a", Metric: encoding.UID{0, 0, 1}}}
	first := CacheKey(&p)
	if p.Plan.Table = "b"; CacheKey(&p) == first {
		t.Errorf("tables a and b have the same key %q", first)
	}
}

// Neither more entries nor more memory than may be are kept.
func TestPrefixCache_bounds(t *testing.T) {
	one := NewPrefixes(encoding.DefaultSchema(), encoding.UID{9, 0, 0})
	for i := range MaxPrefixes {
		one.Add([]byte{0, 0, 2, 0, byte(i >> 8), byte(i)})
	}
	c := NewPrefixCache()
	learned := make([]*Prefixes, 20)
	for i := range learned {
		learned[i] = one
	}
	for i := range 2000 {
		c.EndLearning(fmt.Sprint(i), learned[:1], nil)
	}
	before := len(c.entries)
	c.EndLearning("large", learned, nil)
	if c.bytes > maxBytes || before == 2000 || len(c.entries) > before-10 {
		t.Errorf("%d bytes of %d entries, %d before a large one, want %d at most, and many evicted", c.bytes,
			len(c.entries), before, maxBytes)
	}
	for i := range 5000 {
		c.Record(fmt.Sprint("key ", i), ScanCost{To: 3600, Scanned: 1, Wanted: 1})
	}
	if n := len(c.entries); n != maxEntries {
		t.Errorf("%d entries, want %d", n, maxEntries)
	}
}
