package retention

import (
	"context"
	"fmt"
	"iter"
	"os"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/extra/hostmetrics"
	"downpour/gateway/extra/retention/rules"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/uid"
	"downpour/pushdown/rollup"
	"downpour/pushdown/store"
)

// Settings are those of retention.
type Settings struct {
	// Retention is how long rows are kept: off, an age such as 400d for all points, or the
	// path of a file of rules, see package rules.
	Retention string `env:"DOWNPOUR_RETENTION" envDefault:"off"`
}

// SetDefaults does nothing.
func (*Settings) SetDefaults(*gateway.Config) {}

// Validate returns the fault of rules that cannot be read.
func (s *Settings) Validate(c *gateway.Config) error {
	if _, err := s.Rules(c); err != nil {
		return fmt.Errorf("DOWNPOUR_RETENTION: %w", err)
	}
	return nil
}

// noRetention is the value of DOWNPOUR_RETENTION that keeps all rows, as no value does.
const noRetention = "off"

// Rules returns how long rows are kept, nil for ever.
func (s *Settings) Rules(c *gateway.Config) (*rules.Rules, error) {
	if s.Retention == "" || s.Retention == noRetention {
		return nil, nil
	}
	if age, err := rules.ParseAge(s.Retention); err == nil && age != rules.Keep {
		return rules.All(age), nil
	}

	text, err := os.ReadFile(s.Retention)
	if err != nil {
		return nil, fmt.Errorf("got %q, want off, an age such as 400d, or the path of a file of rules: %w",
			s.Retention, err)
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
		return nil, fmt.Errorf("%s: %w", s.Retention, err)
	}
	return r, nil
}

// Tables returns the tables whose rows the rules are about.
func Tables(c *gateway.Config) []Table {
	rollups, _ := c.RollupConfig() // Validate reports the error
	return tablesOf(c.TableData, rollups)
}

// tablesOf returns the tables with rows of metrics: that of points, and those of
// rollups and pre-aggregates. nil is no rollups.
func tablesOf(data string, rollups *rollup.Config) []Table {
	all := []Table{{Name: data, Span: rules.Hour}}
	add := func(t Table) {
		t.Optional = true // tables of rollups and pre-aggregates are made by those who want them
		if !slices.ContainsFunc(all, func(o Table) bool { return o.Name == t.Name }) {
			all = append(all, t)
		}
	}
	if rollups == nil {
		return all
	}
	for _, i := range rollups.Intervals {
		// Pre-aggregates that are not rolled up have rows like those of points.
		if i.Default {
			add(Table{Name: i.PreTable, Interval: "", Span: rules.Hour})
			continue
		}
		add(Table{Name: i.Table, Interval: i.Name, Span: i.Layout.Span})
		add(Table{Name: i.PreTable, Interval: i.Name, Span: i.Layout.Span})
	}
	return all
}

// New returns the worker that deletes rows that are past.
func New(s *Settings) gateway.Extra {
	return gateway.Extra{Name: "retention", Settings: s, Open: s.open}
}

// open makes the worker if there are rules. In mode ro nothing is written. It provides the turns of deleting.
func (s *Settings) open(_ context.Context, c *gateway.Core) (gateway.Parts, error) {
	turns := NewTurns(c.Store, c.Config.Embedded(), c.Config.TableNames())
	parts := gateway.Parts{Provides: turns}
	ruleSet, _ := s.Rules(c.Config) // Validate reports the error
	if ruleSet == nil || c.ReadOnly() {
		return parts, nil
	}
	job := NewJob(c.Store, c.Config.Schema(), Tables(c.Config), ruleSet, c.Names, c.Config.Now)
	job.Rate = DefaultRate
	w := &Worker{Job: job, Turns: turns, Log: c.Log}
	c.Metrics.MustRegister(w)
	parts.Jobs = []gateway.Job{{Name: "retention", Run: w.Run}}
	return parts, nil
}

// NewTurns returns the turns of deleting rows that are past. An embedded store is one process's alone.
func NewTurns(st store.Store, embedded bool, names tables.Names) Turns {
	if embedded {
		return NewLocal()
	}
	return NewLeased(st, names.State, names.Data)
}

// NewJob returns the job that deletes rows that are past by rules.
func NewJob(
	st store.Store, schema encoding.Schema, of []Table, ruleSet *rules.Rules, names *uid.Dictionary,
	now func() time.Time,
) *Job {
	return &Job{Store: st, Schema: schema, Tables: of, Rules: ruleSet, Now: now, Own: hostmetrics.Collects,
		Names: func(ctx context.Context) iter.Seq2[uid.Entry, error] { return names.Each(ctx, encoding.UIDMetric, "") }}
}
