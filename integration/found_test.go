//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"downpour/integration/e2e"
)

// foundSite are gateways and pushdown servers that find each other on an HBase with three region servers.
type foundSite struct {
	*testing.T
	gateway *e2e.Program
	token   string

	queries, refused atomic.Int64
}

const foundQuery = "/api/query?start=1356998400&end=1357171200&m=sum:m"

// query asks for the points. All must come.
func (s *foundSite) query(ctx context.Context) {
	s.queries.Add(1)
	a, err := e2e.Get(ctx, s.gateway.URL+foundQuery, "Authorization", "Bearer "+s.token)
	if ctx.Err() == nil && (err != nil || a.Status != 200 || strings.Count(string(a.Body), `":20`) != 48) {
		s.refused.Add(1)
		s.Errorf("a query: %v %d %.300s", err, a.Status, a.Body)
	}
}

// within5s waits until parts are executed at just these places.
func (s *foundSite) within5s(ctx context.Context, what string, want ...string) {
	s.Helper()
	want = slices.Sorted(slices.Values(want))
	for began := time.Now(); ; {
		a, err := e2e.Get(ctx, s.gateway.URL+foundQuery+"&explain=true", "Authorization", "Bearer "+s.token)
		var plan struct{ Parts []struct{ Server string } }
		if err == nil {
			err = json.Unmarshal(a.Body, &plan)
		}
		if err != nil {
			s.Fatalf("explain: %v %s", err, a.Body)
		}
		places := map[string]bool{}
		for _, p := range plan.Parts {
			places[p.Server] = true
		}
		got, took := slices.Sorted(maps.Keys(places)), time.Since(began)
		if slices.Equal(got, want) {
			s.Logf("%s: after %.1f s", what, took.Seconds())
			return
		}
		if took > 5*time.Second {
			s.Fatalf("%s: parts at %v after 5 s, want %v\n%s", what, got, want, s.gateway.Process.LogTail(30))
		}
	}
}

// Pushdown servers next to three real region servers join, are killed, stopped and suspended under queries: each is
// used, or out of use, within 5 s, and no query is refused.
func TestFound(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Minute)
	h := must[*e2e.HBase](t)(e2e.StartHBase(ctx, e2e.HBaseOptions{
		RegionServers: 3, RegionServerMiB: 384, QuickStart: true,
	}))
	closeAtEnd(t, h)
	tables := e2e.TablesWithPrefix("found")
	if err := errors.Join(h.Admin.CreateOpenTSDBTables(ctx, tables, []byte{1}, []byte{2}, []byte{3}),
		h.Admin.CreateTable(ctx, "found-state", "NONE", []string{"s"})); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"DOWNPOUR_STORE": "hbase:" + h.Quorum(), "DOWNPOUR_TABLE_DATA": tables.Data, "DOWNPOUR_TABLE_UID": tables.UID,
		"DOWNPOUR_TABLE_META": tables.Meta, "DOWNPOUR_TABLE_TREE": tables.Tree, "DOWNPOUR_TABLE_STATE": "found-state",
		"DOWNPOUR_AUTO_METRICS": "true", "DOWNPOUR_SELF_METRICS": "0", "DOWNPOUR_SALT_WIDTH": "1",
		"DOWNPOUR_SALT_BUCKETS": "4", "DOWNPOUR_RESULT_CACHE": "off",
	}
	writer := startGateway(t, e2e.ProgramOptions{Env: env})
	var points []e2e.Point
	for i := range 48 * 20 {
		points = append(points, e2e.Point{Metric: "m", Timestamp: 1356998400 + int64(i/20)*3600, Value: []byte("1"),
			Tags: map[string]string{"host": fmt.Sprint("h", i%20)}})
	}
	put(ctx, t, writer.URL, points)

	s := &foundSite{T: t, token: "0123456789abcdef-admin"}
	env["DOWNPOUR_TOKEN_FILE"] = writeFile(t, "tokens", "admin "+s.token+"\nread 0123456789abcdef-read\n")
	ofGateway := maps.Clone(env)
	ofGateway["DOWNPOUR_PUSHDOWN"] = "auto"
	s.gateway = startGateway(t, e2e.ProgramOptions{Env: ofGateway})
	asking, end := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		for asking.Err() == nil {
			s.query(asking)
		}
	})
	defer work.Wait()
	defer end()

	s.within5s(ctx, "none", "in-process")
	var servers []*e2e.Program
	var at []string
	for i := range h.Len() {
		mine := maps.Clone(env)
		delete(mine, "DOWNPOUR_AUTO_METRICS")
		address := fmt.Sprintf("127.0.0.1:%d", must[int](t)(e2e.FreePort()))
		mine["DOWNPOUR_BESIDE"], mine["DOWNPOUR_PUSHDOWN_LISTEN"] = h.RegionServerAddr(i), address
		mine["DOWNPOUR_ANNOUNCE"] = address
		p := must[*e2e.Program](t)(e2e.StartPushdown(ctx, e2e.ProgramOptions{Env: mine}))
		closeAtEnd(t, p)
		servers, at = append(servers, p), append(at, address)
		s.within5s(ctx, fmt.Sprint("server ", i, " joins"), at...)
	}

	servers[1].Process.Kill()
	s.within5s(ctx, "server 1 is killed", at[0], at[2])
	if err := servers[1].Restart(ctx); err != nil {
		t.Fatal(err)
	}
	s.within5s(ctx, "server 1 is back", at...)
	if err := servers[2].Process.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	s.within5s(ctx, "server 2 is stopped", at[0], at[1])
	if err := servers[0].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.within5s(ctx, "server 0 is suspended", at[1])
	if err := servers[0].Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.within5s(ctx, "server 0 goes on", at[0], at[1])
	end()
	work.Wait()
	t.Logf("%d queries, %d refused", s.queries.Load(), s.refused.Load())
}
