package gatewaytest

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/caarlos0/env/v9"
	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/gateway"
	"downpour/gateway/metadata/tables"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/rpc/server"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/open/opentest"
	"downpour/pushdown/store/pebble"
)

// Extras makes the extras of the gateways that Config describes. A package of tests sets it before they run.
var Extras = func() []gateway.Extra { return nil }

// Config is the configuration of a gateway on a free port of loopback.
func Config(saltWidth int) *gateway.Config {
	cfg := &gateway.Config{
		Common: settings.Common{
			Store:       "pebble:test",
			TableData:   "tsdb",
			TableUID:    "tsdb-uid",
			TableMeta:   "tsdb-meta",
			TableTree:   "tsdb-tree",
			SaltWidth:   saltWidth,
			SaltBuckets: 20,
			MetricWidth: 3,
			TagKWidth:   3,
			TagVWidth:   3,
		},
		Listen:           "127.0.0.1:0",
		PutCells:         "single",
		QueryTimeout:     Patience,
		PutTimeout:       Patience,
		PushdownPatience: Patience,
	}
	cfg.Extras = Extras()
	cfg.SetDefaults()
	return cfg
}

// Parse reads the configuration of a gateway from variables, as a program does.
func Parse(variables map[string]string, extras ...gateway.Extra) (*gateway.Config, error) {
	cfg := &gateway.Config{Extras: extras}
	parsers := settings.NumberParsers[env.ParserFunc]()
	for _, part := range settings.Structs(cfg) {
		if err := env.ParseWithOptions(part, env.Options{Environment: variables, FuncMap: parsers}); err != nil {
			return nil, err
		}
	}
	cfg.SetDefaults()
	return cfg, cfg.Validate()
}

// Memory opens an embedded store in memory, with the tables of cfg. It is closed with the test.
func Memory(t *testing.T, cfg *gateway.Config) *pebble.Store {
	t.Helper()
	return opentest.EmbeddedWith(t, pebble.Options{Grouping: cfg.Schema().RowHours()},
		tables.Specs(cfg.TableNames(), cfg.Schema(), "NONE")...)
}

// Embedded opens the store of a file system, with the tables of cfg.
func Embedded(t testing.TB, cfg *gateway.Config, files vfs.FS) *pebble.Store {
	t.Helper()
	st, err := pebble.Open("data", pebble.Options{
		FS:       files,
		Grouping: cfg.Schema().RowHours(),
		Logger:   slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := tables.Create(t.Context(), st, tables.Specs(cfg.TableNames(), cfg.Schema(), "NONE")); err != nil {
		t.Fatal(err)
	}
	return st
}

// Start starts a gateway, which ends with the test.
func Start(t *testing.T, cfg *gateway.Config, st gateway.Store) *gateway.Server {
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

// Pushdown serves the store next to the gateway and returns its address.
func Pushdown(t *testing.T, cfg *gateway.Config, st store.Reader) string {
	t.Helper()
	s, err := server.NewServer(
		server.Config{Program: "test", Table: cfg.TableData, Rollups: cfg.RollupTables(), Schema: cfg.Schema()},
		st,
	)
	if err != nil {
		t.Fatal(err)
	}
	return ServeFlight(t, s)
}

// HBase opens the store of a simulated HBase, and returns it with the configuration of a gateway on it.
func HBase(t *testing.T, address string) (*gateway.Config, *hbase.Store) {
	t.Helper()
	cfg := Config(0)
	cfg.Store = "hbase:" + address
	cfg.AutoMetrics = "true"
	where, err := hbase.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	where.VersionTimeout = Patience
	st, err := hbase.Open(where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return cfg, st
}

// ServeFlight has a pushdown server serve until the test ends, and returns its address.
func ServeFlight(t *testing.T, s *server.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// Serve starts a gateway on a store.
func Serve(t *testing.T, cfg *gateway.Config, st gateway.Store) *Bench {
	t.Helper()
	of, _ := st.(*Faulty)
	return &Bench{T: t, Config: cfg, Store: of, Gateway: Start(t, cfg, st)}
}

// FakeHBase returns a store with all tables on a simulated HBase.
func FakeHBase(t *testing.T) (*gateway.Config, gateway.Store) {
	cluster := hbasefake.For(t, hbasefake.Options{})
	CreateTables(cluster)
	cfg, st := HBase(t, cluster.Address())
	cfg.AllowDelete, cfg.KnownWithin = true, time.Millisecond
	return cfg, st
}

// CreateTables creates all tables on a simulated HBase.
func CreateTables(cluster *hbasefake.Cluster) {
	for name, families := range map[string][]string{
		"tsdb": {"t"}, "tsdb-uid": {"id", "name"}, "tsdb-meta": {"name"}, "tsdb-tree": {"t"},
		"downpour-state": {"s"},
	} {
		cluster.CreateTable(name, families)
	}
}

// TwoGateways starts two gateways on the same tables of a simulated HBase.
func TwoGateways(t *testing.T, change func(*gateway.Config)) (a, b *Bench) {
	t.Helper()
	cfg, st := FakeHBase(t)
	if change != nil {
		change(cfg)
	}
	other := *cfg
	where, err := hbase.ParseAddress(strings.TrimPrefix(cfg.Store, "hbase:"))
	if err != nil {
		t.Fatal(err)
	}
	where.VersionTimeout = Patience
	otherStore, err := hbase.Open(where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { otherStore.Close() })
	return Serve(t, cfg, st), Serve(t, &other, otherStore)
}
