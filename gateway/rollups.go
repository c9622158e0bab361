package gateway

import (
	"cmp"
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/gateway/query/plan"
	"downpour/pushdown/rollup"
	"downpour/pushdown/rollupjob"
)

// RollupsConfig holds how rollups and pre-aggregates are distinguished; which there are is
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
}

func (c *RollupsConfig) setDefaults() {
	c.RollupTagKey = cmp.Or(c.RollupTagKey, "_aggregate")
	c.RollupRawValue = cmp.Or(c.RollupRawValue, "RAW")
}

// validate checks that the tag can be stored.
func (c *RollupsConfig) validate() (errs []error) {
	for _, v := range []struct{ name, got string }{
		{"DOWNPOUR_ROLLUP_TAG_KEY", c.RollupTagKey},
		{"DOWNPOUR_ROLLUP_RAW_VALUE", c.RollupRawValue},
	} {
		if err := encoding.ValidateName("name", v.got); err != nil {
			errs = append(errs, fmt.Errorf("%s: got %q: %w", v.name, v.got, err))
		}
	}
	return errs
}

// validateComputed checks that computed rollups can be read as raw data is: they
// have the tags of the series.
func (c *Config) validateComputed() error {
	if c.RollupsComputed() && c.RollupTagRaw {
		return errors.New("DOWNPOUR_ROLLUP_TAG_RAW: got true, want false with DOWNPOUR_ROLLUPS=auto:…, whose rollups " +
			"have the tags of their series")
	}
	return nil
}

// compileWith returns the settings that scan plans depend on, those of queries that read
// rollups included. nil is no rollups.
func (c *Config) compileWith(rollups *rollup.Config) plan.Options {
	out := c.Compile()
	if rollups != nil {
		out.Rollups = &plan.Rollups{
			Config:   rollups,
			TagKey:   c.RollupTagKey,
			RawValue: c.RollupRawValue,
			Split:    c.RollupSplit,
		}
		if made := c.computedIntervals(rollups); made != nil {
			out.Rollups.Computed, out.Rollups.ComputedIntervals = true, made
		}
	}
	return out
}

// computedIntervals returns the intervals of computed rollups, the longest first;
// nil if somebody else makes them.
func (c *Config) computedIntervals(rollups *rollup.Config) []*rollup.Interval {
	if rollups == nil || !c.RollupsComputed() {
		return nil
	}
	made, _ := rollups.ComputedIntervals() // RollupConfig reports an error
	return made
}

// prover returns the prover of computed rollups, nil if there are none.
func (c *common) prover(rollups *rollup.Config) *rollupjob.Prover {
	if c.cfg.computedIntervals(rollups) == nil {
		return nil
	}
	return &rollupjob.Prover{
		Store:         c.store,
		Tables:        c.cfg.RollupJobTables(),
		Schema:        c.cfg.Schema(),
		Config:        rollups,
		FixDuplicates: c.cfg.FixDuplicates,
	}
}

// RollupJobTables returns the tables of rollups that are made here.
func (c *Config) RollupJobTables() rollupjob.Tables {
	return rollupjob.Tables{Data: c.TableData, State: c.TableState}
}
