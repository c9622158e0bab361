package gateway

import (
	"context"
	"fmt"
	"os"
	"slices"

	"downpour/gateway/admin/retention"
	"downpour/gateway/admin/retention/rules"
	"downpour/gateway/admin/tools"
	"downpour/pushdown/rollup"
)

// noRetention is the value of DOWNPOUR_RETENTION that keeps all rows, as no value does.
const noRetention = "off"

// retentionRules returns how long rows are kept, nil for ever.
func (c *Config) retentionRules() (*rules.Rules, error) {
	if c.Retention == "" || c.Retention == noRetention {
		return nil, nil
	}
	if age, err := rules.ParseAge(c.Retention); err == nil && age != rules.Keep {
		return rules.All(age), nil
	}

	text, err := os.ReadFile(c.Retention)
	if err != nil {
		return nil, fmt.Errorf("got %q, want off, an age such as 400d, or the path of a file of rules: %w", c.Retention, err)
	}
	config, _ := c.RollupConfig() // Validate has told of the error
	var intervals []string
	if config != nil {
		for _, i := range config.Intervals {
			if !i.Default {
				intervals = append(intervals, i.Name)
			}
		}
	}
	r, err := rules.Parse(text, intervals)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Retention, err)
	}
	return r, nil
}

// retention returns the part of these settings that says which rows are past.
func (c *Config) retention() tools.Retention {
	r, _ := c.retentionRules()     // Validate has told of the error
	rollups, _ := c.RollupConfig() // and of this one
	return tools.Retention{Rules: r, Tables: retentionTables(c.TableData, rollups)}
}

// retentionTables returns the tables with rows of metrics: that of points, and those of
// rollups and pre-aggregates. nil is no rollups.
func retentionTables(data string, rollups *rollup.Config) []retention.Table {
	all := []retention.Table{{Name: data, Span: rules.Hour}}
	add := func(t retention.Table) {
		t.Optional = true // tables of rollups and pre-aggregates are made by whoever wants them
		if !slices.ContainsFunc(all, func(o retention.Table) bool { return o.Name == t.Name }) {
			all = append(all, t)
		}
	}
	if rollups == nil {
		return all
	}
	for _, i := range rollups.Intervals {
		// Pre-aggregates that are not rolled up have rows like those of points.
		if i.Default {
			add(retention.Table{Name: i.PreTable, Interval: "", Span: rules.Hour})
			continue
		}
		add(retention.Table{Name: i.Table, Interval: i.Name, Span: i.Layout.Span})
		add(retention.Table{Name: i.PreTable, Interval: i.Name, Span: i.Layout.Span})
	}
	return all
}

// newTurns returns the turns of deleting rows that are past.
func (s *Server) newTurns() retention.Turns {
	if s.cfg.Embedded() {
		return retention.NewLocal()
	}
	return retention.NewLeased(s.store, s.cfg.TableState, s.cfg.TableData)
}

// retain starts to delete rows that are past, if there are rules. In mode ro nothing is written.
func (s *Server) retain(ctx context.Context) {
	settings := s.cfg.toolSettings(s.zone)
	if settings.Retention.Rules == nil || s.cfg.Mode == "ro" {
		return
	}
	job := settings.RetentionJob(s.store, s.names, s.cfg.Now)
	job.Rate = retention.DefaultRate
	w := &retention.Worker{Job: job, Turns: s.retention, Log: s.log}
	s.count.registry.MustRegister(w)
	s.inBackground(ctx, "retention", func() { w.Run(ctx) })
}
