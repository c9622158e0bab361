package resultcache

import "github.com/prometheus/client_golang/prometheus"

// metric is one of a cache's counts as Prometheus sees it.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(Counts) int64
}

func newMetric(name, help string, kind prometheus.ValueType, value func(Counts) int64) metric {
	return metric{prometheus.NewDesc("downpour_result_cache_"+name, help, nil, nil), kind, value}
}

var metrics = []metric{
	newMetric("hits_total", "Parts and whole plans answered from memory.", prometheus.CounterValue,
		func(c Counts) int64 { return c.Hits }),
	newMetric("plan_hits_total", "Whole plans answered from memory.", prometheus.CounterValue,
		func(c Counts) int64 { return c.PlanHits }),
	newMetric("new_total", "Parts and plans that were not queried before.", prometheus.CounterValue,
		func(c Counts) int64 { return c.New }),
	newMetric("kept_total", "Answers of parts and plans stored.", prometheus.CounterValue,
		func(c Counts) int64 { return c.Kept }),
	newMetric("changed_total", "Parts and plans read again because their rows may have changed.",
		prometheus.CounterValue, func(c Counts) int64 { return c.Changed }),
	newMetric("unproven_total", "Parts and plans for which the store gave no version token.", prometheus.CounterValue,
		func(c Counts) int64 { return c.Unproven }),
	newMetric("evictions_total", "Parts and plans removed to make room for others.", prometheus.CounterValue,
		func(c Counts) int64 { return c.Evictions }),
	newMetric("saved_rows_total", "Rows that answers from memory did not read again.", prometheus.CounterValue,
		func(c Counts) int64 { return c.SavedRows }),
	newMetric("saved_bytes_total", "Bytes of the store that answers from memory did not read again.",
		prometheus.CounterValue, func(c Counts) int64 { return c.SavedBytes }),
	newMetric("entries", "Parts and plans in the cache, with or without their answers.", prometheus.GaugeValue,
		func(c Counts) int64 { return c.Entries }),
	newMetric("bytes", "Memory of the cache.", prometheus.GaugeValue, func(c Counts) int64 { return c.Bytes }),
}

// collector collects the counts of a cache.
type collector struct{ cache *Cache }

// Metrics returns a collector of a cache's counts, downpour_result_cache_*. The
// counts of a nil cache are 0.
func Metrics(c *Cache) prometheus.Collector { return collector{c} }

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range metrics {
		to <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	counts := c.cache.Counts()
	for _, m := range metrics {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, float64(m.value(counts)))
	}
}
