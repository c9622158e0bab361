package gatewaytest

import (
	"fmt"

	"downpour/gateway"
)

// SomeRollups has rollup tables of ten minutes, an hour and a day. Those of an hour may be two
// hours late.
const SomeRollups = `{"aggregationIds":{"sum":0,"count":1,"min":2,"max":3},"intervals":[
 {"table":"tsdb","preAggregationTable":"pre","interval":"1m","rowSpan":"1h","defaultInterval":true},
 {"table":"r10m","preAggregationTable":"r10m-pre","interval":"10m","rowSpan":"6h"},
 {"table":"r1h","preAggregationTable":"r1h-pre","interval":"1h","rowSpan":"1d","delaySla":"2h"},
 {"table":"r1d","preAggregationTable":"r1d-pre","interval":"1d","rowSpan":"1n"}]}`

// WithRollups has a gateway take and read rollups.
func WithRollups(cfg *gateway.Config) { cfg.Rollups, cfg.RollupBlockDerived = SomeRollups, true }

// Rollups stores values "interval-aggregator[:groupby] metric time value tags".
func (b *Bench) Rollups(lines ...string) {
	b.Helper()
	c := b.Dial()
	for _, l := range lines {
		fmt.Fprintf(c, "rollup %s\n", l)
	}
	if got := c.Rest(); got != "" {
		b.Fatalf("rollup: %s", got)
	}
}
