package store

import (
	"context"
	"log/slog"
	"strings"
)

// Inspection says what the servers of a store are.
type Inspection struct {
	Version string
	// Lacks lists what they lack and what is done without it, each as "what (since when): the safe way".
	Lacks []string
}

// Tell logs in one line of which version the servers of a store are, what they lack, and which safe way
// is taken without it. Of a store that has no servers it logs nothing.
func Tell(ctx context.Context, st Reader, table, family string, log *slog.Logger) {
	inspect := st.Features().Inspect
	if inspect == nil {
		return
	}
	found, err := inspect(ctx, table, family)
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
