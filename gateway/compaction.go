package gateway

import (
	"context"
	"fmt"

	"downpour/pushdown/compaction/background"
)

// newCompactor returns the worker that compacts rows in the background, nil if there is to be none.
// Pushdown servers do that beside their region servers, and in mode ro nothing is written.
func (s *Server) newCompactor() (*background.Worker, error) {
	rate, err := s.cfg.CompactRate()
	if rate == 0 || err != nil {
		return nil, err
	}
	if why := s.cfg.compactsNothing(); why != "" {
		s.log.Warn("this gateway compacts no rows in the background: "+why, "DOWNPOUR_COMPACT", s.cfg.Compact)
		return nil, nil
	}

	w, err := background.On(s.store, s.cfg.TableState, background.Config{
		Table: s.cfg.TableData, Schema: s.cfg.Schema(), FixDuplicates: s.cfg.FixDuplicates, Margin: s.cfg.CompactMargin,
		Rate: rate, Busy: s.ops.queries.Count, Log: s.log,
	})
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_COMPACT: got %s, want off: %w", s.cfg.Compact, err)
	}
	s.count.registry.MustRegister(w)
	return w, nil
}

// compactsNothing returns why this gateway compacts no rows, although it is set to; "" if it does.
func (c *Config) compactsNothing() string {
	switch {
	case len(c.Pushdown) > 0:
		return "DOWNPOUR_PUSHDOWN names pushdown servers, which do it beside the regions: set DOWNPOUR_COMPACT in their settings"
	case c.Mode == "ro":
		return "DOWNPOUR_MODE=ro writes nothing"
	}
	return ""
}

// compact starts to compact rows, if there is a worker for that.
func (s *Server) compact(ctx context.Context) {
	if w := s.compactor; w != nil {
		s.inBackground(ctx, "compaction", func() { w.Run(ctx) })
		s.log.Info("rows are compacted in the background", "DOWNPOUR_COMPACT", s.cfg.Compact, "DOWNPOUR_COMPACT_MARGIN", s.cfg.CompactMargin)
	}
}
