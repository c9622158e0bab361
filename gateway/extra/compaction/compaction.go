// Package compaction compacts rows in the background, in a gateway that has no pushdown servers to do it.
package compaction

import (
	"context"
	"fmt"

	"downpour/gateway"
	"downpour/pushdown/compaction/background"
	"downpour/pushdown/process/settings"
)

// Settings are those of the job; a pushdown server has the same.
type Settings struct{ settings.Compaction }

// SetDefaults does nothing.
func (*Settings) SetDefaults(*gateway.Config) {}

// Validate returns all faults, each with its variable.
func (s *Settings) Validate(c *gateway.Config) error { return s.Compaction.Validate(&c.Common) }

// New returns the job.
func New(s *Settings) gateway.Extra {
	return gateway.Extra{Name: "compaction", Settings: s, Open: s.open}
}

func (s *Settings) open(_ context.Context, c *gateway.Core) (parts gateway.Parts, err error) {
	rate, err := s.CompactRate()
	if rate == 0 || err != nil {
		return parts, err
	}
	if why := compactsNothing(c.Config); why != "" {
		c.Log.Warn("this gateway compacts no rows in the background: "+why, "DOWNPOUR_COMPACT", s.Compact)
		return parts, nil
	}

	w, err := background.On(c.Store, c.Config.TableState, background.Config{
		Table:         c.Config.TableData,
		Schema:        c.Config.Schema(),
		FixDuplicates: c.Config.FixDuplicates,
		Margin:        s.CompactMargin,
		Rate:          rate,
		Busy:          c.Queries.Running.Count,
		Log:           c.Log,
	})
	if err != nil {
		return parts, fmt.Errorf("DOWNPOUR_COMPACT: got %s, want off: %w", s.Compact, err)
	}
	c.Metrics.MustRegister(w)
	parts.Jobs = []gateway.Job{{Name: "compaction", Run: func(ctx context.Context) {
		c.Log.Info("rows are compacted in the background", "DOWNPOUR_COMPACT", s.Compact, "DOWNPOUR_COMPACT_MARGIN",
			s.CompactMargin)
		w.Run(ctx)
	}}}
	return parts, nil
}

// compactsNothing returns why a gateway compacts no rows, although it is set to; "" if it does.
func compactsNothing(c *gateway.Config) string {
	switch {
	case len(c.Pushdown) > 0:
		return "DOWNPOUR_PUSHDOWN names pushdown servers, which do it next to the regions: set DOWNPOUR_COMPACT in " +
			"their settings"
	case c.Mode == "ro":
		return "DOWNPOUR_MODE=ro writes nothing"
	}
	return ""
}
