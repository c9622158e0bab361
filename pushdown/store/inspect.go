package store

import (
	"context"
	"log/slog"
	"strings"
)

// Inspection describes the servers of a store.
type Inspection struct {
	Version string
	// Lacks lists missing abilities and the alternatives, each as "what (since when): the safe
	// way".
	Lacks []string
}

// Tell logs in one line the version of a store's servers, what they lack, and the safe
// alternatives. It logs nothing for a store without servers.
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
