package background

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/pushdown/compaction"
	"downpour/pushdown/lease"
	"downpour/pushdown/store"
)

// whole is a worker that does not run, a region of all keys, and its lease.
func (w *world) whole(change func(*Config)) (*Worker, *region, *lease.Lease) {
	w.Helper()
	cfg := Config{
		Store: &hanging{Store: w.st}, Table: "tsdb", Schema: encoding.DefaultSchema(), Margin: margin, Rate: 10_000,
		Log: w.log.Logger(), Leases: &lease.Keeper{Store: w.st, Table: "state", Holder: "this"},
	}
	change(&cfg)
	if err := lease.CreateTable(w.Context(), w.st, "state"); err != nil {
		w.Fatal(err)
	}
	l, err := cfg.Leases.Take(w.Context(), compaction.LeaseName("tsdb", nil))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = l.Release(context.Background()) })
	return New(cfg), &region{}, l
}

// A region is worked on until nothing is left for now. Each interval has a line in the log, with what was done in it.
func TestWork(t *testing.T) {
	simulate(t, nil, func(w *world) {
		w.fill(1, 3, 12)
		w.fake.PutAt("tsdb", "\x00", encoding.FamilyData, "q", "no row of points", 1)
		w.rows++
		worker, r, l := w.whole(func(c *Config) {
			c.Store.(*hanging).before = func() { pass(time.Millisecond) }
		})
		wait, err := worker.work(w.Context(), l, r)
		sealed, next := worker.sealed(r)
		if err != nil || wait != next || r.last == nil || r.last.next(sealed) != nil {
			t.Errorf("wait %v, %v, progress %+v, want the next hour after %v", wait, err, r.last, next)
		}
		lines := w.log.Lines("rows compacted")
		if len(lines) < 2 {
			t.Fatalf("%q, want a line for each interval", lines)
		}
		for i, line := range lines {
			if i < 2 && (!strings.Contains(line, `done="18 rows: 18 compacted`) || strings.Contains(line, "took=0s")) {
				t.Errorf("interval %d: %s, want 18 rows and how long that took", i, line)
			}
		}
		w.wantCompacted()

		// Another worker has nothing to do there, and knows what is done, also if the region is split.
		other, same := New(worker.cfg), &region{}
		if _, err := other.work(w.Context(), l, same); err != nil || looked(other) != 0 || same.last == nil ||
			!other.othersAhead {
			t.Errorf("the other: %v, %d rows, progress %+v, others ahead %t", err, looked(other), same.last,
				other.othersAhead)
		}
	})
}

// After some seconds, or once the holder of another region has died, the rest of a region waits.
func TestWork_pauses(t *testing.T) {
	for _, dead := range []bool{false, true} {
		simulate(t, nil, func(w *world) {
			w.fill(1, 20, 1)
			for metric := range byte(99) { // only of this hour: each is looked up
				w.put(rowKey(metric+2, 0, 0), 1)
			}
			worker, r, l := w.whole(func(c *Config) { c.Rate = 8 })
			worker.leasesRead = time.Now()
			worker.regions = []*region{r, {KeyRange: store.KeyRange{Start: []byte("other")}, dead: dead}}
			wait, err := worker.work(w.Context(), l, r)
			if err != nil || wait != rest || r.last == nil || r.last.Work == nil || len(r.last.Done) > 0 {
				t.Errorf("wait %v, %v, progress %+v, want %v in the first interval", wait, err, r.last, rest)
			}
			want := int64(20)
			if dead {
				want = 0
			}
			if n := looked(worker); n != want {
				t.Errorf("dead %t: %d rows were looked at, want %d", dead, n, want)
			}
		})
	}
}

// unsaved is a store in which no lease can be changed.
type unsaved struct{ lease.Cells }

var errUnsaved = errors.New("not saved")

func (unsaved) CompareAndPut(context.Context, string, store.CellKey, []byte, []byte) (bool, error) {
	return false, errUnsaved
}

// unread is a store whose rows cannot be looked up.
type unread struct{ *hanging }

var errUnread = errors.New("not read")

func (u unread) Features() store.Features { return u.hanging.Features() }

func (unread) Scan(context.Context, store.Scan) (store.Scanner, error) { return nil, errUnread }

// What cannot be saved is not known as done, and a panic is an error of its region.
func TestWork_fails(t *testing.T) {
	simulate(t, nil, func(w *world) {
		w.fill(1, 1, 2)
		worker, r, l := w.whole(func(*Config) {})
		worker.cfg.Leases.Store = unsaved{w.st}
		if _, err := worker.work(w.Context(), l, r); !errors.Is(err, errUnsaved) || r.last != nil {
			t.Errorf("got %v, progress %+v, want the error of saving", err, r.last)
		}
	})
	simulate(t, nil, func(w *world) {
		worker, r, l := w.whole(func(c *Config) { c.Store = unread{c.Store.(*hanging)} })
		if _, err := worker.work(w.Context(), l, r); !errors.Is(err, errUnread) || r.last == nil || r.last.Work == nil {
			t.Errorf("got %v, progress %+v, want the error in the middle of an interval", err, r.last)
		}
	})
	simulate(t, nil, func(w *world) {
		worker, r, l := w.whole(func(c *Config) { c.Busy = func() int { panic("busy") } })
		if _, err := worker.work(w.Context(), l, r); err == nil || !strings.HasPrefix(err.Error(), "panic: busy\n") {
			t.Errorf("got %v, want the panic", err)
		}
	})
}

// A region is due again when its next hour is, or some time after a fault, which is logged once.
func TestPiece(t *testing.T) {
	simulate(t, nil, func(w *world) {
		worker, r, l := w.whole(func(*Config) {})
		if err := l.Release(w.Context()); err != nil {
			t.Fatal(err)
		}
		leases := worker.cfg.Leases.Store
		check := func(what string, due time.Duration, failures int64, warnings int) {
			t.Helper()
			if got := time.Until(r.due); got != due || worker.totals.Read().failures != failures ||
				len(w.log.Lines("level=WARN")) != warnings {
				t.Errorf("%s: due in %v, %d failures, the log has %q, want %v, %d and %d lines", what, got,
					worker.totals.Read().failures, w.log.Lines("level=WARN"), due, failures, warnings)
			}
		}
		_, next := worker.sealed(r)
		worker.piece(w.Context(), r)
		check("done", next, 0, 0)

		worker.listed = time.Now()
		worker.cfg.Leases.Store = unheard{leases}
		worker.piece(w.Context(), r)
		check("a fault", failedWait, 1, 1)
		worker.piece(w.Context(), r)
		check("the same fault", failedWait, 2, 1)
		if worker.listed.IsZero() {
			t.Error("regions are listed again after any fault")
		}
		ended, cancel := context.WithCancel(w.Context())
		cancel()
		worker.piece(ended, r)
		check("at the end", 0, 2, 1)
		worker.cfg.Leases.Store, worker.cfg.Leases.Table = leases, "other"
		worker.piece(w.Context(), r)
		check("without the table of leases", failedWait, 3, 2)
		if !worker.listed.IsZero() {
			t.Error("the table of leases is not made again")
		}
	})
}

// While regions are due and their list is new, one after the other is worked on.
func TestRound(t *testing.T) {
	simulate(t, nil, func(w *world) {
		w.fill(1, 1, 2)
		var worker *Worker
		var during []*region
		worker, r, l := w.whole(func(c *Config) {
			c.Busy = func() int {
				during = append(during, worker.now)
				return 0
			}
		})
		if err := l.Release(w.Context()); err != nil {
			t.Fatal(err)
		}
		worker.regions = []*region{r}
		if wait := worker.round(w.Context()); wait != 0 || looked(worker) != 0 {
			t.Errorf("with an old list: wait %v, %d rows, want none", wait, looked(worker))
		}
		worker.listed, worker.after = time.Now(), []byte("x")
		if wait := worker.round(w.Context()); wait <= 0 || looked(worker) != int64(w.rows) {
			t.Errorf("wait %v, %d rows, want %d, and some time until the next hour", wait, looked(worker), w.rows)
		}
		if len(during) == 0 || during[0] != r || worker.now != nil || len(worker.after) != 0 {
			t.Errorf("worked on %v, now %v, after %x", during, worker.now, worker.after)
		}
	})
}
