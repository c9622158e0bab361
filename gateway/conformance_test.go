package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/uid"
	"downpour/integration/compare"
	"downpour/integration/conformance"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/rpc/server"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

func load(t *testing.T, name string) *conformance.Data {
	t.Helper()
	r, err := conformance.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// config is the configuration of a gateway on a free port of loopback.
func config(saltWidth int) *gateway.Config {
	cfg := &gateway.Config{
		Common: settings.Common{Store: "pebble:test", TableData: "tsdb", TableUID: "tsdb-uid", TableMeta: "tsdb-meta", TableTree: "tsdb-tree",
			SaltWidth: saltWidth, SaltBuckets: 20, MetricWidth: 3, TagKWidth: 3, TagVWidth: 3},
		Listen: "127.0.0.1:0", PutCells: "single", QueryTimeout: patience, PushdownPatience: patience, SelfMetrics: "0",
	}
	cfg.SetDefaults()
	return cfg
}

func memoryStore(t *testing.T, cfg *gateway.Config) *pebble.Store {
	t.Helper()
	st, err := pebble.Open("db", pebble.Options{FS: vfs.NewMem(), Grouping: cfg.Schema().RowHours()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	if err := tables.Create(t.Context(), st, tables.Specs(cfg.TableNames(), cfg.Schema(), "NONE")); err != nil {
		t.Fatal(err)
	}
	return st
}

func start(t *testing.T, cfg *gateway.Config, st gateway.Store) *gateway.Server {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.Start(t.Context(), cfg, st, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// pushdownServer serves the store beside the gateway and returns its address.
func pushdownServer(t *testing.T, cfg *gateway.Config, st store.Reader) string {
	t.Helper()
	srv, err := server.NewServer(server.Config{Program: "test", Table: cfg.TableData, Rollups: cfg.RollupTables(), Schema: cfg.Schema()}, st)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { srv.Serve(ctx, l) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return l.Addr().String()
}

func post(t *testing.T, url string, body []byte) (int, []byte) {
	t.Helper()
	return ask(t, http.MethodPost, url, string(body))
}

// ask sends a request, whose body is JSON, and returns the answer.
func ask(t testing.TB, method, url, body string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// fill assigns the recorded UIDs and puts the recorded points, each in the recorded order.
func fill(t *testing.T, r *conformance.Data, g *gateway.Server, st store.Store, schema encoding.Schema) {
	t.Helper()
	d := uid.New(uid.Config{Store: st, Table: "tsdb-uid", Schema: schema})
	kinds := map[string]encoding.UIDKind{"metric": encoding.UIDMetric, "metrics": encoding.UIDMetric, "tagk": encoding.UIDTagK, "tagv": encoding.UIDTagV}
	for _, a := range r.Assign {
		kind, ok := kinds[a[0]]
		if !ok {
			t.Fatalf("unknown kind of UID %q", a[0])
		}
		if _, err := d.Assign(t.Context(), kind, a[1]); err != nil {
			t.Fatal(err)
		}
	}
	for len(r.Points) > 0 {
		n := min(len(r.Points), 2000)
		body, _ := json.Marshal(r.Points[:n])
		if status, answer := post(t, g.URL()+"api/put", body); status != http.StatusNoContent {
			t.Fatalf("put: %d %s", status, answer)
		}
		r.Points = r.Points[n:]
	}
}

// replay asks every recorded query and returns a text for each answer that differs.
func replay(t *testing.T, r *conformance.Data, g *gateway.Server) (wrong []string) {
	t.Helper()
	c := compare.Comparer{MessageStart: true, Permits: []compare.Permit{{Path: compare.Path{"error", "details"}, Kinds: []compare.Kind{compare.Extra},
		Reason: "of errors only code and message were recorded"}}}
	for i, q := range r.Queries {
		status, body := post(t, g.URL()+strings.TrimPrefix(q.Path, "/"), q.Request)
		report, err := c.Answers(compare.Answer{Status: q.Status, Body: q.Response}, compare.Answer{Status: status, Body: body})
		if err != nil {
			t.Fatalf("query %d: %v: %.200s", i, err, body)
		}
		if !report.Equal() {
			wrong = append(wrong, fmt.Sprintf("query %d %s %s: %d differences, the first: %s (status %d, %.150s)",
				i, q.Path, q.Request, len(report.Differences), report.Differences[0], status, body))
		}
	}
	return wrong
}

// recordings are the recorded data sets and the salt width of their tables.
var recordings = map[string]int{"seed1": 0, "seed2": 0, "seed3_salted": 1, "edges": 0}

// Every query gets the answer that was recorded from OpenTSDB 2.4.1, to the last bit, executed in
// process and by a pushdown server.
func TestConformance(t *testing.T) {
	for name, salt := range recordings {
		t.Run(name, func(t *testing.T) {
			r := load(t, name)
			cfg := config(salt)
			st := memoryStore(t, cfg)
			g := start(t, cfg, st)
			fill(t, r, g, st, cfg.Schema())
			check(t, "in process", r, g)

			remote := config(salt)
			remote.Pushdown = []string{pushdownServer(t, cfg, st)}
			pushed := start(t, remote, st)
			check(t, "pushdown", r, pushed)
			checkServer(t, pushed, r, remote.Pushdown[0])
		})
	}
}

func check(t *testing.T, how string, r *conformance.Data, g *gateway.Server) {
	t.Helper()
	wrong := replay(t, r, g)
	for i, w := range wrong {
		if i < 5 {
			t.Errorf("%s: %s", how, w)
		}
	}
	t.Logf("%s: %d of %d answers are equal", how, len(r.Queries)-len(wrong), len(r.Queries))
}

// checkServer checks that explain names the pushdown server for every part of a query: the
// answers came from there.
func checkServer(t *testing.T, g *gateway.Server, r *conformance.Data, want string) {
	t.Helper()
	for _, q := range r.Queries {
		if q.Status != http.StatusOK {
			continue
		}
		var explained struct {
			Parts []struct{ Server, Mode string }
		}
		_, body := post(t, g.URL()+"api/query?explain=true", q.Request)
		if err := json.Unmarshal(body, &explained); err != nil || len(explained.Parts) == 0 {
			t.Fatalf("explain: %v: %s", err, body)
		}
		for _, p := range explained.Parts {
			if p.Server != want || p.Mode != "strict" && p.Mode != "aligned" {
				t.Errorf("a part is executed %s by %s, want strict or aligned by %s", p.Mode, p.Server, want)
			}
		}
		return
	}
}
