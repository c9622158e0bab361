package gateway_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/extra"
	"downpour/gateway/extra/hostmetrics"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/uid"
	"downpour/integration/compare"
	"downpour/integration/conformance"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/rpc/server"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

var whole = flag.Bool("whole", false, "ask every recorded question in each way that its test has, and not in one of them")

// front is a gateway that is asked recorded questions, by a name for messages.
type front struct {
	how string
	*gateway.Server
}

// fronts share out recorded questions: each is asked once, at the fronts by turns, or with -whole at
// all of them. A fault that only one front has still meets every other question.
type fronts []front

// of returns the fronts that are asked question i.
func (f fronts) of(i int) fronts {
	if *whole {
		return f
	}
	at := i % len(f)
	return f[at : at+1]
}

// twoFronts returns the gateway, which answers in process, and one that has a pushdown server
// beside the same store answer.
func twoFronts(t *testing.T, g *gateway.Server, remote *gateway.Config, st gateway.Store) fronts {
	t.Helper()
	remote.Pushdown = []string{pushdownServer(t, remote, st)}
	return fronts{{"in process", g}, {"pushdown", start(t, remote, st)}}
}

// recordedFronts returns gateways with recorded points, of two stores: one has the points as they were put, and the other
// one has them sealed. twin returns the configuration of one of them.
func recordedFronts(t *testing.T, r *conformance.Data, twin func() *gateway.Config) (all fronts) {
	t.Helper()
	for _, sealed := range []bool{false, true} {
		cfg, points := twin(), *r // fill takes them
		st := memoryStore(t, cfg)
		g := start(t, cfg, st)
		fill(t, &points, g, st, cfg.Schema())
		two := twoFronts(t, g, twin(), st)
		if sealed {
			seal(t, st, cfg.TableData)
			for i := range two {
				two[i].how += ", sealed"
			}
		}
		all = append(all, two...)
	}
	return all
}

// seal seals all rows of a store that are worth it.
func seal(t *testing.T, st *pebble.Store, table string) {
	t.Helper()
	report, err := st.Seal(t.Context(), table, time.Time{}, time.Now(), func(store.SealReport) error { return nil })
	if err != nil || report.Sealed == 0 {
		t.Fatalf("sealing: %+v, %v, want some rows sealed", report, err)
	}
	t.Logf("%d rows are sealed: %d bytes, %d before", report.Sealed, report.After, report.Before)
}

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
		Listen: "127.0.0.1:0", PutCells: "single", QueryTimeout: patience, PutTimeout: patience, PushdownPatience: patience,
	}
	renewExtras(cfg)
	cfg.SetDefaults()
	return cfg
}

// renewExtras gives settings all extras, with settings of their own: nothing is done in the background.
func renewExtras(cfg *gateway.Config) {
	cfg.Extras = extra.All()
	gateway.SettingsOf[hostmetrics.Settings](cfg).SelfMetrics = "0"
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
func replay(t *testing.T, r *conformance.Data, at fronts) (asked int, wrong []string) {
	t.Helper()
	c := compare.Comparer{MessageStart: true, Permits: []compare.Permit{{Path: compare.Path{"error", "details"}, Kinds: []compare.Kind{compare.Extra},
		Reason: "of errors only code and message were recorded"}}}
	for i, q := range r.Queries {
		for _, g := range at.of(i) {
			asked++
			status, body := post(t, g.URL()+strings.TrimPrefix(q.Path, "/"), q.Request)
			report, err := c.Answers(compare.Answer{Status: q.Status, Body: q.Response}, compare.Answer{Status: status, Body: body})
			if err != nil {
				t.Fatalf("%s: query %d: %v: %.200s", g.how, i, err, body)
			}
			if !report.Equal() {
				wrong = append(wrong, fmt.Sprintf("%s: query %d %s %s: %d differences, the first: %s (status %d, %.150s)",
					g.how, i, q.Path, q.Request, len(report.Differences), report.Differences[0], status, body))
			}
		}
	}
	return asked, wrong
}

// recordings are the recorded data sets and the salt width of their tables.
var recordings = map[string]int{"seed1": 0, "seed2": 0, "seed3_salted": 1, "edges": 0}

// Every query gets the answer that was recorded from OpenTSDB 2.4.1, to the last bit, executed in
// process or by a pushdown server, over points as they were put and over sealed rows.
func TestConformance(t *testing.T) {
	for name, salt := range recordings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := load(t, name)
			var configs []*gateway.Config
			at := recordedFronts(t, r, func() *gateway.Config {
				configs = append(configs, config(salt))
				return configs[len(configs)-1]
			})
			asked, wrong := replay(t, r, at)
			for i, w := range wrong {
				if i < 5 {
					t.Error(w)
				}
			}
			t.Logf("%d of %d answers to %d queries are equal", asked-len(wrong), asked, len(r.Queries))
			for _, i := range []int{1, 3} {
				checkServer(t, at[i].Server, r, configs[i].Pushdown[0])
			}
		})
	}
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
