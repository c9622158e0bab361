// Package sealing has old rows of an embedded store written in their compact form, calmly, while others query and
// write: see store.Features.Seal for what that is. No answer changes by it, and nothing is lost where it is cut off.
//
// An hour is sealed an hour after its end, when hardly a point comes any more. Points that come later stay as
// they were put, behind the compact form, until there are enough of them to make it worth writing the row once
// more.
package sealing

import (
	"context"
	"log/slog"
	"time"

	"downpour/pushdown/process/lasting"
	"downpour/pushdown/process/metrics"
	"downpour/pushdown/process/pacer"
	"downpour/pushdown/store"
)

// Seal is store.Features.Seal.
type Seal func(ctx context.Context, table string, since, before time.Time, pace func(store.SealReport) error) (
	store.SealReport, error)

// Worker seals the old rows of a table, now and then.
type Worker struct {
	Seal  Seal
	Table string
	Rate  float64    // rows a second at most
	Busy  func() int // queries that run
	Now   func() time.Time
	Log   *slog.Logger

	// Until when hours are sealed, and when a look at all of them has last ended; zero before the first pass.
	sealed, whole time.Time

	totals metrics.Totals[totals]
}

const (
	// every is the time between two passes, each over the hours that have become old since the one before.
	every = 10 * time.Minute
	// wholeEvery is the time from the end of a pass over all hours, for points that came late, to the next.
	wholeEvery = 24 * time.Hour
	// margin is how long an hour has ended that is sealed.
	margin = time.Hour
	// tellEvery is how often a long pass logs how far it is.
	tellEvery = time.Minute
)

// Run works until ctx ends.
func (w *Worker) Run(ctx context.Context) {
	pass := func(ctx context.Context) (time.Duration, error) { return every, w.pass(ctx) }
	lasting.Rounds(ctx, pass, func(err error) {
		w.totals.Add(func(t *totals) { t.failures++ })
		w.Log.Warn("old rows cannot be sealed now; the next try is in some minutes", "err", err)
	})
}

// pass seals what is old now.
func (w *Worker) pass(ctx context.Context) error {
	p := pacer.New(w.Rate, w.Busy)
	began := time.Now()
	told, last := began, store.SealReport{}
	note := func(r store.SealReport) {
		w.totals.Add(func(t *totals) {
			t.rows += r.Sealed - last.Sealed
			t.before += r.Before - last.Before
			t.after += r.After - last.After
		})
		last = r
	}
	now := w.Now()
	since, before := w.sealed, now.Add(-margin) //fault:seal-without-margin TestWorker_pace
	whole := now.Sub(w.whole) >= wholeEvery
	if whole {
		since = time.Time{}
	}
	report, err := w.Seal(ctx, w.Table, since, before, func(r store.SealReport) error {
		p.Done(float64(r.Rows - last.Rows))
		note(r)
		if time.Since(told) >= tellEvery {
			told = time.Now()
			w.tell("old rows are being sealed", r, began)
		}
		return p.Wait(ctx)
	})
	note(report)
	if err != nil {
		return err
	}
	w.sealed = before
	if whole { // it may have taken days, in which hours have become old that wait for the next passes
		w.whole = w.Now()
	}
	if report.Sealed > 0 {
		w.tell("old rows are sealed", report, began)
	}
	return nil
}

func (w *Worker) tell(what string, r store.SealReport, began time.Time) {
	w.Log.Info(what, "rows", r.Sealed, "bytes before", r.Before, "bytes after", r.After,
		"took", time.Since(began).Round(time.Second))
}
