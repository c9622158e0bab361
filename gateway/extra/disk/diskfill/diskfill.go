// Package diskfill predicts when a store will have filled its disk, from how much of it the store took
// at earlier times.
//
// The package is pure.
package diskfill

import (
	"slices"
	"time"
)

// Sample is how many bytes of its disk a store took at a time.
type Sample struct {
	At   int64 `json:"at"` // seconds since 1970
	Used int64 `json:"used"`
}

// History are samples in the order of their times.
type History []Sample

const (
	// keepFor is the age up to which samples are kept, and keepEvery the time between two.
	keepFor   = 8 * 24 * time.Hour
	keepEvery = 6 * time.Hour
	// leastTime is the time over which a rate is measured at least: in less, flushes and
	// compactions change more than what is put.
	leastTime = 6 * time.Hour
)

// With returns the history with a new sample, if there was none lately, and without old ones.
func (h History) With(s Sample) History {
	out := slices.Clone(h)
	out = slices.DeleteFunc(out, func(o Sample) bool {
		// What seems to come from the future is of a clock that was wrong.
		return o.At > s.At || s.At-o.At > int64(keepFor/time.Second)
	})
	if n := len(out); n > 0 && s.At-out[n-1].At < int64(keepEvery/time.Second) {
		return out
	}
	return append(out, s)
}

// Left returns how long it takes until so many free bytes are filled, at the rate since the first
// sample, and that sample. ok is false if nothing can be said, or if the store has not grown.
func (h History) Left(now Sample, free int64) (left time.Duration, since Sample, ok bool) {
	for _, first := range h {
		passed := now.At - first.At
		if passed > int64(keepFor/time.Second) || passed < 0 {
			continue
		}
		grown := now.Used - first.Used
		if passed < int64(leastTime/time.Second) || grown <= 0 {
			return 0, first, false
		}
		seconds := float64(free) / float64(grown) * float64(passed)
		// A time of centuries does not fit.
		return time.Duration(min(seconds, 1e9)) * time.Second, first, true
	}
	return 0, Sample{}, false
}
