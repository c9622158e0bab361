//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"downpour/integration/compare"
	"downpour/integration/e2e"
)

// With a pushdown server next to each region server a gateway gives the same answers as one that
// computes them by itself, and explain names the servers.
func TestPushdown_sameAnswersAsInProcess(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Minute)
	l := layouts[1]
	tables := createTables(t, []byte{1}, []byte{2}, []byte{3})
	alone := l.gateway(t, tables, nil)
	put(ctx, t, alone.URL, introduce())
	put(ctx, t, alone.URL, dataset(11))

	servers := pushdownServers(ctx, t, l, tables)
	pushed := l.gateway(t, tables, map[string]string{"DOWNPOUR_PUSHDOWN": strings.Join(servers, ",")})
	for _, q := range questions() {
		want, got := ask(ctx, t, alone.URL, q), ask(ctx, t, pushed.URL, q)
		if r, err := (compare.Comparer{}).Answers(want, got); err != nil || !r.Equal() {
			t.Errorf("%s: error %v, %v", q.name, err, r)
		}
	}

	explained := ask(ctx, t, pushed.URL, question{path: fmt.Sprintf(
		"/api/query?start=%d&end=%d&explain=true&m=sum:5m-avg:load.int", dataStart, dataStart+7200)})
	var plan struct {
		Parts []struct {
			Server, Mode string
			Range        [2]string
		}
	}
	if err := json.Unmarshal(explained.Body, &plan); err != nil || len(plan.Parts) == 0 {
		t.Fatalf("explain: %v: %s", err, explained.Body)
	}
	for _, part := range plan.Parts {
		if !strings.Contains(strings.Join(servers, " "), part.Server) {
			t.Errorf("part %v is computed by %q, want one of %q", part.Range, part.Server, servers)
		}
	}
}

// pushdownServers starts a server next to each region server.
func pushdownServers(ctx context.Context, t *testing.T, l layout, tables e2e.Tables) (servers []string) {
	t.Helper()
	for i := range hbase(t).Len() {
		env := l.env(t, tables)
		delete(env, "DOWNPOUR_AUTO_METRICS") // a pushdown server puts nothing
		env["DOWNPOUR_BESIDE"] = hbase(t).RegionServerAddr(i)
		p, err := e2e.StartPushdown(ctx, e2e.ProgramOptions{Env: env})
		if err != nil {
			t.Fatal(err)
		}
		closeAtEnd(t, p)
		servers = append(servers, p.Addr)
	}
	return servers
}

// For a query of one of 1,000 hosts the region servers select its rows and ship hardly any others,
// by their own count.
func TestPushdown_rowsSelectedInRegionServers(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Minute)
	tables := createTables(t)
	ours := layouts[0].gateway(t, tables, nil)
	var points []e2e.Point
	for h := range 1000 {
		points = append(points, e2e.Point{
			Metric: "one.of.many", Timestamp: dataStart, Value: json.RawMessage("1"),
			Tags: map[string]string{"host": fmt.Sprintf("h%04d", h)},
		})
	}
	put(ctx, t, ours.URL, points)
	before, _, err := hbase(t).Admin.ReadRequests(ctx, tables.Data)
	if err != nil {
		t.Fatal(err)
	}
	a := ask(ctx, t, ours.URL, question{
		path: fmt.Sprintf("/api/query?start=%d&end=%d&m=sum:one.of.many%%7Bhost=h0500%%7D", dataStart, dataStart+3600),
	})
	want := `[{"metric":"one.of.many","tags":{"host":"h0500"},"aggregateTags":[],"dps":{"1356998400":1}}]`
	if r, err := (compare.Comparer{}).Answers(compare.Answer{Status: 200, Body: []byte(want)}, a); err != nil ||
		!r.Equal() {
		t.Errorf("error %v, %v", err, r)
	}
	after, _, err := hbase(t).Admin.ReadRequests(ctx, tables.Data)
	if err != nil {
		t.Fatal(err)
	}
	if shipped := after - before; shipped < 1 || shipped >= 10 {
		t.Errorf("%d rows shipped for 1 host of 1,000, want 1 to 9", shipped)
	}
}
