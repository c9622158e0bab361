//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/integration/compare"
	"downpour/integration/e2e"
)

// Rows are past after retainAge; there are points in this many hours.
const (
	retainAge   = 3
	retainHours = 8
)

// retainedPoints are points at the begin and the end of each of the hours before now, of a metric whose
// rows go and of one whose rows stay.
func retainedPoints(now time.Time) (points []e2e.Point) {
	hour := now.Unix() / encoding.RowSeconds * encoding.RowSeconds
	for _, metric := range []string{"ret.goes", "ret.stays"} {
		for h := range int64(retainHours) {
			for series := range 5 {
				for _, second := range []int64{0, 1800, 3599} {
					at := hour - h*encoding.RowSeconds + second
					if at <= now.Unix() {
						points = append(points, e2e.Point{
							Metric:    metric,
							Timestamp: at,
							Value:     json.RawMessage(strconv.FormatInt(at%1000, 10)),
							Tags:      map[string]string{"host": fmt.Sprint("h", series)},
						})
					}
				}
			}
		}
	}
	return points
}

// retained is what is to be left of points after a run that began at one time and ended at another. ok is
// false if an hour has become past between.
func retained(points []e2e.Point, began, ended time.Time) (left map[string]int, ok bool) {
	cut := func(at time.Time) int64 {
		return at.Add(-retainAge*time.Hour).Unix() / encoding.RowSeconds * encoding.RowSeconds
	}
	left = map[string]int{}
	for _, p := range points {
		if p.Metric == "ret.stays" || p.Timestamp >= cut(ended) {
			left[fmt.Sprintf("%s %s %d", p.Metric, p.Tags["host"], p.Timestamp)]++
		}
	}
	return left, cut(began) == cut(ended)
}

// answeredPoints are the points that a server answers.
func answeredPoints(ctx context.Context, t *testing.T, url string, start int64) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, metric := range []string{"ret.goes", "ret.stays"} {
		a := must[e2e.Answer](t)(e2e.Get(ctx, url+retainedQuery(metric, start)))
		var results []struct {
			Tags map[string]string
			DPS  map[string]json.Number
		}
		if err := json.Unmarshal(a.Body, &results); err != nil || a.Status != 200 {
			t.Fatalf("%s: status %d, %v, %.300s", metric, a.Status, err, a.Body)
		}
		for _, r := range results {
			for at := range r.DPS {
				found[fmt.Sprintf("%s %s %s", metric, r.Tags["host"], at)]++
			}
		}
	}
	return found
}

func retainedQuery(metric string, start int64) string {
	return fmt.Sprintf("/api/query?start=%d&m=none:%s", start, metric)
}

var pastRows = regexp.MustCompile(`table \S+: (\d+) rows of`)

// retain runs plan and then run by the command until no hour has become past in the meantime, and returns
// what is to be left.
func retain(t *testing.T, points []e2e.Point, run func(args ...string) string) map[string]int {
	t.Helper()
	for range 3 {
		began := time.Now()
		plan := run("retention", "plan")
		rows := pastRows.FindStringSubmatch(plan)
		if rows == nil {
			t.Fatalf("the plan is\n%s", plan)
		}
		out := run("retention", "run", "-yes-delete", rows[1])
		t.Logf("%s%s", plan, out)
		if left, ok := retained(points, began, time.Now()); ok {
			if want := rows[1] + " rows were past, " + rows[1] + " deleted"; !strings.Contains(out, want) {
				t.Errorf("%s, want %s", out, want)
			}
			return left
		}
	}
	t.Fatal("an hour has ended in each of three runs")
	return nil
}

// TestRetention_hbase: rows that are past go from the tables of a TSD, from regions that were split in the
// meantime; the TSD answers what the gateway does, exactly the points that are to be left, before and
// after a major compaction.
func TestRetention_hbase(t *testing.T) {
	t.Parallel()
	ctx := within(t, 4*time.Minute)
	l := layout{name: "salted", saltWidth: 1, saltBuckets: 4}
	tables := createTables(t)
	tsd := l.openTSDB(t, tables)
	state := tables.Data + "-state"
	ours := l.gateway(t, tables, map[string]string{"DOWNPOUR_TABLE_STATE": state})
	now := time.Now()
	points := retainedPoints(now)
	for i, part := range slices.Collect(slices.Chunk(points, len(points)/2+1)) {
		if err := e2e.Put(ctx, []string{tsd.URL, ours.URL}[i%2], part); err != nil {
			t.Fatal(err)
		}
	}
	start := now.Add(-(retainHours + 1) * time.Hour).Unix()

	env := l.env(t, tables)
	maps.Copy(env, map[string]string{
		"DOWNPOUR_TABLE_STATE": state,
		"DOWNPOUR_RETENTION":   writeFile(t, "rules.txt", fmt.Sprintf("^ret\\.goes %dh\n", retainAge)),
	})
	split := make(chan error, 1)
	go func() {
		cells, err := hbase(t).Admin.Scan(ctx, tables.Data)
		if err == nil {
			err = hbase(t).Admin.Split(ctx, tables.Data, cells[len(cells)/3].Row)
		}
		split <- err
	}()
	left := retain(t, points, func(args ...string) string {
		status, out, err := e2e.Run(ctx, "./gateway/cmd/gateway", e2e.ProgramOptions{
			Env:  env,
			Dir:  t.TempDir(),
			Args: args,
		})
		if err != nil || status != 0 {
			t.Fatalf("%q: status %d, %v, %s", args, status, err, out)
		}
		return out
	})
	if err := <-split; err != nil {
		t.Fatal(err)
	}

	for _, step := range []string{"deleted", "after a major compaction"} {
		for name, url := range map[string]string{"OpenTSDB": tsd.URL, "the gateway": ours.URL} {
			if got := answeredPoints(ctx, t, url, start); !maps.Equal(got, left) {
				t.Errorf("%s: %s answers %d points, want %d", step, name, len(got), len(left))
			}
		}
		for _, metric := range []string{"ret.goes", "ret.stays"} {
			q := question{path: retainedQuery(metric, start)}
			report, _, err := compare.WithSalted(func() compare.Answer { return ask(ctx, t, tsd.URL, q) },
				ask(ctx, t, ours.URL, q))
			if err != nil || !report.Equal() {
				t.Errorf("%s: %s: %v, %v", step, metric, err, report)
			}
		}
		if err := hbase(t).Admin.Flush(ctx, tables.Data); err != nil {
			t.Fatal(err)
		}
		if err := hbase(t).Admin.Compact(ctx, tables.Data); err != nil {
			t.Fatal(err)
		}
	}
	if len(left) == len(points) || len(left) <= len(points)/2 {
		t.Errorf("%d points of %d are left", len(left), len(points))
	}
}

// TestRetention_embedded: the command has the gateway of an embedded store delete what is past; exactly the
// points that are to be left are answered, also after a restart.
func TestRetention_embedded(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	at := embeddedPlace(t)
	now := time.Now()
	points := retainedPoints(now)
	start := now.Add(-(retainHours + 1) * time.Hour).Unix()
	at.serve(ctx, t, func(url string) {
		if err := e2e.Put(ctx, url, points); err != nil {
			t.Fatal(err)
		}
		if all := answeredPoints(ctx, t, url, start); len(all) != len(points) {
			t.Fatalf("%d points, want %d", len(all), len(points))
		}
	})

	// Less than half of the rows are past, so the gateway deletes them by itself.
	at.env["DOWNPOUR_RETENTION"] = writeFile(t, "rules.txt", fmt.Sprintf("^ret\\.goes %dh\nother keep\n", retainAge))
	var left map[string]int
	at.serve(ctx, t, func(url string) {
		// What the gateway does by itself at its start, and what the command does, is the same.
		err := e2e.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
			began := time.Now()
			got := answeredPoints(ctx, t, url, start)
			want, ok := retained(points, began, time.Now())
			if !ok || !maps.Equal(got, want) {
				return fmt.Errorf("%d points, want %d", len(got), len(want))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		left = retain(t, points, func(args ...string) string { return at.tool(ctx, t, args...) })
		if got := answeredPoints(ctx, t, url, start); !maps.Equal(got, left) {
			t.Errorf("%d points, want %d", len(got), len(left))
		}
	})
	delete(at.env, "DOWNPOUR_RETENTION")
	at.serve(ctx, t, func(url string) {
		if got := answeredPoints(ctx, t, url, start); !maps.Equal(got, left) {
			t.Errorf("after a restart: %d points, want %d", len(got), len(left))
		}
	})
	t.Log(at.tool(ctx, t, "check"))
}
