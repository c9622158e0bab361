package server

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"downpour/pushdown/operator"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/process/metrics"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/rpc/wire"
)

// counters are a server's own metrics.
type counters struct {
	registry *prometheus.Registry
	parts    *prometheus.CounterVec
	seconds  prometheus.Histogram
	running  prometheus.Gauge
	waiting  prometheus.Gauge
	ending   prometheus.Gauge
	work     map[string]prometheus.Counter
}

// workCounters are the counters that a part's statistics add to, by name.
var workCounters = map[string]struct {
	help  string
	value func(operator.Stats) int64
}{
	"rows_scanned": {"Rows that the store's servers looked at.", func(s operator.Stats) int64 { return s.RowsScanned }},
	"rows":         {"Rows that the store delivered.", func(s operator.Stats) int64 { return s.Rows }},
	"cells":        {"Cells that the store delivered.", func(s operator.Stats) int64 { return s.Cells }},
	"bytes":        {"Bytes that the store delivered.", func(s operator.Stats) int64 { return s.Bytes }},
	"points":       {"Points decoded.", func(s operator.Stats) int64 { return s.Points }},
	"shipped":      {"Bytes of the batches sent.", func(s operator.Stats) int64 { return s.ShippedBytes }},
	"rejected":     {"Rows delivered that no plan wanted.", func(s operator.Stats) int64 { return s.Rejected }},
	"rpcs":         {"Calls to the store's servers.", func(s operator.Stats) int64 { return s.RPCs }},
	"resumes":      {"Scans that went on elsewhere after a fault.", func(s operator.Stats) int64 { return s.Resumes }},
}

// newCounters registers the server's metrics, and those of its result cache and memory.
func newCounters(cache *resultcache.Cache, pool *memory.Pool) *counters {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "downpour_pushdown_" + name, Help: help})
	}
	c := &counters{
		registry: metrics.NewRegistry(),
		parts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "downpour_pushdown_parts_total",
			Help: "Requested parts, by outcome: complete, refused, failed, or cancelled by the gateway."},
			[]string{"outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "downpour_pushdown_part_seconds",
			Help:    "Time of a complete part, waiting for a slot included.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}),
		running: gauge("parts_running", "Parts being executed."),
		waiting: gauge("parts_waiting", "Parts that wait for a slot."),
		ending:  gauge("ending", "1 while the server waits for its last parts."),
		work:    map[string]prometheus.Counter{},
	}
	c.registry.MustRegister(resultcache.Metrics(cache), memory.Metrics(pool))
	c.registry.MustRegister(c.parts, c.seconds, c.running, c.waiting, c.ending)
	for name, w := range workCounters {
		c.work[name] = prometheus.NewCounter(prometheus.CounterOpts{
			Name: "downpour_pushdown_" + name + "_total",
			Help: w.help,
		})
		c.registry.MustRegister(c.work[name])
	}
	for _, o := range []string{"complete", "refused", "failed", "cancelled"} {
		c.parts.WithLabelValues(o) // shown as 0 from the start
	}
	return c
}

// countPart counts one part by how it ended. stats are those of a complete part.
func (c *counters) countPart(took time.Duration, stats operator.Stats, err error) {
	outcome := "complete"
	switch {
	case err == nil:
		c.seconds.Observe(took.Seconds())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		outcome = "cancelled"
	case errors.Is(err, operator.ErrBadPlan), errors.Is(err, wire.ErrMisfit), errors.Is(err, wire.ErrEnding),
		errors.Is(err, wire.ErrBusy):
		outcome = "refused"
	default:
		outcome = "failed"
	}
	c.parts.WithLabelValues(outcome).Inc()

	// An answer from the cache reads and decodes nothing.
	if stats.CacheHits > 0 {
		stats = operator.Stats{ShippedBytes: stats.ShippedBytes}
	}
	for name, w := range workCounters {
		c.work[name].Add(float64(w.value(stats)))
	}
}

// gatherers returns the server's metrics and those of the HBase client.
func (c *counters) gatherers() prometheus.Gatherers { return metrics.WithHBase(c.registry) }
