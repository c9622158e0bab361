package gateway_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"downpour/gateway/gatewaytest"
	"downpour/pushdown/compaction"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

// A point of a row that a job has compacted is written again with another value: without fix_duplicates
// queries of the row are refused, as after OpenTSDB's compaction; with it the newest value counts, also
// once the row is compacted again.
func TestCompacted_writtenAgain(t *testing.T) {
	const midnight = 1356998400
	for _, fix := range []bool{false, true} {
		cluster := hbasefake.For(t, hbasefake.Options{})
		cluster.CreateTable("tsdb", []string{"t"})
		cluster.CreateTable("tsdb-uid", []string{"id", "name"})
		cluster.KeepVersions("tsdb")
		// A job leaves cells alone until they are old. What is written in the millisecond of a cell that it has
		// deleted would be deleted with it.
		var clock atomic.Int64
		clock.Store(time.Now().UnixMilli())
		cluster.SetClock(func() int64 { return clock.Add(1) })
		cfg, st := gatewaytest.HBase(t, cluster.Address())
		cfg.FixDuplicates, cfg.PutCells = fix, "single"
		b := serve(t, cfg, st)
		compact := func(want string) {
			t.Helper()
			var sum compaction.Counts
			job := compaction.Job{
				Store:         st,
				Table:         "tsdb",
				Schema:        cfg.Schema(),
				FixDuplicates: fix,
				Now:           func() time.Time { return time.Now().Add(time.Second) },
				Reached:       func(c compaction.Counts, _ []byte) { sum.Add(&c) },
			}
			if err := job.Run(t.Context(), store.KeyRange{}, nil); err != nil {
				t.Fatal(err)
			}
			if got := sum.String(); !strings.Contains(got, want) {
				t.Errorf("fix_duplicates %v: got %q, want %q in it", fix, got, want)
			}
		}
		q := fmt.Sprintf("/api/query?start=%d&end=%d&arrays=true&m=%s",
			midnight, midnight+3599, url.QueryEscape("none:m"))

		b.Put(fmt.Sprintf("m %d 1 host=a", midnight), fmt.Sprintf("m %d 2 host=a", midnight+60))
		compact("1 rows: 1 compacted")
		b.Put(fmt.Sprintf("m %d 9 host=a", midnight))
		a := b.Get(q)
		if !fix {
			if a.Status != http.StatusBadRequest {
				t.Errorf("without fix_duplicates: got %d %s, want 400", a.Status, a.Body)
			}
			compact("1 left: duplicates that differ")
			continue
		}
		for _, when := range []string{"written again", "compacted again"} {
			if a := b.Get(q); a.Status != http.StatusOK ||
				!strings.Contains(a.Body, fmt.Sprintf("[[%d,9],[%d,2]]", midnight, midnight+60)) {
				t.Errorf("%s: got %d %s, want 9 and 2", when, a.Status, a.Body)
			}
			if when == "written again" {
				compact("1 rows: 1 compacted")
			}
		}
	}
}
