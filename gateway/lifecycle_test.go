package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/store/faultstore"
	"downpour/pushdown/store/hbase/hbasefake"
)

// startError checks that a gateway refuses to start, with one line that has all words.
func startError(t *testing.T, cfg *gateway.Config, st gateway.Store, words ...string) {
	t.Helper()
	g, err := gateway.Start(t.Context(), cfg, st, slog.New(slog.DiscardHandler))
	if err == nil {
		g.Close()
		t.Fatal("the gateway started, want an error")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%v; want it to name %s", err, word)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %v", err)
	}
	t.Log(err)
}

// A gateway whose settings do not fit the rows that are stored refuses to start.
func TestStart_layout(t *testing.T) {
	salted := config(1)
	st := memoryStore(t, salted)
	b := serve(t, salted, st)
	b.Put("m 1356998400 1 host=a", "m 1356998400 1 host=b", "m 1356998400 1 host=c")
	startError(t, config(0), st, "DOWNPOUR_STORE", "DOWNPOUR_SALT_WIDTH")
	buckets := config(1)
	buckets.SaltBuckets = 7
	startError(t, buckets, st, "DOWNPOUR_SALT_BUCKETS")
	wide := config(1)
	wide.MetricWidth = 4
	startError(t, wide, st, "DOWNPOUR_UID_WIDTH_")
	start(t, salted, st)
}

// If nobody listens at HBase's address, or somebody who never answers, the start fails in time,
// with one line.
func TestStart_noHBase(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, address := range []string{"127.0.0.1:1", silent.Addr().String()} {
		cfg, st := gatewaytest.HBase(t, address)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := gateway.Start(ctx, cfg, st, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), "DOWNPOUR_STORE=hbase:"+address) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want one line that names DOWNPOUR_STORE", address, err)
		}
	}
}

// If tables are missing on HBase, the start fails with their names and the flag that creates them.
func TestStart_noTables(t *testing.T) {
	cluster := hbasefake.For(t, hbasefake.Options{})
	cfg, st := gatewaytest.HBase(t, cluster.Address())
	startError(t, cfg, st, "DOWNPOUR_STORE", "tsdb", "-create-tables")
	cluster.CreateTable("tsdb", []string{"t"})
	startError(t, cfg, st, "tsdb-uid", "-create-tables")
	cluster.CreateTable("tsdb-uid", []string{"id", "name"})
	b := serve(t, cfg, st)
	b.Put("m 1356998400 1 host=a")
	if a := b.Get("/api/query?start=1356998400&end=1356998500&m=sum:m"); !strings.Contains(a.Body, `{"1356998400":1}`) {
		t.Errorf("got %d %s, want the point", a.Status, a.Body)
	}
}

// A gateway whose tables cannot be seen is alive but not ready. /metrics and stats count what it
// does.
func TestHealth(t *testing.T) {
	b := open(t, nil)
	b.Put("m 1356998400 1 host=a")
	b.Post("/api/put", gatewaytest.BadPoint)
	b.Get(gatewaytest.SomeQuery)
	f := func(path string, status int, want string) {
		t.Helper()
		if a := b.Get(path); a.Status != status || !strings.Contains(a.Body, want) {
			t.Errorf("%s: %d %.300s, want %d %s", path, a.Status, a.Body, status, want)
		}
	}
	f("/healthz", 200, "ok")
	f("/readyz", 200, "ready")
	f("/metrics", 200, `downpour_put_points_total{outcome="stored"} 1`)
	f("/metrics", 200, `downpour_put_points_total{outcome="refused"} 1`)
	f("/metrics", 200, `downpour_query_seconds_count{status="200"} 1`)
	f("/metrics", 200, "go_goroutines ")
	// OpenTSDB answers 500 to a filter that does not parse, which is no fault of the server.
	f("/api/query?start=1356998400&m=sum:m{host=", 500, "Missing '}'")
	f("/metrics", 200, `downpour_query_seconds_count{status="mistake"} 1`)
	if a := b.Get("/metrics"); strings.Contains(a.Body, `status="500"`) {
		t.Error("a query that does not parse counts as a fault of the server")
	}
	b.Store.Down.Store(true)
	f("/healthz", 200, "ok")
	f("/readyz", 503, "not ready")
	b.Store.Down.Store(false)
	f("/readyz", 200, "ready")

	c := b.Dial()
	fmt.Fprintln(c, "stats")
	got := c.Rest()
	if !strings.Contains(got, "downpour.put.points.total ") || !strings.Contains(got, " 1 outcome=stored host=") {
		t.Errorf("stats: %q", got)
	}
}

// Close lets running requests end and writes all points that were taken; the next gateway finds
// them.
func TestClose_drains(t *testing.T) {
	cfg := config(0)
	st := gatewaytest.NewFaulty(memoryStore(t, cfg))
	g, err := gateway.Start(t.Context(), cfg, st, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, Config: cfg, Store: st, Gateway: g}
	b.Put("m 1356998400 1 host=a")
	rules := st.Set(faultstore.Rule{Op: faultstore.Apply, Table: "tsdb", Delay: 200 * time.Millisecond},
		faultstore.Rule{Op: faultstore.Next, Table: "tsdb", Delay: 200 * time.Millisecond})
	posted, queried, lines := make(chan answer), make(chan answer), make(chan string)
	go func() {
		a, _ := b.Try(t.Context(), http.MethodPost, "/api/put",
			strings.NewReader(`{"metric":"m","timestamp":1356998401,"value":2,"tags":{"host":"a"}}`))
		posted <- a
	}()
	go func() {
		a, _ := b.Try(t.Context(), http.MethodGet, gatewaytest.SomeQuery, nil)
		queried <- a
	}()
	eventually(t, "both are under way", func() bool { h := rules.Hits(); return h[0] > 0 && h[1] > 0 })
	go func() {
		c := b.Dial()
		fmt.Fprint(c, "put m 1356998402 3 host=a\nversion\n")
		lines <- c.Next()
	}()
	eventually(t, "the line is under way", func() bool { return rules.Hits()[0] > 1 })
	if err := g.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if a := <-posted; a.Status != 204 {
		t.Errorf("the put got %d %s", a.Status, a.Body)
	}
	if a := <-queried; a.Status != 200 || a.Err != nil {
		t.Errorf("the query got %d %s, %v", a.Status, a.Body, a.Err)
	}
	if l := <-lines; !strings.HasPrefix(l, "downpour 2.4.1") {
		t.Errorf("the line got %q", l)
	}
	st.Set()
	again := serve(t, cfg, st)
	want := `{"1356998400":1,"1356998401":2,"1356998402":3}`
	if a := again.Get(gatewaytest.SomeQuery); !strings.Contains(a.Body, want) {
		t.Errorf("afterwards: %d %s", a.Status, a.Body)
	}
}

// Invalid settings are all named in one error. One entry of a list that cannot be used is none.
func TestConfig(t *testing.T) {
	cfg := config(0)
	cfg.Pushdown = []string{" 127.0.0.1:4280", "region-host", " "}
	cfg.AllowOrigins = []string{"http://ok.example", " localhost"}
	cfg.SetDefaults()
	if err := cfg.Validate(); err != nil {
		t.Errorf("one of each list can be used: %v", err)
	}
	cfg.AutoMetrics, cfg.PutCells, cfg.QueryTimeout, cfg.Listen = "maybe", "some", -1, "nowhere"
	cfg.Pushdown = []string{"region-host"}
	cfg.AllowOrigins, cfg.AllowHosts, cfg.LimitConnections = []string{"localhost"}, []string{"metrics.example:4242"}, -1
	err := cfg.Validate()
	for _, name := range []string{"DOWNPOUR_AUTO_METRICS", "DOWNPOUR_PUT_CELLS", "DOWNPOUR_QUERY_TIMEOUT",
		"DOWNPOUR_LISTEN", `DOWNPOUR_PUSHDOWN: got "region-host"`,
		`DOWNPOUR_ALLOW_ORIGINS: got "localhost", want * or an origin`,
		`DOWNPOUR_ALLOW_HOSTS: got "metrics.example:4242", want the name of a host`,
		"DOWNPOUR_LIMIT_CONNECTIONS: got -1"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
	// No program takes a variable of the gateway for a misspelled one.
	for _, v := range settings.List(new(gateway.Config)) {
		if err := settings.Unknown([]string{v.Name + "=x"}); err != nil {
			t.Error(err)
		}
	}
}

// Addresses of pushdown servers that are all invalid fail the start, with the setting's name. Next to a valid one, an
// invalid one is left out and named in the log, and so is an origin. What was opened is closed: TestMain looks for
// leaks.
func TestStart_lists(t *testing.T) {
	cfg := config(0)
	cfg.Pushdown = []string{"127.0.0.1:4280/\x00", "region-host"}
	startError(t, cfg, memoryStore(t, cfg), "DOWNPOUR_PUSHDOWN", "region-host")
	cfg.Pushdown = append(cfg.Pushdown, "127.0.0.1:4280")
	cfg.AllowOrigins = []string{"localhost", "http://ok.example"}
	var log strings.Builder
	g, err := gateway.Start(t.Context(), cfg, memoryStore(t, cfg), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	for _, words := range []string{
		"variable=DOWNPOUR_PUSHDOWN", "region-host", `4280/\\x00`, "variable=DOWNPOUR_ALLOW_ORIGINS",
		"localhost",
	} {
		if !strings.Contains(log.String(), words) {
			t.Errorf("%s is not in the log: %s", words, &log)
		}
	}
}

// The state table is none of the others.
func TestConfig_tableState(t *testing.T) {
	cfg := config(0)
	cfg.TableState = cfg.TableTree
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "DOWNPOUR_TABLE_STATE: got tsdb-tree") {
		t.Errorf("got %v", err)
	}
}
