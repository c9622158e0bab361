package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/report"
	"downpour/bench/workload"
)

// ReplayConfig says which queries a server is asked, and when.
type ReplayConfig struct {
	Server *peer.Server
	// Queries are asked in order; a Replay ends with them, with Requests, or
	// after Duration, whichever comes first.
	Queries  iter.Seq[workload.Query]
	Requests int
	Duration time.Duration
	// Rate is requests a second, sent at times fixed beforehand (at random,
	// by Seed, with this mean) however long answers take: the open loop of
	// dashboards. 0 is the closed loop of large scans: each client asks again
	// when it is answered.
	Rate float64
	// Burst requests are due together, as the panels of a dashboard are.
	// Default 1.
	Burst int
	Seed  uint64
	// Clients ask at once, at most. Default 1 in a closed loop, 64 in an open
	// one.
	Clients int
	Name    string
	// Progress counts requests.
	Progress *progress.Progress
}

// Validate names the first field that is wrong.
func (c ReplayConfig) Validate() error {
	switch {
	case c.Server == nil || c.Queries == nil:
		return errors.New("replay: a server and queries are needed")
	case c.Rate < 0:
		return fmt.Errorf("rate: got %v, want 0 or more", c.Rate)
	case c.Requests <= 0 && c.Duration <= 0:
		return fmt.Errorf("requests, duration: got %d and %s, want one of them above 0", c.Requests, c.Duration)
	}
	return nil
}

// request is one query and the moment at which it is to be sent.
type request struct {
	query    workload.Query
	intended time.Time
}

// Replay asks the queries. An answer that is an error is counted; the first one
// is returned with the latencies of the others.
func Replay(ctx context.Context, c ReplayConfig) (report.Latency, error) {
	if err := c.Validate(); err != nil {
		return report.Latency{}, err
	}
	loop := "open"
	if c.Rate == 0 {
		loop, c.Clients = "closed", max(c.Clients, 1)
	} else if c.Clients <= 0 {
		c.Clients = 64
	}
	r := replay{c: c, response: report.NewHistogram(), service: report.NewHistogram()}
	requests := make(chan request)
	var clients sync.WaitGroup
	for range c.Clients {
		clients.Go(func() { r.client(ctx, requests) })
	}
	r.schedule(ctx, requests)
	close(requests)
	clients.Wait()
	if c.Rate > 0 {
		loop = fmt.Sprintf("open, %.3g a second", c.Rate)
	} else {
		loop = fmt.Sprintf("%s, %d clients", loop, c.Clients)
	}
	name := c.Name
	if name == "" {
		name = c.Server.Name
	}
	return report.NewLatency(name, loop, r.response, r.service, r.errors), errors.Join(ctx.Err(), r.err)
}

type replay struct {
	c ReplayConfig

	mu                sync.Mutex
	response, service *report.Histogram
	errors            int64
	err               error // the first
}

// schedule hands out requests when they are due; in a closed loop, as soon as a
// client is free. A client that is late does not move the times of what follows.
func (r *replay) schedule(ctx context.Context, requests chan<- request) {
	start, n := time.Now(), 0
	rnd := rand.New(rand.NewPCG(r.c.Seed, 3))
	due := start
	for q := range r.c.Queries {
		if r.c.Rate > 0 && n%max(r.c.Burst, 1) == 0 {
			due = due.Add(time.Duration(rnd.ExpFloat64() * float64(max(r.c.Burst, 1)) / r.c.Rate * float64(time.Second)))
		}
		passed := time.Since(start)
		if r.c.Rate > 0 {
			passed = due.Sub(start)
		}
		if r.c.Requests > 0 && n >= r.c.Requests || r.c.Duration > 0 && passed >= r.c.Duration {
			return
		}
		if !Until(ctx, due) {
			return
		}
		next := request{query: q}
		if r.c.Rate > 0 {
			next.intended = due
		}
		select {
		case requests <- next:
			n++
		case <-ctx.Done():
			return
		}
	}
}

// Until waits for a moment; false when ctx ended first.
func Until(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *replay) client(ctx context.Context, requests <-chan request) {
	for next := range requests {
		sent := time.Now()
		err := r.c.Server.Drain(ctx, next.query)
		end := time.Now()
		r.count(next, sent, end, err, ctx.Err() != nil)
		r.c.Progress.Add(1)
	}
}

func (r *replay) count(q request, sent, end time.Time, err error, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case ended: // what was under way says nothing
	case err != nil:
		r.errors++
		if r.err == nil {
			r.err = err
		}
	default:
		if q.intended.IsZero() {
			q.intended = sent
		}
		r.response.Record(end.Sub(q.intended))
		r.service.Record(end.Sub(sent))
	}
}
