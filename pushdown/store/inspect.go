package store

import (
	"context"
	"log/slog"
	"strings"
)

// Inspector is a store whose servers come in versions. The one on HBase is.
type Inspector interface {
	// Inspect asks the servers which version they are, and tries, with a family of a table, what
	// shows without a change. It changes nothing.
	Inspect(ctx context.Context, table, family string) (Inspection, error)
}

// Inspection says what the servers of a store are.
type Inspection struct {
	Version string
	// Lacks lists what they lack and what is done without it, each as "what (since when): the safe way".
	Lacks []string
}

// Tell logs in one line of which version the servers of a store are, what they lack, and which safe way
// is taken without it. Of a store that has no servers it logs nothing.
func Tell(ctx context.Context, st Cells, table, family string, log *slog.Logger) {
	servers, ok := st.(Inspector)
	if !ok {
		return
	}
	found, err := servers.Inspect(ctx, table, family)
	switch {
	case ctx.Err() != nil: // the process ends
	case err != nil:
		log.Warn("what HBase lacks is not known, and found out at each call", "version", found.Version, "err", err)
	case len(found.Lacks) > 0:
		log.Warn("HBase lacks a feature", "version", found.Version, "lacks", strings.Join(found.Lacks, "; "))
	default:
		log.Info("HBase has everything that is needed", "version", found.Version)
	}
}
