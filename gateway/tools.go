package gateway

import (
	"cmp"
	"net/http"
	"time"

	"downpour/gateway/admin/activity"
	"downpour/gateway/admin/tools"
	"downpour/gateway/uid"
	"downpour/pushdown/rollup"
)

// ToolSettings returns the part of these settings that the tools need.
func (c *Config) ToolSettings() (tools.Settings, error) {
	zone, err := c.Location()
	return c.toolSettings(zone), err
}

func (c *Config) toolSettings(zone *time.Location) tools.Settings {
	var made *rollup.Config
	if c.RollupsMade() {
		made, _ = c.RollupConfig() // Validate reports an error
	}
	return tools.Settings{Rollups: made, Store: c.Store, Address: c.StoreAddress(), Embedded: c.Embedded(), Schema: c.Schema(), Tables: c.TableNames(), Compile: c.Compile(),
		Auto: c.Auto(), MaxName: c.LimitName, Retention: c.retention(), KnownWithin: cmp.Or(c.KnownWithin, uid.KnownWithin), Meta: c.metaFlags(), Trees: c.TreeProcessing, Allowed: []rune(c.AllowSpecialChars), Appends: c.EnableAppends, Zone: zone}
}

// tools returns the handler for tools of other processes, which cannot open an
// embedded store while this process has it open.
func (s *Server) tools() http.Handler {
	served := tools.Served{Settings: s.cfg.toolSettings(s.zone), Store: s.store, Names: s.names.Dictionary, Series: s.writes.series, Forest: s.names.trees,
		Points: s.writes.points, Count: sourceCounter{s.writes, activity.HTTP}, Refused: s.writes.refusals, Ending: s.ending, Turns: s.jobs.turns, Now: s.cfg.Now, ReadOnly: s.readOnly(), WriteOnly: s.cfg.Mode == "wo"}
	if tracker := s.names.tracker; tracker != nil {
		served.Flush = tracker.Flush
		served.Forget = tracker.Forget
	}
	return tools.Handler(served)
}
