//go:build integration

package integration

import (
	stdcmp "cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/integration/compare"
	"downpour/integration/conformance"
	"downpour/integration/e2e"
)

// Both servers write into the same rows of the same tables, and both must then
// give the same answer to every question: what was put here is read there, and
// what was put there is read here.
func TestExchange_sameAnswers(t *testing.T) {
	t.Parallel()
	for _, l := range short("salted", "compacted") {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			ctx := within(t, 5*time.Minute)
			tables := createTables(t)
			tsd := l.openTSDB(t, tables)
			ours := l.gateway(t, tables, nil)
			there, here := dealt(dataset(7))
			put(ctx, t, tsd.URL, introduce())
			put(ctx, t, tsd.URL, there)
			if l.compacted {
				awaitCompaction(t, tsd, tables, metrics...)
			}
			put(ctx, t, ours.URL, here)
			askBoth(ctx, t, tsd.URL, ours.URL, questions())
		})
	}
}

// The gateway's answers stay the same after a region of the table is split and one is moved.
func TestExchange_afterSplitAndMove(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Minute)
	l := layouts[0]
	tables := createTables(t)
	tsd := l.openTSDB(t, tables)
	ours := l.gateway(t, tables, nil)
	put(ctx, t, ours.URL, introduce())
	put(ctx, t, ours.URL, dataset(8))
	asked := []question{{name: "before", body: fmt.Sprintf(
		`{"start":%d,"end":%d,"queries":[{"metric":"load.int","aggregator":"sum"},`+
			`{"metric":"load.float","aggregator":"sum","downsample":"5m-avg"}]}`, dataStart, dataStart+7200)}}
	askBoth(ctx, t, tsd.URL, ours.URL, asked)

	admin := hbase(t).Admin
	rows := must[[]e2e.Cell](t)(admin.Scan(ctx, tables.Data))
	inside := rows[len(rows)/3].Row
	if err := admin.Split(ctx, tables.Data, inside); err != nil {
		t.Fatal(err)
	}
	region := must[[]e2e.Region](t)(admin.Regions(ctx, tables.Data))[1]
	for i := range hbase(t).Len() {
		if target := hbase(t).RegionServerAddr(i); target != region.Server {
			if err := admin.Move(ctx, tables.Data, region.EncodedName, target); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	asked[0].name = "after"
	askBoth(ctx, t, tsd.URL, ours.URL, asked)
}

// dealt divides the points into two halves by turns, so that nearly every row has points of both.
func dealt(points []e2e.Point) (there, here []e2e.Point) {
	for i, p := range points {
		if i%2 == 0 {
			there = append(there, p)
		} else {
			here = append(here, p)
		}
	}
	return there, here
}

func put(ctx context.Context, t *testing.T, url string, points []e2e.Point) {
	t.Helper()
	if err := e2e.Put(ctx, url, points); err != nil {
		t.Fatal(err)
	}
}

// putOneByOne puts each point by itself, so that UIDs are assigned in the order of the points.
func putOneByOne(ctx context.Context, t *testing.T, url string, points []e2e.Point) {
	t.Helper()
	for _, p := range points {
		put(ctx, t, url, []e2e.Point{p})
	}
}

// differing lists the differences between both servers' answers that are intended, with the
// reasons. There are none now.
var differing = []compare.Permit{}

func askBoth(ctx context.Context, t *testing.T, theirs, ours string, all []question) {
	t.Helper()
	comparer := compare.Comparer{Permits: append(slices.Clone(compare.Standard), differing...)}
	if err := e2e.LoadNames(ctx, theirs); err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		want, got := ask(ctx, t, theirs, q), ask(ctx, t, ours, q)
		r, err := comparer.Answers(want, got)
		if err != nil || !r.Equal() {
			t.Errorf("%s: error %v, %v\n%s%s", q.name, err, r, q.path, q.body)
		}
	}
}

func ask(ctx context.Context, t *testing.T, url string, q question) compare.Answer {
	t.Helper()
	var a e2e.Answer
	var err error
	if q.body == "" {
		a, err = e2e.Get(ctx, url+q.path)
	} else {
		a, err = e2e.Post(ctx, url+stdcmp.Or(q.path, "/api/query"), q.body)
	}
	if err != nil {
		t.Fatal(err)
	}
	return compare.Answer{Status: a.Status, Body: a.Body}
}

// The same points, put into two empty sets of tables by a gateway and by OpenTSDB, make the same
// cells, byte for byte: names, counters and data.
func TestExchange_sameCells(t *testing.T) {
	t.Parallel()
	for _, l := range short("plain", "wide") {
		if l.compacted {
			continue // which rows are compacted depends on the TSD's clock
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			ctx := within(t, 5*time.Minute)
			theirTables, ourTables := createTables(t), createTables(t)
			tsd := l.openTSDB(t, theirTables)
			ours := l.gateway(t, ourTables, nil)
			for _, url := range []string{tsd.URL, ours.URL} {
				putOneByOne(ctx, t, url, introduce())
				put(ctx, t, url, dataset(9))
			}
			var made [2][]string
			for i, pair := range [][2]string{{theirTables.UID, ourTables.UID}, {theirTables.Data, ourTables.Data}} {
				made[i] = cellLines(must[[]e2e.Cell](t)(hbase(t).Admin.Scan(ctx, pair[0])))
				mine := must[[]e2e.Cell](t)(hbase(t).Admin.Scan(ctx, pair[1]))
				if d := cmp.Diff(made[i], cellLines(mine)); d != "" {
					t.Errorf("%s: -OpenTSDB +ours\n%.4000s", pair[0], d)
				}
			}
			l.recordCells(t, made[0], made[1])
		})
	}
}

// cellLines are cells as text.
func cellLines(cells []e2e.Cell) []string {
	lines := make([]string, len(cells))
	for i, c := range cells {
		lines[i] = conformance.CellLine(c.Row, c.Family, c.Qualifier, c.Value)
	}
	return lines
}

// -create-tables makes the same tables as OpenTSDB's script, with a region of the data table for
// each salt bucket, and our own, whose family is as that of points.
func TestExchange_createTables(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	salted := layouts[1]
	theirs := createTables(t)
	ours := e2e.TablesWithPrefix(theirs.Data + "-made")
	state := ours.Data + "-state"
	env := salted.env(t, ours)
	env["DOWNPOUR_TABLE_STATE"] = state
	status, out, err := e2e.Run(ctx, gatewayProgram, e2e.ProgramOptions{
		Env:  env,
		Args: []string{"-create-tables"},
		Dir:  t.TempDir(),
	})
	if err != nil || status != 0 {
		t.Fatalf("exit status %d, %v\n%s", status, err, out)
	}
	admin := hbase(t).Admin
	for _, pair := range [][2]string{
		{theirs.Data, ours.Data},
		{theirs.UID, ours.UID},
		{theirs.Meta, ours.Meta},
		{theirs.Tree, ours.Tree},
	} {
		want := must[[]string](t)(admin.Describe(ctx, pair[0]))
		got := must[[]string](t)(admin.Describe(ctx, pair[1]))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: -script +ours\n%s", pair[1], d)
		}
	}
	var want []string // the lines begin with the family
	for _, line := range must[[]string](t)(admin.Describe(ctx, ours.Data)) {
		want = append(want, "s"+strings.TrimPrefix(line, "t"))
	}
	if d := cmp.Diff(want, must[[]string](t)(admin.Describe(ctx, state))); d != "" {
		t.Errorf("our own table: -want +got\n%s", d)
	}
	var starts []string
	for _, r := range must[[]e2e.Region](t)(admin.Regions(ctx, ours.Data)) {
		starts = append(starts, fmt.Sprintf("%x", r.Start))
	}
	if d := cmp.Diff([]string{"", "01", "02", "03"}, starts); d != "" {
		t.Errorf("regions of 4 salt buckets: -want +got\n%s", d)
	}
}
