package gateway

import (
	"fmt"

	"downpour/pushdown/compaction/background"
)

// newCompactor returns the worker that compacts rows in the background, nil if there is to be none. busy returns how many
// queries run.
// Pushdown servers do that next to their region servers, and in mode ro nothing is written.
func (c *common) newCompactor(busy func() int) (*background.Worker, error) {
	rate, err := c.cfg.CompactRate()
	if rate == 0 || err != nil {
		return nil, err
	}
	if why := c.cfg.compactsNothing(); why != "" {
		c.log.Warn("this gateway compacts no rows in the background: "+why, "DOWNPOUR_COMPACT", c.cfg.Compact)
		return nil, nil
	}

	w, err := background.On(c.store, c.cfg.TableState, background.Config{
		Table: c.cfg.TableData, Schema: c.cfg.Schema(), FixDuplicates: c.cfg.FixDuplicates, Margin: c.cfg.CompactMargin,
		Rate: rate, Busy: busy, Log: c.log,
	})
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_COMPACT: got %s, want off: %w", c.cfg.Compact, err)
	}
	c.count.registry.MustRegister(w)
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
