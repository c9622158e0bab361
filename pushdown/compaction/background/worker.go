package background

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/pushdown/compaction"
	"downpour/pushdown/lease"
	"downpour/pushdown/process/pacer"
	"downpour/pushdown/process/wait"
	"downpour/pushdown/store"
)

const (
	// pieceTime is how long a lease is held, so that others who want it wait little, and a
	// region that a dead holder has is looked at again soon.
	pieceTime = 8 * time.Second
	// rest is how long a region is left between two pieces: longer than the time between two
	// tries of those who wait for its lease.
	rest = 3 * time.Second
	// heldWait is the time until a region is tried again whose lease another has.
	heldWait = 5 * time.Second
	// failedWait is the time until a region, or all, are tried again after an error.
	failedWait = 30 * time.Second
	// listEvery is how old a list of regions may be.
	listEvery = time.Minute
	// spread is the time over which regions become due after an hour is sealed.
	spread = 30 * time.Minute
)

// Store is what the work needs of a store.
type Store interface {
	store.Reader
	store.Versioned
	store.Admin
}

// Config says what is compacted, and how.
type Config struct {
	Store         Store
	Table         string
	Schema        encoding.Schema
	FixDuplicates bool
	// Margin is that of compaction.Job.
	Margin time.Duration
	// Rate is how many rows a second are compacted at most. Of rows that need nothing ten times
	// as many are read.
	Rate float64
	// Beside is the region server, host:port, whose regions are compacted; empty for all.
	Beside string
	// Leases takes the leases of regions.
	Leases *lease.Keeper
	// Busy tells how many queries, or parts of them, run in this process; nil for none.
	Busy func() int
	// Now is the clock of hours. Default time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// Worker compacts rows while it runs. It is a collector of its metrics.
type Worker struct {
	cfg    Config
	pace   *pacer.Pacer
	totals totals

	// Of the goroutine that runs.
	regions []*region // in the order of keys
	listed  time.Time
	warned  string // the last warning about all regions
}

// New returns a worker that has not begun.
func New(cfg Config) *Worker {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Worker{cfg: cfg, pace: pacer.New(cfg.Rate, cfg.Busy)}
}

// On returns a worker on a store, with leases in the table state. The store must keep versions of
// cells.
func On(st store.Store, state string, cfg Config) (*Worker, error) {
	versioned, ok := st.(Store)
	cells, also := st.(lease.Cells)
	if !ok || !also {
		return nil, errors.New("the store keeps no versions of cells")
	}
	cfg.Store, cfg.Leases = versioned, &lease.Keeper{Store: cells, Table: state, Holder: lease.Holder()}
	return New(cfg), nil
}

// Run compacts until ctx ends. No error ends it: what fails is logged and tried again.
func (w *Worker) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.list(ctx)
		pause := failedWait
		if err == nil {
			w.warned = ""
			pause = w.round(ctx)
		} else if ctx.Err() == nil {
			w.totals.count(&w.totals.failures)
			w.warn(err.Error())
		}
		_ = wait.For(ctx, pause)
	}
}

// warn logs why no region is worked on, once for each reason.
func (w *Worker) warn(why string) {
	if why != w.warned {
		w.cfg.Log.Warn("rows are not compacted", "table", w.cfg.Table, "err", why)
		w.warned = why
	}
}

// list brings the list of regions up to date, if it is old, and checks that the table may be
// compacted.
func (w *Worker) list(ctx context.Context) error {
	if !w.listed.IsZero() && time.Since(w.listed) < listEvery {
		return nil
	}
	if err := lease.CreateTable(ctx, w.cfg.Store, w.cfg.Leases.Table); err != nil {
		return err
	}
	if err := w.cfg.Store.CheckVersions(ctx, w.cfg.Table, encoding.FamilyData); err != nil {
		return err
	}
	all, err := w.cfg.Store.Regions(ctx, w.cfg.Table, nil, nil)
	if err != nil {
		return fmt.Errorf("cannot list the regions of table %s: %w", w.cfg.Table, err)
	}

	var mine []*region
	for _, r := range all {
		if w.cfg.Beside == "" || r.Server == w.cfg.Beside {
			mine = append(mine, w.known(r))
		}
	}
	if len(all) > 0 && len(mine) == 0 {
		w.cfg.Log.Info("no region to compact", "table", w.cfg.Table, "beside", w.cfg.Beside, "regions of others", len(all))
	}
	w.regions, w.listed = mine, time.Now()
	return nil
}

// known returns a region with what is known of it, or of the one that it is a part of.
func (w *Worker) known(r store.Region) *region {
	keys := store.KeyRange{Start: slices.Clone(r.Start), Stop: slices.Clone(r.Stop)}
	for _, old := range w.regions {
		if string(old.Start) == string(keys.Start) {
			old.KeyRange = keys
			return old
		}
	}
	next := &region{KeyRange: keys}
	for _, old := range w.regions {
		// Its own keys may have been cut already.
		if whole := old.last; whole != nil && (store.KeyRange{Start: old.Start, Stop: whole.Stop}).Contains(keys.Start) {
			next.parent = whole
		}
	}
	return next
}

// round does a piece of work on each region that is due, and returns how long there is
// nothing to do.
func (w *Worker) round(ctx context.Context) time.Duration {
	next := time.Now().Add(listEvery)
	for _, r := range w.regions {
		if ctx.Err() != nil {
			return 0
		}
		if !time.Now().Before(r.due) {
			w.piece(ctx, r)
		}
		if r.due.Before(next) {
			next = r.due
		}
	}
	return max(0, time.Until(next))
}

// piece works on a region for some seconds, if nobody else does, and says when the next piece
// is due.
func (w *Worker) piece(ctx context.Context, r *region) {
	l, ok, err := w.cfg.Leases.Try(ctx, compaction.LeaseName(w.cfg.Table, r.Start))
	if err == nil && !ok {
		w.totals.count(&w.totals.held)
		r.due = time.Now().Add(heldWait)
		return
	}

	var wait time.Duration
	if err == nil {
		err = l.Do(ctx, func(ctx context.Context) (err error) {
			wait, err = w.work(ctx, l, r)
			return err
		})
	}
	r.due = time.Now().Add(wait)
	if err == nil || ctx.Err() != nil {
		return
	}

	r.due = time.Now().Add(failedWait)
	w.totals.count(&w.totals.failures)
	if errors.Is(err, store.ErrNoTable) {
		w.listed = time.Time{} // it may be that of leases, which list makes
	}
	if text := err.Error(); text != r.warned {
		w.cfg.Log.Warn("rows of a region are not compacted, and are tried again", "table", w.cfg.Table, "region", fmt.Sprintf("%x", r.Start), "err", text)
		r.warned = text
	}
}

// sealed returns the time up to which the hours of a region are to be compacted, and when the
// next one is. Regions differ by a part of spread.
func (w *Worker) sealed(r *region) (seconds int64, next time.Duration) {
	hash := fnv.New32a()
	hash.Write(r.Start)
	late := w.cfg.Margin + spread*time.Duration(hash.Sum32()%1024)/1024
	at := w.cfg.Now().Add(-late)
	seconds = at.Unix() - at.Unix()%encoding.RowSeconds
	return seconds, time.Unix(seconds+encoding.RowSeconds, 0).Sub(at)
}
