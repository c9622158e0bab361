package background

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"downpour/pushdown/lease"
	"downpour/pushdown/store"
)

// A worker next to a region server that has one tries its lease now and then, and takes it once it is free.
func TestHoldServer(t *testing.T) {
	simulate(t, nil, func(w *world) {
		counts := &calls{}
		worker, _, _ := w.whole(func(c *Config) { c.Beside, c.Store.(*hanging).calls = "s:1", counts })
		worker.cfg.Leases.Store = worker.cfg.Store.(*hanging)
		ctx, cancel := context.WithCancel(w.Context())
		other := &lease.Keeper{Store: w.st, Table: "state", Holder: "other"}
		l, err := other.Take(ctx, serverLease("tsdb", "s:1"))
		if err != nil {
			t.Fatal(err)
		}
		counts.take()
		w.all.Go(func() { worker.holdServer(ctx) })
		pass(time.Minute)
		if n := counts.take()[readsOfLeases]; n < 10 || n > 30 {
			t.Errorf("the lease was read %d times in a minute, want each %v", n, heldWait)
		}
		if err := l.Release(ctx); err != nil {
			t.Fatal(err)
		}
		pass(heldWait)
		if status, err := other.Statuses(ctx, []string{serverLease("tsdb", "s:1")}); err != nil || !status[0].Held {
			t.Errorf("%+v, %v, want it held", status, err)
		}
		cancel()
		w.all.Wait()
	})
}

// unheard is a store whose leases cannot be read.
type unheard struct{ lease.Cells }

var errUnheard = errors.New("not heard")

func (unheard) Get(context.Context, string, string, [][]byte) ([]store.Row, error) {
	return nil, errUnheard
}

// Without the leases of other servers a worker does not know its regions. What it knows of regions stays when they are
// listed again.
func TestList(t *testing.T) {
	simulate(t, [][]byte{rowKey(2, 0, 40)}, func(w *world) {
		regions := w.onTwoServers()
		worker, _, _ := w.whole(func(c *Config) { c.Beside = regions[0].Server })
		leases := worker.cfg.Leases.Store
		worker.cfg.Leases.Store = unheard{leases}
		if err := worker.list(w.Context()); !errors.Is(err, errUnheard) || !worker.listed.IsZero() {
			t.Errorf("got %v, listed %v, want the error", err, worker.listed)
		}
		worker.cfg.Leases.Store = leases
		if err := worker.list(w.Context()); err != nil || len(worker.regions) != 2 {
			t.Fatalf("%d regions, %v, want the own one and that of a server without a worker", len(worker.regions), err)
		}
		before := worker.regions[1]
		time.Sleep(listEvery)
		if err := worker.list(w.Context()); err != nil || worker.regions[1] != before {
			t.Errorf("%v; what was known of a region is lost", err)
		}

		w.fake.SplitRegion("tsdb", rowKey(2, 2, 5))
		time.Sleep(listEvery)
		if err := worker.list(w.Context()); err != nil || len(worker.regions) != 3 ||
			!bytes.Equal(worker.regions[1].Stop, worker.regions[2].Start) {
			t.Errorf("%d regions, %v, want three, one after the other", len(worker.regions), err)
		}
		none := New(Config{Leases: &lease.Keeper{}})
		if err := none.share(w.Context()); err != nil || len(none.regions) != 0 {
			t.Errorf("of no regions: %v", err)
		}
		synctest.Wait()
	})
}

// late is a store that takes a second to change a lease.
type late struct{ lease.Cells }

func (s late) CompareAndPut(ctx context.Context, table string, cell store.CellKey, old, value []byte) (bool, error) {
	time.Sleep(time.Second)
	return s.Cells.CompareAndPut(ctx, table, cell, old, value)
}

// At its end a worker gives the lease of its region server back.
func TestRun_releases(t *testing.T) {
	simulate(t, nil, func(w *world) {
		worker, _, l := w.whole(func(c *Config) { c.Beside = "s:1" })
		if err := l.Release(w.Context()); err != nil {
			t.Fatal(err)
		}
		worker.cfg.Leases.Store = late{w.st}
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		worker.Run(ctx)
		other := &lease.Keeper{Store: w.st, Table: "state", Holder: "other"}
		status, err := other.Statuses(w.Context(), []string{serverLease("tsdb", "s:1")})
		if err != nil || status[0].Held {
			t.Errorf("%+v, %v, want it free", status, err)
		}
	})
}
