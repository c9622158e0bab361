package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/report"
	"downpour/bench/workload"
)

// ReplayConfig says which queries a server is asked, and when.
type ReplayConfig struct {
	Server *peer.Server
	// Queries are asked in order. Replay ends when there are no more, after so many
	// Requests, or after Duration, whichever comes first.
	Queries  iter.Seq[workload.Query]
	Requests int
	Duration time.Duration
	// Rate is the mean of requests a second in an open loop, such as that of
	// dashboards: their times are fixed beforehand, at random by Seed, however long
	// answers take. 0 is a closed loop, such as that of large scans: each client asks
	// again once it has its answer.
	Rate float64
	// Burst is how many requests are due together, such as the panels of a dashboard.
	// Default 1.
	Burst int
	Seed  uint64
	// Clients is how many requests may run at the same time. Default 1 in a closed loop,
	// 64 in an open one.
	Clients int
	// CutOff ends requests that have no answer so long after the beginning. They count with
	// the time that they have waited by then. 0 is never.
	CutOff time.Duration
	// Count has the points and bytes of answers counted, and a line a query. It takes the client some
	// nanoseconds a byte, so what is measured on the client's machine goes without.
	Count bool
	Name  string
	// Progress counts requests.
	Progress *progress.Progress
}

// Validate returns an error for the first field that is wrong.
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

// request is a query and the time at which it is due; zero in a closed loop.
type request struct {
	query    workload.Query
	intended time.Time
}

// Replay asks the queries. It counts answers that are errors, and returns the first of
// them with the latencies of the other answers. A refused connection ends it: nobody is there to ask.
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

	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	asking := running
	if c.CutOff > 0 {
		var cancel context.CancelFunc
		asking, cancel = context.WithTimeout(running, c.CutOff)
		defer cancel()
	}
	r := replay{c: c, stop: stop, response: report.NewHistogram(), service: report.NewHistogram()}
	requests := make(chan request)
	var clients sync.WaitGroup
	start := time.Now()
	for range c.Clients {
		clients.Go(func() { r.client(running, asking, requests) })
	}

	r.schedule(running, requests)
	close(requests)
	clients.Wait()

	if c.Rate > 0 {
		loop = fmt.Sprintf("open, %.3g a second", c.Rate)
	} else {
		loop = fmt.Sprintf("%s, %d clients", loop, c.Clients)
	}

	if r.cut > 0 {
		loop += fmt.Sprintf(", %d cut off after %s", r.cut, c.CutOff)
	}
	name := c.Name
	if name == "" {
		name = c.Server.Name
	}
	l := report.NewLatency(name, loop, r.response, r.service, r.errors)
	if c.Count {
		l.Answers = r.answers.Of(r.last.Sub(start))
	}
	err := ctx.Err()
	if refused := context.Cause(running); err == nil && refused != nil {
		err = fmt.Errorf("replay: stopped after %d answers, because %s refuses connections: %w",
			l.Requests, c.Server.URL, refused)
	}
	return l, errors.Join(err, r.err)
}

// replay is a Replay that runs.
type replay struct {
	c    ReplayConfig
	stop context.CancelCauseFunc

	mu                sync.Mutex
	response, service *report.Histogram
	cut, errors       int64
	err               error // the first error
	answers           report.Tallies
	last              time.Time // the end of the last answer
}

// schedule hands out each request when it is due, or in a closed loop as soon as a client
// is free. A late client does not change the times of the requests after it.
func (r *replay) schedule(ctx context.Context, requests chan<- request) {
	start, n := time.Now(), 0
	rnd := rand.New(rand.NewPCG(r.c.Seed, 3))
	due := start

	for q := range r.c.Queries {
		// Bursts come at random times, as of dashboards that know nothing of one another. Rate
		// counts requests, so larger bursts are further apart.
		if r.c.Rate > 0 && n%max(r.c.Burst, 1) == 0 {
			due = due.Add(
				time.Duration(rnd.ExpFloat64() * float64(max(r.c.Burst, 1)) / r.c.Rate * float64(time.Second)),
			)
		}

		// In an open loop by the times that are due, so that each server is asked the same requests.
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

// Until waits until a moment. It returns false if ctx ends first.
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

// client asks requests one after another until ctx ends. asking ends those that are under way.
func (r *replay) client(ctx, asking context.Context, requests <-chan request) {
	for next := range requests {
		sent := time.Now()
		amount, err := r.ask(asking, next.query)
		end := time.Now()
		if err != nil && asking.Err() != nil && ctx.Err() == nil {
			r.mu.Lock()
			r.cut++
			r.mu.Unlock()
			err = nil
		}
		ended := ctx.Err() != nil
		if errors.Is(err, syscall.ECONNREFUSED) {
			r.stop(err)
			ended = true // it is the run's error
		}
		r.count(next, sent, end, amount, err, ended)
		r.c.Progress.Add(1)
	}
}

// ask asks one request and reads its answer.
func (r *replay) ask(ctx context.Context, q workload.Query) (peer.Amount, error) {
	if r.c.Count {
		return r.c.Server.Count(ctx, q)
	}
	return peer.Amount{}, r.c.Server.Drain(ctx, q)
}

// count records an answer. ended says that the run has ended.
func (r *replay) count(q request, sent, end time.Time, amount peer.Amount, err error, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ended { // the request was cut off, so its time says nothing
		return
	}
	if q.intended.IsZero() { // in a closed loop a request is due when it is sent
		q.intended = sent
	}
	if r.c.Count {
		r.last = end
		r.answers.Add(Label(q.query), report.Answer{
			Took: end.Sub(q.intended), Points: amount.Points, Bytes: amount.Bytes, Failed: err != nil})
	}
	if err != nil {
		r.errors++
		if r.err == nil {
			r.err = err
		}
		return
	}
	r.response.Record(end.Sub(q.intended))
	r.service.Record(end.Sub(sent))
}
