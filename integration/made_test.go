//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"downpour/integration/compare"
	"downpour/integration/differential"
	"downpour/integration/e2e"
)

// TestMadeRollups: gateway rollup makes rollups of points that a gateway and a TSD have put. A
// real OpenTSDB reads them as it reads raw rows, and so does the gateway, while nothing has
// changed; a late point of a TSD, an overwrite and its compaction end that, until they are made
// again.
func TestMadeRollups(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Minute)
	l := layout{name: "salted", saltWidth: 1, saltBuckets: 4}
	tables, rollups := rollupTables(ctx, t)
	tsd, err := e2e.StartOpenTSDB(ctx, l.tsdOptions(t, tables, map[string]string{
		"tsd.rollups.enable": "true", "tsd.rollups.config": rollups, "tsd.storage.fix_duplicates": "true"}))
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, tsd)
	env := map[string]string{
		"DOWNPOUR_ROLLUPS":        "auto:" + rollups,
		"DOWNPOUR_TABLE_STATE":    tables.Data + "-state",
		"DOWNPOUR_FIX_DUPLICATES": "true",
		"DOWNPOUR_ROLLUP_RATE":    "off",
	}
	m := &made{T: t, l: l, tables: tables, env: env, tsd: tsd.URL, ours: l.gateway(t, tables, env).URL}

	points := madePoints()
	for i, url := range []string{m.ours, m.tsd} {
		if err := e2e.Put(ctx, url, points[i*len(points)/2:(i+1)*len(points)/2]); err != nil {
			t.Fatal(err)
		}
	}

	m.want(ctx, "before", false)
	m.roll(ctx)
	m.want(ctx, "rolled up", true)
	m.asOpenTSDB(ctx)
	for _, change := range []struct {
		what string
		do   func() error
	}{
		{"a late point of a TSD", func() error { return m.put(ctx, m.tsd, madeStart+4*3600+17) }},
		{"an overwrite of a TSD", func() error { return m.put(ctx, m.tsd, madeStart+86400) }},
		{"a late point of a gateway", func() error { return m.put(ctx, m.ours, madeStart+86400+30) }},
		{"a flush", func() error { return hbase(t).Admin.Flush(ctx, tables.Data) }},
		{"a major compaction", func() error { return hbase(t).Admin.Compact(ctx, tables.Data) }},
	} {
		if err := change.do(); err != nil {
			t.Fatal(change.what, err)
		}
		m.want(ctx, change.what, false)
		m.roll(ctx)
		m.want(ctx, change.what+", rolled up again", true)
	}
	m.asOpenTSDB(ctx)
}

// TestMadeRollups_background: a gateway makes the rollups of what is there by itself; the command finds
// nothing left to make, and what they give is what raw rows give.
func TestMadeRollups_background(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Minute)
	l := layout{name: "salted", saltWidth: 1, saltBuckets: 4}
	tables, rollups := rollupTables(ctx, t)
	env := map[string]string{
		"DOWNPOUR_ROLLUPS":     "auto:" + rollups,
		"DOWNPOUR_TABLE_STATE": tables.Data + "-state",
		"DOWNPOUR_ROLLUP_RATE": "off",
	}
	m := &made{T: t, l: l, tables: tables, env: env, ours: l.gateway(t, tables, env).URL}
	if err := e2e.Put(ctx, m.ours, madePoints()); err != nil {
		t.Fatal(err)
	}
	if out := m.rollup(ctx, "-dry-run"); !strings.Contains(out, " 0 unchanged since") {
		t.Fatalf("before: %s", out)
	}

	with := maps.Clone(env)
	with["DOWNPOUR_ROLLUP_RATE"] = "1000000"
	l.gateway(t, tables, with)
	err := e2e.Until(ctx, time.Second, func(ctx context.Context) error {
		if out := m.rollup(ctx, "-dry-run"); !strings.Contains(out, "\n0 points in 0 rows read; 0 days rolled up, ") {
			return errors.New(out)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	m.roll(ctx)
	m.want(ctx, "made in the background", true)
}

const madeStart = 1_600_041_600 // a midnight

// rollupTables returns new tables with those of rollups, and the file that says which these are.
func rollupTables(ctx context.Context, t *testing.T) (tables e2e.Tables, file string) {
	t.Helper()
	tables = createTables(t)
	for _, table := range differential.RollupTables(tables.Data) {
		if err := hbase(t).Admin.CreateTable(ctx, table, "NONE", []string{"t"}); err != nil {
			t.Fatal(err)
		}
	}
	return tables, writeFile(t, "rollups.json", differential.RollupConfig(tables.Data))
}

// madePoints are points of five series in three days.
func madePoints() (points []e2e.Point) {
	for series := range 5 {
		for at := int64(madeStart); at < madeStart+3*86400; at += 600 {
			value := json.RawMessage(fmt.Sprint(at % 977))
			if series%2 == 1 {
				value = json.RawMessage(fmt.Sprintf("%d.5", at%613))
			}
			points = append(points, e2e.Point{
				Metric:    "made.cpu",
				Timestamp: at + int64(series),
				Value:     value,
				Tags:      map[string]string{"host": fmt.Sprintf("h%d", series)},
			})
		}
	}
	return points
}

// made is a gateway whose rollups make themselves, and a TSD next to it.
type made struct {
	*testing.T
	l         layout
	tables    e2e.Tables
	env       map[string]string
	tsd, ours string
}

func (m *made) put(ctx context.Context, url string, at int64) error {
	return e2e.Put(ctx, url, []e2e.Point{
		{Metric: "made.cpu", Timestamp: at, Value: json.RawMessage("5000"), Tags: map[string]string{"host": "h0"}},
	})
}

// roll runs the command.
func (m *made) roll(ctx context.Context) {
	m.Helper()
	m.Logf("%s", m.rollup(ctx))
}

// rollup runs the command with flags, and returns what it prints.
func (m *made) rollup(ctx context.Context, flags ...string) string {
	m.Helper()
	env := m.l.env(m.T, m.tables)
	for k, v := range m.env {
		env[k] = v
	}
	status, out, err := e2e.Run(ctx, "./gateway/cmd/gateway", e2e.ProgramOptions{
		Env: env,
		Dir: m.TempDir(),
		Args: append([]string{
			"rollup", fmt.Sprint(madeStart), fmt.Sprint(madeStart + 3*86400 - 1), "made.cpu"}, flags...),
	})
	if err != nil || status != 0 {
		m.Fatal(status, err, out)
	}
	return strings.TrimSpace(out)
}

// query returns a query of three days.
func madeQuery(sub string) string {
	return fmt.Sprintf("/api/query?start=%d&end=%d&show_tsuids=true&m=%s", madeStart, madeStart+3*86400-1, sub)
}

// want checks that the gateway's answers are those of raw rows, and whether rollups are read.
func (m *made) want(ctx context.Context, what string, rolled bool) {
	m.Helper()
	for _, sub := range []string{
		"sum:1h-sum%s:made.cpu", "max:1d-max%s:made.cpu%%7Bhost=*%%7D", "avg:rate:2h-min%s:made.cpu",
		"sum:1h-count-zero%s:made.cpu",
	} {
		q := madeQuery(fmt.Sprintf(sub, ""))
		got := must[e2e.Answer](m.T)(e2e.Get(ctx, m.ours+q))
		raw := must[e2e.Answer](m.T)(e2e.Get(ctx, m.ours+madeQuery(fmt.Sprintf(sub, ":rollup_raw"))))
		if got.Status != 200 || string(got.Body) != string(raw.Body) {
			m.Errorf("%s: %s: got %d %.300s, from raw rows %.300s", what, q, got.Status, got.Body, raw.Body)
		}
		explained := must[e2e.Answer](m.T)(e2e.Get(ctx, m.ours+q+"&explain=true"))
		if read := strings.Contains(string(explained.Body), `"rollups":"table `); read != rolled {
			m.Errorf("%s: %s: rollups are read: %v, want %v: %.600s", what, q, read, rolled, explained.Body)
		}
	}
}

// asOpenTSDB checks that OpenTSDB answers from the rollups as from raw rows.
func (m *made) asOpenTSDB(ctx context.Context) {
	m.Helper()
	for _, sub := range []string{
		"sum:1h-sum%s:made.cpu%%7Bhost=*%%7D", "max:1h-max%s:made.cpu%%7Bhost=*%%7D", "min:1d-min%s:made.cpu",
		"sum:10m-count%s:made.cpu%%7Bhost=h1%%7D",
	} {
		got := must[e2e.Answer](m.T)(e2e.Get(ctx, m.tsd+madeQuery(fmt.Sprintf(sub, ""))))
		raw := must[e2e.Answer](m.T)(e2e.Get(ctx, m.tsd+madeQuery(fmt.Sprintf(sub, ":rollup_raw"))))
		r, err := compare.Comparer{}.Answers(compare.Answer{Status: raw.Status, Body: raw.Body},
			compare.Answer{Status: got.Status, Body: got.Body})
		if err != nil || !r.Equal() || len(got.Body) < 100 {
			m.Errorf("OpenTSDB, %s: %v, %v: %.300s", sub, err, r, got.Body)
		}
	}
}
