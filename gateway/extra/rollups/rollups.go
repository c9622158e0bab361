// Package rollups makes rollups in the background, where DOWNPOUR_ROLLUPS says that they are made
// here. What rollups are for, and that an answer from them is that of the raw rows, is in package
// rollupjob.
package rollups

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/extra/retention"
	"downpour/gateway/extra/retention/rules"
	"downpour/pushdown/lease"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/rollupjob"
	"downpour/pushdown/rollupjob/background"
)

// Settings are those of the worker.
type Settings struct {
	// RollupRate is how many raw points a second are read at most to make rollups in the
	// background, where they are made here; off makes none.
	RollupRate string `env:"DOWNPOUR_ROLLUP_RATE" envDefault:"100000"`
}

// RollupRate's default, and more than a store can give.
const (
	defaultRate = "100000"
	maxRate     = 1_000_000_000
)

// SetDefaults fills in the rate.
func (s *Settings) SetDefaults(*gateway.Config) { s.RollupRate = cmp.Or(s.RollupRate, defaultRate) }

// Validate returns the fault of a rate that is none.
func (s *Settings) Validate(*gateway.Config) error {
	_, err := s.rate()
	return err
}

// rate returns the raw points a second that are read at most, 0 for no rollups in the
// background.
func (s *Settings) rate() (float64, error) {
	return settings.Rate("DOWNPOUR_ROLLUP_RATE", cmp.Or(s.RollupRate, defaultRate), maxRate,
		"raw points a second, such as "+defaultRate)
}

// writtenBefore is how long ago rollups must have been written before they can be proven while
// others are: more than the slack that the proof by timestamps leaves for clocks. The embedded
// store proves them at once.
const writtenBefore = 6 * time.Minute

// New returns the worker that makes rollups.
func New(s *Settings) gateway.Extra {
	return gateway.Extra{Name: "rollups", Settings: s, Open: s.open}
}

// open makes the worker if rollups are to be made here. In mode ro nothing is written.
func (s *Settings) open(_ context.Context, c *gateway.Core) (parts gateway.Parts, err error) {
	rate, _ := s.rate()                   // Validate reports an error
	rollups, _ := c.Config.RollupConfig() // and of this one
	if rollups == nil || !c.Config.RollupsComputed() || rate == 0 || c.ReadOnly() {
		return parts, nil
	}
	if c.Store.Features().Marker == nil {
		c.Log.Warn("no rollups are made in the background: the store makes no marks")
		return parts, nil
	}
	cfg := background.Config{Store: c.Store, Metrics: metrics(c), Rate: rate, Alone: c.Config.Embedded(),
		Leases: &lease.Keeper{Store: c.Store, Table: c.Config.TableState, Holder: lease.Holder()},
		Busy:   c.Queries.Running.Count, Memory: c.Memory, Log: c.Log,
		Job: rollupjob.Job{
			Tables:        c.Config.RollupJobTables(),
			Schema:        c.Config.Schema(),
			Config:        rollups,
			FixDuplicates: c.Config.FixDuplicates,
			Margin:        rollupjob.DefaultMargin,
			Now:           c.Config.Now,
		}}
	if !cfg.Alone {
		cfg.ProveAfter = writtenBefore
	}
	w, err := background.New(cfg)
	if err != nil {
		return parts, fmt.Errorf("DOWNPOUR_ROLLUPS: %w", err)
	}
	c.Metrics.MustRegister(w)
	parts.Jobs = []gateway.Job{{Name: "rollups", Run: w.Run}}
	return parts, nil
}

// metrics lists all metrics, with the time from which on retention leaves their raw rows.
func metrics(c *gateway.Core) func(context.Context) iter.Seq2[background.Metric, error] {
	kept, _ := gateway.SettingsOf[retention.Settings](c.Config).Rules(c.Config) // Validate reports an error
	return func(ctx context.Context) iter.Seq2[background.Metric, error] {
		return func(yield func(background.Metric, error) bool) {
			for e, err := range c.Names.Each(ctx, encoding.UIDMetric, "") {
				m := background.Metric{UID: e.UID}
				if kept != nil && err == nil {
					if rule := kept.Of(e.Name); rule != nil {
						cut, _ := rule.Age("").Cut(c.Config.Now().Unix(), rules.Hour)
						m.From = int64(cut)
					}
				}
				if !yield(m, err) {
					return
				}
			}
		}
	}
}
