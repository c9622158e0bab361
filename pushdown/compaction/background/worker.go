package background

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/pushdown/compaction"
	"downpour/pushdown/lease"
	"downpour/pushdown/process/lasting"
	"downpour/pushdown/process/metrics"
	"downpour/pushdown/process/pacer"
	"downpour/pushdown/store"
)

const (
	// pieceTime is how long a lease is held: short, so that others need not wait long, and a region
	// of a dead holder is checked again soon.
	pieceTime = 8 * time.Second
	// rest is the pause of a region between two leases: longer than the interval in which others
	// try to get its lease.
	rest = 3 * time.Second
	// heldWait is the time until a region is tried again whose lease another has.
	heldWait = 5 * time.Second
	// failedWait is the time until a region, or all, are tried again after an error.
	failedWait = 30 * time.Second
	// listEvery is how old a list of regions may be.
	listEvery = time.Minute
	// spread is the time over which regions become due after an hour is sealed, those of each slot together: one
	// call reads the leases of all that are due.
	spread = 30 * time.Minute
	slot   = time.Minute
	// readEvery is how old the known leases of due regions may be, so that a holder's death is
	// noticed within 60 s; readMost is how many are read at a time then, and readNear how many when
	// others have been faster.
	readEvery = 5 * time.Second
	readMost  = 2000
	readNear  = 64
)

// Config is what is compacted, and how.
type Config struct {
	Store         store.Store // keeps versions of cells
	Table         string
	Schema        encoding.Schema
	FixDuplicates bool
	// Margin is that of compaction.Job.
	Margin time.Duration
	// Rate is the most rows per second that are compacted. Rows that need no compaction are read
	// ten times as fast.
	Rate float64
	// Beside is the region server, host:port, whose regions are compacted, with those of servers
	// without a living worker; empty for all.
	Beside string
	// Leases takes the leases of regions. New sets its Gone.
	Leases *lease.Keeper
	// Busy returns how many queries, or parts of them, run in this process; nil for none.
	Busy func() int
	// Now is the clock of hours. Default time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// Worker compacts rows while it runs. It is a collector of its metrics.
type Worker struct {
	cfg    Config
	pace   *pacer.Pacer
	totals metrics.Totals[totals]
	dead   dead

	// Of the goroutine of Run.
	all         []store.Region // of the table, in the order of keys
	listed      time.Time
	looked      time.Time       // when it was last seen which other workers live
	unattended  map[string]bool // region servers without a living worker
	regions     []*region       // those of all that are this worker's
	warned      string          // the last warning about all regions
	now         *region         // that is worked on, nil between two regions
	after       []byte          // the first key of the last region
	othersAhead bool            // another had that region, or has done its work
	leasesRead  time.Time       // when leases were read
	seen        []byte          // the first key of the last region whose lease was read
}

// New returns a worker that has not begun.
func New(cfg Config) *Worker {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	w := &Worker{cfg: cfg, pace: pacer.New(cfg.Rate, cfg.Busy)}
	cfg.Leases.Gone = w.dead.has
	return w
}

// On returns a worker on a store, with leases in the table state. The store must keep versions of
// cells.
func On(st store.Store, state string, cfg Config) (*Worker, error) {
	if st.Features().Versioned == nil {
		return nil, errors.New("the store keeps no versions of cells")
	}
	cfg.Store, cfg.Leases = st, &lease.Keeper{Store: st, Table: state, Holder: lease.Holder()}
	return New(cfg), nil
}

// Run compacts until ctx ends. No error ends it: failures are logged and retried.
func (w *Worker) Run(ctx context.Context) {
	var holding sync.WaitGroup
	defer holding.Wait()
	if w.cfg.Beside != "" {
		holding.Go(func() { w.holdServer(ctx) })
	}

	lasting.Rounds(ctx, func(ctx context.Context) (time.Duration, error) {
		if err := w.list(ctx); err != nil {
			return failedWait, err
		}
		w.warned = ""
		return w.round(ctx), nil
	}, func(err error) {
		w.totals.Add(failure)
		w.warn(err.Error())
	})
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
	if time.Since(w.listed) < listEvery {
		return nil
	}
	if err := lease.CreateTable(ctx, w.cfg.Store, w.cfg.Leases.Table); err != nil {
		return err
	}
	if err := w.cfg.Store.Features().Versioned.CheckVersions(ctx, w.cfg.Table, encoding.FamilyData); err != nil {
		return err
	}
	all, err := w.cfg.Store.Regions(ctx, w.cfg.Table, nil, nil)
	if err != nil {
		return fmt.Errorf("cannot list the regions of table %s: %w", w.cfg.Table, err)
	}

	w.all = all
	if err := w.share(ctx); err != nil {
		return err
	}
	if len(w.regions) == 0 {
		w.cfg.Log.Info("no region to compact", "table", w.cfg.Table, "beside", w.cfg.Beside, "regions of others",
			len(all))
	}
	w.listed = time.Now()
	return nil
}

// share brings the regions that are this worker's up to date.
func (w *Worker) share(ctx context.Context) error {
	if w.cfg.Beside != "" {
		if err := w.findUnattended(ctx); err != nil {
			return err
		}
	}
	before := make(map[string]*region, len(w.regions))
	for _, r := range w.regions {
		before[string(r.Start)] = r
	}
	var mine []*region
	for _, r := range w.all {
		if w.mine(r) {
			mine = append(mine, w.known(r, before))
		}
	}
	// Several workers begin at different regions, so that they try different leases.
	if w.after == nil && len(mine) > 0 {
		w.after = mine[rand.IntN(len(mine))].Start
	}
	w.regions = mine
	return nil
}

// known returns a region with what is known of it, or of the one that it is a part of. before are the known ones
// by their first keys.
func (w *Worker) known(r store.Region, before map[string]*region) *region {
	keys := store.KeyRange{Start: slices.Clone(r.Start), Stop: slices.Clone(r.Stop)}
	if old := before[string(keys.Start)]; old != nil {
		old.KeyRange = keys
		return old
	}
	next := &region{KeyRange: keys}
	for _, old := range w.regions {
		// Its own keys may have been cut already.
		if whole := old.last; whole != nil &&
			(store.KeyRange{Start: old.Start, Stop: whole.Stop}).Contains(keys.Start) {
			next.parent = whole
		}
	}
	return next
}

// round works on one region after the other, until none is due or the list of them is old. It
// returns how long there is nothing to do.
func (w *Worker) round(ctx context.Context) time.Duration {
	for ctx.Err() == nil && time.Since(w.listed) < listEvery {
		if w.cfg.Beside != "" && time.Since(w.looked) >= readEvery && w.share(ctx) != nil {
			w.listed = time.Time{} // list has the error
			return 0
		}
		r, next := w.choose(ctx)
		if r == nil && w.cfg.Beside != "" {
			return max(0, min(time.Until(next), readEvery))
		}
		if r == nil {
			return max(0, time.Until(next))
		}
		w.now, w.after = r, r.Start
		w.piece(ctx, r)
		w.now = nil
	}
	return 0
}

// choose returns the region to work on, nil if none is due before next: one whose holder has died,
// or else the next in the order of keys.
func (w *Worker) choose(ctx context.Context) (r *region, next time.Time) {
	for {
		r, next = w.nextDue()
		if r == nil {
			return nil, next
		}
		var look []*region
		switch {
		case time.Since(r.leasesRead) >= readEvery:
			look, w.seen = w.unseen(w.seen, readMost)
		case w.othersAhead:
			look, _ = w.unseen(w.after, readNear)
		default:
			return r, next
		}
		w.othersAhead = false
		if err := w.readLeases(ctx, look); err != nil {
			return r, next // Try has the error, for each region
		}
		// If there are very many, not all are read at a time.
		if time.Since(r.leasesRead) >= readEvery {
			return r, next
		}
	}
}

// nextDue returns the region that is to be worked on by what is known.
func (w *Worker) nextDue() (r *region, next time.Time) {
	now := time.Now()
	next = now.Add(listEvery)
	var first *region // of those that are due
	for _, o := range w.regions {
		switch {
		case now.Before(o.due):
			if o.due.Before(next) {
				next = o.due
			}
		case o.dead:
			return o, next
		case first == nil:
			first = o
			fallthrough
		default:
			if r == nil && bytes.Compare(o.Start, w.after) > 0 {
				r = o
			}
		}
	}
	if r == nil {
		r = first
	}
	return r, next
}

// piece works on a region for some seconds, if no other process does, and sets when it is due
// again.
func (w *Worker) piece(ctx context.Context, r *region) {
	r.dead = false
	l, ok, err := w.cfg.Leases.Try(ctx, compaction.LeaseName(w.cfg.Table, r.Start))
	if err == nil && !ok {
		w.totals.Add(func(t *totals) { t.held++ })
		r.due, w.othersAhead = time.Now().Add(heldWait), true
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
	w.totals.Add(failure)
	if errors.Is(err, store.ErrNoTable) {
		w.listed = time.Time{} // it may be that of leases, which list makes
	}
	if text := err.Error(); text != r.warned {
		w.cfg.Log.Warn("cannot compact the rows of a region; retrying", "table", w.cfg.Table, "region",
			fmt.Sprintf("%x", r.Start), "err", text)
		r.warned = text
	}
}

// sealed returns the time up to which the hours of a region are to be compacted, and when the
// next one is. Regions differ by a part of spread.
func (w *Worker) sealed(r *region) (seconds int64, next time.Duration) {
	hash := fnv.New32a()
	hash.Write(r.Start)
	delay := w.cfg.Margin + slot*time.Duration(hash.Sum32()%uint32(spread/slot))
	at := w.cfg.Now().Add(-delay)
	seconds = at.Unix() - at.Unix()%encoding.RowSeconds
	return seconds, time.Unix(seconds+encoding.RowSeconds, 0).Sub(at)
}
