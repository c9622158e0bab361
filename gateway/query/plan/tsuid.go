package plan

import (
	"encoding/hex"
	"strings"

	"downpour/encoding"
	"downpour/gateway/query"
)

// byTSUID resolves a list of TSUIDs. They share a metric; a repeated one counts
// once, and one that is no whole TSUID finds nothing. Filters beside TSUIDs are
// all applied to names: an unknown key is no error, and only not_*, or stars
// alone, keep a series without the key. Source: TsdbQuery.configureFromQuery,
// createAndSetTSUIDFilter.
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
		if _, _, err := p.Schema.SplitTSUID(raw); err == nil {
			p.TSUIDs = append(p.TSUIDs, raw)
		}
	}
	p.TSUIDs = sortUIDs(p.TSUIDs)
	if len(p.TSUIDs) == 0 {
		c.out.Nothing = "no TSUID is whole"
	}
	c.filterNames()
	return nil
}

// sameMetric checks the hex digits of the metrics, as the reference does.
func sameMetric(tsuids []string, digits int) error {
	first := ""
	for _, text := range tsuids {
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

// filterNames makes every filter a condition on names, but for a wildcard of
// nothing but stars: it is none, not even on the key's presence.
// Source: TagVWildcardFilter's constructor.
func (c *compiler) filterNames() {
	for i := range c.sub.Filters {
		f := &c.sub.Filters[i]
		if f.MatchesAll() {
			continue
		}
		if c.out.PostFilter == nil {
			c.out.PostFilter = new(PostFilter)
		}
		var k encoding.UID
		if u, ok := c.names.TagKs[f.TagK]; ok {
			k = u
		}
		c.out.PostFilter.add(condition{tagk: k, filter: f, lacking: f.Negative()})
	}
}
