package opspage

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"downpour/gateway/query/dispatch"
)

// Metrics of what /api/ops reports and no component counts by itself.
var (
	runningMetric = prometheus.NewDesc("downpour_queries_running", "Queries that run.", nil, nil)
	socketsMetric = prometheus.NewDesc("downpour_sockets", "WebSockets that are open.", nil, nil)
	uidsMetric    = prometheus.NewDesc("downpour_uids_used",
		"UIDs assigned, by anybody, by kind: metrics, tagk or tagv. At most a minute old.", []string{"kind"}, nil)
	mostMetric    = prometheus.NewDesc("downpour_uids_most", "UIDs that there can be, by kind.", []string{"kind"}, nil)
	serversMetric = prometheus.NewDesc("downpour_pushdown_servers",
		"Pushdown servers, listed or found, by state: healthy, away (it has failed) or unchecked (not asked lately).",
		[]string{"state"}, nil)
	cacheMetric = prometheus.NewDesc("downpour_result_cache_limit_bytes",
		"Bytes that the result cache may hold.", nil, nil)
)

// counts collects these metrics.
type counts struct{ o *operations }

// Describe implements prometheus.Collector.
func (counts) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		runningMetric, socketsMetric, uidsMetric, mostMetric, serversMetric, cacheMetric,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector. Where the store does not answer, the counts of UIDs are
// those before, or missing.
func (c counts) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(runningMetric, float64(c.o.Queries.Running.Count()))
	gauge(socketsMetric, float64(c.o.Sockets.Open()))
	gauge(cacheMetric, float64(c.o.ResultBytes))

	uids, _ := c.o.reportUIDs(context.Background(), time.Now())
	for _, u := range uids {
		gauge(uidsMetric, float64(u.Used), u.Kind)
		gauge(mostMetric, float64(u.Most), u.Kind)
	}

	states := map[string]int{dispatch.StateHealthy: 0, dispatch.StateAway: 0, dispatch.StateUnchecked: 0}
	places, _ := c.o.Executor.Places("")
	for _, p := range places {
		if p.State != "" {
			states[p.State]++
		}
	}
	for state, n := range states {
		gauge(serversMetric, float64(n), state)
	}
}
