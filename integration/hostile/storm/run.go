package storm

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"downpour/integration/e2e"
	"downpour/integration/hostile"
)

// Config is one storm.
type Config struct {
	World *hostile.World
	Seed  uint64
	// First is the number of the first request, Requests how many there are; if
	// For is set, requests are sent until it is over, however many.
	First, Requests int
	For             time.Duration
	// Workers send at the same time; default 16.
	Workers int

	// Gateway is stormed; Timeout is its DOWNPOUR_QUERY_TIMEOUT.
	Gateway *e2e.Program
	Timeout time.Duration
	// Oracle answers what is compared, on the same rows; nil compares nothing.
	// Compare is of how many comparable answers one is; default 1.
	Oracle  *e2e.Program
	Compare int
	// Watched are the processes whose memory is bounded, each by Memory bytes.
	Watched []*e2e.Process
	Memory  int64

	Logf func(format string, args ...any)
}

// run is a storm on its way.
type run struct {
	Config
	next    atomic.Int64
	end     time.Time // of For
	flights flights
	oracle  sync.Mutex // one question at a time

	mu     sync.Mutex
	report Report
}

// Run sends the requests and returns the account. An error is one of the run
// itself.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if cfg.Workers == 0 {
		cfg.Workers = 16
	}
	cfg.Compare = max(1, cfg.Compare)
	r := &run{Config: cfg, report: newReport(cfg.Seed)}
	r.flights.of = map[int]*flight{}
	beside, err := newBeside(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.report.Alone, err = beside.alone(ctx); err != nil {
		return nil, err
	}
	before, err := r.baseline(ctx)
	if err != nil {
		return nil, err
	}
	r.storm(ctx, beside)
	if ctx.Err() != nil {
		return &r.report, fmt.Errorf("the storm was cut off: %w", context.Cause(ctx))
	}
	if err := r.Gateway.Process.Err(); err != nil {
		r.breach("the gateway ended: %v\n%s", err, r.Gateway.Process.LogTail(30))
		return &r.report, nil
	}
	beside.close()
	// Before findAll asks, whose queries reserve memory again.
	r.awaitBaseline(ctx, before)
	r.findAll(ctx)
	r.peaks()
	r.panics()
	return &r.report, nil
}

// storm sends everything, with the client next to it and an eye on the memory.
func (r *run) storm(ctx context.Context, beside *beside) {
	began := time.Now()
	r.end = began.Add(r.For)
	inner, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	others.Go(func() { r.report.Beside = beside.run(inner) })
	others.Go(func() { r.watch(inner) })
	var workers sync.WaitGroup
	for range r.Workers {
		workers.Go(func() {
			for ctx.Err() == nil && r.Gateway.Process.Err() == nil {
				n, more := r.draw()
				if !more {
					return
				}
				r.one(ctx, n)
			}
		})
	}
	workers.Wait()
	r.report.Took = time.Since(began)
	stop()
	others.Wait()
}

// draw is the number of the next request, false if there are no more.
func (r *run) draw() (n int, more bool) {
	i := int(r.next.Add(1) - 1)
	if r.For > 0 {
		return r.First + i, time.Now().Before(r.end)
	}
	return r.First + i, i < r.Requests
}

// overtime is how much processor time the gateway may use, for whatever, between
// a request's deadline and its end.
const overtime = 12 * time.Second

// one sends a request and judges it.
func (r *run) one(ctx context.Context, n int) {
	q := hostile.Draw(r.Seed, n, r.World)
	f := r.flights.begin(&q)
	defer r.flights.end(n)
	o := send(ctx, r.Gateway.Addr, &q, func() { f.sent(r.Gateway.Process, r.Timeout) })
	late := f.landed(r.Gateway.Process)
	if ctx.Err() != nil {
		return
	}
	if late > overtime {
		r.breach("%s: used %s of processor time behind its deadline of %s", &q, late.Round(time.Millisecond), r.Timeout)
	}
	r.count(&q, &o)
	// A connection that the gateway ends sooner is no breach: it may refuse what is sent.
	if q.Judged() && q.Door != hostile.Socket && o.err != nil && time.Since(f.began) >= outer {
		r.breach("%s: no answer in %s: %v", &q, outer, o.err)
	}
	if o.acknowledges() {
		r.acknowledged(q.Points)
	}
	if q.Judged() && q.Exact && o.ok() && n%r.Compare == 0 {
		r.compare(ctx, &q, &o)
	}
}

// compare asks the oracle the same.
func (r *run) compare(ctx context.Context, q *hostile.Request, o *outcome) {
	if r.Oracle == nil {
		return
	}
	r.oracle.Lock()
	defer r.oracle.Unlock()
	want := send(ctx, r.Oracle.Addr, q, func() {})
	switch {
	case ctx.Err() != nil:
	case !want.ok():
		r.add(func(p *Report) { p.Uncompared++ })
	case want.body.sum != o.body.sum:
		again := send(ctx, r.Gateway.Addr, q, func() {})
		r.breach("%s: another answer than that of a gateway without bounds, of %d bytes, want %d; "+
			"asked again alone: status %d, %d bytes, equal %t\n got %q\nwant %q", q, o.body.bytes, want.body.bytes,
			again.status, again.body.bytes, again.body.sum == want.body.sum, o.body.head, want.body.head)
	default:
		r.add(func(p *Report) { p.Compared++ })
	}
}
