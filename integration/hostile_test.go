//go:build integration

package integration

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/metadata/tables"
	"downpour/integration/e2e"
	"downpour/integration/hostile"
	"downpour/integration/hostile/storm"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open"
)

var (
	requestsFlag = flag.Int("requests", 2000, "how many hostile requests")
	lastsFlag    = flag.Duration("lasts", time.Hour, "how long the soak form of hostile requests lasts")
)

// hostileMemory is DOWNPOUR_MEMORY of each stormed process, hostileTimeout the stormed gateway's
// query timeout.
const (
	hostileMemory  = 256 << 20
	hostileTimeout = 5 * time.Second
)

// A gateway with 256 MiB gets requests that no good client sends, sixteen at a time, and keeps what
// package storm demands. The soak form lasts an hour, in turn on an embedded store and on HBase
// with two pushdown servers.
func TestHostile(t *testing.T) {
	seed := seedtest.Of(t)
	if !*soak {
		t.Run("embedded", func(t *testing.T) {
			s := embeddedScene(within(t, 20*time.Minute), t)
			s.storm(within(t, 30*time.Minute), t, storm.Config{Seed: seed, Requests: *requestsFlag, Compare: 3})
		})
		return
	}
	const turns = 4
	for i := range turns {
		scene := []func(context.Context, *testing.T) hostileScene{embeddedScene, hbaseScene}[i%2]
		t.Run(fmt.Sprintf("turn %d", i), func(t *testing.T) {
			s := scene(within(t, 20*time.Minute), t)
			s.storm(within(t, *lastsFlag+40*time.Minute), t,
				storm.Config{Seed: seed + uint64(i), For: *lastsFlag / turns})
		})
	}
}

// hostileScene are the processes of a storm.
type hostileScene struct {
	world           *hostile.World
	gateway, oracle *e2e.Program
	pushdown        []*e2e.Program
}

func (s *hostileScene) storm(ctx context.Context, t *testing.T, cfg storm.Config) {
	t.Helper()
	// Resident memory may be a quarter above DOWNPOUR_MEMORY.
	cfg.World = s.world
	cfg.Gateway = s.gateway
	cfg.Oracle = s.oracle
	cfg.Timeout = hostileTimeout
	cfg.Memory = hostileMemory / 4 * 5
	cfg.Logf = t.Logf
	cfg.Watched = []*e2e.Process{s.gateway.Process}
	for _, p := range s.pushdown {
		cfg.Watched = append(cfg.Watched, p.Process)
	}
	report, err := storm.Run(ctx, cfg)
	if report != nil {
		t.Logf("%s", report.Text())
		for i, b := range report.Breaches {
			if i < 10 {
				t.Error(b)
			}
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// bounded are the settings of the stormed processes, unbounded those of the oracle.
func bounded(more map[string]string) map[string]string {
	env := map[string]string{
		"DOWNPOUR_SELF_METRICS":    "0",
		"DOWNPOUR_PROFILING":       "true",
		"DOWNPOUR_TREE_PROCESSING": "true",
		"DOWNPOUR_MEMORY":          fmt.Sprint(hostileMemory),
		"DOWNPOUR_QUERY_TIMEOUT":   hostileTimeout.String(),
		"DOWNPOUR_HISTOGRAMS":      `{"net.opentsdb.core.SimpleHistogramDecoder": 42}`,
	}
	maps.Copy(env, more)
	return env
}

func unbounded(more map[string]string) map[string]string {
	env := map[string]string{
		"DOWNPOUR_SELF_METRICS":  "0",
		"DOWNPOUR_MEMORY":        "16GiB",
		"DOWNPOUR_RESULT_CACHE":  "off",
		"DOWNPOUR_QUERY_TIMEOUT": "3m",
		"DOWNPOUR_HISTOGRAMS":    `{"net.opentsdb.core.SimpleHistogramDecoder": 42}`,
	}
	maps.Copy(env, more)
	return env
}

// embeddedScene is the stormed gateway on an embedded store, and the oracle on a copy of it.
func embeddedScene(ctx context.Context, t *testing.T) hostileScene {
	t.Helper()
	s := hostileScene{world: hostile.NewWorld(encoding.DefaultSchema())}
	dir := t.TempDir()
	first, second := filepath.Join(dir, "stormed"), filepath.Join(dir, "oracle")
	names := tables.Names{Data: "tsdb", UID: "tsdb-uid", Meta: "tsdb-meta", Tree: "tsdb-tree"}
	s.load(ctx, t, "pebble:"+first, names)
	if err := os.CopyFS(second, os.DirFS(first)); err != nil {
		t.Fatal(err)
	}
	s.gateway = startGateway(t, e2e.ProgramOptions{
		Env: bounded(map[string]string{"DOWNPOUR_STORE": "pebble:" + first, "DOWNPOUR_ROLLUPS": hostile.Rollups}),
	})
	s.oracle = startGateway(t, e2e.ProgramOptions{
		Env: unbounded(map[string]string{"DOWNPOUR_STORE": "pebble:" + second, "DOWNPOUR_ROLLUPS": hostile.Rollups}),
	})
	return s
}

// hbaseScene is the stormed gateway on HBase with two pushdown servers, and the oracle, a gateway
// on the same tables without any.
func hbaseScene(ctx context.Context, t *testing.T) hostileScene {
	t.Helper()
	s := hostileScene{world: hostile.NewWorld(layouts[0].schema())}
	made := createTables(t, []byte{0, 0, 2}, []byte{0, 0, 3}, []byte{0, 0, 5})
	env := layouts[0].env(t, made)
	names := tables.Names{Data: made.Data, UID: made.UID, Meta: made.Meta, Tree: made.Tree}
	s.load(ctx, t, env["DOWNPOUR_STORE"], names)
	var addresses string
	for i := range 2 {
		p := must[*e2e.Program](t)(e2e.StartPushdown(ctx,
			e2e.ProgramOptions{Env: forPushdown(bounded(env), hbase(t).RegionServerAddr(i%hbase(t).Len()))}))
		closeAtEnd(t, p)
		s.pushdown = append(s.pushdown, p)
		addresses += "," + p.Addr
	}
	s.gateway = startGateway(t, e2e.ProgramOptions{Env: withEnv(bounded(env), "DOWNPOUR_PUSHDOWN", addresses[1:])})
	s.oracle = startGateway(t, e2e.ProgramOptions{Env: unbounded(env)})
	return s
}

// load writes the world's cells straight into the store.
func (s *hostileScene) load(ctx context.Context, t *testing.T, address string, names tables.Names) {
	t.Helper()
	for _, program := range []string{"./gateway/cmd/gateway", "./pushdown/cmd/pushdown"} {
		must[string](t)(e2e.Build(ctx, program)) // which may take longer than a start
	}
	began := time.Now()
	st := must[store.Store](t)(open.Open(address, slog.New(slog.DiscardHandler)))
	if err := tables.Create(ctx, st, tables.Specs(names, s.world.Schema, "NONE")); err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct {
		table string
		cells iter.Seq[encoding.Cell]
	}{{names.UID, s.world.Names()}, {names.Data, s.world.Rows()}, {names.Meta, s.world.Series()}} {
		if err := loadCells(ctx, st, of.table, of.cells); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("loaded in %.1f s", time.Since(began).Seconds())
}

func loadCells(ctx context.Context, st store.Store, table string, cells iter.Seq[encoding.Cell]) error {
	var batch []store.Mutation
	bytes := 0
	for c := range cells {
		batch = append(batch, store.Mutation{
			Kind:      store.Put,
			Row:       c.Row,
			Family:    c.Family,
			Qualifier: c.Qualifier,
			Value:     c.Value,
			Timestamp: hostile.Era * 1000,
		})
		if bytes += len(c.Value); len(batch) >= 5000 || bytes > 4<<20 {
			if err := st.Apply(ctx, table, batch); err != nil {
				return err
			}
			batch, bytes = batch[:0], 0
		}
	}
	return st.Apply(ctx, table, batch)
}

func withEnv(env map[string]string, name, value string) map[string]string {
	env[name] = value
	return env
}

// forPushdown leaves out what a pushdown server does not know.
func forPushdown(env map[string]string, beside string) map[string]string {
	for _, name := range []string{
		"DOWNPOUR_SELF_METRICS", "DOWNPOUR_PROFILING", "DOWNPOUR_QUERY_TIMEOUT", "DOWNPOUR_AUTO_METRICS",
		"DOWNPOUR_HISTOGRAMS",
	} {
		delete(env, name)
	}
	return withEnv(env, "DOWNPOUR_BESIDE", beside)
}
