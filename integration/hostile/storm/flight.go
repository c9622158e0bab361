package storm

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"downpour/integration/e2e"
	"downpour/integration/hostile"
)

// flight is a request on its way.
type flight struct {
	request *hostile.Request
	began   time.Time

	mu    sync.Mutex
	timer *time.Timer
	due   bool          // its deadline is over, and used is known
	used  time.Duration // processor time of the gateway at the deadline
	ended bool
}

// sent begins the request's time, which the gateway counts from about then.
func (f *flight) sent(p *e2e.Process, timeout time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// An answer may come before all is sent: then there is no deadline left to watch.
	if !f.ended && f.request.Judged() {
		f.timer = time.AfterFunc(timeout, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			used, err := p.CPU()
			f.due, f.used = err == nil, used
		})
	}
}

// landed ends the request and returns the processor time that the gateway has
// used since its deadline.
func (f *flight) landed(p *e2e.Process) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	// Ended before its deadline, or what was used at the deadline is not known.
	if f.timer == nil || f.timer.Stop() || !f.due {
		return 0
	}
	used, err := p.CPU()
	if err != nil {
		return 0
	}
	return used - f.used
}

// flights are all requests on their way.
type flights struct {
	mu sync.Mutex
	of map[int]*flight // by number
}

func (fs *flights) begin(q *hostile.Request) *flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := &flight{request: q, began: time.Now()}
	fs.of[q.Number] = f
	return f
}

func (fs *flights) end(n int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.of, n)
}

// String lists them, the oldest first.
func (fs *flights) String() string {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var all []*flight
	for _, f := range fs.of {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *flight) int { return a.began.Compare(b.began) })
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "  %6.2f s %s\n", time.Since(f.began).Seconds(), f.request)
	}
	return b.String()
}
