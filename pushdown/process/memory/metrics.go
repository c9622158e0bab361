package memory

import "github.com/prometheus/client_golang/prometheus"

// Metrics returns the metrics of a pool.
func Metrics(p *Pool) prometheus.Collector { return poolMetrics{p} }

type poolMetrics struct{ pool *Pool }

var (
	limitMetric = prometheus.NewDesc("downpour_memory_limit_bytes",
		"Bytes that queries, puts, live queries and caches together may hold.", nil, nil)
	heldMetric = prometheus.NewDesc("downpour_memory_held_bytes",
		"Bytes reserved, by what holds them: query, write, live or cache.", []string{"holder"}, nil)
	waitingMetric = prometheus.NewDesc("downpour_memory_waiting", "Reservations that wait for memory.", nil, nil)
	refusedMetric = prometheus.NewDesc("downpour_memory_refused_total", "Refused reservations, by their holder.",
		[]string{"holder"}, nil)
)

// Describe implements prometheus.Collector.
func (poolMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- limitMetric
	to <- heldMetric
	to <- waitingMetric
	to <- refusedMetric
}

// Collect implements prometheus.Collector.
func (m poolMetrics) Collect(to chan<- prometheus.Metric) {
	s := m.pool.Stats()
	to <- prometheus.MustNewConstMetric(limitMetric, prometheus.GaugeValue, float64(s.Total))
	to <- prometheus.MustNewConstMetric(waitingMetric, prometheus.GaugeValue, float64(s.Waiting))
	to <- prometheus.MustNewConstMetric(heldMetric, prometheus.GaugeValue, float64(s.Caches), "cache")
	for c := range classes {
		to <- prometheus.MustNewConstMetric(heldMetric, prometheus.GaugeValue, float64(s.Held[c]), c.String())
		to <- prometheus.MustNewConstMetric(refusedMetric, prometheus.CounterValue, float64(s.Refused[c]), c.String())
	}
}
