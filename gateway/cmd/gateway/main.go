// Command gateway serves OpenTSDB's API on an embedded store or on HBase.
//
//	gateway                  serve
//	gateway -create-tables   create missing tables and end
//	gateway -salvage         serve what is whole of a damaged embedded store
//	gateway -print-config    print the effective settings and end
//	gateway -probe /healthz  ask the gateway of these settings whether it lives, and end
//	gateway -version         print the version and end
//	gateway COMMAND …        a tool, see gateway help
//
// Settings come from the environment; gateway -print-config lists them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"downpour/gateway"
	"downpour/gateway/admin/audit"
	"downpour/gateway/api/origin"
	"downpour/gateway/api/standby"
	"downpour/gateway/metadata/tables"
	"downpour/pushdown/process/heap"
	"downpour/pushdown/process/probe"
	"downpour/pushdown/process/sdnotify"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/process/version"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

// options are the command line's.
type options struct {
	createTables bool
	salvage      bool
	compression  string
	printConfig  bool
	probe        string
	version      bool
}

// run runs the command that the first argument names or, if that is none or a flag, the
// gateway, until it has to end.
func run(args []string, in io.Reader, out, errs io.Writer) error {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return command(args[0], args[1:], in, out, errs)
	}
	var o options
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.BoolVar(&o.createTables, "create-tables", false, "create missing tables and end")
	flags.BoolVar(&o.salvage, "salvage", false,
		"serve an embedded store that has lost something with what is whole, and log what is lost")
	flags.StringVar(&o.compression, "compression", "NONE",
		"compression of created tables: NONE, SNAPPY, LZ4, ZSTD, GZ or LZO")
	flags.BoolVar(&o.printConfig, "print-config", false, "print the effective settings and end")
	flags.StringVar(&o.probe, "probe", "",
		"ask the gateway that runs with these settings for /healthz or /readyz, and end: with 0 if it answers 200")
	flags.BoolVar(&o.version, "version", false, "print the version and end")
	flags.Usage = func() {
		fmt.Fprint(errs, "gateway [FLAG…]\n    serve, with the settings of the environment\n")
		listCommands(errs)
		fmt.Fprint(errs, "\nflags:\n")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) { // it is printed, and was requested
			return nil
		}
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("got %q behind the flags, want nothing there", flags.Arg(0))
	}
	if o.version {
		fmt.Fprintln(out, version.String())
		return nil
	}

	cfg, notes, err := configure(environment())
	for _, n := range notes {
		fmt.Fprintln(errs, n)
	}
	// Wrong settings are shown, too: a user who asks for them may be looking for the fault.
	if o.printConfig {
		for _, v := range settings.List(cfg) {
			fmt.Fprintf(out, "%s=%s\n", v.Name, v.Value)
		}
		return err
	}
	if err != nil {
		return err
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.probe != "" {
		return probe.Ask(ctx, probe.URL(cfg.Listen, cfg.TLSCert != ""), o.probe)
	}
	return untilEnded(ctx, stop, cfg.EndWithin(), func() error { return serve(ctx, cfg, o, out) })
}

// untilEnded calls run and returns its error. Once ctx has ended, run has the time within
// to return, so that a disk that does not answer cannot keep the process alive. A second
// signal ends the process at once.
func untilEnded(ctx context.Context, stop func(), within time.Duration, run func() error) error {
	done := make(chan error, 1)
	go func() { done <- run() }()

	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}

	// From here on a signal is not caught any more: the second one kills.
	stop()
	late := time.NewTimer(within)
	defer late.Stop()

	select {
	case err := <-done:
		return err
	case <-late.C:
		return fmt.Errorf("not at an end %v after the signal; what was acknowledged is durable", within)
	}
}

// closeStore closes a store and waits for that as long as patience says. Nothing
// is lost if the store does not close: what was acknowledged is in its log.
func closeStore(st io.Closer, patience time.Duration, log *slog.Logger) {
	closed := make(chan error, 1)
	go func() { closed <- st.Close() }()

	timer := time.NewTimer(patience)
	defer timer.Stop()

	select {
	case err := <-closed:
		if err != nil {
			log.Error("the store was not closed cleanly", "err", err)
		}
	case <-timer.C:
		log.Error("the store did not close and is left as after a crash", "waited", patience)
	}
}

// createTables makes the tables because somebody requested that, which the log says.
func createTables(create func() error, address, compression string, out io.Writer, log *slog.Logger) error {
	act := &audit.Command{
		Name:      "-create-tables",
		Arguments: []string{"-compression", compression},
		User:      user(),
		Store:     address,
	}
	act.Begin(log)
	err := create()
	act.End(log, err)
	if err == nil {
		fmt.Fprintln(out, "the tables are there")
	}
	return err
}

// serve runs the gateway until ctx ends. It listens first, then opens the store. With createTables it only makes
// the tables.
func serve(ctx context.Context, cfg *gateway.Config, o options, out io.Writer) error {
	log := cfg.Logger(os.Stderr)
	if o.createTables && cfg.Embedded() {
		fmt.Fprintln(out, "nothing to do: every start creates the tables of an embedded store")
		return nil
	}
	if o.createTables {
		st, err := openToServe(ctx, cfg, o, log)
		if err != nil {
			return err
		}
		defer closeStore(st, gateway.StoreCloseTimeout, log)
		waiting := standby.New(cfg.StoreAddress(), origin.Rules{}, log)
		defer waiting.Close()
		ctx = store.OnRetry(ctx, waiting.Note)
		return createTables(func() error { return makeTables(ctx, cfg, o, st) }, cfg.Store, o.compression, out, log)
	}

	g, err := gateway.Listen(cfg, log)
	if err != nil {
		return err
	}
	// What somebody who reads the log of a failure asks first.
	log.Info("starting", "version", version.String(), "store", cfg.StoreAddress(), "mode", cfg.Mode)
	var st store.Store
	if err := g.Await(ctx, func(ctx context.Context) (err error) {
		st, err = openToServe(ctx, cfg, o, log)
		return err
	}); err != nil {
		return errors.Join(unlessStopped(ctx, err, log), g.Close())
	}
	defer closeStore(st, gateway.StoreCloseTimeout, log)

	defer heap.Pace(heap.Server, os.Getenv("GOGC"))()
	if err := start(ctx, cfg, o, g, st); err != nil {
		return errors.Join(unlessStopped(ctx, err, log), g.Close())
	}
	// Only a server that has started knows how much the process may hold.
	heap.Limit(g.Memory() - cfg.OutsideHeap())

	fmt.Fprintf(out, "Downpour is at %s\n", g.URL())
	manager := sdnotify.Manager{Socket: os.Getenv(sdnotify.Variable), Log: log}
	manager.Ready()

	fault := g.Wait(ctx)
	manager.Stopping()
	return errors.Join(fault, g.Close())
}

// unlessStopped returns the error of a start, or nil if the process got a signal to stop while it waited.
func unlessStopped(ctx context.Context, err error, log *slog.Logger) error {
	if ctx.Err() == nil {
		return err
	}
	log.Info("stopped before the store answered", "err", err)
	return nil
}

// start makes the tables of an embedded store, and has the gateway serve. An embedded store is the gateway's own, so
// its tables are created at every start; those on HBase belong to its operator.
func start(ctx context.Context, cfg *gateway.Config, o options, g *gateway.Server, st store.Store) error {
	if cfg.Embedded() {
		if err := makeTables(ctx, cfg, o, st); err != nil {
			return err
		}
	}
	return g.Start(ctx, st)
}

// openToServe opens the store of a gateway.
func openToServe(ctx context.Context, cfg *gateway.Config, o options, log *slog.Logger) (store.Store, error) {
	st, err := open.Start(ctx, cfg.Store, open.Config{
		Schema:            cfg.Schema(),
		Log:               log,
		CacheBytes:        cfg.StoreCacheBytes(),
		MemTablesBytes:    cfg.StoreMemTablesBytes(),
		Salvage:           o.salvage,
		ProofByTimestamps: cfg.ProofByTimestamps(),
		Security:          open.Security(cfg.HBaseSecurity),
	})
	if lost := (*store.DamageError)(nil); errors.As(err, &lost) {
		return nil, fmt.Errorf("%w (-salvage goes on with what is whole)", err)
	}
	return st, err
}

// makeTables makes the tables that are missing.
func makeTables(ctx context.Context, cfg *gateway.Config, o options, st store.Store) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return tables.Create(ctx, st, tables.Specs(cfg.TableNames(), cfg.Schema(), o.compression))
}
