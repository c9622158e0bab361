//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/integration/compare"
	"downpour/integration/e2e"
)

const (
	compactStart  = 1_600_000_000 / encoding.RowSeconds * encoding.RowSeconds
	compactHours  = 3
	compactSeries = 8
	compactStep   = 60 // s between the points that are there from the beginning
)

// TestCompaction_beside: gateway compact runs again and again, and is killed, while a gateway and
// a TSD write points over and late, another TSD compacts rows as it reads them, memory is
// flushed and files are compacted. No answer ever misses a point or has one that was not
// written, and a third TSD, which resolves no duplicates, always answers; in the end each row has one cell, and
// OpenTSDB answers as the gateway does.
func TestCompaction_beside(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Minute)
	l := layout{name: "salted", saltWidth: 1, saltBuckets: 4}
	tables := createTables(t)
	more := map[string]string{"tsd.storage.fix_duplicates": "true"}
	writing, err := e2e.StartOpenTSDB(ctx, l.tsdOptions(t, tables, more))
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, writing)
	l.compacted = true
	compacting, err := e2e.StartOpenTSDB(ctx, l.tsdOptions(t, tables, map[string]string{
		"tsd.storage.fix_duplicates":                 "true",
		"tsd.storage.compaction.flush_interval":      "1",
		"tsd.storage.compaction.min_flush_threshold": "1",
	}))
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, compacting)
	// OpenTSDB's default. Where a compaction is between its put and its deletion, points are there twice.
	strict, err := e2e.StartOpenTSDB(ctx,
		l.tsdOptions(t, tables, map[string]string{"tsd.storage.enable_compaction": "false"}))
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, strict)
	ours := l.gateway(t, tables, map[string]string{"DOWNPOUR_FIX_DUPLICATES": "true", "DOWNPOUR_PUT_CELLS": "single"})

	b := &besides{T: t, l: l, tables: tables, gateway: ours.URL, points: map[string]*versioned{}}
	// Rows of compact.over are written over; a TSD that compacts them may lose that. Those of
	// compact.late get late points only, and the TSD compacts them.
	for _, metric := range []string{"compact.over", "compact.late"} {
		b.put(ctx, ours.URL, b.first(metric))
	}

	stop, cancel := context.WithCancel(ctx)
	var writers sync.WaitGroup
	for i, url := range []string{ours.URL, writing.URL} {
		writers.Go(func() { b.write(ctx, stop, url, byte(i), rand.New(rand.NewPCG(uint64(i), 7))) })
	}
	writers.Go(func() {
		for stop.Err() == nil {
			must[e2e.Answer](t)(e2e.Get(ctx, compacting.URL+b.query("compact.late")))
		}
	})
	writers.Go(func() {
		for stop.Err() == nil {
			if a := must[e2e.Answer](t)(e2e.Get(ctx, strict.URL+b.query("compact.late"))); a.Status != 200 {
				b.Errorf("a TSD without fix_duplicates: status %d: %.500s", a.Status, a.Body)
			}
		}
	})
	writers.Go(func() {
		for stop.Err() == nil {
			b.check(ctx, "compact.over")
			b.check(ctx, "compact.late")
		}
	})

	b.jobs(ctx)
	cancel()
	writers.Wait()
	b.settle(ctx, writing.URL)
}

// versioned is a point whose values come one after another, each one more than the last.
type versioned struct{ begun, acknowledged int64 }

// besides is what a gateway, TSDs and jobs do at once.
type besides struct {
	*testing.T
	l       layout
	tables  e2e.Tables
	gateway string

	mu     sync.Mutex
	points map[string]*versioned // by metric, host and time
	checks int
}

func pointKey(metric, host string, at int64) string { return fmt.Sprintf("%s %s %d", metric, host, at) }

// first returns the points of a metric that are there from the beginning.
func (b *besides) first(metric string) (points []e2e.Point) {
	for series := range compactSeries {
		for at := int64(compactStart); at < compactStart+compactHours*encoding.RowSeconds; at += compactStep {
			points = append(points, e2e.Point{
				Metric:    metric,
				Timestamp: at,
				Tags:      map[string]string{"host": fmt.Sprintf("h%d", series)},
			})
		}
	}
	return points
}

// put puts points, whose values are set to the next ones.
func (b *besides) put(ctx context.Context, url string, points []e2e.Point) {
	b.mu.Lock()
	for i := range points {
		key := pointKey(points[i].Metric, points[i].Tags["host"], points[i].Timestamp)
		if b.points[key] == nil {
			b.points[key] = &versioned{}
		}
		b.points[key].begun++
		points[i].Value = json.RawMessage(strconv.FormatInt(b.points[key].begun, 10))
	}
	b.mu.Unlock()
	if err := e2e.Put(ctx, url, points); err != nil {
		b.Errorf("put: %v", err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range points {
		b.points[pointKey(p.Metric, p.Tags["host"], p.Timestamp)].acknowledged++
	}
}

// write writes points of its own half of the series until stop ends.
func (b *besides) write(ctx, stop context.Context, url string, half byte, rng *rand.Rand) {
	for stop.Err() == nil {
		host := map[string]string{"host": fmt.Sprintf("h%d", 2*rng.IntN(compactSeries/2)+int(half))}
		at := int64(compactStart + rng.IntN(compactHours*encoding.RowSeconds))
		over := at - at%compactStep
		points := []e2e.Point{{Metric: "compact.over", Timestamp: over, Tags: host}}
		// A time that no point of this metric has.
		if at%compactStep != 0 {
			points = append(points, e2e.Point{Metric: "compact.over", Timestamp: at, Tags: host})
			if late := (e2e.Point{Metric: "compact.late", Timestamp: at, Tags: host}); b.new(late) {
				points = append(points, late)
			}
		}
		b.put(ctx, url, points)
	}
}

func (b *besides) new(p e2e.Point) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.points[pointKey(p.Metric, p.Tags["host"], p.Timestamp)] == nil
}

func (b *besides) query(metric string) string {
	return fmt.Sprintf("/api/query?start=%d&end=%d&m=none:%s",
		compactStart, compactStart+compactHours*encoding.RowSeconds-1, metric)
}

// snapshot returns the points of a metric as they are now.
func (b *besides) snapshot(metric string) map[string]versioned {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := map[string]versioned{}
	for key, p := range b.points {
		if strings.HasPrefix(key, metric+" ") {
			now[key] = *p
		}
	}
	return now
}

// check asks the gateway for a metric. Each point has a value that was acknowledged before the
// query began, or one that was begun before it has ended.
func (b *besides) check(ctx context.Context, metric string) {
	before := b.snapshot(metric)
	a, err := e2e.Get(ctx, b.gateway+b.query(metric))
	after := b.snapshot(metric)
	if err != nil || a.Status != 200 {
		b.Errorf("query: %v, status %d, %.500s", err, a.Status, a.Body)
		return
	}
	var results []struct {
		Tags map[string]string
		DPS  map[string]json.Number
	}
	if err := json.Unmarshal(a.Body, &results); err != nil {
		b.Errorf("query: %v", err)
		return
	}

	answered := map[string]int64{}
	for _, r := range results {
		for at, v := range r.DPS {
			seconds, _ := strconv.ParseInt(at, 10, 64)
			n, err := v.Int64()
			if err != nil {
				b.Errorf("value %s at %s", v, at)
			}
			answered[pointKey(metric, r.Tags["host"], seconds)] = n
		}
	}
	wrong := 0
	for key := range after {
		got, ok := answered[key]
		if least := before[key].acknowledged; got < least || got > after[key].begun || !ok && least > 0 {
			if wrong++; wrong < 5 {
				b.Errorf("%s is %d (%v), want %d to %d", key, got, ok, least, after[key].begun)
			}
		}
	}
	for key := range maps.Keys(answered) {
		if _, ok := after[key]; !ok {
			b.Errorf("%s: nobody has written it", key)
		}
	}
	b.mu.Lock()
	b.checks++
	b.mu.Unlock()
}

// compact runs the command, with its leases in a table.
func (b *besides) compact(ctx context.Context, margin time.Duration, state string) (string, error) {
	env := b.l.env(b.T, b.tables)
	env["DOWNPOUR_FIX_DUPLICATES"], env["DOWNPOUR_TABLE_STATE"] = "true", state
	status, out, err := e2e.Run(ctx, "./gateway/cmd/gateway", e2e.ProgramOptions{
		Env: env,
		Dir: b.TempDir(),
		Args: []string{
			"compact", "-margin", margin.String(), strconv.Itoa(compactStart),
			strconv.Itoa(compactStart + compactHours*encoding.RowSeconds - 1), "compact.over", "compact.late"},
	})
	if err == nil && status != 0 {
		err = fmt.Errorf("status %d: %s", status, out)
	}
	return strings.TrimSpace(out), err
}

// jobs runs jobs, two at a time, as well as flushes and compactions of files. Some of the jobs are killed.
// Leases are no part of what keeps points, so here each of the two has leases of its own, and
// nobody waits for the killed ones.
func (b *besides) jobs(ctx context.Context) {
	rounds := 6
	if *soak {
		rounds = 100
	}
	admin := hbase(b.T).Admin
	for round := range rounds {
		state := fmt.Sprintf("%s-killed%d", b.tables.Data, round)
		if err := admin.CreateTable(ctx, state, "NONE", []string{"s"}); err != nil {
			b.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			// Killed after a while; with luck that is in the middle.
			brief, cancel := context.WithTimeout(ctx, time.Duration(100+rand.IntN(1000))*time.Millisecond)
			defer cancel()
			b.compact(brief, time.Second, state)
		})
		both.Go(func() {
			out, err := b.compact(ctx, time.Second, "downpour-state")
			b.Logf("round %d: %s", round, out)
			if err != nil {
				b.Error(err)
			}
		})
		both.Wait()
		if err := admin.DropTable(ctx, state); err != nil {
			b.Error(err)
		}
		if err := admin.Flush(ctx, b.tables.Data); err != nil {
			b.Error(err)
		}
		if round%2 == 1 {
			if err := admin.Compact(ctx, b.tables.Data); err != nil {
				b.Error(err)
			}
		}
	}
}

// settle compacts what is left once nobody writes, and compares.
func (b *besides) settle(ctx context.Context, tsd string) {
	out, err := b.compact(ctx, 0, "downpour-state")
	b.Logf("in the end: %s", out)
	if err != nil {
		b.Fatal(err)
	}
	for _, step := range []string{"compacted", "after a major compaction"} {
		for _, metric := range []string{"compact.over", "compact.late"} {
			b.check(ctx, metric)
			q := question{path: b.query(metric)}
			got := ask(ctx, b.T, b.gateway, q)
			report, _, err := compare.WithSalted(func() compare.Answer { return ask(ctx, b.T, tsd, q) }, got)
			if err != nil || !report.Equal() || got.Status != 200 {
				b.Errorf("%s: %s: status %d, %v, %v", step, metric, got.Status, err, report)
			}
		}
		if err := hbase(b.T).Admin.Flush(ctx, b.tables.Data); err != nil {
			b.Fatal(err)
		}
		if err := hbase(b.T).Admin.Compact(ctx, b.tables.Data); err != nil {
			b.Fatal(err)
		}
	}

	cells := must[[]e2e.Cell](b.T)(hbase(b.T).Admin.Scan(ctx, b.tables.Data))
	b.Logf("%d checks; %d cells", b.checks, len(cells))
	if want := 2 * compactSeries * compactHours; len(cells) != want {
		b.Errorf("%d cells, want %d: one of each row", len(cells), want)
	}
	if b.checks < 10 {
		b.Errorf("%d checks", b.checks)
	}
}
