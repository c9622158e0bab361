package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"downpour/gateway"
	"downpour/gateway/extra/hostmetrics"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/store/faultstore"
	"downpour/pushdown/store/hbase"
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
	b := &bench{T: t, cfg: salted, store: &faulty{Store: st}, g: start(t, salted, st)}
	b.put("m 1356998400 1 host=a", "m 1356998400 1 host=b", "m 1356998400 1 host=c")
	startError(t, config(0), st, "DOWNPOUR_STORE", "DOWNPOUR_SALT_WIDTH")
	buckets := config(1)
	buckets.SaltBuckets = 7
	startError(t, buckets, st, "DOWNPOUR_SALT_BUCKETS")
	wide := config(1)
	wide.MetricWidth = 4
	startError(t, wide, st, "DOWNPOUR_UID_WIDTH_")
	start(t, salted, st)
}

func hbaseConfig(t *testing.T, address string) (*gateway.Config, *hbase.Store) {
	t.Helper()
	cfg := config(0)
	cfg.Store = "hbase:" + address
	cfg.AutoMetrics = "true"
	where, err := hbase.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	where.VersionTimeout = patience
	st, err := hbase.Open(where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return cfg, st
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
		cfg, st := hbaseConfig(t, address)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := gateway.Start(ctx, cfg, st, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), "DOWNPOUR_STORE=hbase:"+address) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want one line that names DOWNPOUR_STORE", address, err)
		}
	}
}

// If tables are missing on HBase, the start fails with their names and the flag that creates them.
func TestStart_noTables(t *testing.T) {
	cluster, err := hbasefake.Start(hbasefake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	cfg, st := hbaseConfig(t, cluster.Address())
	startError(t, cfg, st, "DOWNPOUR_STORE", "tsdb", "-create-tables")
	cluster.CreateTable("tsdb", []string{"t"})
	startError(t, cfg, st, "tsdb-uid", "-create-tables")
	cluster.CreateTable("tsdb-uid", []string{"id", "name"})
	b := &bench{T: t, cfg: cfg, g: start(t, cfg, st)}
	b.put("m 1356998400 1 host=a")
	if a := b.get("/api/query?start=1356998400&end=1356998500&m=sum:m"); !strings.Contains(a.body, `{"1356998400":1}`) {
		t.Errorf("got %d %s, want the point", a.status, a.body)
	}
}

// A gateway whose tables cannot be seen is alive but not ready. /metrics and stats count what it
// does.
func TestHealth(t *testing.T) {
	b := open(t, nil)
	b.put("m 1356998400 1 host=a")
	b.post("/api/put", badPoint)
	b.get(someQuery)
	f := func(path string, status int, want string) {
		t.Helper()
		if a := b.get(path); a.status != status || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %.300s, want %d %s", path, a.status, a.body, status, want)
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
	if a := b.get("/metrics"); strings.Contains(a.body, `status="500"`) {
		t.Error("a query that does not parse counts as a fault of the server")
	}
	b.store.down.Store(true)
	f("/healthz", 200, "ok")
	f("/readyz", 503, "not ready")
	b.store.down.Store(false)
	f("/readyz", 200, "ready")

	c := b.dial()
	fmt.Fprintln(c, "stats")
	if got := c.rest(); !strings.Contains(got, "downpour.put.points.total ") || !strings.Contains(got, " 1 outcome=stored host=") {
		t.Errorf("stats: %q", got)
	}
}

// The first sample of this host's metrics is stored at the start, not after an interval; with 0
// there is none.
func TestSelfMetrics(t *testing.T) {
	b := open(t, func(c *gateway.Config) { gateway.SettingsOf[hostmetrics.Settings](c).SelfMetrics = "1h" })
	query := "/api/query?start=1h-ago&m=sum:proc.loadavg.1min%7Bhost=*%7D"
	var a answer
	eventually(t, "the first sample", func() bool { a = b.get(query); return a.status == 200 && a.body != "[]" })
	var results []struct {
		Tags map[string]string
		DPS  map[string]json.Number
	}
	if err := json.Unmarshal([]byte(a.body), &results); err != nil || len(results) != 1 || len(results[0].DPS) != 1 || results[0].Tags["host"] == "" {
		t.Errorf("%s: %v", a.body, err)
	}
	off := open(t, nil)
	if a := off.get("/api/suggest?type=metrics"); a.body != "[]" {
		t.Errorf("with 0: %s", a.body)
	}
}

// Close lets running requests end and writes all points that were taken; the next gateway finds
// them.
func TestClose_drains(t *testing.T) {
	cfg := config(0)
	st := &faulty{Store: memoryStore(t, cfg)}
	st.set()
	g, err := gateway.Start(t.Context(), cfg, st, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, cfg: cfg, store: st, g: g}
	b.put("m 1356998400 1 host=a")
	rules := st.set(faultstore.Rule{Op: faultstore.Apply, Table: "tsdb", Delay: 200 * time.Millisecond},
		faultstore.Rule{Op: faultstore.Next, Table: "tsdb", Delay: 200 * time.Millisecond})
	posted, queried, lines := make(chan answer), make(chan answer), make(chan string)
	go func() {
		a, _ := b.try(t.Context(), http.MethodPost, "/api/put", strings.NewReader(`{"metric":"m","timestamp":1356998401,"value":2,"tags":{"host":"a"}}`))
		posted <- a
	}()
	go func() {
		a, _ := b.try(t.Context(), http.MethodGet, someQuery, nil)
		queried <- a
	}()
	eventually(t, "both are under way", func() bool { h := rules.Hits(); return h[0] > 0 && h[1] > 0 })
	go func() {
		c := b.dial()
		fmt.Fprint(c, "put m 1356998402 3 host=a\nversion\n")
		lines <- c.next()
	}()
	eventually(t, "the line is under way", func() bool { return rules.Hits()[0] > 1 })
	if err := g.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if a := <-posted; a.status != 204 {
		t.Errorf("the put got %d %s", a.status, a.body)
	}
	if a := <-queried; a.status != 200 || a.err != nil {
		t.Errorf("the query got %d %s, %v", a.status, a.body, a.err)
	}
	if l := <-lines; !strings.HasPrefix(l, "downpour 2.4.1") {
		t.Errorf("the line got %q", l)
	}
	st.set()
	again := &bench{T: t, cfg: cfg, store: st, g: start(t, cfg, st)}
	if a := again.get(someQuery); !strings.Contains(a.body, `{"1356998400":1,"1356998401":2,"1356998402":3}`) {
		t.Errorf("afterwards: %d %s", a.status, a.body)
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
	cfg.AutoMetrics, cfg.PutCells, gateway.SettingsOf[hostmetrics.Settings](cfg).SelfMetrics, cfg.QueryTimeout, cfg.Listen = "maybe", "some", "1ms", -1, "nowhere"
	cfg.Pushdown = []string{"region-host"}
	cfg.AllowOrigins, cfg.AllowHosts, cfg.LimitConnections = []string{"localhost"}, []string{"metrics.example:4242"}, -1
	err := cfg.Validate()
	for _, name := range []string{"DOWNPOUR_AUTO_METRICS", "DOWNPOUR_PUT_CELLS", "DOWNPOUR_SELF_METRICS", "DOWNPOUR_QUERY_TIMEOUT", "DOWNPOUR_LISTEN", `DOWNPOUR_PUSHDOWN: got "region-host"`,
		`DOWNPOUR_ALLOW_ORIGINS: got "localhost", want * or an origin`, `DOWNPOUR_ALLOW_HOSTS: got "metrics.example:4242", want the name of a host`, "DOWNPOUR_LIMIT_CONNECTIONS: got -1"} {
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

// Addresses of pushdown servers that are all invalid fail the start, with the setting's name. One beside a valid one is
// left out and named in the log, and so is an origin. What was opened is closed: TestMain looks for leaks.
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
	for _, words := range []string{"variable=DOWNPOUR_PUSHDOWN", "region-host", `4280/\\x00`, "variable=DOWNPOUR_ALLOW_ORIGINS", "localhost"} {
		if !strings.Contains(log.String(), words) {
			t.Errorf("%s is not in the log: %s", words, &log)
		}
	}
}
