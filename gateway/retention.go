package gateway

import (
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
	config, _ := c.RollupConfig() // Validate reports the error
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
	r, _ := c.retentionRules()     // Validate reports the error
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
func (c *common) newTurns() retention.Turns {
	if c.cfg.Embedded() {
		return retention.NewLocal()
	}
	return retention.NewLeased(c.store, c.cfg.TableState, c.cfg.TableData)
}

// newRetention returns the worker that deletes rows that are past, nil without rules. In mode ro nothing is written.
func (c *common) newRetention(n *names, turns retention.Turns) *retention.Worker {
	settings := c.cfg.toolSettings(c.zone)
	if settings.Retention.Rules == nil || c.readOnly() {
		return nil
	}
	job := settings.RetentionJob(c.store, n.Dictionary, c.cfg.Now)
	job.Rate = retention.DefaultRate
	w := &retention.Worker{Job: job, Turns: turns, Log: c.log}
	c.count.registry.MustRegister(w)
	return w
}
