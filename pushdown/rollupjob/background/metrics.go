package background

import (
	"github.com/prometheus/client_golang/prometheus"

	"downpour/pushdown/process/metrics"
	"downpour/pushdown/rollupjob"
)

// totals are what a worker has done since it began.
type totals struct {
	rollupjob.Counts
	metrics, failures, sealed int64
}

func failure(t *totals) { t.failures++ }

var numbers = metrics.Numbers[totals]{
	counter("points_total", "Raw points that were read to make rollups.", func(t *totals) int64 { return t.Points }),
	counter(
		"days_total", "Days that were rolled up, or what there was of each: of a metric, interval and salt bucket.",
		func(t *totals) int64 { return t.Made }),
	counter("kept_days_total", "Days that were looked at and had not changed since.",
		func(t *totals) int64 { return t.Kept }),
	counter("cells_total", "Cells of rollups that were written or deleted.", func(t *totals) int64 { return t.Cells }),
	counter("unreadable_days_total", "Days whose raw rows cannot be read.", func(t *totals) int64 { return t.Failed }),
	counter("proven_days_total", "Days that were found to be what queries may read.",
		func(t *totals) int64 { return t.Proven }),
	counter("unproven_days_total", "Days for which that could not be proven.",
		func(t *totals) int64 { return t.Unproven }),
	counter("metrics_total", "Looks at a metric and some of its days.", func(t *totals) int64 { return t.metrics }),
	counter("failures_total", "Looks that ended with an error.", func(t *totals) int64 { return t.failures }),
	metrics.Gauge("downpour_rollup_made_until_seconds",
		"Time, since 1970, up to which all metrics were rolled up by this process; 0 if they were not yet.",
		func(t *totals) int64 { return t.sealed }),
}

func counter(name, help string, value func(*totals) int64) metrics.Number[totals] {
	return metrics.Counter("downpour_rollup_made_"+name, help, value)
}

var (
	rateDesc = prometheus.NewDesc("downpour_rollup_made_rate",
		"Raw points a second that are read at most now; less than DOWNPOUR_ROLLUP_RATE while calls are slow.", nil, nil)
	yieldedDesc = prometheus.NewDesc("downpour_rollup_made_yielded_seconds_total",
		"Time for which the work has waited while queries ran.", nil, nil)
)

// Describe implements prometheus.Collector.
func (w *Worker) Describe(to chan<- *prometheus.Desc) {
	numbers.Describe(to)
	to <- rateDesc
	to <- yieldedDesc
}

// Collect implements prometheus.Collector: downpour_rollup_made_*.
func (w *Worker) Collect(to chan<- prometheus.Metric) {
	t := w.totals.Read()
	numbers.Collect(to, &t)
	rate, yielded := w.pace.State()
	to <- prometheus.MustNewConstMetric(rateDesc, prometheus.GaugeValue, rate)
	to <- prometheus.MustNewConstMetric(yieldedDesc, prometheus.CounterValue, yielded.Seconds())
}
