package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"downpour/encoding"
	"downpour/gateway/admin/retention/rules"
	"downpour/gateway/query/plan"
	"downpour/pushdown/lease"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/rollup"
	"downpour/pushdown/rollupjob"
	"downpour/pushdown/rollupjob/background"
)

// RollupsConfig holds how rollups and pre-aggregates are told apart; which there are is
// settings.Common.Rollups. Source: tsd.rollups.*.
type RollupsConfig struct {
	// RollupTagKey is the tag key of pre-aggregates, and RollupRawValue its value where data
	// is not aggregated. Source: tsd.rollups.agg_tag_key, raw_agg_tag_value.
	RollupTagKey   string `env:"DOWNPOUR_ROLLUP_TAG_KEY" envDefault:"_aggregate"`
	RollupRawValue string `env:"DOWNPOUR_ROLLUP_RAW_VALUE" envDefault:"RAW"`
	// RollupTagRaw gives rollups of single series the tag, too. Source: tsd.rollups.tag_raw.
	RollupTagRaw bool `env:"DOWNPOUR_ROLLUP_TAG_RAW" envDefault:"false"`
	// RollupBlockDerived refuses to store averages and deviations.
	// Source: tsd.rollups.block_derived.
	RollupBlockDerived bool `env:"DOWNPOUR_ROLLUP_BLOCK_DERIVED" envDefault:"true"`
	// RollupSplit reads raw data where a rollup may not be there yet, because its interval
	// says how late it may be. Source: tsd.rollups.split_query.enable.
	RollupSplit bool `env:"DOWNPOUR_ROLLUP_SPLIT" envDefault:"false"`
	// RollupRate is how many raw points a second are read at most to make rollups in the
	// background, where they are made here; off makes none.
	RollupRate string `env:"DOWNPOUR_ROLLUP_RATE" envDefault:"100000"`
}

// RollupRate's default, and more than a store can give.
const (
	defaultRollupRate = "100000"
	maxRollupRate     = 1_000_000_000
)

func (c *RollupsConfig) setDefaults() {
	c.RollupTagKey = cmp.Or(c.RollupTagKey, "_aggregate")
	c.RollupRawValue = cmp.Or(c.RollupRawValue, "RAW")
	c.RollupRate = cmp.Or(c.RollupRate, defaultRollupRate)
}

// rollupRate returns the raw points a second that are read at most, 0 for no rollups in the
// background.
func (c *RollupsConfig) rollupRate() (float64, error) {
	return settings.Rate("DOWNPOUR_ROLLUP_RATE", cmp.Or(c.RollupRate, defaultRollupRate), maxRollupRate, "raw points a second, such as "+defaultRollupRate)
}

// validate checks that the tag can be stored, and the rate.
func (c *RollupsConfig) validate() (errs []error) {
	if _, err := c.rollupRate(); err != nil {
		errs = append(errs, err)
	}
	for _, v := range []struct{ name, got string }{{"DOWNPOUR_ROLLUP_TAG_KEY", c.RollupTagKey}, {"DOWNPOUR_ROLLUP_RAW_VALUE", c.RollupRawValue}} {
		if err := encoding.ValidateName("name", v.got); err != nil {
			errs = append(errs, fmt.Errorf("%s: got %q: %w", v.name, v.got, err))
		}
	}
	return errs
}

// validateMade checks that rollups that we make ourselves can be read as raw data is: they
// have the tags of the series.
func (c *Config) validateMade() error {
	if c.RollupsMade() && c.RollupTagRaw {
		return errors.New("DOWNPOUR_ROLLUP_TAG_RAW: got true, want false with DOWNPOUR_ROLLUPS=auto:…, whose rollups have the tags of their series")
	}
	return nil
}

// compileWith returns the settings that scan plans depend on, those of queries that read
// rollups included. nil is no rollups.
func (c *Config) compileWith(rollups *rollup.Config) plan.Options {
	out := c.Compile()
	if rollups != nil {
		out.Rollups = &plan.Rollups{Config: rollups, TagKey: c.RollupTagKey, RawValue: c.RollupRawValue, Split: c.RollupSplit}
		if made := c.madeIntervals(rollups); made != nil {
			out.Rollups.Made, out.Rollups.MadeIntervals = true, made
		}
	}
	return out
}

// madeIntervals returns the intervals whose rollups are made by ourselves, the longest first;
// nil if somebody else makes them.
func (c *Config) madeIntervals(rollups *rollup.Config) []*rollup.Interval {
	if rollups == nil || !c.RollupsMade() {
		return nil
	}
	made, _ := rollups.MadeIntervals() // RollupConfig reports an error
	return made
}

// prover returns what proves the rollups that are made by ourselves, nil if there are none.
func (c *common) prover(rollups *rollup.Config) *rollupjob.Prover {
	if c.cfg.madeIntervals(rollups) == nil {
		return nil
	}
	return &rollupjob.Prover{Store: c.store, Tables: c.cfg.rollupJobTables(), Schema: c.cfg.Schema(), Config: rollups, FixDuplicates: c.cfg.FixDuplicates}
}

// writtenBefore is how long ago rollups must have been written before they can be proven while
// others are: more than the slack that the proof by timestamps leaves for clocks. The embedded
// store proves them at once.
const writtenBefore = 6 * time.Minute

// newRollupWorker returns the worker that makes rollups in the background, nil if there is to be
// none. In mode ro nothing is written.
func (c *common) newRollupWorker(rollups *rollup.Config, n *names, busy func() int) (*background.Worker, error) {
	rate, _ := c.cfg.rollupRate() // Validate reports an error
	if c.cfg.madeIntervals(rollups) == nil || rate == 0 || c.readOnly() {
		return nil, nil
	}
	if c.store.Features().Marker == nil {
		c.log.Warn("no rollups are made in the background: the store makes no marks")
		return nil, nil
	}
	cfg := background.Config{Store: c.store, Metrics: n.rolledMetrics, Rate: rate, Alone: c.cfg.Embedded(),
		Leases: &lease.Keeper{Store: c.store, Table: c.cfg.TableState, Holder: lease.Holder()},
		Busy:   busy, Memory: c.memory, Log: c.log,
		Job: rollupjob.Job{Tables: c.cfg.rollupJobTables(), Schema: c.cfg.Schema(), Config: rollups, FixDuplicates: c.cfg.FixDuplicates,
			Margin: rollupjob.DefaultMargin, Now: c.cfg.Now}}
	if !cfg.Alone {
		cfg.ProveAfter = writtenBefore
	}
	w, err := background.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_ROLLUPS: %w", err)
	}
	c.count.registry.MustRegister(w)
	return w, nil
}

// rolledMetrics lists all metrics, with the time from which on retention leaves their raw rows.
func (n *names) rolledMetrics(ctx context.Context) iter.Seq2[background.Metric, error] {
	kept, _ := n.cfg.retentionRules() // Validate reports an error
	return func(yield func(background.Metric, error) bool) {
		for e, err := range n.Each(ctx, encoding.UIDMetric, "") {
			m := background.Metric{UID: e.UID}
			if kept != nil && err == nil {
				if rule := kept.Of(e.Name); rule != nil {
					cut, _ := rule.Age("").Cut(n.cfg.Now().Unix(), rules.Hour)
					m.From = int64(cut)
				}
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

func (c *Config) rollupJobTables() rollupjob.Tables {
	return rollupjob.Tables{Data: c.TableData, State: c.TableState}
}
