package diskfill

import (
	"testing"
	"time"
)

const day = 86_400

// The time that is left follows from the growth since the oldest sample of the last eight days.
func TestHistory_Left(t *testing.T) {
	for _, c := range []struct {
		name string
		h    History
		now  Sample
		free int64
		left time.Duration
		ok   bool
	}{
		{"no sample", nil, Sample{10 * day, 500}, 100, 0, false},
		{"two days for 100", History{{8 * day, 400}}, Sample{10 * day, 500}, 1000, 20 * 24 * time.Hour, true},
		{"the oldest counts", History{{6 * day, 100}, {9 * day, 499}}, Sample{10 * day, 500}, 1000,
			10 * 24 * time.Hour, true},
		{"too old", History{{1 * day, 0}, {8 * day, 400}}, Sample{10 * day, 500}, 1000, 20 * 24 * time.Hour, true},
		{"from the future", History{{11 * day, 0}}, Sample{10 * day, 500}, 1000, 0, false},
		{"a short time", History{{10*day - 3600, 0}}, Sample{10 * day, 500}, 1000, 0, false},
		{"shrunk", History{{8 * day, 600}}, Sample{10 * day, 500}, 1000, 0, false},
		{"full", History{{8 * day, 400}}, Sample{10 * day, 500}, 0, 0, true},
		{"very long", History{{8 * day, 499}}, Sample{10 * day, 500}, 1 << 60, 1e9 * time.Second, true},
	} {
		if left, _, ok := c.h.Left(c.now, c.free); left != c.left || ok != c.ok {
			t.Errorf("%s: %v, %t, want %v, %t", c.name, left, ok, c.left, c.ok)
		}
	}
}

// A history of hourly samples has one for each six hours of eight days, in order.
func TestHistory_With(t *testing.T) {
	var h History
	for at := int64(0); at < 30*day; at += 3600 {
		h = h.With(Sample{at, at})
	}
	if len(h) != 32+1 && len(h) != 32 {
		t.Errorf("%d samples", len(h))
	}
	for i := range h[1:] {
		if h[i+1].At-h[i].At != day/4 {
			t.Errorf("samples at %d and %d", h[i].At, h[i+1].At)
		}
	}
	if h := h.With(Sample{At: 5 * day}); len(h) != 1 {
		t.Errorf("after the clock was set back: %v", h)
	}
}
