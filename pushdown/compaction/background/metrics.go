package background

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"downpour/pushdown/compaction"
)

// totals are what a worker has done since it began.
type totals struct {
	mu sync.Mutex
	compaction.Counts
	intervals, failures, held int64
}

func (t *totals) add(c compaction.Counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Counts.Add(&c)
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
	return metric{prometheus.NewDesc("downpour_compaction_"+name, help, nil, nil), value}
}

var metrics = []metric{
	newMetric("rows_total", "Rows of points that were looked at.", func(t *totals) int64 { return t.Rows }),
	newMetric("compacted_total", "Rows that became one cell.", func(t *totals) int64 { return t.Compacted }),
	newMetric("cells_total", "Cells of points that the compacted rows had before.", func(t *totals) int64 { return t.Cells }),
	newMetric("bytes_before_total", "Bytes of qualifiers and values of these cells.", func(t *totals) int64 { return t.Bytes }),
	newMetric("bytes_after_total", "Bytes of qualifiers and values of the merged cells.", func(t *totals) int64 { return t.BytesNow }),
	newMetric("versions_deleted_total", "Versions of cells that were deleted.", func(t *totals) int64 { return t.Versions }),
	newMetric("intervals_total", "Intervals of hours of a region that are done.", func(t *totals) int64 { return t.intervals }),
	newMetric("failures_total", "Pieces of work that ended with an error, and are tried again.", func(t *totals) int64 { return t.failures }),
	newMetric("held_total", "Times that another worker had the lease of a region.", func(t *totals) int64 { return t.held }),
}

var (
	leftDesc    = prometheus.NewDesc("downpour_compaction_left_total", "Rows that were left as they are, by reason.", []string{"reason"}, nil)
	rateDesc    = prometheus.NewDesc("downpour_compaction_rate", "Rows a second that are compacted at most now; less than DOWNPOUR_COMPACT while calls are slow.", nil, nil)
	yieldedDesc = prometheus.NewDesc("downpour_compaction_yielded_seconds_total", "Time for which the work has waited while queries ran.", nil, nil)
)

// Describe implements prometheus.Collector.
func (w *Worker) Describe(to chan<- *prometheus.Desc) {
	for _, m := range metrics {
		to <- m.desc
	}
	to <- leftDesc
	to <- rateDesc
	to <- yieldedDesc
}

// Collect implements prometheus.Collector: downpour_compaction_*.
func (w *Worker) Collect(to chan<- prometheus.Metric) {
	w.totals.mu.Lock()
	defer w.totals.mu.Unlock()
	for _, m := range metrics {
		to <- prometheus.MustNewConstMetric(m.desc, prometheus.CounterValue, float64(m.value(&w.totals)))
	}
	for i, n := range w.totals.Left {
		if reason := compaction.Reason(i); reason != compaction.None {
			to <- prometheus.MustNewConstMetric(leftDesc, prometheus.CounterValue, float64(n), reason.String())
		}
	}
	rate, yielded := w.pace.State()
	to <- prometheus.MustNewConstMetric(rateDesc, prometheus.GaugeValue, rate)
	to <- prometheus.MustNewConstMetric(yieldedDesc, prometheus.CounterValue, yielded.Seconds())
}
