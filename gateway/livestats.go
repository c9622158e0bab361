package gateway

import (
	"github.com/prometheus/client_golang/prometheus"

	"downpour/gateway/live"
	"downpour/gateway/live/changefeed"
)

// liveNumber is one metric of live queries.
type liveNumber struct {
	name, help string
	kind       prometheus.ValueType
	of         func(h *live.Stats, f *changefeed.Stats) int64
}

// liveNumbers are all of them. /metrics has their names after "downpour_live_";
// /api/stats and the telnet command stats have dots instead of underscores.
// gateway/docs/live.md explains them.
var liveNumbers = []liveNumber{
	{"queries", "Distinct live queries, those kept for a client that may come back included.", prometheus.GaugeValue,
		func(h *live.Stats, _ *changefeed.Stats) int64 { return int64(h.Queries) }},
	{"subscribers", "Subscriptions to live queries.", prometheus.GaugeValue,
		func(h *live.Stats, _ *changefeed.Stats) int64 { return int64(h.Subscribers) }},
	{"bytes", "Memory that the answers of live queries and what they are made of take.", prometheus.GaugeValue,
		func(h *live.Stats, _ *changefeed.Stats) int64 { return h.Bytes }},
	{"asks_total", "Ticks of live queries.", prometheus.CounterValue,
		func(h *live.Stats, _ *changefeed.Stats) int64 { return h.Asks }},
	{"merged_total", "Messages that stood for several changes, because a client was slow.", prometheus.CounterValue,
		func(h *live.Stats, _ *changefeed.Stats) int64 { return h.Merged }},
	{"whole_total", "Sub-queries run in full at a tick, instead of being updated by what has changed.", prometheus.CounterValue,
		func(_ *live.Stats, f *changefeed.Stats) int64 { return f.FullRuns }},
	{"loads_total", "Views of sub-queries loaded, first or again.", prometheus.CounterValue,
		func(_ *live.Stats, f *changefeed.Stats) int64 { return f.Loads }},
	{"continued_total", "Views loaded from what the result cache had of their older hours, and from newer rows.", prometheus.CounterValue,
		func(_ *live.Stats, f *changefeed.Stats) int64 { return f.Continued }},
	{"late_looks_total", "Times that rows were looked through for late points; HBase only.", prometheus.CounterValue,
		func(_ *live.Stats, f *changefeed.Stats) int64 { return f.Late }},
	{"rows_changed_total", "Rows found changed.", prometheus.CounterValue,
		func(_ *live.Stats, f *changefeed.Stats) int64 { return f.Changed }},
	{"rows_read_total", "Rows read again because of changes.", prometheus.CounterValue,
		func(_ *live.Stats, f *changefeed.Stats) int64 { return f.Rows }},
}

// liveCounts collects liveNumbers for the registry.
type liveCounts struct {
	hub  *live.Hub
	feed *changefeed.Feed
}

func (n *liveNumber) describe() *prometheus.Desc {
	return prometheus.NewDesc("downpour_live_"+n.name, n.help, nil, nil)
}

// Describe implements prometheus.Collector.
func (c liveCounts) Describe(to chan<- *prometheus.Desc) {
	for i := range liveNumbers {
		to <- liveNumbers[i].describe()
	}
}

// Collect implements prometheus.Collector.
func (c liveCounts) Collect(to chan<- prometheus.Metric) {
	h, f := c.hub.Stats(), c.feed.Stats()
	for i := range liveNumbers {
		n := &liveNumbers[i]
		to <- prometheus.MustNewConstMetric(n.describe(), n.kind, float64(n.of(&h, &f)))
	}
}
