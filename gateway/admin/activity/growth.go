package activity

import (
	"sync"
	"time"
)

// Bounds of Growth.
const (
	// Day is how long the samples of a count are kept.
	Day = 24 * time.Hour
	// sampleEvery is the time between two samples that are kept.
	sampleEvery = 10 * time.Minute
	// leastSpan is how long a count must have been watched before it is foretold.
	leastSpan = 30 * time.Minute
)

// Growth keeps the samples of one count that grows, such as that of assigned UIDs. The zero value
// is empty. Its methods may be called from many goroutines.
type Growth struct {
	mu      sync.Mutex
	samples []sample // the oldest first
	last    sample
}

type sample struct {
	at    time.Time
	value int64
}

// Add takes in the count as it is now.
func (g *Growth) Add(now time.Time, value int64) {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.last = sample{now, value}
	for len(g.samples) > 1 && now.Sub(g.samples[0].at) > Day {
		g.samples = g.samples[1:]
	}
	if n := len(g.samples); n == 0 || now.Sub(g.samples[n-1].at) >= sampleEvery {
		g.samples = append(g.samples, g.last)
	}
}

// Grown returns by how much the count has grown, and within which time, a day at most.
func (g *Growth) Grown() (by int64, within time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()

	if len(g.samples) == 0 {
		return 0, 0
	}
	return g.last.value - g.samples[0].value, g.last.at.Sub(g.samples[0].at)
}

// Reaches returns when the count reaches a value if it goes on growing as it did. It is false if
// the count does not grow, or has not been watched for long enough, and for what is more
// than a hundred years ahead.
func (g *Growth) Reaches(value int64) (at time.Time, ok bool) {
	by, within := g.Grown()
	if by <= 0 || within < leastSpan {
		return at, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()

	left := float64(value-g.last.value) / float64(by) * within.Hours()
	const hundredYears = 100 * 365 * 24
	if left > hundredYears {
		return at, false
	}
	return g.last.at.Add(time.Duration(max(0, left) * float64(time.Hour))), true
}
