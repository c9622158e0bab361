package background

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

// cells are those of a table.
func (w *world) cells(table string) (out []string) {
	w.Helper()
	for row, err := range store.Rows(w.Context(), w.st, store.Scan{Table: table, Family: encoding.FamilyData}) {
		if err != nil {
			w.Fatal(err)
		}
		for _, c := range row.Cells {
			out = append(out, string(row.Key)+" "+string(c.Qualifier)+" "+string(c.Value))
		}
	}
	return out
}

// wantWhole checks that all rollups are there that queries may read, of those that there are in the end.
func (w *world) wantWhole(want []string) {
	w.Helper()
	there := w.cells("r1h")
	for metric := 1; metric <= w.metrics; metric++ {
		for _, r := range w.proven(metric) {
			for _, c := range want {
				at := int64(binary.BigEndian.Uint32([]byte(c[3:7]))) +
					int64(binary.BigEndian.Uint16([]byte(c[len(rowKey(1, 0))+2:]))>>4)*hour
				if c[:3] == string(uid(metric)) && at >= r.From && at < r.To && !slices.Contains(there, c) {
					w.Errorf("metric %d may be read from %+v, and the cell %x is not there", metric, r, c)
				}
			}
		}
	}
}

// after lets simulated time pass, and all that is due then be done.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestWorker_noWrites: for two hours the servers refuse writes, from the middle of the work on. The log
// says it, no query reads an incomplete rollup, raw rows do not change, and a worker that begins in
// that time makes the same rollups as an undisturbed one.
func TestWorker_noWrites(t *testing.T) {
	var want []string
	simulateHBase(t, func(w *world) {
		w.fill(3, 10)
		ctx, cancel := context.WithCancel(w.Context())
		w.worker(ctx, nil)
		w.after(time.Hour)
		cancel()
		w.all.Wait()
		want = w.cells("r1h")
	})
	for _, r := range []*hbasefake.RefusedWrites{
		{Exception: "org.apache.hadoop.hbase.RegionTooBusyException"},
		{Exception: "org.apache.hadoop.hbase.NotServingRegionException", First: 3},
		{Exception: "org.apache.hadoop.hbase.quotas.SpaceLimitingException", Single: true},
		{Exception: "org.apache.hadoop.hbase.RegionTooBusyException", First: 3, Single: true},
	} {
		simulateHBase(t, func(w *world) {
			what := fmt.Sprintf("%s, leases %v, from call %d on", r.Exception, r.Single, r.First)
			w.fill(3, 10)
			raw := w.cells("tsdb")
			w.fake.SetHook(r.Fault)
			brief, end := context.WithCancel(w.Context())
			w.worker(brief, nil)
			w.after(time.Hour)
			end()
			if warned := w.log.Lines("level=WARN"); len(warned) == 0 ||
				!strings.Contains(strings.Join(warned, ""), r.Exception) || len(warned) > 20 {
				t.Errorf("%s: %d warnings, %.500q; want few that name it", what, len(warned), warned)
			}
			w.wantWhole(want)

			ctx, cancel := context.WithCancel(w.Context())
			w.worker(ctx, nil)
			w.after(time.Hour)
			w.wantWhole(want)
			r.Lift()
			w.after(
				50 * time.Hour) // older days are looked at once a day, and what nothing has proven after another one
			cancel()
			w.all.Wait()
			if d := cmp.Diff(want, w.cells("r1h")); d != "" {
				t.Errorf("%s: -undisturbed +after refusals\n%s", what, d)
			}
			if d := cmp.Diff(raw, w.cells("tsdb")); d != "" {
				t.Errorf("%s: raw rows: %s", what, d)
			}
			w.wantProven(what, born-10*day, born)
		})
	}
}
