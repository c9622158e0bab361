package resultcache

import "github.com/prometheus/client_golang/prometheus"

// metric is one of a cache's counts as Prometheus sees it.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(Counts) int64
}

func newMetric(name, help string, kind prometheus.ValueType, of func(Counts) int64) metric {
	return metric{prometheus.NewDesc("downpour_result_cache_"+name, help, nil, nil), kind, of}
}

var metrics = []metric{
	newMetric("hits_total", "Parts, and plans whole, answered from memory.", prometheus.CounterValue, func(c Counts) int64 { return c.Hits }),
	newMetric("plan_hits_total", "Plans answered whole from memory.", prometheus.CounterValue, func(c Counts) int64 { return c.PlanHits }),
	newMetric("new_total", "Parts and plans not asked for before.", prometheus.CounterValue, func(c Counts) int64 { return c.New }),
	newMetric("kept_total", "Answers of parts and plans kept.", prometheus.CounterValue, func(c Counts) int64 { return c.Kept }),
	newMetric("changed_total", "Parts and plans read again because their rows may have changed.", prometheus.CounterValue, func(c Counts) int64 { return c.Changed }),
	newMetric("unproven_total", "Parts and plans of which the store could prove nothing.", prometheus.CounterValue, func(c Counts) int64 { return c.Unproven }),
	newMetric("evictions_total", "Parts and plans forgotten for others.", prometheus.CounterValue, func(c Counts) int64 { return c.Evictions }),
	newMetric("entries", "Parts and plans remembered, with or without their answers.", prometheus.GaugeValue, func(c Counts) int64 { return c.Entries }),
	newMetric("bytes", "Memory of remembered answers.", prometheus.GaugeValue, func(c Counts) int64 { return c.Bytes }),
}

// collector shows a cache.
type collector struct{ cache *Cache }

// Metrics collects a cache's counts as downpour_result_cache_*; of a nil cache they
// are 0.
func Metrics(c *Cache) prometheus.Collector { return collector{c} }

// Describe is part of prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range metrics {
		to <- m.desc
	}
}

// Collect is part of prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	counts := c.cache.Counts()
	for _, m := range metrics {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, float64(m.of(counts)))
	}
}
