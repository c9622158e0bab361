package retention

import (
	"github.com/prometheus/client_golang/prometheus"

	"downpour/pushdown/process/metrics"
)

// totals are what a worker has done since it began. done is the time of the last run, also of
// another worker, that has deleted all that was past.
type totals struct{ deleted, failures, done int64 }

func failure(t *totals) { t.failures++ }

var numbers = metrics.Numbers[totals]{
	metrics.Counter("downpour_retention_deleted_rows_total", "Rows that were past and were deleted in the background.",
		func(t *totals) int64 { return t.deleted }),
	metrics.Counter("downpour_retention_failures_total",
		"Runs in the background that ended with an error, or deleted nothing because too many rows were past.",
		func(t *totals) int64 { return t.failures }),
	metrics.Gauge("downpour_retention_done_seconds",
		"Time, since 1970, of the last run, of any gateway, that has deleted all that was past, as far as this one "+
			"knows; 0 if it knows of none.", func(t *totals) int64 { return t.done }),
}

// Describe implements prometheus.Collector.
func (w *Worker) Describe(to chan<- *prometheus.Desc) { numbers.Describe(to) }

// Collect implements prometheus.Collector: downpour_retention_*.
func (w *Worker) Collect(to chan<- prometheus.Metric) {
	t := w.totals.Read()
	numbers.Collect(to, &t)
}
