package background

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"downpour/pushdown/compaction"
	"downpour/pushdown/lease"
	"downpour/pushdown/store"
)

// region is a region with this process's knowledge of it.
type region struct {
	store.KeyRange
	due        time.Time // when to check it again
	leasesRead time.Time // when its lease was last read
	dead       bool      // its holder was seen to be dead
	warned     string    // its last warning
	last       *progress // as this process has saved it; nil if it has not
	parent     *progress // of the region that it was a part of, nil if that is not known

	// Of the current interval, in this process.
	counts compaction.Counts
	took   time.Duration
}

// work works on a region for some seconds under its lease, and returns how long there is nothing to
// do in it.
func (w *Worker) work(ctx context.Context, l *lease.Lease, r *region) (wait time.Duration, err error) {
	// The process has other work, which continues.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	p, err := r.progressOf(l.State())
	if err != nil {
		return 0, err
	}
	w.othersAhead = true
	for until := time.Now().Add(pieceTime); time.Now().Before(until); {
		sealed, next := w.sealed(r)
		interval := p.next(sealed)
		if interval == nil {
			r.last = &p
			return next, nil
		}
		w.othersAhead = false

		began := time.Now()
		failed := w.walk(ctx, r, interval, until)
		r.took += time.Since(began)
		if failed == nil { //fault:compaction-takes-what-failed-for-done TestWorker_noWrites
			p.finish()
		}
		// Progress is saved also after an error, or if the process ends.
		if err := w.save(context.WithoutCancel(ctx), l, r, p); err != nil {
			return 0, errors.Join(failed, err)
		}
		switch {
		case errors.Is(failed, errPause):
			return rest, nil
		case failed != nil:
			return 0, failed
		}
		w.finished(r, interval)
	}
	return rest, nil
}

// progressOf reads the state of the region's lease. If there is none and the region was a part of another one, it
// begins with the state of that one.
func (r *region) progressOf(state []byte) (progress, error) {
	p, err := parseProgress(state)
	if err != nil {
		return p, err
	}
	p.fit(r.Stop)
	if len(p.Done) == 0 && p.Work == nil && r.parent != nil {
		p = *r.parent
		p.Done = slices.Clone(p.Done)
		p.Work = nil // it may be after this region
		p.fit(r.Stop)
	}
	r.parent = nil
	return p, nil
}

// walk works on an interval until a time.
func (w *Worker) walk(ctx context.Context, r *region, interval *work, until time.Time) error {
	job := compaction.Job{
		Store:         timed{w.cfg.Store.Features().Versioned, w.pace},
		Table:         w.cfg.Table,
		Schema:        w.cfg.Schema,
		FixDuplicates: w.cfg.FixDuplicates,
		Margin:        w.cfg.Margin,
		Now:           w.cfg.Now,
		PageRows:      pageRows(w.cfg.Rate),
		Before: func(ctx context.Context) error {
			if !time.Now().Before(until) || w.urgent(ctx) {
				return errPause
			}
			return w.pace.Wait(ctx)
		},
	}
	return walk(ctx, w.cfg.Store, job, r.KeyRange, interval, func(c compaction.Counts) {
		w.pace.Done(costOf(c))
		w.totals.Add(func(t *totals) { t.Counts.Add(&c) })
		r.counts.Add(&c)
	})
}

// save saves how far a region is.
func (w *Worker) save(ctx context.Context, l *lease.Lease, r *region, p progress) error {
	state, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := l.Save(ctx, state); err != nil {
		return err
	}
	r.last, r.warned = &p, ""
	return nil
}

// finished logs an interval that is done.
func (w *Worker) finished(r *region, interval *work) {
	w.totals.Add(func(t *totals) { t.intervals++ })
	hour := func(seconds int64) string { return time.Unix(seconds, 0).UTC().Format("2006-01-02T15:04Z") }
	w.cfg.Log.Info("rows compacted", "table", w.cfg.Table, "region", fmt.Sprintf("%x", r.Start), "from",
		hour(interval.From), "to", hour(interval.To),
		"second look", interval.Second, "done", r.counts.String(), "took", r.took.Round(time.Millisecond))
	r.counts, r.took = compaction.Counts{}, 0
}
