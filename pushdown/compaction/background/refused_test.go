package background

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

// refusals are lasting refusals of writes by region servers: their memory is full, the region is
// not open, the table is over its quota, the file system is full.
var refusals = []string{
	"org.apache.hadoop.hbase.RegionTooBusyException",
	"org.apache.hadoop.hbase.NotServingRegionException",
	"org.apache.hadoop.hbase.quotas.SpaceLimitingException",
	"java.io.IOException",
}

// points counts the points that readers get.
func (w *world) points() (n int) {
	w.Helper()
	var d encoding.RowDecoder
	for row, err := range store.Rows(w.Context(), w.st, store.Scan{Table: "tsdb", Family: encoding.FamilyData}) {
		if err != nil {
			w.Fatal(err)
		}
		d.Reset(0)
		for _, c := range row.Cells {
			if err := d.Add(c.Qualifier, c.Value, c.Timestamp); err != nil {
				w.Fatal(err)
			}
		}
		var points encoding.Points
		if err := d.Finish(&points); err != nil {
			w.Fatal(err)
		}
		n += points.Len()
	}
	return n
}

// after lets simulated time pass, and all that is due then be done.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestWorker_noWrites: for two hours the servers refuse writes, from the middle of the work on. The
// log says it, all points are there, also where a merged cell was put and its parts were not
// deleted. A worker that is ended in that time has saved its progress, and another one continues
// from there.
//
//fault:compaction-takes-what-failed-for-done failed == nil => true
func TestWorker_noWrites(t *testing.T) {
	for i, class := range refusals {
		for _, first := range []int{0, 5} {
			simulate(t, nil, func(w *world) {
				w.refuseWrites(&hbasefake.RefusedWrites{Exception: class, First: first, Cells: 2, Single: i%2 == 1})
			})
		}
	}
}

func (w *world) refuseWrites(r *hbasefake.RefusedWrites) {
	what := fmt.Sprintf("%s, leases %v, from call %d on", r.Exception, r.Single, r.First)
	w.fill(3, 10, 4)
	all := w.points()
	w.fake.SetHook(r.Fault)
	brief, end := context.WithCancel(w.Context())
	a, _ := w.worker(brief, func(c *Config) { c.Rate = 20 })
	w.after(time.Hour)
	warned := w.log.Lines("level=WARN")
	if len(warned) == 0 || !strings.Contains(strings.Join(warned, ""), r.Exception) || len(warned) > 20 {
		w.Errorf("%s: %d warnings, %.500q; want few that name it", what, len(warned), warned)
	}
	if n := w.points(); n != all {
		w.Errorf("%s: %d points, want %d", what, n, all)
	}
	if n := metricsOf(w, a)["downpour_compaction_failures_total"]; n == 0 {
		w.Errorf("%s: no failures are counted", what)
	}
	end()
	done := looked(a)

	ctx, cancel := context.WithCancel(w.Context())
	b, _ := w.worker(ctx, func(c *Config) { c.Rate = 20 })
	w.after(time.Hour)
	if n := w.points(); n != all || looked(b) != 0 {
		w.Errorf("%s: %d points, want %d; another worker has looked at %d rows", what, n, all, looked(b))
	}
	r.Lift()
	w.after(time.Hour)
	cancel()
	w.all.Wait()
	w.wantCompacted()
	if r.First > 0 && done == 0 {
		w.Errorf("%s: nothing was done before writes were refused", what)
	}
	// If the state could be saved, only refused rows are read again.
	if n := looked(a, b); n < int64(w.rows) || !r.Single && n > int64(w.rows)+20 {
		w.Errorf("%s: %d rows were looked at, %d of them before, want each of %d once", what, n, done, w.rows)
	}
}
