package retention_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"downpour/gateway/admin/retention"
	"downpour/gateway/metadata/tables/tablestest"
	"downpour/pushdown/store"
)

// crowded is a store that cannot give place back while its disk is full.
type crowded struct {
	tablestest.Store
	full           atomic.Bool
	deletes, tries atomic.Int64
	scans          atomic.Int64
	reclaimed      atomic.Int64
}

func (c *crowded) DeleteRows(ctx context.Context, table string, ranges []store.KeyRange) error {
	c.deletes.Add(1)
	return c.Store.(store.RangeDeleter).DeleteRows(ctx, table, ranges)
}

func (c *crowded) Reclaim(_ context.Context, table string, ranges []store.KeyRange) error {
	c.tries.Add(1)
	if c.full.Load() {
		return fmt.Errorf("%w, says the test", store.ErrFull)
	}
	c.reclaimed.Add(int64(len(ranges)))
	return nil
}

func (c *crowded) Scan(ctx context.Context, scan store.Scan) (store.Scanner, error) {
	c.scans.Add(1)
	return c.Store.Scan(ctx, scan)
}

func (c *crowded) DiskBytes(ctx context.Context, table string, ranges []store.KeyRange) (int64, error) {
	return c.Store.(store.RangeDeleter).DiskBytes(ctx, table, ranges)
}

// When only the place of deleted rows cannot be given back, that alone is tried again, of both
// tables, until it works; rows that are past meanwhile go as ever.
func TestWorker_place(t *testing.T) {
	for _, byHand := range []bool{false, true} {
		working(t, ". 2d rollups=2d", func(w *world, log *text, start func() func()) {
			t := w.T // of the simulated time
			st := &crowded{Store: w.store}
			st.full.Store(true)
			w.job.Store = st
			first := int64(now-2*86_400) / hour * hour // wholly past at the next full hour
			for i := range 10 {
				w.put("tsdb", 2, now/hour*hour, i)
			}
			w.put("tsdb", 0, first-hour, 1)
			w.put("tsdb", 0, first, 1)

			stop := func() {}
			if !byHand {
				stop = start()
			} else {
				worker := &retention.Worker{Job: w.job, Turns: retention.NewLocal()}
				report, err := worker.RunNow(t.Context(), 0, func(string) {})
				if err == nil || report.Deleted != 1 || !strings.Contains(err.Error(), "the place of deleted rows on the disk: no room") {
					t.Errorf("by hand: %+v, %v", report, err)
				}
				if n := st.tries.Load(); n != 2 {
					t.Errorf("by hand, %d tables are tried, want both", n)
				}
				return
			}
			defer stop()
			time.Sleep(time.Minute)
			scans := st.scans.Load()
			time.Sleep(39 * time.Minute)
			if n := st.scans.Load(); scans == 0 || n > scans {
				t.Errorf("the run has made %d scans, and the tries to reclaim %d, want none", scans, n-scans)
			}
			if d, n, r := st.deletes.Load(), len(w.keys("tsdb")), st.tries.Load(); d != 1 || n != 11 || r < 10 {
				t.Errorf("while the disk is full: %d deletions, %d rows, %d tries to reclaim, want 1, 11 and 10 or more\n%s", d, n, r, log.take())
			}
			time.Sleep(80 * time.Minute)
			if d, n := st.deletes.Load(), len(w.keys("tsdb")); d != 2 || n != 10 {
				t.Errorf("two hours later: %d deletions, %d rows, want 2 and 10", d, n)
			}

			st.full.Store(false)
			time.Sleep(6 * time.Minute)
			if st.reclaimed.Load() == 0 {
				t.Error("with room again, nothing is reclaimed")
			}
			log.take()
			tries := st.tries.Load()
			time.Sleep(30 * time.Minute)
			if said, n := log.take(), st.tries.Load(); said != "" || n > tries+2 {
				t.Errorf("afterwards %d tries, the log says %q", n-tries, said)
			}
		})
	}
}
