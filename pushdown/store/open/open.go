// Package open chooses a store by its address. Only main packages use it;
// everything else is given a store.Store.
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

// Store is a store that can also create tables, as both can.
type Store interface {
	store.Store
	store.Admin
}

// Open opens pebble:DIR or hbase:HOST:PORT[,HOST:PORT…][/znode]. An error names
// DOWNPOUR_STORE, the variable that addresses come from.
func Open(address string, log *slog.Logger) (Store, error) {
	return OpenAs(address, encoding.DefaultSchema(), 0, log)
}

// OpenAs is Open for rows of the layout s, which the embedded store counts its
// changes by, and with a cache of blocks of so many bytes there; 0 is the default.
func OpenAs(address string, s encoding.Schema, cacheBytes int64, log *slog.Logger) (Store, error) {
	return open(address, Config{Schema: s, CacheBytes: cacheBytes, Log: log})
}

// Config says how a store is opened.
type Config struct {
	Schema encoding.Schema
	Log    *slog.Logger
	// CacheBytes bounds an embedded store's cache of blocks; 0 is the default.
	CacheBytes int64
	// Salvage opens an embedded store that has lost something with what is whole.
	Salvage bool
}

// Start is OpenAs for a process that may be told to end meanwhile: an embedded
// store on a disk that is full waits for room. It returns when the context ends,
// and the store is closed as soon as it is open.
func Start(ctx context.Context, address string, cfg Config) (Store, error) {
	type opened struct {
		Store
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

// Check reads all files of an embedded store that nobody has open, and tells what
// is wrong. done is told now and then how many of how many tables are read.
func Check(ctx context.Context, address string, cfg Config, done func(tables, of int)) (store.CheckReport, error) {
	dir, ok := strings.CutPrefix(address, "pebble:")
	if !ok {
		return store.CheckReport{}, fmt.Errorf("DOWNPOUR_STORE=%s: want pebble:DIR, for only an embedded store has files of its own", address)
	}
	report, err := pebble.Check(ctx, dir, pebble.Options{Logger: cfg.Log, Head: cfg.Schema.HeadWidth()}, done)
	if err != nil {
		return report, fmt.Errorf("DOWNPOUR_STORE=%s: %w", address, err)
	}
	return report, nil
}

func open(address string, cfg Config) (Store, error) {
	kind, rest, _ := strings.Cut(address, ":")
	var st Store
	var err error
	switch kind {
	case "pebble":
		st, err = pebble.Open(rest, pebble.Options{Logger: cfg.Log, Head: cfg.Schema.HeadWidth(), Salvage: cfg.Salvage, CacheBytes: cfg.CacheBytes})
	case "hbase":
		st, err = openHBase(rest, cfg.Log)
	default:
		err = fmt.Errorf("got %q, want pebble:DIR or hbase:HOST:PORT[,HOST:PORT…][/znode]", address)
	}
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_STORE=%s: %w", address, err)
	}
	return st, nil
}

func openHBase(address string, log *slog.Logger) (Store, error) {
	cfg, err := hbase.ParseAddress(address)
	if err != nil {
		return nil, err
	}
	cfg.Logger = log
	return hbase.Open(cfg)
}
