// Package open chooses a store by its address. Only main packages use it;
// everything else is given a store.Store.
package open

import (
	"fmt"
	"log/slog"
	"strings"

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
	kind, rest, _ := strings.Cut(address, ":")
	var s Store
	var err error
	switch kind {
	case "pebble":
		s, err = pebble.Open(rest, pebble.Options{Logger: log})
	case "hbase":
		s, err = openHBase(rest, log)
	default:
		err = fmt.Errorf("got %q, want pebble:DIR or hbase:HOST:PORT[,HOST:PORT…][/znode]", address)
	}
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_STORE=%s: %w", address, err)
	}
	return s, nil
}

func openHBase(address string, log *slog.Logger) (Store, error) {
	cfg, err := hbase.ParseAddress(address)
	if err != nil {
		return nil, err
	}
	cfg.Logger = log
	return hbase.Open(cfg)
}
