package gateway_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"downpour/pushdown/compaction"
	"downpour/pushdown/store"
)

// A point of a row that a job has compacted is written again with another value: without fix_duplicates
// queries of the row are refused, as after OpenTSDB's compaction; with it the newest value counts, also
// once the row is compacted again.
func TestCompacted_writtenAgain(t *testing.T) {
	for _, fix := range []bool{false, true} {
		cluster := madeCluster(t)
		cluster.KeepVersions("tsdb")
		// A job leaves cells alone until they are old. What is written in the millisecond of a cell that it has
		// deleted would be deleted with it.
		var clock atomic.Int64
		clock.Store(time.Now().UnixMilli())
		cluster.SetClock(func() int64 { return clock.Add(1) })
		cfg, st := hbaseConfig(t, cluster.Address())
		cfg.FixDuplicates, cfg.PutCells = fix, "single"
		b := &bench{T: t, cfg: cfg, g: start(t, cfg, st)}
		compact := func(want string) {
			t.Helper()
			var sum compaction.Counts
			job := compaction.Job{Store: st, Table: "tsdb", Schema: cfg.Schema(), FixDuplicates: fix, Now: func() time.Time { return time.Now().Add(time.Second) },
				Reached: func(c compaction.Counts, _ []byte) { sum.Add(&c) }}
			if err := job.Run(t.Context(), store.KeyRange{}, nil); err != nil {
				t.Fatal(err)
			}
			if got := sum.String(); !strings.Contains(got, want) {
				t.Errorf("fix_duplicates %v: got %q, want %q in it", fix, got, want)
			}
		}
		q := fmt.Sprintf("/api/query?start=%d&end=%d&arrays=true&m=%s", midnight, midnight+3599, url.QueryEscape("none:m"))

		b.put(fmt.Sprintf("m %d 1 host=a", midnight), fmt.Sprintf("m %d 2 host=a", midnight+60))
		compact("1 rows: 1 compacted")
		b.put(fmt.Sprintf("m %d 9 host=a", midnight))
		a := b.get(q)
		if !fix {
			if a.status != http.StatusBadRequest {
				t.Errorf("without fix_duplicates: got %d %s, want 400", a.status, a.body)
			}
			compact("1 left: duplicates that differ")
			continue
		}
		for _, when := range []string{"written again", "compacted again"} {
			if a := b.get(q); a.status != http.StatusOK || !strings.Contains(a.body, fmt.Sprintf("[[%d,9],[%d,2]]", midnight, midnight+60)) {
				t.Errorf("%s: got %d %s, want 9 and 2", when, a.status, a.body)
			}
			if when == "written again" {
				compact("1 rows: 1 compacted")
			}
		}
	}
}
