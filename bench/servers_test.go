//go:build integration

package bench_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"downpour/bench"
	"downpour/bench/live"
	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/scenario"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/integration/e2e"
	"downpour/integration/e2e/e2etest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open"
)

// openBenchStore opens a store as the bench command does.
func openBenchStore(address string) (store.Store, error) {
	return open.Open(address, slog.New(slog.DiscardHandler))
}

// shortData is a data set small enough that nothing takes long.
func shortData() workload.Devops {
	d := workload.Default()
	d.Hosts, d.Hours, d.Step = 30, 2, 60
	return d
}

// The rows of the table of aims are measured against the real servers, and the answers are found
// equal. The measured values are not checked. -args -soak takes all rows; without it one of each
// kind.
func TestBench_everyRow(t *testing.T) {
	t.Parallel() // its times are not checked
	r := report.New("compare", nil)
	rows := []string{
		"compacted", "floor", "dashboards", "telnet", "embedded", "memory", "raw", "pushdown", "newseries",
		"firstlook", "sparse", "newseries-hbase", "viewers", "protections",
	}
	if *e2etest.Soak {
		rows = scenario.Rows
	}
	cfg := scenario.Config{
		HBase:         e2etest.HBase(t),
		Open:          openBenchStore,
		Rows:          rows,
		Scales:        []string{"1x"},
		Data:          shortData(),
		Rounds:        1,
		BigRounds:     1,
		Connections:   2,
		Seconds:       2,
		MemoryHours:   3,
		Pods:          2000,
		HBasePods:     500,
		Viewers:       2,
		ViewersPoints: 200,
		LivingDays:    1,
		Report:        r,
		Print:         func(a report.Aim) { t.Log(a.Line()) },
		Save:          func() error { return nil },
	}
	if err := scenario.Run(e2etest.Within(t, 40*time.Minute), cfg); err != nil {
		t.Error(err)
	}
	for _, row := range rows {
		i := slices.IndexFunc(r.Aims, func(a report.Aim) bool { return a.Row == row })
		if i < 0 {
			t.Errorf("row %s is missing", row)
		} else if a := r.Aims[i]; a.Missing != "" || a.Got.Median <= 0 {
			t.Errorf("row %s: %+v", row, a)
		}
	}
	for _, name := range []string{peer.HBase, peer.OpenTSDB, peer.Victoria, peer.Downpour} {
		if !slices.ContainsFunc(r.Peers, func(p report.Peer) bool {
			return p.Name == name && p.Version != "" && p.Version != "unknown"
		}) {
			t.Errorf("no version of %s: %+v", name, r.Peers)
		}
	}
	if path, err := r.Save(t.TempDir()); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// A peer with other points is an error before anything is timed, and so is a peer that has ended.
func TestBench_difference(t *testing.T) {
	t.Parallel() // its times are not checked
	ctx := e2etest.Within(t, 5*time.Minute)
	var servers []*peer.Server
	for i := range 2 {
		d := shortData()
		d.Seed += uint64(i)
		tables := e2etest.CreateTables(t)
		st := e2etest.Must[store.Store](t)(openBenchStore("hbase:" + e2etest.HBase(t).Quorum()))
		if err := bench.Fill(ctx, st, encoding.DefaultSchema(), tables.Data, d, write.Single, nil); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		start := []func(context.Context, peer.Options) (*peer.Server, error){peer.StartOpenTSDB, peer.StartDownpour}[i]
		server := e2etest.Must[*peer.Server](t)(
			start(ctx, peer.Options{Quorum: e2etest.HBase(t).Quorum(), Tables: tables}),
		)
		t.Cleanup(func() { server.Close() })
		servers = append(servers, server)
	}
	_, err := bench.Pair(ctx, bench.PairConfig{
		A:       servers[0],
		B:       servers[1],
		Queries: []workload.Query{shortData().Whole("sum:5m-avg:%s")},
		Rounds:  1,
	})
	if !errors.Is(err, peer.ErrDiffer) {
		t.Errorf("error %v, want a difference", err)
	}
	servers[0].Process.Kill()
	_, err = bench.Pair(ctx, bench.PairConfig{
		A:       servers[0],
		B:       servers[1],
		Queries: []workload.Query{shortData().Whole("sum:5m-avg:%s")},
		Rounds:  1,
	})
	if err == nil || !strings.HasPrefix(err.Error(), "OpenTSDB has ended") {
		t.Errorf("a dead peer: error %v", err)
	}
}

// Scale measures every axis on a real HBase, also through a pushdown server in a process of its
// own.
func TestBench_scaleOnHBase(t *testing.T) {
	t.Parallel() // its times are not checked
	ctx := e2etest.Within(t, 8*time.Minute)
	st := e2etest.Must[store.Store](t)(openBenchStore("hbase:" + e2etest.HBase(t).Quorum()))
	defer st.Close()

	r := report.New("scale", nil)
	cfg := bench.ScaleConfig{Store: st, Form: write.MultiPoint, Data: shortData(), Steps: 1, Rounds: 1,
		Buckets: []int{1, 4}, InFlight: []int{1, 4}, MemorySteps: []int{900, 225}}
	cfg.OnHBase(e2etest.HBase(t).Quorum(), "", nil)
	if err := bench.Scale(ctx, cfg, r); err != nil {
		t.Error(err)
	}
	if len(r.Curves) != 11 || len(r.Aims) != 7 {
		t.Errorf("%d curves and %d aims, want 11 and 7", len(r.Curves), len(r.Aims))
	}
}

// Live queries and the Arrow answer are measured on a real HBase, on rows as puts leave them, and
// their answers are found equal. Many sockets are measured on the embedded store only.
func TestBench_liveOnHBase(t *testing.T) {
	ctx := e2etest.Within(t, 5*time.Minute)
	names, h := e2etest.CreateTables(t), e2etest.HBase(t)
	server := e2etest.Must[*peer.Server](t)(peer.StartDownpour(ctx, peer.Options{Quorum: h.Quorum(), Tables: names}))
	defer server.Close()
	st := e2etest.Must[store.Store](t)(openBenchStore("hbase:" + h.Quorum()))
	defer st.Close()
	d := shortData()
	d.Hours, d.Step = 1, 10
	r := report.New("live", nil)
	c := live.Config{
		Server:  server,
		Store:   live.HBase,
		Parts:   []string{"frames", "tick", "answers"},
		Data:    d,
		Sockets: []int{2},
		Puts:    2,
		Every:   50 * time.Millisecond,
		Rounds:  1,
		Report:  r,
		Tick:    live.TickConfig{CPU: h.CPU, Plans: 2, Seconds: 1, Rounds: 1, Asks: 1, Downsample: "5m-avg"},
	}
	c.Floor = func(ctx context.Context, metric string) (*bench.Floor, error) {
		id, err := uid.New(uid.Config{Store: st, Table: names.UID, Schema: encoding.DefaultSchema()}).
			Resolve(ctx, encoding.UIDMetric, metric)
		return &bench.Floor{Store: st, Schema: encoding.DefaultSchema(), Table: names.Data, Metric: id}, err
	}
	if err := live.Run(ctx, c); err != nil {
		t.Fatal(err)
	}
	// A tick may be lost in the noise.
	if n := len(r.Figures); len(r.Latencies) != 1 || n != 3+2+2*3 && n != 2+2+2*3 || len(r.Aims) != 2 {
		t.Errorf("%d latencies, %d figures, %d aims", len(r.Latencies), len(r.Figures), len(r.Aims))
	}
	for _, f := range r.Figures {
		if f.Median() <= 0 || f.Work <= 0 {
			t.Errorf("%+v", f)
		}
	}
}

// The bench command, run as users run it, measures frames of live charts at the sockets of a
// gateway process, and an interrupted comparison says what it left out.
func TestBench_command(t *testing.T) {
	t.Parallel() // its times are not checked
	ctx := e2etest.Within(t, 5*time.Minute)
	dir := t.TempDir()
	status, out, err := e2e.Run(ctx, "./bench/cmd/bench", e2e.ProgramOptions{Dir: e2etest.Must[string](t)(e2e.Root()),
		Args: []string{"live", "-stores", "embedded", "-sockets", "1,20", "-puts", "3", "-every", "50ms",
			"-crowd", "40", "-plans", "4", "-hosts", "30", "-hours", "1", "-seconds", "1",
			"-ticks", "1", "-asks", "1", "-rounds", "1", "-results", dir}})
	if err != nil || status != 0 {
		t.Errorf("status %d, %v\n%s", status, err, out)
	}
	for _, want := range []string{
		"put to frame, embedded, sockets: 20",
		"40 sockets on 4 plans, a tenth each stalled, slow and half-open", "asking again, CPU, embedded",
		"points as Arrow, embedded",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if pages := e2etest.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "*.html"))); len(pages) != 1 {
		t.Errorf("%d pages, want 1\n%s", len(pages), out)
	}
	path := e2etest.Must[string](t)(e2e.Build(ctx, "./bench/cmd/bench"))
	p, err := e2e.Start(ctx, e2e.Command{Name: "bench", Path: path,
		Dir: e2etest.Must[string](t)(e2e.Root()), Interactive: true,
		Args: []string{"compare", "-rows", "memory,http", "-scales", "1x", "-memory-hours", "5000", "-results", dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(p.Log)
	defer p.Kill()
	// The first byte of the table's head shows that the run has begun.
	if _, err := p.Stdout.Read(make([]byte, 1)); err != nil {
		t.Fatalf("%v\n%s", err, p.LogTail(20))
	}
	if err := p.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	said := string(e2etest.Must[[]byte](t)(io.ReadAll(p.Stdout)))
	code := p.ExitCode(ctx)
	for _, want := range []string{"left undone: ", "memory at 1x", "go on with: bench compare -resume "} {
		if code != 1 || !strings.Contains(said, want) {
			t.Errorf("status %d, want 1 and %q in\n%s\n%s", code, want, said, p.LogTail(5))
		}
	}
}
