//go:build integration

package integration

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/integration/compare"
	"downpour/integration/e2e"
)

// The version before this one. Until a release is tagged it is named by its last commit: the one
// before the first line of the changelog that is not under 0.1.0.
const (
	earlierVersion = "0.1.0"
	earlierCommit  = "5b4dcbf00e46acc527da5069d4ddbdde6c165341"
)

// earlier returns the programs of the version before, built from the history of the repository. They
// are kept in build/bin for the next run.
func earlier(t *testing.T) (gateway, pushdown string) {
	t.Helper()
	earlierOnce.Lock()
	defer earlierOnce.Unlock()
	ctx := within(t, 10*time.Minute)
	root := must[string](t)(e2e.Root())
	dir := filepath.Join(root, "build", "bin", earlierVersion+"-"+earlierCommit[:12])
	gateway, pushdown = filepath.Join(dir, "gateway"), filepath.Join(dir, "pushdown")
	if _, err := os.Stat(pushdown); err == nil {
		return gateway, pushdown
	}

	if !e2e.HasCommit(ctx, root, earlierCommit) {
		t.Fatalf("the version before, %s, cannot be built: this clone has no commit %s, "+
			"want its whole history (git fetch --unshallow)", earlierVersion, earlierCommit)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	// Built elsewhere and then moved, so that an interrupted build leaves nothing that looks whole.
	making := filepath.Join(must[string](t)(os.MkdirTemp(filepath.Dir(dir), "earlier-")), "programs")
	defer os.RemoveAll(filepath.Dir(making))
	if err := e2e.BuildRevision(ctx, root, earlierCommit, making); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(making, dir); err != nil {
		t.Fatal(err)
	}
	return gateway, pushdown
}

var earlierOnce sync.Mutex

// An embedded store that the version before has written is opened, and answers as it did there,
// whether the earlier gateway was stopped or killed. It takes points, and passes the check.
func TestUpgrade_embeddedStore(t *testing.T) {
	t.Parallel()
	gateway, _ := earlier(t)
	for name, end := range map[string]func(context.Context, *e2e.Program) error{
		"stopped": func(ctx context.Context, g *e2e.Program) error { return g.Process.Stop(ctx) },
		"killed":  func(_ context.Context, g *e2e.Program) error { g.Process.Kill(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t, 5*time.Minute)
			dir := t.TempDir()
			env := map[string]string{"DOWNPOUR_SELF_METRICS": "0"}
			old := startGateway(t, e2e.ProgramOptions{Path: gateway, Dir: dir, Env: env})
			put(ctx, t, old.URL, introduce())
			put(ctx, t, old.URL, dataset(31))
			var truth []compare.Answer
			for _, q := range questions() {
				truth = append(truth, ask(ctx, t, old.URL, q))
			}
			if err := end(ctx, old); err != nil {
				t.Fatal(err)
			}

			now := startGateway(t, e2e.ProgramOptions{Dir: dir, Env: env})
			for i, q := range questions() {
				r, err := (compare.Comparer{Permits: compare.Standard}).Answers(truth[i], ask(ctx, t, now.URL, q))
				if err != nil || !r.Equal() {
					t.Errorf("%s: error %v, %v\n%s%s", q.name, err, r, q.path, q.body)
				}
			}
			w := &robinWriter{name: "after"}
			for n := range int64(100) {
				put(ctx, t, now.URL, []e2e.Point{robinPoint("load.int", w.name, n)})
			}
			a := ask(ctx, t, now.URL, question{path: strings.Replace(w.path(), "robin.points", "load.int", 1)})
			w.sent.Store(100)
			w.read(t, e2e.Answer{Status: a.Status, Body: a.Body}, 100)
			if err := now.Process.Stop(ctx); err != nil {
				t.Fatal(err)
			}
			if status, out, err := e2e.Run(ctx, gatewayProgram,
				e2e.ProgramOptions{Dir: dir, Env: env, Args: []string{"check"}}); status != 0 || err != nil {
				t.Errorf("check: status %d, %v\n%s", status, err, out)
			}
		})
	}
}

// Gateways and pushdown servers of the version before are exchanged for this one's, one by one, while
// clients put and query through a balancer, in an order that mixes them in every way. No request is
// refused, no answer is wrong, and in the end either gateway has each acknowledged point. Whatever the mixture, the
// parts of plans that both versions know are read by the servers of both, and none by a gateway.
func TestUpgrade_oneByOne(t *testing.T) {
	t.Parallel()
	oldGateway, oldPushdown := earlier(t)
	ctx := within(t, 15*time.Minute)
	for _, program := range []string{gatewayProgram, "./pushdown/cmd/pushdown"} { // not while the clients wait
		must[string](t)(e2e.Build(ctx, program))
	}
	l := layouts[1]
	tables := createTables(t, []byte{1}, []byte{2}, []byte{3})
	var servers, gateways [2]*e2e.Program
	serverEnv := func(i int) map[string]string {
		env := l.env(t, tables)
		delete(env, "DOWNPOUR_AUTO_METRICS") // a pushdown server puts nothing
		env["DOWNPOUR_BESIDE"] = hbase(t).RegionServerAddr(i % hbase(t).Len())
		return env
	}
	for i := range servers {
		servers[i] = must[*e2e.Program](t)(
			e2e.StartPushdown(ctx, e2e.ProgramOptions{Path: oldPushdown, Env: serverEnv(i)}),
		)
		closeAtEnd(t, servers[i])
	}
	env := map[string]string{"DOWNPOUR_PUSHDOWN": servers[0].Addr + "," + servers[1].Addr}
	maps.Copy(env, l.env(t, tables))
	for i := range gateways {
		gateways[i] = startGateway(t, e2e.ProgramOptions{Path: oldGateway, Env: env})
	}

	b := newBalanced(ctx, t, gateways[0].URL, gateways[1].URL)
	work := b.load(ctx, gateways[0].URL)
	mixed := &mixture{b: b, gateways: &gateways, servers: len(servers), truth: map[string]compare.Answer{}}
	mixed.same(ctx, "all of the version before")
	exchangeServer := func(i int) {
		if err := servers[i].Process.Stop(ctx); err != nil {
			t.Fatal(err)
		}
		work.await(ctx, 5, 5) // without the server
		env := serverEnv(i)
		env["DOWNPOUR_PUSHDOWN_LISTEN"] = servers[i].Addr
		servers[i] = must[*e2e.Program](t)(e2e.StartPushdown(ctx, e2e.ProgramOptions{Env: env}))
		closeAtEnd(t, servers[i])
		work.await(ctx, 10, 10)
	}
	exchangeGateway := func(i int) {
		b.takeOut(ctx, i) // as an operator does, for the version before does not notify its balancer
		if err := gateways[i].Process.Stop(ctx); err != nil {
			t.Fatal(err)
		}
		work.await(ctx, 5, 5)
		env := maps.Clone(env)
		env["DOWNPOUR_LISTEN"] = gateways[i].Addr
		gateways[i] = startGateway(t, e2e.ProgramOptions{Env: env})
		b.takeIn(ctx, i)
		work.await(ctx, 10, 10)
	}
	exchangeServer(0)
	mixed.same(ctx, "one server of this version")
	exchangeGateway(0)
	mixed.same(ctx, "one server and one gateway of this version")
	exchangeGateway(1)
	mixed.same(ctx, "one server of the version before")
	exchangeServer(1)
	mixed.same(ctx, "all of this version")
	work.end()
	for _, g := range gateways {
		work.check(ctx, g.URL)
	}
	mixed.healthy(ctx, work.writers[0].path())
	t.Logf("%d batches and %d queries answered, %d requests failed",
		work.batches.Load(), work.queries.Load(), work.refused.Load())
	if n := work.refused.Load() + b.failed.Load(); n != 0 {
		t.Errorf("%d requests were refused or failed, want none", n)
	}
}

// Gateways behind a balancer that asks for /readyz are started again one after the other by SIGTERM
// alone, under load: with DOWNPOUR_DRAIN the balancer has time to notice, and no request fails.
func TestDrain_behindBalancer(t *testing.T) {
	t.Parallel()
	ctx := within(t, 10*time.Minute)
	l, tables := layouts[0], createTables(t)
	var gateways [2]*e2e.Program
	for i := range gateways {
		gateways[i] = l.gateway(t, tables, map[string]string{"DOWNPOUR_DRAIN": "10s"})
	}
	b := newBalanced(ctx, t, gateways[0].URL, gateways[1].URL)
	work := b.load(ctx, gateways[0].URL)
	for i, g := range gateways {
		if err := g.Process.Stop(ctx); err != nil {
			t.Fatal(err)
		}
		work.await(ctx, 5, 5)
		if err := g.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		b.takeIn(ctx, i)
		work.await(ctx, 10, 10)
	}
	work.end()
	for _, g := range gateways {
		work.check(ctx, g.URL)
	}
	if n := work.refused.Load() + b.failed.Load(); n != 0 {
		t.Errorf("%d requests were refused or failed, want none", n)
	}
	t.Logf("%d batches and %d queries answered", work.batches.Load(), work.queries.Load())
}
