//go:build integration

package integration

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/extra/tools/fsck/damage"
	"downpour/integration/compare"
	"downpour/integration/e2e"
	"downpour/pushdown/store"
	storehbase "downpour/pushdown/store/hbase"
)

// fsckStart is the base time of the first damaged row.
const fsckStart = 1356998400

// After the gateway's fsck has repaired rows with random damage, OpenTSDB's fsck finds no error. No
// good point is lost, and both servers answer alike. Where more orphans are drawn than fsck deletes
// unasked, it repairs all else and says so; then it is told that they may go.
func TestFsck_realFindsNothing(t *testing.T) {
	t.Parallel()
	for _, l := range []layout{{name: "plain"}, {name: "salted", saltWidth: 1, saltBuckets: 4}} {
		t.Run(l.name, func(t *testing.T) {
			ctx := within(t, 4*time.Minute)
			tables := createTables(t)
			tsd := l.openTSDB(t, tables)
			rows := l.damaged(ctx, t, tables, tsd.URL)

			if err := realFsck(ctx, tsd, 0); err == nil {
				t.Error("the real fsck finds no error in damaged rows, want some")
			}
			run := func(want int, says string, args ...string) {
				t.Helper()
				status, out, err := e2e.Run(ctx, "./gateway/cmd/gateway", e2e.ProgramOptions{
					Env:  l.env(t, tables),
					Dir:  t.TempDir(),
					Args: append([]string{"fsck", "--full-scan"}, args...),
				})
				if err != nil || status != want || !strings.Contains(out, says) {
					t.Errorf("fsck %q: status %d, want %d and %q, %v:\n%s",
						args, status, want, says, err, lastLines(out, 40))
				}
			}
			run(1, " errors found")
			orphans, ofSeries := orphansOf(rows)
			t.Logf("%d of %d rows are orphans", orphans, ofSeries)
			if orphans*10 > ofSeries {
				run(1, fmt.Sprintf("no orphan is deleted: %d of %d rows", orphans, ofSeries), "--fix-all")
				run(0, fmt.Sprintf("Total Errors Fixed: %d\n", orphans), "--fix-all",
					"--yes-delete-orphans", strconv.Itoa(orphans))
			} else {
				run(0, fmt.Sprintf("Orphaned UID Rows Deleted: %d\n", orphans), "--fix-all")
			}
			run(0, "Total Errors: 0\n")
			if err := realFsck(ctx, tsd, whole(rows)); err != nil {
				t.Error(err)
			}

			ours := l.gateway(t, tables, nil)
			for _, m := range []string{"fsck.a", "fsck.b"} {
				path := fmt.Sprintf("/api/query?start=%d&end=%d&ms&m=none:%s",
					fsckStart, fsckStart+len(rows)*encoding.RowSeconds, m)
				got := ask(ctx, t, ours.URL, question{path: path})
				report, _, err := compare.WithSalted(
					func() compare.Answer { return ask(ctx, t, tsd.URL, question{path: path}) }, got,
				)
				if err != nil || !report.Equal() || got.Status != 200 {
					t.Errorf("%s: status %d, %v, %v", path, got.Status, err, report)
				}
				checkGood(t, rows, m, got.Body)
			}
		})
	}
}

// realFsck runs OpenTSDB's fsck, which must find no error in so many rows or more. A cell
// that it cannot read ends it without an error, but with a line in its log. Each of its
// workers leaves its last row out of the count if all points there are appended
// (net.opentsdb.tools.Fsck.FsckWorker.run).
func realFsck(ctx context.Context, tsd *e2e.OpenTSDB, rows int) error {
	out, err := tsd.Tool(ctx, "Fsck", "--full-scan")
	if err != nil || strings.Contains(string(out), " ERROR ") || !strings.Contains(string(out), "Total Errors: 0\n") {
		return fmt.Errorf("the real fsck finds errors: %v\n%s", err, lastLines(string(out), 60))
	}
	workers, err := logged(out, `Spooling up \[(\d+)\] worker threads`)
	if err != nil {
		return err
	}
	checked, err := logged(out, `Rows Processed: (\d+)`)
	if err != nil {
		return err
	}

	if checked < rows-workers {
		return fmt.Errorf("the real fsck has checked %d rows by %d workers, want %d\n%s",
			checked, workers, rows, lastLines(string(out), 60))
	}
	return nil
}

// logged returns the number that a pattern's group finds in the output of a tool.
func logged(out []byte, pattern string) (int, error) {
	m := regexp.MustCompile(pattern).FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("no %q in the output of the real fsck:\n%s", pattern, lastLines(string(out), 60))
	}
	return strconv.Atoi(string(m[1]))
}

// whole counts the rows that must still have points after the repair.
func whole(rows []damage.Row) (n int) {
	for _, r := range rows {
		if !r.Orphan && !r.BadKey && len(r.Good) > 0 {
			n++
		}
	}
	return n
}

// orphansOf counts the rows that are orphans, and all whose key is one of a series.
func orphansOf(rows []damage.Row) (orphans, ofSeries int) {
	for _, r := range rows {
		if !r.BadKey {
			ofSeries++
		}
		if r.Orphan {
			orphans++
		}
	}
	return orphans, ofSeries
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// fsckMetrics are the UIDs of the metrics of damaged rows, which are assigned in this order
// to empty tables.
var fsckMetrics = map[string]encoding.UID{"fsck.a": {0, 0, 1}, "fsck.b": {0, 0, 2}}

// damaged writes rows with random damage. Their cells keep the timestamps that they were drawn
// with.
func (l layout) damaged(ctx context.Context, t *testing.T, tables e2e.Tables, url string) []damage.Row {
	t.Helper()
	a := must[e2e.Answer](t)(e2e.Get(ctx, url+"/api/uid/assign?metric=fsck.a,fsck.b&tagk=host&tagv=web01,web02"))
	if want := `"fsck.a":"000001"`; a.Status != 200 || !strings.Contains(string(a.Body), want) {
		t.Fatalf("assign: %d %s, want %s", a.Status, a.Body, want)
	}
	s := l.schema()
	tags := func(v byte) []byte {
		return s.AppendTags(nil, []encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, 0, v}}})
	}
	rows := damage.Draw(seedtest.Of(t), 400, damage.Config{
		Schema: s, First: fsckStart, BadKeys: true,
		Series: []damage.Series{
			{Metric: fsckMetrics["fsck.a"], Tags: tags(1)},
			{Metric: fsckMetrics["fsck.b"], Tags: tags(2)},
		},
		Orphans: []damage.Series{{Metric: fsckMetrics["fsck.a"], Tags: tags(99)}},
	})

	st := must[*storehbase.Store](t)(
		storehbase.Open(must[storehbase.Config](t)(storehbase.ParseAddress(hbase(t).Quorum()))),
	)
	defer st.Close()
	var ms []store.Mutation
	for _, r := range rows {
		for _, c := range r.Cells {
			ms = append(ms, store.Mutation{
				Kind:      store.Put,
				Row:       r.Key,
				Family:    encoding.FamilyData,
				Qualifier: c.Qualifier,
				Value:     c.Value,
				Timestamp: c.Timestamp,
			})
		}
	}
	if err := st.Apply(ctx, tables.Data, ms); err != nil {
		t.Fatal(err)
	}
	return rows
}

// checkGood checks that an answer has all good points of a metric's rows.
func checkGood(t *testing.T, rows []damage.Row, metric string, body []byte) {
	t.Helper()
	var results []struct{ DPS map[string]json.Number }
	if err := json.Unmarshal(body, &results); err != nil || len(results) == 0 {
		t.Errorf("%s: no results: %v, %.300s", metric, err, body)
		return
	}
	answered := map[string]json.Number{}
	for _, r := range results {
		for at, v := range r.DPS {
			answered[at] = v
		}
	}

	good, lost := 0, 0
	for i, r := range rows {
		if r.Orphan || r.BadKey || !strings.Contains(hex.EncodeToString(r.Key),
			hex.EncodeToString(fsckMetrics[metric])+fmt.Sprintf("%08x", fsckStart+i*encoding.RowSeconds)) {
			continue
		}
		for _, p := range r.Good {
			good++
			at := strconv.FormatInt(int64(fsckStart+i*encoding.RowSeconds)*1000+int64(p.OffsetMS), 10)
			if got, ok := answered[at]; !ok || !sameNumber(got, p.Value) {
				if lost++; lost < 5 {
					t.Errorf("%s: row %x (%q): the point at %s is %q, want %v",
						metric, r.Key, r.Damage, at, got, p.Value)
				}
			}
		}
	}
	if good < 100 {
		t.Errorf("%s: %d good points were drawn, want at least 100", metric, good)
	}
	t.Logf("%s: %d good points, %d lost", metric, good, lost)
}

// sameNumber compares as doubles: of a row that has floats too, OpenTSDB answers integers as
// floats.
func sameNumber(got json.Number, want encoding.Value) bool {
	w := want.Double()
	if !want.Float {
		w = float64(want.Int())
	}
	f, err := got.Float64()
	return err == nil && f == w
}
