// Command pushdown is the server that runs next to a region server: see package
// pushdown/rpc/server. It is configured by DOWNPOUR_* variables; -print-config shows them.
// With -probe /healthz or -probe /readyz it queries the server that runs with these
// variables, and ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/caarlos0/env/v9"
	"github.com/prometheus/client_golang/prometheus"

	"downpour/encoding"
	"downpour/pushdown/announce"
	"downpour/pushdown/compaction/background"
	"downpour/pushdown/process/heap"
	"downpour/pushdown/process/lasting"
	"downpour/pushdown/process/probe"
	"downpour/pushdown/process/sdnotify"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/process/version"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/rpc/auth"
	"downpour/pushdown/rpc/proof"
	"downpour/pushdown/rpc/server"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "pushdown:", err)
		os.Exit(1)
	}
}

// run is the program apart from the process: it returns when ctx ends or when the
// server cannot run.
func run(ctx context.Context, args []string, out, logs io.Writer) error {
	flags := flag.NewFlagSet("pushdown", flag.ContinueOnError)
	flags.SetOutput(logs)
	printConfig := flags.Bool("print-config", false, "print the effective configuration and end")
	path := flags.String("probe", "",
		"ask the server that runs with these settings for /healthz or /readyz, and end: with 0 if it answers 200")
	printVersion := flags.Bool("version", false, "print the version and end")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil // the usage was requested, and printed
		}
		return err
	}
	if *printVersion {
		fmt.Fprintln(out, version.String())
		return nil
	}

	cfg, err := readConfig()
	if err != nil {
		return err
	}
	if *printConfig {
		for _, v := range settings.List(&cfg) {
			fmt.Fprintf(out, "%s=%s\n", v.Name, v.Value)
		}
		return nil
	}

	if *path != "" {
		return probe.Ask(ctx, probe.URL(cfg.Listen, cfg.TLSCert != ""), *path)
	}

	return serve(ctx, cfg, cfg.Logger(logs))
}

// readConfig reads the environment. The store has no default here: an embedded
// one belongs to one process, and that is the gateway.
func readConfig() (cfg settings.Pushdown, err error) {
	if err := errors.Join(env.ParseWithOptions(&cfg, env.Options{FuncMap: settings.NumberParsers[env.ParserFunc]()}),
		settings.Unknown(os.Environ())); err != nil {
		return cfg, err
	}
	if _, ok := os.LookupEnv("DOWNPOUR_STORE"); !ok {
		return cfg, errors.New(
			"DOWNPOUR_STORE is not set, want hbase:HOST:PORT[,HOST:PORT…][/znode] " +
				"or hbase+rpc://HOST:PORT[,HOST:PORT…]")
	}
	return cfg, cfg.Validate()
}

// serve opens the store and runs the server on it until ctx ends.
func serve(ctx context.Context, cfg settings.Pushdown, log *slog.Logger) error {
	p, err := assemble(&cfg, log)
	if err != nil {
		return err
	}
	st, compacting := p.store, p.compacting
	log.Info("starting", "version", version.String(), "store", cfg.Store)
	defer st.Close()
	var work sync.WaitGroup
	defer work.Wait()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)

	// An operator who sets it here expects it to be read. Otherwise only refused parts would show
	// that its tables and layout were not.
	if path := os.Getenv("DOWNPOUR_OPENTSDB_CONF"); path != "" {
		log.Warn(
			"an opentsdb.conf is read by gateways alone: "+
				"set its tables, salt, UID widths and rollups as variables here",
			"DOWNPOUR_OPENTSDB_CONF", path)
	}

	families := []store.Families{{Table: cfg.TableData, Names: []string{encoding.FamilyData}}}
	for _, table := range cfg.RollupTablesRead() {
		families = append(families, store.Families{Table: table, Names: []string{encoding.FamilyData}})
	}
	readable := &store.ReadCheck{Store: st, Of: families, Again: rightsAgain, Log: log}
	if err := readable.AtStart(ctx); err != nil {
		return fmt.Errorf("DOWNPOUR_STORE=%s: %w", cfg.Store, err)
	}

	// While little is live, more garbage than by default may gather before a collection.
	defer heap.Pace(heap.Server, os.Getenv("GOGC"))()
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("DOWNPOUR_PUSHDOWN_LISTEN=%s: %w", cfg.Listen, err)
	}

	if compacting != nil {
		work.Go(func() { lasting.Run(ctx, log, "compaction", func() { compacting.Run(ctx) }) })
		log.Info("rows are compacted in the background", "DOWNPOUR_COMPACT", cfg.Compact, "DOWNPOUR_COMPACT_MARGIN",
			cfg.CompactMargin, "beside", cfg.Beside)
	}
	if p.announcer != nil {
		work.Go(func() { lasting.Run(ctx, log, "announcements", func() { p.announcer.Run(ctx) }) })
	}
	work.Go(func() {
		lasting.Run(ctx, log, "store", func() { store.Tell(ctx, st, cfg.TableData, encoding.FamilyData, log) })
	})
	work.Go(func() {
		if err := readable.Await(ctx); err != nil {
			err = fmt.Errorf("DOWNPOUR_STORE=%s: %w", cfg.Store, err)
			log.Error("the pushdown server ends", "err", err)
			end(err)
		}
	})
	log.Info("pushdown server listens", "address", l.Addr().String(), "store", cfg.Store, "beside", cfg.Beside)
	manager := sdnotify.Manager{Socket: os.Getenv(sdnotify.Variable), Log: log}
	manager.Ready() // calls wait at the open port until they are taken
	defer context.AfterFunc(ctx, manager.Stopping)()
	err = p.server.Serve(ctx, l)
	if fault := context.Cause(ctx); errors.Is(fault, store.ErrDenied) {
		return errors.Join(fault, err)
	}
	return err
}

// rightsAgain is the time until our rights on HBase are checked again, 0 for the default of
// store.ReadCheck. Only tests set it.
var rightsAgain time.Duration

// program is the server, and what works next to it.
type program struct {
	server     *server.Server
	compacting *background.Worker  // nil if no rows are compacted
	announcer  *announce.Announcer // nil if the server is not announced
	store      store.Store
}

// assemble builds the program. It opens its store.
func assemble(cfg *settings.Pushdown, log *slog.Logger) (*program, error) {
	tls, err := cfg.PushdownServerTLS(log)
	if err != nil {
		return nil, err
	}
	tokens, err := auth.Load(cfg.TokenFile, auth.Read, log)
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_TOKEN_FILE: %w", err)
	}
	var keys func() ([]proof.Key, error)
	if cfg.Announce != "" {
		if keys, err = announce.Keys(tokens, cfg.PushdownCA != ""); err != nil {
			return nil, fmt.Errorf("DOWNPOUR_ANNOUNCE=%s: %w", cfg.Announce, err)
		}
	}

	st, err := open.OpenAs(cfg.Store, open.Config{Schema: cfg.Schema(), Log: log, CacheBytes: cfg.StoreCacheBytes(),
		ProofByTimestamps: cfg.ProofByTimestamps(), Security: open.Security(cfg.HBaseSecurity)})
	if err != nil {
		return nil, err
	}

	// From here on the store is open, so each error closes it again.
	bytes, err := cfg.ResultCacheBytes()
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	pool, err := cfg.MemoryPool(log)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	heap.Limit(pool.Total() - cfg.OutsideHeap()) // Go does not count what C's malloc allocates

	var serving *server.Server
	compacting, err := compactor(cfg, st, log, func() int { return serving.Parts() })
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	var metrics []prometheus.Collector
	if compacting != nil {
		metrics = append(metrics, compacting)
	}
	serving, err = server.NewServer(server.Config{
		Program:     "pushdown " + version.Version,
		Beside:      cfg.Beside,
		Table:       cfg.TableData,
		Rollups:     cfg.RollupTables(),
		Schema:      cfg.Schema(),
		Allow:       allow(tokens, cfg.PushdownCA != ""),
		TLS:         tls,
		Prove:       answerer(cfg, keys),
		ResultCache: resultcache.New(pool.Cache(bytes), log),
		Memory:      pool,
		Seek:        cfg.SeekMemory(),
		Metrics:     metrics,
		Log:         log,
	}, st)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	p := &program{server: serving, compacting: compacting, store: st}
	if cfg.Announce != "" {
		p.announcer = &announce.Announcer{Store: st, Table: cfg.TableState, Keys: keys, Log: log}
		p.announcer.Of = announce.Announcement{Address: cfg.Announce, Beside: cfg.Beside, Version: version.Version,
			Table: cfg.TableData, Rollups: cfg.RollupTables()}
	}
	return p, nil
}

// answerer returns what proves to gateways that this server is the announced one, nil if it is not announced.
func answerer(cfg *settings.Pushdown, keys func() ([]proof.Key, error)) func(io.ReadWriter) error {
	if keys == nil {
		return nil
	}
	return func(c io.ReadWriter) error {
		known, err := keys()
		if err != nil {
			return err
		}
		return proof.Answer(c, cfg.Announce, known)
	}
}

// compactor returns the worker that compacts rows in the background, nil if it is off. parts
// returns how many parts of queries run.
func compactor(cfg *settings.Pushdown, st store.Store, log *slog.Logger, parts func() int) (*background.Worker, error) {
	rate, err := cfg.CompactRate()
	if rate == 0 || err != nil {
		return nil, err
	}
	w, err := background.On(st, cfg.TableState, background.Config{
		Table: cfg.TableData, Schema: cfg.Schema(), FixDuplicates: cfg.FixDuplicates, Margin: cfg.CompactMargin,
		Rate: rate, Beside: cfg.Beside, Busy: parts, Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_COMPACT: got %s, want off: %w", cfg.Compact, err)
	}
	return w, nil
}

// allow returns the function that admits callers by their token. Without a token file it returns
// nil, and all may read.
func allow(tokens *auth.Tokens, certified bool) func(token string) bool {
	switch {
	case tokens == nil && certified:
		return func(string) bool { return false }
	case tokens == nil:
		return nil
	}
	return func(token string) bool { return tokens.Check(token)&auth.Read != 0 }
}
