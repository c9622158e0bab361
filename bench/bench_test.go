package bench_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
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
	"downpour/gateway/extra"
	"downpour/gateway/extra/hostmetrics"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/write"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/rpc/server"
	"downpour/pushdown/store/open/opentest"
	"downpour/pushdown/store/pebble"
)

// small is a data set that a test can afford: 4 metrics, integers and floats.
func small() workload.Devops {
	d := workload.Default()
	d.MetricCount, d.Hosts, d.Hours, d.Step = 4, 12, 4, 300
	return d
}

func memoryStore(t testing.TB) *pebble.Store {
	return opentest.EmbeddedWith(t, pebble.Options{Grouping: encoding.DefaultSchema().RowHours()})
}

// gatewayOn makes OpenTSDB's tables in a store and starts a gateway on them.
func gatewayOn(t testing.TB, st *pebble.Store) *peer.Server {
	t.Helper()
	schema := encoding.DefaultSchema()
	names := bench.TableNames("tsdb")
	names.State = "downpour-state"
	if err := tables.Create(t.Context(), st, tables.Specs(names, schema, "NONE")); err != nil {
		t.Fatal(err)
	}
	return gatewayOver(t, st, "tsdb", "")
}

// gatewayWith starts a gateway on a store that holds some data, with the cells in a form.
func gatewayWith(t testing.TB, d workload.Devops, form write.Form) *peer.Server {
	t.Helper()
	st := memoryStore(t)
	if err := bench.Fill(t.Context(), st, encoding.DefaultSchema(), "tsdb", d, form, nil); err != nil {
		t.Fatal(err)
	}
	return gatewayOn(t, st)
}

// gatewayOver starts a gateway on the tables with a prefix. pushdown is the address of a pushdown
// server; empty means none.
func gatewayOver(t testing.TB, st *pebble.Store, prefix, pushdown string) *peer.Server {
	t.Helper()
	n := bench.TableNames(prefix)
	cfg := &gateway.Config{
		Common: settings.Common{
			Store:       "pebble:test",
			TableData:   n.Data,
			TableUID:    n.UID,
			TableMeta:   n.Meta,
			TableTree:   n.Tree,
			SaltBuckets: 20,
			MetricWidth: 3,
			TagKWidth:   3,
			TagVWidth:   3,
		},
		Listen: "127.0.0.1:0", PutCells: "single", QueryTimeout: 5 * time.Minute, PutTimeout: 5 * time.Minute,
		Extras: extra.All(),
	}
	gateway.SettingsOf[hostmetrics.Settings](cfg).SelfMetrics = "0"
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

// Points put by telnet or over HTTP, and rows that Fill writes straight into the store in each cell
// form, are answered with the same values.
func TestLoad_everyWay(t *testing.T) {
	d := small()
	var servers []*peer.Server
	for _, format := range []workload.Format{workload.Telnet, workload.JSON} {
		server := gatewayOn(t, memoryStore(t))
		c := bench.SendConfig{Server: server, Data: d, Format: format, Batch: 50, Connections: 3}
		for range 2 { // the second time the same points again, which must change nothing
			if _, err := c.Send(t.Context(), c.Spell()); err != nil {
				t.Fatal(err)
			}
		}
		servers = append(servers, server)
	}
	for _, form := range []write.Form{write.Single, write.MultiPoint, write.Appended} {
		servers = append(servers, gatewayWith(t, d, form))
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

// Send fails with one line that names the server if nobody listens there, and with the first
// refusal if the server refuses lines.
func TestSend_refused(t *testing.T) {
	server := gatewayOn(t, memoryStore(t))
	d := small()
	d.Tags = 8
	for _, format := range []workload.Format{workload.Telnet, workload.JSON} {
		gone := peer.At("gone", "http://127.0.0.1:1")
		c := bench.SendConfig{Server: gone, Data: d, Format: format}
		if _, err := c.Send(t.Context(), c.Stream()); err == nil || strings.Contains(err.Error(), "\n") ||
			!strings.Contains(err.Error(), "gone: ") {
			t.Errorf("%s: error %v, want one line that names the server gone", format, err)
		}
	}
	wrong := bench.SendConfig{Server: server, Data: d, Format: workload.Telnet, Connections: 1}
	payload := wrong.Spell()
	payload.Replace(func(text []byte) []byte {
		return bytes.ReplaceAll(text, []byte("put cpu.system"), []byte("put cpu/%"))
	})
	payload.Replace(func(text []byte) []byte {
		return bytes.ReplaceAll(text, []byte("put load.1m"), []byte("put load:1m"))
	})
	if _, err := wrong.Send(t.Context(), payload); err == nil ||
		!strings.Contains(err.Error(), "lines refused, the first with") {
		t.Errorf("error %v, want the number of refused lines and the first refusal", err)
	}
}

// Scan measures the load, and then the bare scan and each query twice: straight after loading and
// at rest. It refuses a store with fewer points than its data set.
func TestScan(t *testing.T) {
	st := memoryStore(t)
	d := small()
	r := report.New("scan", nil)
	cfg := bench.ScanConfig{
		Store:    st,
		Schema:   encoding.DefaultSchema(),
		Data:     d,
		Form:     write.Appended,
		Batch:    5,
		Load:     true,
		Settle:   st.Flush,
		Queries:  bench.Queries,
		Rounds:   2,
		Scanners: 2,
	}
	if err := bench.Scan(t.Context(), cfg, r); err != nil {
		t.Fatal(err)
	}
	if want := 1 + 2*(1+len(bench.Queries)); len(r.Figures) != want {
		t.Errorf("%d figures, want %d", len(r.Figures), want)
	}
	for _, f := range r.Figures[1:] {
		if len(f.Runs) != 2 || f.Median() <= 0 || f.Work != int64(d.Points()/d.MetricCount) {
			t.Errorf("got %+v, want 2 runs, a median above 0, and the points of one metric as work", f)
		}
	}
	cfg.Load, cfg.Data.Hosts = false, 13 // the store holds only 12 hosts
	if err := bench.Scan(t.Context(), cfg, r); err == nil || !strings.Contains(err.Error(), "want at least") {
		t.Errorf("a missing host: error %v", err)
	}
}

func TestGenerate(t *testing.T) {
	var out bytes.Buffer
	n, err := bench.Generate(t.Context(), small(), workload.Import, &out, nil)
	if err != nil || n != int64(out.Len()) || bytes.Count(out.Bytes(), []byte("\n")) != small().Points() {
		t.Errorf("%d bytes reported, %d written, error %v; want the same number, and a line for each point",
			n, out.Len(), err)
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

// Replay counts answers and errors, in a closed loop and in an open one. An error answer does not
// end it; without a number of requests or a duration it does not start.
func TestReplay(t *testing.T) {
	server := gatewayWith(t, small(), write.Appended)
	closed, err := bench.Replay(t.Context(), bench.ReplayConfig{
		Server:   server,
		Queries:  small().Mixed(1),
		Requests: 30,
		Clients:  3,
	})
	if err != nil || closed.Requests != 30 || closed.Errors != 0 || closed.At(50) <= 0 {
		t.Errorf("closed loop: %+v, %v; want 30 requests without errors", closed, err)
	}
	open, err := bench.Replay(t.Context(), bench.ReplayConfig{
		Server:   server,
		Queries:  small().Mixed(1),
		Duration: 300 * time.Millisecond,
		Rate:     200,
		Burst:    6,
	})
	if err != nil || open.Requests == 0 || open.Errors != 0 {
		t.Errorf("open loop: %+v, %v; want requests without errors", open, err)
	}
	bad := func(yield func(workload.Query) bool) {
		for yield(small().Whole("sum:no.such.metric")) && yield(small().Whole("sum:%s")) {
		}
	}
	mixed, err := bench.Replay(t.Context(), bench.ReplayConfig{Server: server, Queries: bad, Requests: 10})
	if err == nil || mixed.Errors != 5 || mixed.Requests != 5 || !strings.Contains(err.Error(), "no.such.metric") {
		t.Errorf("errors: %+v, %v; want 5 answers and 5 errors, of which one names no.such.metric", mixed, err)
	}
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	cut, err := bench.Replay(t.Context(), bench.ReplayConfig{
		Server:   peer.At("slow", slow.URL),
		Queries:  small().Mixed(1),
		Requests: 5,
		Rate:     1000,
		CutOff:   100 * time.Millisecond,
	})
	if err != nil || cut.Requests != 5 || cut.Errors != 0 || !strings.Contains(cut.Loop, "5 cut off after 100ms") {
		t.Errorf("a server without answers: %+v, %v; want 5 requests that were cut off", cut, err)
	}
	if _, err := bench.Replay(t.Context(), bench.ReplayConfig{Server: server, Queries: bad}); err == nil {
		t.Error("a replay with neither a number of requests nor a duration: no error, want one")
	}
}

// A replay that counts has the points and bytes of all answers, as JSON and as Arrow, and a line a query.
func TestReplay_counts(t *testing.T) {
	t.Parallel()
	d := small()
	server := gatewayWith(t, d, write.Appended)
	raw, wrong := d.Whole("none:%s"), d.Whole("sum:no.such.metric")
	arrow := raw
	arrow.Arrow, arrow.Name = true, "as Arrow"
	text, err := server.Ask(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	l, err := bench.Replay(t.Context(), bench.ReplayConfig{Server: server, Count: true, Duration: time.Hour,
		Queries: slices.Values([]workload.Query{raw, arrow, wrong, raw})})
	if err == nil || !strings.Contains(err.Error(), "no.such.metric") || l.Answers == nil || l.Answers.Seconds <= 0 {
		t.Fatalf("%+v, %v; want answers, and an error that names no.such.metric", l.Answers, err)
	}
	points := int64(d.Points() / d.MetricCount)
	if l.Answers.Requests != 3 || l.Answers.Points != 3*points {
		t.Errorf("%d answers with %d points, want 3 with %d", l.Answers.Requests, l.Answers.Points, 3*points)
	}
	lines := map[string]report.Answered{}
	for _, q := range l.Answers.Queries {
		lines[q.Query] = q
	}
	if q := lines[raw.M]; q.Requests != 2 || q.Points != 2*points || q.Bytes != 2*int64(len(text)) ||
		q.Errors != 0 || q.Max <= 0 {
		t.Errorf("as JSON: %+v, want 2 answers of %d points in %d bytes each", q, points, len(text))
	}
	if q := lines["as Arrow"]; q.Requests != 1 || q.Points != points || q.Bytes < 16*points {
		t.Errorf("as Arrow: %+v, want 1 answer of %d points", q, points)
	}
	if q := lines[wrong.M]; q.Requests != 0 || q.Errors != 1 || q.Points != 0 {
		t.Errorf("an error: %+v, want it counted", q)
	}
}

// The first refused connection ends a replay, whatever is left to ask, and the error says how far it came.
func TestReplay_refused(t *testing.T) {
	t.Parallel()
	var server *httptest.Server
	asked := 0
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 3 {
			server.Listener.Close()
		}
		w.Header().Set("Connection", "close") // the next question needs a connection of its own
		fmt.Fprint(w, "[]")
	}))
	defer server.Close()
	endless := func(yield func(workload.Query) bool) {
		for yield(small().Whole("sum:%s")) {
		}
	}
	l, err := bench.Replay(t.Context(), bench.ReplayConfig{
		Server:   peer.At("gone", server.URL),
		Queries:  endless,
		Requests: 1000,
	})
	if !errors.Is(err, syscall.ECONNREFUSED) ||
		!strings.Contains(err.Error(), "after 3 answers, because "+server.URL+" refuses connections") ||
		strings.Contains(err.Error(), "\n") || l.Requests != 3 || l.Errors != 0 {
		t.Errorf("%d answers, %d errors, %v; want 3 answers, and one line of a refused connection",
			l.Requests, l.Errors, err)
	}
}

// What a gateway was asked is recorded from its query log, and gives the same answers when it is replayed.
func TestRecord_answers(t *testing.T) {
	t.Parallel()
	d := small()
	server := gatewayWith(t, d, write.Appended)
	questions := []workload.Query{
		d.Whole("sum:5m-avg:rate{counter,100,7}:%s{region=*}{host=wildcard(*1)}"),
		d.Whole("none:1h-max-zero:%s{host=" + workload.HostName(3) + "|" + workload.HostName(4) + "}"),
		d.Whole("none:explicit_tags:%s{host=" + workload.HostName(3) + "}"),
		{JSON: fmt.Sprintf(
			`{"start":%d,"end":%d,"msResolution":true,"showTSUIDs":true,"timezone":"Europe/Zurich","useCalendar":true,
			"queries":[{"aggregator":"p95","metric":%q,"downsample":"2h-avg","tags":{"dc":"*"}},
			{"aggregator":"count","metric":%[3]q,"filters":[`+
				`{"type":"not_literal_or","tagk":"dc","filter":"dc-1","groupBy":false}]}]}`,
			d.Start, d.End(), d.Metric(),
		)},
		{Arrow: true, Start: d.Start, End: d.End(), M: "sum:" + d.Metric() + "{region=*}"},
	}
	var want [][]byte
	for _, q := range append(slices.Clone(questions), questions[1]) {
		answer, err := server.Ask(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, answer)
	}
	if _, err := server.Ask(t.Context(), d.Whole("sum:no.such.metric")); err == nil {
		t.Fatal("a metric that is not there was answered")
	}
	log, err := server.Ask(t.Context(), workload.Query{Path: workload.LogPath})
	if err != nil {
		t.Fatal(err)
	}
	all, left, err := workload.Record(log)
	if err != nil || left != (workload.LeftOut{Failed: 1}) || len(all) != len(want) {
		t.Fatalf("%d requests, left out %+v, %v; want %d, and the one that failed left out\n%s",
			len(all), left, err, len(want), log)
	}
	for i, q := range all {
		got, err := server.Ask(t.Context(), q)
		if err != nil {
			t.Errorf("%s: %v", q.Line(), err)
		} else if !bytes.Equal(got, want[i]) {
			t.Errorf("%s: got %d bytes, want the %d of the answer to the question\n%.300s\n%.300s",
				q.Line(), len(got), len(want[i]), got, want[i])
		}
	}
}

// Pair measures two servers in turn, Changes compares what it has measured, and different answers
// are an error.
func TestPair(t *testing.T) {
	var servers []*peer.Server
	for i := range 2 {
		d := small()
		d.Seed += uint64(i)
		servers = append(servers, gatewayWith(t, d, write.Appended))
	}
	c := bench.PairConfig{
		A:       servers[0],
		B:       servers[0],
		Queries: []workload.Query{small().Whole("sum:%s"), {Path: small().Whole("max:5m-max:%s{dc=*}").String()}},
		Rounds:  3,
	}
	figures, err := bench.Pair(t.Context(), c)
	if err != nil || len(figures) != 4 || len(figures[3].Runs) != 3 {
		t.Errorf("figures %+v, error %v; want 4 figures, the last with 3 runs", figures, err)
	}
	changes := bench.Changes(figures, c.Queries, 0.05)
	if len(changes) != 2 || changes[0].What != "sum:cpu.user" || len(changes[1].B) != 3 ||
		changes[1].Ratio.Median <= 0 {
		t.Errorf("changes %+v, want 2: first that of sum:cpu.user, then one with 3 runs and a ratio above 0", changes)
	}
	figures[3].Runs = []time.Duration{3 * figures[2].Runs[0], 3 * figures[2].Runs[1], 3 * figures[2].Runs[2]}
	x := bench.Changes(figures, c.Queries, 0.05)[1]
	if math.Abs(x.Ratio.Median-3) > 1e-9 || x.Verdict() != report.TooFew {
		t.Errorf("three times as long: %+v, want a ratio of 3 from too few rounds", x)
	}

	c.B = servers[1]
	if _, err := bench.Pair(t.Context(), c); !errors.Is(err, peer.ErrDiffer) {
		t.Errorf("other data: error %v, want ErrDiffer", err)
	}
}

// Scale measures every axis in process and through a pushdown server, and computes the aims from
// it.
func TestScale(t *testing.T) {
	st := memoryStore(t)
	d := small()
	r := report.New("scale", nil)
	cfg := bench.ScaleConfig{Store: st, Form: write.Appended, Data: d, Steps: 1, Rounds: 1, Settle: st.Flush}
	cfg.Pushdown = func(_ context.Context, prefix string, schema encoding.Schema) (string, func(), error) {
		srv, err := server.NewServer(
			server.Config{Program: "test", Table: bench.TableNames(prefix).Data, Schema: schema}, st,
		)
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
		return &bench.MeasuredGateway{
			Server: gatewayOver(t, st, prefix, pushdown),
			Peak:   func() (int64, error) { return 50 << 20, nil },
		}, nil
	}
	if err := bench.Scale(t.Context(), cfg, r); err != nil {
		t.Fatal(err)
	}
	if len(r.Curves) != 2*5+1 {
		t.Fatalf("%d curves, want 11: times and bytes by points, series, groups, parts, parts in flight; "+
			"memory by points", len(r.Curves))
	}
	rows := map[string]int{}
	for _, a := range r.Aims {
		if a.Got.Median <= 0 || a.Ours == "" || a.Theirs == "" {
			t.Errorf("aim %+v, want a ratio above 0 and both amounts", a)
		}
		rows[a.Row]++
	}
	if diff := cmp.Diff(map[string]int{"process": 2, "shipped": 2, "memory": 3}, rows); diff != "" {
		t.Errorf("aims: -want +got\n%s", diff)
	}
	for _, l := range r.Curves[10].Lines {
		if len(l.Points) != 2 || l.Points[0][1] != 50 || l.Points[1][0] != 3*l.Points[0][0] {
			t.Errorf("memory: %v, want 2 points: 50 MiB first, then three times as many data points", l)
		}
	}
	for _, c := range r.Curves[:8] {
		lines := map[string]int{}
		for _, l := range c.Lines {
			lines[l.Name] = len(l.Points)
		}
		if lines["in process, strict"] < 3 || lines["in process, strict"] != lines["pushdown process, strict"] {
			t.Errorf("%s: lines %v, want 3 points or more in process, and as many with a pushdown server",
				c.Name, lines)
		}
	}
	if n := len(r.Curves[8].Lines); n != 2 || len(r.Curves[8].Lines[0].Points) != 4 {
		t.Errorf("%s: %v, want two lines of 1, 2, 4, 8", r.Curves[8].Name, r.Curves[8].Lines)
	}
	cfg.Steps, cfg.MemorySteps = 1, []int{4, 16}
	if err := bench.Scale(t.Context(), cfg, r); err == nil ||
		!strings.HasPrefix(err.Error(), "memory-steps: got [4 16]") {
		t.Errorf("ascending steps: error %v", err)
	}
	cfg.Steps, cfg.MemorySteps = 5, nil
	if err := bench.Scale(t.Context(), cfg, r); err == nil || !strings.HasPrefix(err.Error(), "steps: got 5") {
		t.Errorf("too many steps: error %v", err)
	}
}

// Interleave runs every step in each round and begins each round with another step. Warm rounds are
// not in the figures.
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
			t.Errorf("%+v, want 3 runs with a median of 20 ns", f)
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
