package retention

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// totals are what a worker has done since it began, and until when work is done.
type totals struct {
	mu                      sync.Mutex
	deleted, failures, done int64
}

// ran counts a run, whose report may be that of one that ended with an error.
func (t *totals) ran(r *Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deleted += r.Deleted
}

func (t *totals) failed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures++
}

// doneAt takes the time of the last run that has deleted all that was past, also of another worker.
func (t *totals) doneAt(seconds int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done = seconds
}

var (
	deletedDesc  = prometheus.NewDesc("downpour_retention_deleted_rows_total", "Rows that were past and were deleted in the background.", nil, nil)
	failuresDesc = prometheus.NewDesc("downpour_retention_failures_total", "Runs in the background that ended with an error, or deleted nothing because too many rows were past.", nil, nil)
	doneDesc     = prometheus.NewDesc("downpour_retention_done_seconds", "Time, since 1970, of the last run, of any gateway, that has deleted all that was past, as far as this one knows; 0 if it knows of none.", nil, nil)
)

// Describe implements prometheus.Collector.
func (w *Worker) Describe(to chan<- *prometheus.Desc) {
	to <- deletedDesc
	to <- failuresDesc
	to <- doneDesc
}

// Collect implements prometheus.Collector: downpour_retention_*.
func (w *Worker) Collect(to chan<- prometheus.Metric) {
	w.totals.mu.Lock()
	defer w.totals.mu.Unlock()
	to <- prometheus.MustNewConstMetric(deletedDesc, prometheus.CounterValue, float64(w.totals.deleted))
	to <- prometheus.MustNewConstMetric(failuresDesc, prometheus.CounterValue, float64(w.totals.failures))
	to <- prometheus.MustNewConstMetric(doneDesc, prometheus.GaugeValue, float64(w.totals.done))
}
