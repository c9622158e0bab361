package background

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/pushdown/lease"
	"downpour/pushdown/process/lasting"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/process/metrics"
	"downpour/pushdown/process/pacer"
	"downpour/pushdown/process/wait"
	"downpour/pushdown/rollupjob"
	"downpour/pushdown/store"
)

const (
	// leasePrefix begins the name of the lease of this work; the data table follows, because several
	// installations may share the table of leases.
	leasePrefix = "rollups/"
	// heldWait is the time until the lease is tried again that another has: often enough to
	// take over within 60 s.
	heldWait = 10 * time.Second
	// failedWait is the time until something is tried again after an error.
	failedWait = 30 * time.Second
	// tries is how often a metric is tried before the next one comes.
	tries = 3
	// saveEvery is the time between two saves of the state while much is done.
	saveEvery = 10 * time.Second
	// listEvery is how old the list of metrics may be.
	listEvery = time.Hour
)

// Metric is a metric and the time, in s, from which on its raw rows are kept; 0 for all.
type Metric struct {
	UID  encoding.UID
	From int64
}

// Config is what is rolled up, and how.
type Config struct {
	Store store.Store
	// Job is what rolls up. Its store, its leases and its pace are set here.
	Job rollupjob.Job
	// Metrics lists all metrics.
	Metrics func(ctx context.Context) iter.Seq2[Metric, error]
	// Rate is how many raw points a second are read at most.
	Rate float64
	// ProveAfter is how long after rollups are made they are proven: only then can a proof hold
	// despite other writes.
	ProveAfter time.Duration
	// Leases takes the lease of this work, and those of metrics.
	Leases *lease.Keeper
	// Alone is set if no other process has the store, so that this work needs no lease.
	Alone bool
	// Busy returns how many queries run in this process; nil for none.
	Busy func() int
	// Memory is where the work takes its memory from; nil has no bound.
	Memory *memory.Pool
	Log    *slog.Logger
}

// Worker makes rollups while it runs. It is a collector of its metrics.
type Worker struct {
	cfg    Config
	job    rollupjob.Job
	pace   *pacer.Pacer
	piece  int64 // longest, in s
	totals metrics.Totals[totals]

	// Of the goroutine of Run.
	metrics []Metric // by UID
	listed  time.Time
	due     []due // by time
	left    map[string]left
	firsts  map[string]int64 // the base time of the first raw row of a metric, as the walk found it
	owed    int64            // points not yet reported to the pacer
	passed  bool             // a metric of the newest pass was passed over
	failed  int              // tries of the metric that is next
	counts  rollupjob.Counts // of the pass
	began   time.Time        // of the pass, in this process
	warned  map[string]bool  // kinds of warnings
	state   []byte           // last saved state, if no other process has the store
	saved   time.Time
}

// New returns a worker that has not begun. The error is that of the rollups' configuration.
func New(cfg Config) (*Worker, error) {
	w := &Worker{
		cfg:    cfg,
		job:    cfg.Job,
		pace:   pacer.New(cfg.Rate, cfg.Busy),
		left:   map[string]left{},
		firsts: map[string]int64{},
		warned: map[string]bool{},
	}
	w.job.Store, w.job.Leases, w.job.Skip, w.job.Grain = timed{cfg.Store, w.pace}, cfg.Leases, true, grain
	w.job.Pace = w.pay
	var err error
	w.piece, err = w.job.LongestPiece()
	return w, err
}

// page is the least that is read between two waits, in points: as much as a page of raw rows, and
// no more than the rate allows in a second.
const page = 8 << 10

// pay reports reads to the pacer, in pages: checking a metric costs little, and if queries always
// run each wait takes as long as it may.
func (w *Worker) pay(ctx context.Context, points int64) error {
	if w.owed += points; float64(w.owed) < min(page, w.cfg.Rate) {
		return ctx.Err()
	}
	w.pace.Done(float64(w.owed))
	w.owed = 0
	return w.pace.Wait(ctx)
}

// Run makes rollups until ctx ends. No error ends it: failures are logged and retried.
func (w *Worker) Run(ctx context.Context) {
	lasting.Rounds(ctx, w.hold, w.failure)
}

// failure counts an error, and logs it.
func (w *Worker) failure(err error) {
	w.totals.Add(failure)
	w.warn("cannot make rollups; retrying", err.Error())
}

// warn logs the first warning of each kind. After each pass over the newest hours there may be
// another.
func (w *Worker) warn(what, why string) {
	if !w.warned[what] {
		w.cfg.Log.Warn(what, "err", why)
		w.warned[what] = true
	}
}

// hold works while this process has the lease, and returns when to try again.
func (w *Worker) hold(ctx context.Context) (time.Duration, error) {
	if err := lease.CreateTable(ctx, w.cfg.Store, w.cfg.Leases.Table); err != nil {
		return failedWait, err
	}
	if w.cfg.Alone {
		return failedWait, w.work(ctx, w.state, func(_ context.Context, state []byte) error {
			w.state = state
			return nil
		})
	}
	l, ok, err := w.cfg.Leases.Try(ctx, leasePrefix+w.job.Tables.Data)
	if err != nil || !ok {
		return heldWait, err
	}
	// Another may have been at work since.
	w.due, w.listed, w.failed = nil, time.Time{}, 0
	clear(w.firsts)
	return heldWait, l.Do(ctx, func(ctx context.Context) error { return w.work(ctx, l.State(), l.Save) })
}

// work continues from a state until ctx ends or the state cannot be saved.
func (w *Worker) work(ctx context.Context, state []byte, save func(ctx context.Context, state []byte) error) error {
	p, err := parseProgress(state)
	if err != nil {
		return err
	}
	keep := func() error {
		now, err := json.Marshal(p)
		if err != nil || bytes.Equal(now, state) {
			return err
		}
		// Progress is saved also if the process ends.
		err = save(context.WithoutCancel(ctx), now)
		state, w.saved = now, time.Now()
		return err
	}
	w.began = time.Now()
	for ctx.Err() == nil {
		pause, err := w.step(ctx, &p)
		if err != nil && ctx.Err() == nil {
			w.failure(err)
		}
		if pause > 0 || time.Since(w.saved) >= saveEvery {
			if err := keep(); err != nil {
				return err
			}
		}
		_ = wait.For(ctx, pause)
	}
	return keep()
}

// step does what is next, and returns how long there is nothing to do.
func (w *Worker) step(ctx context.Context, p *progress) (time.Duration, error) {
	if len(w.due) > 0 && !time.Now().Before(w.due[0].at) {
		d := w.due[0]
		w.due = w.due[1:]
		// Failed rollups are not proven, which the next check of the metric finds.
		err := w.safely(ctx, func(ctx context.Context) error { return w.prove(ctx, d.days) })
		if err != nil && !errors.Is(err, rollupjob.ErrHeld) {
			return failedWait, err
		}
		return 0, nil
	}
	untilDue := func(most time.Duration) time.Duration {
		if len(w.due) > 0 {
			return min(most, time.Until(w.due[0].at))
		}
		return most
	}
	if len(w.due) >= maxDue {
		return untilDue(failedWait), nil
	}

	now := w.job.Now().Unix()
	margin := int64(w.job.Margin / time.Second)
	sealed := (now - margin) / grain * grain
	of := p.next(sealed, now)
	if of == nil {
		return untilDue(time.Duration(p.after(sealed, now, margin)) * time.Second), nil
	}
	m, ok, err := w.nextMetric(ctx, *of.next)
	if err != nil {
		return failedWait, err
	}
	if !ok {
		p.finish(of)
		w.finished(of)
		return 0, nil
	}

	err = w.safely(ctx, func(ctx context.Context) error { return w.roll(ctx, m, of, p) })
	if ctx.Err() != nil {
		return 0, err
	}
	// The lease's holder rolls up its own range, which may be smaller.
	if errors.Is(err, rollupjob.ErrHeld) {
		w.passed = w.passed || !of.walk
		*of.next, w.failed = m.UID, 0
		return 0, nil
	}
	if w.failed++; err == nil || w.failed == tries {
		w.passed = w.passed || err != nil && !of.walk
		*of.next, w.failed = m.UID, 0
	}
	if err == nil {
		return 0, nil
	}
	return untilDue(failedWait), fmt.Errorf("metric %X: %w", []byte(m.UID), err)
}

// nextMetric returns the first metric after another; ok is false if there is none.
func (w *Worker) nextMetric(ctx context.Context, behind encoding.UID) (m Metric, ok bool, err error) {
	if w.listed.IsZero() || time.Since(w.listed) >= listEvery {
		var all []Metric
		for m, err := range w.cfg.Metrics(ctx) {
			if err != nil {
				return m, false, err
			}
			all = append(all, Metric{bytes.Clone(m.UID), m.From})
		}
		w.metrics, w.listed = once(all), time.Now()
	}
	i, found := slices.BinarySearchFunc(w.metrics, behind,
		func(m Metric, uid encoding.UID) int { return bytes.Compare(m.UID, uid) })
	if found {
		i++
	}
	if i == len(w.metrics) {
		return m, false, nil
	}
	return w.metrics[i], true, nil
}

// once returns metrics by their UIDs. A rename that was cut off leaves two names of one UID: it is
// listed once, as kept the longest of both.
func once(all []Metric) []Metric {
	slices.SortFunc(all, func(a, b Metric) int {
		return cmp.Or(bytes.Compare(a.UID, b.UID),
			cmp.Compare(a.From, b.From))
	})
	return slices.CompactFunc(all, func(a, b Metric) bool { return bytes.Equal(a.UID, b.UID) })
}

// finished logs a pass that has done something, and notes how far all metrics are.
func (w *Worker) finished(of *pass) {
	if !of.walk {
		// A skipped metric is not rolled up, so the time of all metrics does not advance.
		if !w.passed {
			w.totals.Add(func(t *totals) { t.sealed = of.to })
		}
		w.passed = false
	}
	if w.counts.Made > 0 {
		at := func(seconds int64) string { return time.Unix(seconds, 0).UTC().Format("2006-01-02T15:04Z") }
		w.cfg.Log.Info("rollups made", "from", at(of.from), "to", at(of.to), "done", w.counts.String(), "took",
			time.Since(w.began).Round(time.Millisecond))
	}
	w.counts, w.began = rollupjob.Counts{}, time.Now()
	if !of.walk {
		clear(w.warned)
	}
}
