//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"downpour/integration/compare"
	"downpour/integration/e2e"
)

// OpenTSDB, against which everything else is compared, starts on every layout, stores points and
// answers a query about them.
func TestServers_putAndQuery(t *testing.T) {
	t.Parallel()
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			ctx := within(t, 2*time.Minute)
			tables := createTables(t)
			began := time.Now()
			tsd := l.openTSDB(t, tables)
			t.Logf("OpenTSDB: up after %.1f s", time.Since(began).Seconds())
			points := []e2e.Point{
				{Metric: "sys.a", Timestamp: dataStart, Value: []byte("1"), Tags: map[string]string{"host": "a"}},
				{Metric: "sys.a", Timestamp: dataStart + 60, Value: []byte("2"), Tags: map[string]string{"host": "a"}},
				{
					Metric:    "sys.a",
					Timestamp: dataStart + 60,
					Value:     []byte("1.5"),
					Tags:      map[string]string{"host": "b"},
				},
			}
			if err := e2e.Put(ctx, tsd.URL, points); err != nil {
				t.Fatal(err)
			}
			a := must[e2e.Answer](t)(e2e.Get(ctx, fmt.Sprintf("%s/api/query?start=%d&end=%d&m=sum:sys.a%%7Bhost=a%%7D",
				tsd.URL, dataStart, dataStart+600)))
			want := `[{"metric":"sys.a","tags":{"host":"a"},"aggregateTags":[],"dps":{"1356998400":1,"1356998460":2}}]`
			r, err := compare.Comparer{}.Answers(compare.Answer{Status: 200, Body: []byte(want)},
				compare.Answer{Status: a.Status, Body: a.Body})
			if err != nil || !r.Equal() {
				t.Errorf("error %v, %v", err, r)
			}
			cells := must[[]e2e.Cell](t)(hbase(t).Admin.Scan(ctx, tables.Data))
			// With appends both points of host a are in one cell.
			wantCells := map[bool]int{false: 3, true: 2}[l.appends || l.compacted]
			if !l.compacted && len(cells) != wantCells {
				t.Errorf("%d cells, want %d: %x", len(cells), wantCells, cells)
			}
			if l.compacted {
				awaitCompaction(t, tsd, tables, "sys.a")
			}
		})
	}
}

// Regions of a table are split, moved, flushed, compacted and merged as requested, and keep all
// cells.
func TestServers_regions(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	h := hbase(t)
	tables := createTables(t, []byte{0x80})
	for i := range 16 {
		cell := e2e.Cell{Row: []byte{byte(i * 16), 1}, Family: "t", Qualifier: []byte{0, 0}, Value: []byte{byte(i)}}
		if err := h.Admin.Put(ctx, tables.Data, cell); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Admin.Split(ctx, tables.Data, []byte{0x40}); err != nil {
		t.Fatal(err)
	}
	regions := must[[]e2e.Region](t)(h.Admin.Regions(ctx, tables.Data))
	if len(regions) != 3 || !bytes.Equal(regions[1].Start, []byte{0x40}) ||
		!bytes.Equal(regions[1].Stop, []byte{0x80}) {
		t.Fatalf("regions %+v, want 3 cut at 40 and 80", regions)
	}
	target := h.RegionServerAddr(0)
	if regions[1].Server == target {
		target = h.RegionServerAddr(1)
	}
	for _, step := range []error{
		h.Admin.Move(ctx, tables.Data, regions[1].EncodedName, target),
		h.Admin.Flush(ctx, tables.Data),
		h.Admin.Compact(ctx, tables.Data),
		h.Admin.Merge(ctx, tables.Data, regions[0].EncodedName, regions[1].EncodedName),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	regions = must[[]e2e.Region](t)(h.Admin.Regions(ctx, tables.Data))
	cells := must[[]e2e.Cell](t)(h.Admin.Scan(ctx, tables.Data))
	if len(regions) != 2 || len(cells) != 16 {
		t.Errorf("%d regions and %d cells, want 2 and 16", len(regions), len(cells))
	}
}

// The death of a region server is noticed, its regions are served again, also by a master that starts
// in the meantime, and it can come back. A paused one goes on when it is resumed. The test has a cluster of its own.
func TestServers_killAndPause(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	// Not shorter: a server that gets no processor time for longer than its session gives up.
	h := must[*e2e.HBase](t)(e2e.StartHBase(ctx, e2e.HBaseOptions{SessionTimeout: 10 * time.Second}))
	closeAtEnd(t, h)
	if err := h.Admin.CreateTable(ctx, "t", "NONE", []string{"t"}, []byte{0x80}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []byte{0x01, 0x81} {
		if err := h.Admin.Put(ctx, "t", e2e.Cell{Row: []byte{row}, Family: "t", Value: []byte{1}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Admin.Flush(ctx, "t"); err != nil { // unsynced edits of a killed server may be lost on local files
		t.Fatal(err)
	}
	if err := h.PauseRegionServer(0); err != nil {
		t.Fatal(err)
	}
	if err := h.ResumeRegionServer(0); err != nil {
		t.Fatal(err)
	}
	h.KillRegionServer(1)
	began := time.Now()
	if err := h.WaitReady(ctx, 1); err != nil {
		t.Fatal(err)
	}
	t.Logf("regions of the killed server: served after %.1f s", time.Since(began).Seconds())
	h.KillMaster() // one that starts waits for no server that is down
	if err := h.StartMaster(ctx); err != nil {
		t.Fatal(err)
	}
	if err := h.WaitReady(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := h.StartRegionServer(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := h.WaitReady(ctx, 2); err != nil {
		t.Fatal(err)
	}
	if cells := must[[]e2e.Cell](t)(h.Admin.Scan(ctx, "t")); len(cells) != 2 {
		t.Errorf("%d cells after the kill, want 2", len(cells))
	}
}

// awaitCompaction reads the metrics through a TSD, which compacts what it reads, until no row has
// several cells. Its compaction queue alone may leave out a row: it misses a point that is stored
// while the row is compacted.
func awaitCompaction(t *testing.T, tsd *e2e.OpenTSDB, tables e2e.Tables, metrics ...string) {
	t.Helper()
	err := e2e.Until(within(t, time.Minute), 200*time.Millisecond, func(ctx context.Context) error {
		for _, metric := range metrics {
			if _, err := e2e.Get(ctx, fmt.Sprintf("%s/api/query?start=%d&end=%d&m=sum:%s",
				tsd.URL, dataStart-7200, dataStart+7200, metric)); err != nil {
				return err
			}
		}
		cells, err := hbase(t).Admin.Scan(ctx, tables.Data)
		if err != nil {
			return err
		}
		rows := map[string]int{}
		for _, c := range cells {
			if rows[string(c.Row)]++; rows[string(c.Row)] > 1 {
				return fmt.Errorf("row %x has more than one cell; %d cells in all", c.Row, len(cells))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
