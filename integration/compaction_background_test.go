//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/integration/compare"
	"downpour/integration/e2e"
)

// TestCompaction_background: a pushdown server compacts rows in the background, and is killed
// in the middle. gateway compact waits for its lease, takes it over within a minute and ends
// with 0 when all is done; the answers are as before. Another server then has nothing to do but
// what was written since, and goes on from where the first one was.
func TestCompaction_background(t *testing.T) {
	t.Parallel()
	ctx := within(t, 6*time.Minute)
	l := layout{name: "plain"}
	tables := createTables(t)
	ours := l.gateway(t, tables, map[string]string{"DOWNPOUR_PUT_CELLS": "single"})
	const series, hours, step = 60, 4, 600
	end := time.Now().Unix()/encoding.RowSeconds*encoding.RowSeconds - encoding.RowSeconds
	start := end - hours*encoding.RowSeconds
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for s := range series {
		host := map[string]string{"host": fmt.Sprint("h", s)}
		var points []e2e.Point
		for at := start; at < end; at += step {
			value := json.RawMessage(strconv.Itoa(rng.IntN(100)))
			points = append(points, e2e.Point{Metric: "calm", Timestamp: at, Value: value, Tags: host})
		}
		put(ctx, t, ours.URL, points)
	}
	q := question{path: fmt.Sprintf("/api/query?start=%d&end=%d&m=none:calm", start, end-1)}
	before := ask(ctx, t, ours.URL, q)

	// The points were written just now.
	if !pause(ctx, 3*time.Second) {
		t.Fatal(ctx.Err())
	}
	env := l.env(t, tables)
	delete(env, "DOWNPOUR_AUTO_METRICS")
	env["DOWNPOUR_COMPACT"], env["DOWNPOUR_COMPACT_MARGIN"] = "10", "1s"
	server := must[*e2e.Program](t)(e2e.StartPushdown(ctx, e2e.ProgramOptions{Env: env}))
	closeAtEnd(t, server)
	awaitCompacted(ctx, t, server, 20)
	server.Process.Kill()

	began := time.Now()
	args := []string{"compact", "-margin", "1s", strconv.FormatInt(start, 10), strconv.FormatInt(end-1, 10), "calm"}
	status, out, err := e2e.Run(ctx, "./gateway/cmd/gateway",
		e2e.ProgramOptions{Env: l.env(t, tables), Dir: t.TempDir(), Args: args})
	took := time.Since(began)
	t.Logf("%v: %s", took, out)
	if err != nil || status != 0 {
		t.Fatalf("status %d, %v", status, err)
	}
	m := regexp.MustCompile(fmt.Sprintf(`%d rows: (\d+) compacted`, series*hours)).FindStringSubmatch(out)
	if m == nil || m[1] == "0" || m[1] == strconv.Itoa(series*hours) {
		t.Errorf("the command has not gone on in the middle")
	}
	if strings.Contains(out, "waits for ") && took > time.Minute+30*time.Second {
		t.Errorf("it took %v, want the dead server's lease within a minute", took)
	}

	cells := must[[]e2e.Cell](t)(hbase(t).Admin.Scan(ctx, tables.Data))
	if len(cells) != series*hours {
		t.Errorf("%d cells, want %d: one of each row", len(cells), series*hours)
	}
	after := ask(ctx, t, ours.URL, q)
	if r, err := (compare.Comparer{}).Answers(before, after); err != nil || !r.Equal() {
		t.Errorf("the answer has changed: %v, %v", err, r)
	}
}

// awaitCompacted waits until a pushdown server has compacted so many rows.
func awaitCompacted(ctx context.Context, t *testing.T, server *e2e.Program, rows float64) {
	t.Helper()
	err := e2e.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		a, err := e2e.Get(ctx, "http://"+server.Addr+"/metrics")
		if err != nil {
			return err
		}
		m := regexp.MustCompile(`(?m)^downpour_compaction_compacted_total (\S+)$`).FindSubmatch(a.Body)
		if m == nil {
			return fmt.Errorf("no downpour_compaction_compacted_total in %.300s", a.Body)
		}
		if n, err := strconv.ParseFloat(string(m[1]), 64); err != nil || n < rows {
			return fmt.Errorf("%s rows are compacted, want %v", m[1], rows)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
