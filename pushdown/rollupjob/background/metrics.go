package background

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"downpour/pushdown/rollupjob"
)

// totals are what a worker has done since it began.
type totals struct {
	mu sync.Mutex
	rollupjob.Counts
	metrics, failures, sealed int64
}

func (t *totals) add(c *rollupjob.Counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Counts.Add(c)
}

func (t *totals) count(n *int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*n++
}

// metric is one of a worker's counts as Prometheus sees it.
type metric struct {
	desc  *prometheus.Desc
	value func(*totals) int64
}

func newMetric(name, help string, value func(*totals) int64) metric {
	return metric{prometheus.NewDesc("downpour_rollup_made_"+name, help, nil, nil), value}
}

var metrics = []metric{
	newMetric("points_total", "Raw points that were read to make rollups.", func(t *totals) int64 { return t.Points }),
	newMetric("days_total", "Days that were rolled up, or what there was of each: of a metric, interval and salt bucket.", func(t *totals) int64 { return t.Made }),
	newMetric("kept_days_total", "Days that were looked at and had not changed since.", func(t *totals) int64 { return t.Kept }),
	newMetric("cells_total", "Cells of rollups that were written or deleted.", func(t *totals) int64 { return t.Cells }),
	newMetric("unreadable_days_total", "Days whose raw rows cannot be read.", func(t *totals) int64 { return t.Failed }),
	newMetric("proven_days_total", "Days that were found to be what queries may read.", func(t *totals) int64 { return t.Proven }),
	newMetric("unproven_days_total", "Days of which nothing proves that.", func(t *totals) int64 { return t.Unproven }),
	newMetric("metrics_total", "Looks at a metric and some of its days.", func(t *totals) int64 { return t.metrics }),
	newMetric("failures_total", "Looks that ended with an error.", func(t *totals) int64 { return t.failures }),
}

var (
	sealedDesc  = prometheus.NewDesc("downpour_rollup_made_until_seconds", "Time, since 1970, up to which all metrics were rolled up by this process; 0 if they were not yet.", nil, nil)
	rateDesc    = prometheus.NewDesc("downpour_rollup_made_rate", "Raw points a second that are read at most now; less than DOWNPOUR_ROLLUP_RATE while calls are slow.", nil, nil)
	yieldedDesc = prometheus.NewDesc("downpour_rollup_made_yielded_seconds_total", "Time for which the work has waited while queries ran.", nil, nil)
)

// Describe implements prometheus.Collector.
func (w *Worker) Describe(to chan<- *prometheus.Desc) {
	for _, m := range metrics {
		to <- m.desc
	}
	to <- sealedDesc
	to <- rateDesc
	to <- yieldedDesc
}

// Collect implements prometheus.Collector: downpour_rollup_made_*.
func (w *Worker) Collect(to chan<- prometheus.Metric) {
	w.totals.mu.Lock()
	defer w.totals.mu.Unlock()
	for _, m := range metrics {
		to <- prometheus.MustNewConstMetric(m.desc, prometheus.CounterValue, float64(m.value(&w.totals)))
	}
	rate, yielded := w.pace.State()
	to <- prometheus.MustNewConstMetric(sealedDesc, prometheus.GaugeValue, float64(w.totals.sealed))
	to <- prometheus.MustNewConstMetric(rateDesc, prometheus.GaugeValue, rate)
	to <- prometheus.MustNewConstMetric(yieldedDesc, prometheus.CounterValue, yielded.Seconds())
}
