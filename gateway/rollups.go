package gateway

import (
	"cmp"
	"fmt"

	"downpour/encoding"
	"downpour/gateway/query/plan"
	"downpour/pushdown/rollup"
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
}

func (c *RollupsConfig) setDefaults() {
	c.RollupTagKey = cmp.Or(c.RollupTagKey, "_aggregate")
	c.RollupRawValue = cmp.Or(c.RollupRawValue, "RAW")
}

// validate checks that the tag can be stored.
func (c *RollupsConfig) validate() (errs []error) {
	for _, v := range []struct{ name, got string }{{"DOWNPOUR_ROLLUP_TAG_KEY", c.RollupTagKey}, {"DOWNPOUR_ROLLUP_RAW_VALUE", c.RollupRawValue}} {
		if err := encoding.ValidateName("name", v.got); err != nil {
			errs = append(errs, fmt.Errorf("%s: got %q: %w", v.name, v.got, err))
		}
	}
	return errs
}

// compileWith returns the settings that scan plans depend on, those of queries that read
// rollups included. nil is no rollups.
func (c *Config) compileWith(rollups *rollup.Config) plan.Options {
	out := c.Compile()
	if rollups != nil {
		out.Rollups = &plan.Rollups{Config: rollups, TagKey: c.RollupTagKey, RawValue: c.RollupRawValue, Split: c.RollupSplit}
	}
	return out
}
