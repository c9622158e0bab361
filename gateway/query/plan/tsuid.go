package plan

import (
	"encoding/hex"
	"strings"

	"downpour/gateway/query"
)

// byTSUID selects series by a list of TSUIDs, which must share a metric. A repeated one
// counts once, and one that is not whole matches nothing. Filters next to TSUIDs
// are all applied to names: an unknown key is no error, and a series without the key is
// kept only by not_* filters, and by wildcards of stars alone.
// Source: TsdbQuery.configureFromQuery, createAndSetTSUIDFilter.
func (c *compiler) byTSUID() error {
	p := c.out.Plan
	if err := sameMetric(c.sub.TSUIDs, 2*p.Schema.MetricWidth); err != nil {
		return err
	}
	for _, text := range c.sub.TSUIDs {
		raw, err := hex.DecodeString(text)
		if err != nil {
			return query.RunFault("Invalid TSUID: %s, want hex digits", text)
		}
		if p.Metric == nil {
			p.Metric = raw[:p.Schema.MetricWidth]
		}
		// No row has a TSUID that ends inside a tag.
		if _, _, err := p.Schema.SplitTSUID(raw); err == nil {
			p.TSUIDs = append(p.TSUIDs, raw)
		}
	}

	p.TSUIDs = sortUIDs(p.TSUIDs)
	if len(p.TSUIDs) == 0 {
		c.out.Nothing = "no TSUID is whole"
	}
	c.filterByNames()
	return nil
}

// sameMetric checks that TSUIDs begin with the same metric UID. Like OpenTSDB it compares
// hex digits, the given number of them.
func sameMetric(tsuids []string, digits int) error {
	first := ""
	for _, text := range tsuids {
		// The 500 of Java's substring.
		if len(text) < digits {
			return query.Broken("begin 0, end %d, length %d", digits, len(text))
		}
		metric := strings.ToUpper(text[:digits])
		if first == "" {
			first = metric
		}
		if metric != first {
			return query.Broken(" One or more TSUIDs did not share the same metric [%s] [%s]", first, metric)
		}
	}
	return nil
}

// filterByNames makes every filter a condition on names. A wildcard of stars alone is no
// condition, not even on the key's presence. Source: TagVWildcardFilter's constructor.
func (c *compiler) filterByNames() {
	for i := range c.sub.Filters {
		f := &c.sub.Filters[i]
		if f.MatchesAll() {
			continue
		}
		c.addCondition(condition{tagk: c.names.TagKs[f.TagK], filter: f, keepWithoutKey: f.Negative()})
	}
}
