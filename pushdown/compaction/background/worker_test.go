package background

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"downpour/encoding"
	"downpour/pushdown/compaction"
	"downpour/pushdown/lease"
	"downpour/pushdown/process/logtest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/open/opentest"
)

const margin = 10 * time.Minute

// world is a table on a fake HBase in simulated time, and workers on it.
type world struct {
	*testing.T
	fake *hbasefake.Cluster
	st   *hbase.Store
	rows int
	all  sync.WaitGroup
	log  logtest.Log
}

// simulate runs a test with a table of regions that begin at the splits.
func simulate(t *testing.T, splits [][]byte, f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		fake := opentest.Fake(t, hbasefake.Options{})
		st := opentest.HBaseWith(t, fake, hbase.Config{})
		fake.CreateTable("tsdb", []string{encoding.FamilyData}, splits...)
		fake.KeepVersions("tsdb")
		// All regions are due for the hour that ends with the bubble's first moment.
		time.Sleep(45 * time.Minute)
		f(&world{T: t, fake: fake, st: st})
	})
}

// pass lets a time pass in the bubble.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// rowKey is the key of a series' row, hours before the bubble's first one.
func rowKey(metric, series byte, ago int) []byte {
	base := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix() - int64(ago)*hour
	return encoding.DefaultSchema().AppendRowKey(nil, encoding.UID{0, 0, metric}, uint32(base),
		[]byte{0, 0, 1, 0, 0, series})
}

// put writes a point to a row, at a time in the row's hour.
func (w *world) put(key []byte, second byte) {
	k, err := encoding.DefaultSchema().ParseRowKey(key)
	if err != nil {
		w.Fatal(err)
	}
	q := encoding.AppendQualifier(nil, encoding.Qualifier{OffsetMS: int32(second) * 1000, Width: 1})
	w.fake.PutAt("tsdb", string(key), encoding.FamilyData, string(q), string(second),
		int64(k.BaseTime)*1000+3_000_123+int64(second))
}

// fill writes rows of two cells.
func (w *world) fill(metrics, series, hours int) {
	for metric := range metrics {
		for s := range series {
			for ago := 1; ago <= hours; ago++ {
				key := rowKey(byte(metric+1), byte(s), ago)
				w.put(key, 1)
				w.put(key, 2)
				w.rows++
			}
		}
	}
}

// worker starts a worker. Its calls to the store can be blocked.
func (w *world) worker(ctx context.Context, change func(*Config)) (*Worker, *hanging) {
	h := &hanging{Store: w.st}
	cfg := Config{
		Store:  h,
		Table:  "tsdb",
		Schema: encoding.DefaultSchema(),
		Margin: margin,
		Rate:   10_000,
		Log:    w.log.Logger(),
		Leases: &lease.Keeper{Store: h, Table: "state", Holder: lease.Holder()},
	}
	if change != nil {
		change(&cfg)
	}
	worker := New(cfg)
	w.all.Go(func() { worker.Run(ctx) })
	return worker, h
}

// hanging is a store that can stop to answer, as for a process that is dead.
type hanging struct {
	*hbase.Store
	mu   sync.Mutex
	dead bool
	// before is called before rows are read.
	before func()
	calls  *calls // nil to count none
}

func (h *hanging) Features() store.Features {
	f := h.Store.Features()
	f.Versioned = h
	return f
}

func (h *hanging) pass(ctx context.Context) error {
	h.mu.Lock()
	dead := h.dead
	h.mu.Unlock()
	if dead {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (h *hanging) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dead = true
}

func (h *hanging) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	if err := h.pass(ctx); err != nil {
		return nil, err
	}
	h.calls.add(readsOfLeases)
	return h.Store.Get(ctx, table, family, keys)
}

func (h *hanging) CompareAndPut(ctx context.Context, table string, cell store.CellKey,
	expected, value []byte) (bool, error) {
	if err := h.pass(ctx); err != nil {
		return false, err
	}
	h.calls.add(writesOfLeases)
	return h.Store.CompareAndPut(ctx, table, cell, expected, value)
}

func (h *hanging) Versions(ctx context.Context, table, family string, keys store.KeyRange,
	rows int) ([]store.VersionRow, []byte, error) {
	if h.before != nil {
		h.before()
	}
	if err := h.pass(ctx); err != nil {
		return nil, nil, err
	}
	h.calls.add("pages of rows")
	return h.Store.Versions(ctx, table, family, keys, rows)
}

// cells returns the number of cells of the table's rows.
func (w *world) cells() (rows, cells int) {
	w.Helper()
	for row, err := range store.Rows(w.Context(), w.st, store.Scan{Table: "tsdb", Family: encoding.FamilyData}) {
		if err != nil {
			w.Fatal(err)
		}
		rows, cells = rows+1, cells+len(row.Cells)
	}
	return rows, cells
}

// wantCompacted checks that each row has one cell.
func (w *world) wantCompacted() {
	w.Helper()
	if rows, cells := w.cells(); rows != w.rows || cells != w.rows {
		w.Errorf("%d rows of %d cells, want %d with one each", rows, cells, w.rows)
	}
}

func looked(workers ...*Worker) (rows int64) {
	for _, w := range workers {
		rows += w.totals.Read().Rows
	}
	return rows
}

// TestWorker: all rows of all regions are compacted, newer hours first, each interval with a
// line in the log; then hours that are sealed while it runs, and points that come late.
func TestWorker(t *testing.T) {
	simulate(t, [][]byte{rowKey(2, 3, 8), rowKey(3, 0, 40)}, func(w *world) {
		w.fill(3, 5, 30)
		ctx, cancel := context.WithCancel(w.Context())
		worker, _ := w.worker(ctx, nil)
		time.Sleep(10 * time.Minute)
		w.wantCompacted()
		if n := looked(worker); n != int64(w.rows) {
			w.Errorf("%d rows were looked at, want each of %d once", n, w.rows)
		}
		intervals := w.log.Lines("rows compacted")
		for _, region := range []string{`region=""`, fmt.Sprintf("region=%x", rowKey(2, 3, 8)),
			fmt.Sprintf("region=%x", rowKey(3, 0, 40))} {
			var of []string
			for _, line := range intervals {
				if strings.Contains(line, region) {
					_, from, _ := strings.Cut(line, "from=")
					of = append(of, from[:len("2006-01-02T15:04Z")])
				}
			}
			if len(of) < 2 || !slices.IsSortedFunc(of, func(a, b string) int { return strings.Compare(b, a) }) {
				w.Errorf("%s: intervals from %q, want newer ones first", region, of)
			}
			if region == `region=""` && len(of) < 5 {
				w.Errorf("%s: intervals from %q of 30 hours with rows, want steps of six", region, of)
			}
		}

		// An hour of now, and a late point in an old one.
		w.put(rowKey(1, 0, 0), 1)
		w.put(rowKey(1, 0, 0), 2)
		w.put(rowKey(1, 0, 2), 3)
		w.rows++
		time.Sleep(2 * time.Hour)
		if rows, cells := w.cells(); rows != w.rows || cells != w.rows+1 {
			w.Errorf("%d rows of %d cells, want %d, and one more cell of a late point", rows, cells, w.rows)
		}
		w.put(rowKey(1, 1, 0), 1) // into an hour that was done while the worker runs
		w.put(rowKey(1, 1, 0), 2)
		w.rows++
		time.Sleep(26 * time.Hour)
		if rows, cells := w.cells(); rows != w.rows || cells != w.rows+1 {
			w.Errorf("a day later: %d rows of %d cells, want %d, and the late point of before", rows, cells, w.rows)
		}
		if lines := append(w.log.Lines("level=WARN"), w.log.Lines("no region")...); len(lines) > 0 {
			w.Errorf("warnings: %q", lines)
		}
		cancel()
		w.all.Wait()
		checkMetrics(w, worker)
	})
}

// metricsOf gathers a worker's metrics.
func metricsOf(w *world, worker *Worker) map[string]float64 {
	w.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(worker)
	families, err := registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			got[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			for _, label := range m.Label {
				got[label.GetValue()]++
			}
		}
	}
	return got
}

func checkMetrics(w *world, worker *Worker) {
	w.Helper()
	got := metricsOf(w, worker)
	if got["downpour_compaction_compacted_total"] != float64(w.rows) || got["downpour_compaction_rate"] != 10_000 ||
		got["downpour_compaction_left_total"] == 0 || got[compaction.None.String()] != 0 ||
		got["downpour_compaction_intervals_total"] < 12 {
		w.Errorf("metrics: %v", got)
	}
}

// TestWorker_two: each row is read by one of two workers, and where one stops, the other continues.
func TestWorker_two(t *testing.T) {
	simulate(t, [][]byte{rowKey(2, 0, 40)}, func(w *world) {
		w.fill(2, 40, 6)
		slow := func(c *Config) { c.Rate = 20 }
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		brief, stop := context.WithCancel(w.Context())
		a, _ := w.worker(brief, slow)
		b, _ := w.worker(ctx, slow)
		time.Sleep(30 * time.Second)
		stop()
		cut := looked(a)
		time.Sleep(60 * time.Minute)
		cancel()
		w.all.Wait()
		w.wantCompacted()
		// A page that was cut is read again.
		if n := looked(a, b); n < int64(w.rows) || n > int64(w.rows+10) {
			w.Errorf("%d rows were looked at, want each of %d once", n, w.rows)
		}
		if cut == 0 || looked(b) == 0 {
			w.Errorf("one worker has read %d rows, the other %d", cut, looked(b))
		}
	})
}

// TestWorker_killed: what a dead worker has begun is taken over within 60 s.
func TestWorker_killed(t *testing.T) {
	simulate(t, nil, func(w *world) {
		w.fill(1, 200, 4)
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		slow := func(c *Config) { c.Rate = 20 }
		dies, hung := w.worker(ctx, slow)
		time.Sleep(26 * time.Second) // in the middle of the third piece
		if hung.kill(); looked(dies) == 0 {
			w.Fatal("nothing was done before the worker died")
		}
		death := time.Now()
		var mu sync.Mutex
		var after time.Duration
		w.worker(ctx, func(c *Config) {
			slow(c)
			c.Store.(*hanging).before = func() {
				mu.Lock()
				defer mu.Unlock()
				if after == 0 {
					after = time.Since(death)
				}
			}
		})
		time.Sleep(90 * time.Second)
		mu.Lock()
		if after < 30*time.Second || after > time.Minute {
			w.Errorf("taken over after %v, want 60 s at most, and not from a living worker", after)
		}
		mu.Unlock()
		cancel()
		w.all.Wait()
	})
}

// onTwoServers returns the two regions of the table, which are on different servers.
func (w *world) onTwoServers() []store.Region {
	w.Helper()
	regions, err := w.st.Regions(w.Context(), "tsdb", nil, nil)
	if err != nil || len(regions) != 2 || regions[0].Server == regions[1].Server {
		w.Fatalf("regions %+v, %v, want two on different servers", regions, err)
	}
	return regions
}

// standIn takes the lease of a worker next to a region server, and does none of its work. release gives the lease back.
func (w *world) standIn(ctx context.Context, server string) (release func()) {
	w.Helper()
	if err := lease.CreateTable(ctx, w.st, "state"); err != nil {
		w.Fatal(err)
	}
	keeper := &lease.Keeper{Store: w.st, Table: "state", Holder: lease.Holder()}
	l, ok, err := keeper.Try(ctx, serverLease("tsdb", server))
	if !ok {
		w.Fatal(err)
	}
	return func() { l.Release(w.Context()) }
}

// TestWorker_ofServer: a worker takes the regions of its own region server, also once one has
// moved there; a region that was split is not read again.
func TestWorker_ofServer(t *testing.T) {
	simulate(t, [][]byte{rowKey(2, 0, 40)}, func(w *world) {
		w.fill(2, 5, 10)
		regions := w.onTwoServers()
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		defer w.standIn(ctx, regions[0].Server)()
		worker, _ := w.worker(ctx, func(c *Config) { c.Beside = regions[1].Server })
		time.Sleep(10 * time.Minute)
		if n := looked(worker); n != int64(w.rows/2) {
			w.Errorf("%d rows were looked at, want the %d of the own server", n, w.rows/2)
		}
		other := &lease.Keeper{Store: w.st, Table: "state", Holder: lease.Holder()}
		if _, ok, err := other.Try(ctx, serverLease("tsdb", regions[1].Server)); ok || err != nil {
			w.Errorf("the lease of a server with a worker can be taken: %v, %v", ok, err)
		}
		w.fake.SplitRegion("tsdb", rowKey(2, 2, 5))
		w.fake.MoveRegion("tsdb", rowKey(1, 0, 5))
		time.Sleep(10 * time.Minute)
		if n := looked(worker); n != int64(w.rows) {
			w.Errorf("%d rows were looked at, want each of %d once", n, w.rows)
		}
		cancel()
		w.all.Wait()
		w.wantCompacted()
	})
}

// TestWorker_ofKilledServer: when the worker of another region server dies, that server's regions
// are taken over within 60 s.
func TestWorker_ofKilledServer(t *testing.T) {
	simulate(t, [][]byte{rowKey(2, 0, 40)}, func(w *world) {
		w.fill(2, 5, 10)
		regions := w.onTwoServers()
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		// If two workers begin in the same moment, each may not see the other yet, and take its
		// regions.
		release := w.standIn(ctx, regions[0].Server)
		_, dies := w.worker(ctx, func(c *Config) { c.Beside, c.Rate = regions[1].Server, 0.01 })
		synctest.Wait()
		release()
		lives, _ := w.worker(ctx, func(c *Config) { c.Beside = regions[0].Server })
		time.Sleep(2 * time.Minute)
		if n := looked(lives); n != int64(w.rows/2) {
			w.Errorf("%d rows were looked at, want the %d of the own server", n, w.rows/2)
		}
		dies.kill()
		time.Sleep(time.Minute)
		if n := looked(lives); n <= int64(w.rows/2) {
			w.Errorf(
				"a minute after the other has died %d rows were looked at, want more than the %d of the own server", n,
				w.rows/2)
		}
		cancel()
		w.all.Wait()
	})
}

// TestWorker_refused: a table that keeps deleted cells is not compacted, which is logged once, and once
// more if it keeps them again.
func TestWorker_refused(t *testing.T) {
	simulate(t, nil, func(w *world) {
		w.fill(1, 2, 2)
		w.fake.Alter("tsdb", encoding.FamilyData, "KEEP_DELETED_CELLS", "TRUE")
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		worker, _ := w.worker(ctx, nil)
		time.Sleep(10 * time.Minute)
		if lines := w.log.Lines("KEEP_DELETED_CELLS"); len(lines) != 1 || looked(worker) != 0 {
			w.Errorf("%d rows were looked at, the log has %q", looked(worker), lines)
		}
		w.fake.Alter("tsdb", encoding.FamilyData, "KEEP_DELETED_CELLS", "FALSE")
		time.Sleep(5 * time.Minute)
		w.fake.Alter("tsdb", encoding.FamilyData, "KEEP_DELETED_CELLS", "TRUE")
		time.Sleep(5 * time.Minute)
		if lines := w.log.Lines("KEEP_DELETED_CELLS"); len(lines) != 2 {
			w.Errorf("after it keeps deleted cells again the log has %q, want two lines", lines)
		}
		cancel()
		w.all.Wait()
		w.wantCompacted()
		if n := metricsOf(w, worker)["downpour_compaction_failures_total"]; n < 10 {
			w.Errorf("%v failures are counted, want one for each attempt", n)
		}
	})
}
