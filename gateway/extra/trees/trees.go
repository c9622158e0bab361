// Package trees is OpenTSDB's metadata trees as an extra: their routes (treeroutes), what puts new series into them
// (forest), and the rules by which that is done (tree).
package trees

import (
	"context"
	"fmt"
	"time"

	"downpour/gateway"
	"downpour/gateway/extra/trees/forest"
	"downpour/gateway/extra/trees/treeroutes"
)

// Settings are those of trees.
type Settings struct {
	// TreeProcessing puts series that get a TSMeta into trees.
	// Source: tsd.core.tree.enable_processing.
	TreeProcessing bool `env:"DOWNPOUR_TREE_PROCESSING" envDefault:"false"`
}

// SetDefaults does nothing.
func (*Settings) SetDefaults(*gateway.Config) {}

// Validate returns nil: any value will do.
func (*Settings) Validate(*gateway.Config) error { return nil }

// New returns the trees: their routes, and what puts new series into them.
func New(s *Settings) gateway.Extra {
	return gateway.Extra{Name: "trees", Settings: s, Open: s.open}
}

func (s *Settings) open(_ context.Context, c *gateway.Core) (gateway.Parts, error) {
	trees := forest.New(forest.Config{
		Store:     c.Store,
		TreeTable: c.Config.TableTree,
		UIDTable:  c.Config.TableUID,
		MetaTable: c.Config.TableMeta,
		Schema:    c.Config.Schema(),
		Names:     c.Names,
		Log:       c.Log,
	})
	h := &treeroutes.Handlers{
		Forest:    trees,
		FlushMeta: c.Metadata.FlushMeta,
		Guard:     c.Guard,
		Timeout:   c.Config.QueryTimeout,
		Now:       time.Now,
	}
	parts := gateway.Parts{Routes: h.Endpoints(), DropCaches: trees.Drop, Provides: trees}
	if !s.TreeProcessing {
		return parts, nil
	}
	parts.NewSeries = func(ctx context.Context, tsuids []string) ([]string, error) {
		again, err := trees.Add(ctx, tsuids)
		if err != nil {
			err = fmt.Errorf("not in all trees, uid treesync puts it there: %w", err)
		}
		return again, err
	}
	if flags := c.Config.MetaFlags(); !flags.Tracking || !flags.RealtimeTS {
		c.Log.Warn("puts make no TSMeta, so no series goes into trees", "want",
			"DOWNPOUR_META_TRACKING and DOWNPOUR_META_REALTIME_TS")
	}
	return parts, nil
}
