package sealing

import (
	"github.com/prometheus/client_golang/prometheus"

	"downpour/pushdown/process/metrics"
)

// totals are what a worker has done since it began.
type totals struct{ rows, before, after, failures int64 }

var numbers = metrics.Numbers[totals]{
	metrics.Counter("downpour_seal_rows_total",
		"Rows that were written in their compact form in the background.",
		func(t *totals) int64 { return t.rows }),
	metrics.Counter("downpour_seal_bytes_before_total",
		"Bytes that the points of these rows had before, uncompressed.",
		func(t *totals) int64 { return t.before }),
	metrics.Counter("downpour_seal_bytes_after_total",
		"Bytes that the points of these rows have now, uncompressed.",
		func(t *totals) int64 { return t.after }),
	metrics.Counter("downpour_seal_failures_total",
		"Passes over all rows that ended with an error; the next one goes on.",
		func(t *totals) int64 { return t.failures }),
}

// Describe implements prometheus.Collector.
func (w *Worker) Describe(to chan<- *prometheus.Desc) { numbers.Describe(to) }

// Collect implements prometheus.Collector: downpour_seal_*.
func (w *Worker) Collect(to chan<- prometheus.Metric) {
	t := w.totals.Read()
	numbers.Collect(to, &t)
}
