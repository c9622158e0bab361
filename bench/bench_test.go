package bench_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/write"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/rpc/server"
	"downpour/pushdown/store/pebble"
)

// small is a data set that a test can afford: 4 metrics, integers and floats.
func small() workload.Devops {
	d := workload.Default()
	d.MetricCount, d.Hosts, d.Hours, d.Step = 4, 12, 4, 300
	return d
}

func memoryStore(t testing.TB) *pebble.Store {
	t.Helper()
	st, err := pebble.Open("db", pebble.Options{FS: vfs.NewMem(), Grouping: encoding.DefaultSchema().RowHours()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// gatewayOn serves a store, with OpenTSDB's tables in it.
func gatewayOn(t testing.TB, st *pebble.Store) *peer.Server {
	t.Helper()
	schema := encoding.DefaultSchema()
	if err := tables.Create(t.Context(), st, tables.Specs(bench.TableNames("tsdb"), schema, "NONE")); err != nil {
		t.Fatal(err)
	}
	return gatewayOver(t, st, "tsdb", "")
}

// gatewayOver serves the tables of a prefix, with a pushdown server or none.
func gatewayOver(t testing.TB, st *pebble.Store, prefix, pushdown string) *peer.Server {
	t.Helper()
	n := bench.TableNames(prefix)
	cfg := &gateway.Config{
		Common: settings.Common{Store: "pebble:test", TableData: n.Data, TableUID: n.UID, TableMeta: n.Meta, TableTree: n.Tree,
			SaltBuckets: 20, MetricWidth: 3, TagKWidth: 3, TagVWidth: 3},
		Listen: "127.0.0.1:0", PutCells: "single", QueryTimeout: 5 * time.Minute, SelfMetrics: "0",
	}
	cfg.SetDefaults()
	if pushdown != "" {
		cfg.Pushdown = []string{pushdown}
	}
	g, err := gateway.Start(t.Context(), cfg, st, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		peer.CloseIdle()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return peer.At("gateway", g.URL())
}

// The doors and the rows written past them are the same points, in every form.
func TestLoad_everyWay(t *testing.T) {
	d := small()
	var servers []*peer.Server
	for _, format := range []workload.Format{workload.Telnet, workload.JSON} {
		server := gatewayOn(t, memoryStore(t))
		c := bench.SendConfig{Server: server, Data: d, Format: format, Batch: 50, Connections: 3}
		for range 2 { // the second time the same again, from memory
			if _, err := c.Send(t.Context(), c.Spell()); err != nil {
				t.Fatal(err)
			}
		}
		servers = append(servers, server)
	}
	for _, form := range []write.Form{write.Single, write.MultiPoint, write.Appended} {
		st := memoryStore(t)
		if err := bench.Fill(t.Context(), st, encoding.DefaultSchema(), "tsdb", d, form, nil); err != nil {
			t.Fatal(err)
		}
		servers = append(servers, gatewayOn(t, st))
	}
	for m := range d.MetricCount {
		q := d.Whole("sum:30m-avg:" + workload.Metrics[m].Name + "{region=*}")
		for _, s := range servers[1:] {
			if err := peer.AgreeInValues(t.Context(), servers[0], s, q); err != nil {
				t.Errorf("%s: %v", s.URL, err)
			}
		}
	}
}

// What a server refuses, and a server that is not there, are one line.
func TestSend_refused(t *testing.T) {
	server := gatewayOn(t, memoryStore(t))
	d := small()
	d.Tags = 8
	for _, format := range []workload.Format{workload.Telnet, workload.JSON} {
		gone := peer.At("gone", "http://127.0.0.1:1")
		c := bench.SendConfig{Server: gone, Data: d, Format: format}
		if _, err := c.Send(t.Context(), c.Stream()); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "gone: ") {
			t.Errorf("%s: error %v", format, err)
		}
	}
	wrong := bench.SendConfig{Server: server, Data: d, Format: workload.Telnet, Connections: 1}
	payload := wrong.Spell()
	payload.Replace(func(text []byte) []byte { return bytes.ReplaceAll(text, []byte("put cpu.system"), []byte("put cpu/%")) })
	payload.Replace(func(text []byte) []byte { return bytes.ReplaceAll(text, []byte("put load.1m"), []byte("put load:1m")) })
	if _, err := wrong.Send(t.Context(), payload); err == nil || !strings.Contains(err.Error(), "lines refused, the first with") {
		t.Errorf("error %v", err)
	}
}

func TestScan(t *testing.T) {
	st := memoryStore(t)
	d := small()
	r := report.New("scan", nil)
	cfg := bench.ScanConfig{Store: st, Schema: encoding.DefaultSchema(), Data: d, Form: write.Appended, Batch: 5, Load: true, Settle: st.Flush, Queries: bench.Queries, Rounds: 2, Scanners: 2}
	if err := bench.Scan(t.Context(), cfg, r); err != nil {
		t.Fatal(err)
	}
	if want := 1 + 2*(1+len(bench.Queries)); len(r.Figures) != want {
		t.Errorf("%d figures, want %d", len(r.Figures), want)
	}
	for _, f := range r.Figures[1:] {
		if len(f.Runs) != 2 || f.Median() <= 0 || f.Work != int64(d.Points()/d.MetricCount) {
			t.Errorf("%+v", f)
		}
	}
	cfg.Load, cfg.Data.Hosts = false, 13 // the store does not hold what it is said to
	if err := bench.Scan(t.Context(), cfg, r); err == nil || !strings.Contains(err.Error(), "want at least") {
		t.Errorf("a missing host: error %v", err)
	}
}

func TestGenerate(t *testing.T) {
	var out bytes.Buffer
	n, err := bench.Generate(t.Context(), small(), workload.Import, &out, nil)
	if err != nil || n != int64(out.Len()) || bytes.Count(out.Bytes(), []byte("\n")) != small().Points() {
		t.Errorf("%d bytes of %d, %v", n, out.Len(), err)
	}
	if _, err := bench.Generate(t.Context(), small(), workload.Import, full{}, nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk: error %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := bench.Generate(ended, small(), workload.Import, &out, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: error %v", err)
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestReplay(t *testing.T) {
	st := memoryStore(t)
	if err := bench.Fill(t.Context(), st, encoding.DefaultSchema(), "tsdb", small(), write.Appended, nil); err != nil {
		t.Fatal(err)
	}
	server := gatewayOn(t, st)
	closed, err := bench.Replay(t.Context(), bench.ReplayConfig{Server: server, Queries: small().Mixed(1), Requests: 30, Clients: 3})
	if err != nil || closed.Requests != 30 || closed.Errors != 0 || closed.At(50) <= 0 {
		t.Errorf("closed loop: %+v, %v", closed, err)
	}
	open, err := bench.Replay(t.Context(), bench.ReplayConfig{Server: server, Queries: small().Mixed(1), Duration: 300 * time.Millisecond, Rate: 200, Burst: 6})
	if err != nil || open.Requests == 0 || open.Errors != 0 {
		t.Errorf("open loop: %+v, %v", open, err)
	}
	bad := func(yield func(workload.Query) bool) {
		for yield(small().Whole("sum:no.such.metric")) && yield(small().Whole("sum:%s")) {
		}
	}
	mixed, err := bench.Replay(t.Context(), bench.ReplayConfig{Server: server, Queries: bad, Requests: 10})
	if err == nil || mixed.Errors != 5 || mixed.Requests != 5 || !strings.Contains(err.Error(), "no.such.metric") {
		t.Errorf("errors: %+v, %v", mixed, err)
	}
	if _, err := bench.Replay(t.Context(), bench.ReplayConfig{Server: server, Queries: bad}); err == nil {
		t.Error("a replay without an end")
	}
}

func TestPair(t *testing.T) {
	var servers []*peer.Server
	for i := range 2 {
		d := small()
		d.Seed += uint64(i)
		st := memoryStore(t)
		if err := bench.Fill(t.Context(), st, encoding.DefaultSchema(), "tsdb", d, write.Appended, nil); err != nil {
			t.Fatal(err)
		}
		servers = append(servers, gatewayOn(t, st))
	}
	c := bench.PairConfig{A: servers[0], B: servers[0], Queries: []workload.Query{small().Whole("sum:%s"), {Path: small().Whole("max:5m-max:%s{dc=*}").String()}}, Rounds: 3}
	figures, err := bench.Pair(t.Context(), c)
	if err != nil || len(figures) != 4 || len(figures[3].Runs) != 3 {
		t.Errorf("%+v, %v", figures, err)
	}
	changes := bench.Changes(figures, c.Queries, 0.05)
	if len(changes) != 2 || changes[0].What != "sum:cpu.user" || len(changes[1].B) != 3 || changes[1].Ratio.Median <= 0 {
		t.Errorf("%+v", changes)
	}
	figures[3].Runs = []time.Duration{3 * figures[2].Runs[0], 3 * figures[2].Runs[1], 3 * figures[2].Runs[2]}
	if x := bench.Changes(figures, c.Queries, 0.05)[1]; math.Abs(x.Ratio.Median-3) > 1e-9 || x.Verdict() != report.TooFew {
		t.Errorf("three times as long: %+v", x)
	}

	c.B = servers[1]
	if _, err := bench.Pair(t.Context(), c); !errors.Is(err, peer.ErrDiffer) {
		t.Errorf("other data: error %v", err)
	}
}

// In process and through a pushdown server, over all axes.
func TestScale(t *testing.T) {
	st := memoryStore(t)
	d := small()
	r := report.New("scale", nil)
	cfg := bench.ScaleConfig{Store: st, Form: write.Appended, Data: d, Steps: 1, Rounds: 1, Settle: st.Flush}
	cfg.Pushdown = func(_ context.Context, prefix string, schema encoding.Schema) (string, func(), error) {
		srv, err := server.NewServer(server.Config{Program: "test", Table: bench.TableNames(prefix).Data, Schema: schema}, st)
		if err != nil {
			return "", nil, err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", nil, err
		}
		ctx, cancel := context.WithCancel(context.Background())
		var served sync.WaitGroup
		served.Go(func() { srv.Serve(ctx, l) })
		return l.Addr().String(), func() { cancel(); served.Wait() }, nil
	}
	cfg.MemorySteps = []int{900, 300}
	cfg.Gateway = func(_ context.Context, prefix, pushdown string) (*bench.MeasuredGateway, error) {
		return &bench.MeasuredGateway{Server: gatewayOver(t, st, prefix, pushdown), Peak: func() (int64, error) { return 50 << 20, nil }}, nil
	}
	if err := bench.Scale(t.Context(), cfg, r); err != nil {
		t.Fatal(err)
	}
	if len(r.Curves) != 2*5+1 {
		t.Fatalf("%d curves, want times and bytes by points, series, groups, parts, parts in flight; memory by points", len(r.Curves))
	}
	rows := map[string]int{}
	for _, a := range r.Aims {
		if a.Got.Median <= 0 || a.Ours == "" || a.Theirs == "" {
			t.Errorf("%+v", a)
		}
		rows[a.Row]++
	}
	if diff := cmp.Diff(map[string]int{"process": 2, "shipped": 2, "memory": 3}, rows); diff != "" {
		t.Errorf("aims: -want +got\n%s", diff)
	}
	for _, l := range r.Curves[10].Lines {
		if len(l.Points) != 2 || l.Points[0][1] != 50 || l.Points[1][0] != 3*l.Points[0][0] {
			t.Errorf("memory: %v", l)
		}
	}
	for _, c := range r.Curves[:8] {
		lines := map[string]int{}
		for _, l := range c.Lines {
			lines[l.Name] = len(l.Points)
		}
		if lines["in process, strict"] < 3 || lines["in process, strict"] != lines["pushdown process, strict"] {
			t.Errorf("%s: lines %v", c.Name, lines)
		}
	}
	if n := len(r.Curves[8].Lines); n != 2 || len(r.Curves[8].Lines[0].Points) != 4 {
		t.Errorf("%s: %v, want two lines of 1, 2, 4, 8", r.Curves[8].Name, r.Curves[8].Lines)
	}
	cfg.Steps, cfg.MemorySteps = 1, []int{4, 16}
	if err := bench.Scale(t.Context(), cfg, r); err == nil || !strings.HasPrefix(err.Error(), "memory-steps: got [4 16]") {
		t.Errorf("ascending steps: error %v", err)
	}
	cfg.Steps, cfg.MemorySteps = 5, nil
	if err := bench.Scale(t.Context(), cfg, r); err == nil || !strings.HasPrefix(err.Error(), "steps: got 5") {
		t.Errorf("too many steps: error %v", err)
	}
}

// Steps meet in turn, and each round begins with another.
func TestInterleave(t *testing.T) {
	var order []string
	step := func(name string) bench.Step {
		return bench.Step{Name: name, Run: func(_ context.Context, round int) (time.Duration, error) {
			order = append(order, fmt.Sprint(name, round))
			return time.Duration(10 * (round + 1)), nil
		}}
	}
	figures, err := bench.Interleave(t.Context(), []bench.Step{step("a"), step("b"), step("c")}, 1, 3, nil)
	if err != nil || strings.Join(order, " ") != "a-1 b-1 c-1 a0 b0 c0 b1 c1 a1 c2 a2 b2" {
		t.Errorf("order %v, %v", order, err)
	}
	for _, f := range figures {
		if len(f.Runs) != 3 || f.Median() != 20 {
			t.Errorf("%+v", f)
		}
	}
}

// BenchmarkQuery replays the large queries over 2.16 M points in an embedded
// store at rest.
func BenchmarkQuery(b *testing.B) {
	st, err := pebble.Open("db", pebble.Options{FS: vfs.NewMem(), Grouping: encoding.DefaultSchema().RowHours()})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	q, err := bench.NewQueries(b.Context(), st, workload.Default())
	if err != nil {
		b.Fatal(err)
	}
	if err := st.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, m := range bench.Queries {
		b.Run("m="+fmt.Sprintf(m, "cpu"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := q.Ask(b.Context(), m); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(workload.Default().Points())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpoints/s")
		})
	}
}
