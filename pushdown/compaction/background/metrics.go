package background

import (
	"github.com/prometheus/client_golang/prometheus"

	"downpour/pushdown/compaction"
	"downpour/pushdown/process/metrics"
)

// totals are what a worker has done since it began.
type totals struct {
	compaction.Counts
	intervals, failures, held int64
}

func failure(t *totals) { t.failures++ }

var numbers = metrics.Numbers[totals]{
	counter("rows_total", "Rows of points that were looked at.", func(t *totals) int64 { return t.Rows }),
	counter("compacted_total", "Rows that became one cell.", func(t *totals) int64 { return t.Compacted }),
	counter("cells_total", "Cells of points that the compacted rows had before.",
		func(t *totals) int64 { return t.Cells }),
	counter("bytes_before_total", "Bytes of qualifiers and values of these cells.",
		func(t *totals) int64 { return t.Bytes }),
	counter("bytes_after_total", "Bytes of qualifiers and values of the merged cells.",
		func(t *totals) int64 { return t.BytesNow }),
	counter("versions_deleted_total", "Versions of cells that were deleted.",
		func(t *totals) int64 { return t.Versions }),
	counter("intervals_total", "Intervals of hours of a region that are done.",
		func(t *totals) int64 { return t.intervals }),
	counter("failures_total", "Failed units of work; they are retried.", func(t *totals) int64 { return t.failures }),
	counter("held_total", "Times that another worker had the lease of a region.",
		func(t *totals) int64 { return t.held }),
}

func counter(name, help string, value func(*totals) int64) metrics.Number[totals] {
	return metrics.Counter("downpour_compaction_"+name, help, value)
}

var (
	leftDesc = prometheus.NewDesc("downpour_compaction_left_total", "Rows that were left as they are, by reason.",
		[]string{"reason"}, nil)
	rateDesc = prometheus.NewDesc("downpour_compaction_rate",
		"Rows a second that are compacted at most now; less than DOWNPOUR_COMPACT while calls are slow.", nil, nil)
	yieldedDesc = prometheus.NewDesc("downpour_compaction_yielded_seconds_total",
		"Time for which the work has waited while queries ran.", nil, nil)
)

// Describe implements prometheus.Collector.
func (w *Worker) Describe(to chan<- *prometheus.Desc) {
	numbers.Describe(to)
	to <- leftDesc
	to <- rateDesc
	to <- yieldedDesc
}

// Collect implements prometheus.Collector: downpour_compaction_*.
func (w *Worker) Collect(to chan<- prometheus.Metric) {
	t := w.totals.Read()
	numbers.Collect(to, &t)
	for i, n := range t.Left {
		if reason := compaction.Reason(i); reason != compaction.None {
			to <- prometheus.MustNewConstMetric(leftDesc, prometheus.CounterValue, float64(n), reason.String())
		}
	}
	rate, yielded := w.pace.State()
	to <- prometheus.MustNewConstMetric(rateDesc, prometheus.GaugeValue, rate)
	to <- prometheus.MustNewConstMetric(yieldedDesc, prometheus.CounterValue, yielded.Seconds())
}
