// Package open chooses a store by its address. Only main packages use it;
// everything else is given a store.Store.
package open

import (
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
	kind, rest, _ := strings.Cut(address, ":")
	var st Store
	var err error
	switch kind {
	case "pebble":
		st, err = pebble.Open(rest, pebble.Options{Logger: log, Head: s.HeadWidth(), CacheBytes: cacheBytes})
	case "hbase":
		st, err = openHBase(rest, log)
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
