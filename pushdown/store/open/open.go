// Package open opens the store of an address. Only main packages use it; all others
// are given a store.Store.
package open

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"downpour/encoding"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/pebble"
)

// Open opens the store of an address, pebble:DIR,
// hbase:HOST:PORT[,HOST:PORT…][/znode] or hbase+rpc://HOST:PORT[,HOST:PORT…], for rows of the
// default layout. An error names
// DOWNPOUR_STORE, the variable that addresses come from.
func Open(address string, log *slog.Logger) (store.Store, error) {
	return OpenAs(address, Config{Schema: encoding.DefaultSchema(), Log: log})
}

// OpenAs is Open with a configuration; the embedded store counts changes by the hours of
// the rows of its layout.
func OpenAs(address string, cfg Config) (store.Store, error) { return open(address, cfg) }

// Config is how a store is opened.
type Config struct {
	Schema encoding.Schema // layout of row keys
	Log    *slog.Logger
	// CacheBytes bounds an embedded store's cache of blocks; 0 is the default.
	CacheBytes int64
	// MemTablesBytes bounds all of its memtables together; 0 is the default.
	MemTablesBytes int64
	// ProofByTimestamps lets a store on HBase prove by timestamps that rows have not
	// changed, see hbase.ProofTimestamps.
	ProofByTimestamps bool
	// Security is that of HBase.
	Security Security
	// Salvage opens an embedded store that has lost data with what is intact.
	Salvage bool
}

// Start is OpenAs for a process that may be stopped while the store opens, which takes
// long if an embedded store waits for space on a full disk. It returns when the context
// ends; the store is then closed as soon as it is open.
func Start(ctx context.Context, address string, cfg Config) (store.Store, error) {
	type opened struct {
		store.Store
		error
	}

	done := make(chan opened, 1)
	go func() {
		st, err := open(address, cfg)
		done <- opened{st, err}
	}()

	select {
	case o := <-done:
		return o.Store, o.error
	case <-ctx.Done():
		go func() {
			if o := <-done; o.error == nil {
				o.Store.Close()
			}
		}()
		return nil, fmt.Errorf("DOWNPOUR_STORE=%s: ended while it was being opened: %w", address, ctx.Err())
	}
}

// Check reads all files of an embedded store that is not open, and reports their
// faults. done, if not nil, is called with the number of tables that are read, and of
// all there are.
func Check(ctx context.Context, address string, cfg Config, done func(tables, of int)) (store.CheckReport, error) {
	dir, ok := strings.CutPrefix(address, "pebble:")
	if !ok {
		return store.CheckReport{},
			fmt.Errorf("DOWNPOUR_STORE=%s: want pebble:DIR, for only an embedded store has files of its own", address)
	}

	report, err := pebble.Check(ctx, dir, pebble.Options{Logger: cfg.Log, Grouping: cfg.Schema.RowHours()}, done)
	if err != nil {
		return report, fmt.Errorf("DOWNPOUR_STORE=%s: %w", address, err)
	}
	return report, nil
}

// open opens the store at an address. Its error names DOWNPOUR_STORE.
func open(address string, cfg Config) (store.Store, error) {
	kind, rest, _ := strings.Cut(address, ":")

	var st store.Store
	var err error
	switch kind {
	case "pebble":
		st, err = pebble.Open(rest,
			pebble.Options{
				Logger:        cfg.Log,
				Grouping:      cfg.Schema.RowHours(),
				Salvage:       cfg.Salvage,
				CacheBytes:    cfg.CacheBytes,
				MemTableBytes: uint64(cfg.MemTablesBytes / pebble.MaxMemTables),
			})
	case "hbase":
		st, err = openHBase(hbase.ParseAddress, rest, cfg)
	case "hbase+rpc":
		st, err = openHBase(hbase.ParseNodes, rest, cfg)
	default:
		err = fmt.Errorf(
			"got %q, want pebble:DIR, hbase:HOST:PORT[,HOST:PORT…][/znode] or hbase+rpc://HOST:PORT[,HOST:PORT…]",
			address)
	}

	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_STORE=%s: %w", address, err)
	}
	return st, nil
}

// openHBase opens a cluster whose address parse reads.
func openHBase(parse func(string) (hbase.Config, error), address string, opts Config) (store.Store, error) {
	cfg, err := parse(address)
	if err != nil {
		return nil, err
	}
	cfg.Logger = opts.Log
	if opts.ProofByTimestamps {
		cfg.Proof = hbase.ProofTimestamps
	}
	cfg.RightsElsewhere = !opts.Security.CheckRights
	if cfg.Security, err = opts.Security.open(opts.Log); err != nil {
		return nil, err
	}
	if cfg.Encryption, err = opts.Security.encryption(opts.Log); err != nil {
		return nil, err
	}
	return hbase.Open(cfg)
}
