package gateway

import (
	"github.com/prometheus/client_golang/prometheus"

	"downpour/gateway/live"
	"downpour/gateway/live/changefeed"
	"downpour/pushdown/process/metrics"
)

// liveStats are the counts of live queries.
type liveStats struct {
	live.Stats
	feed changefeed.Stats
}

// liveNumbers are their metrics: /api/stats and the telnet command stats have dots instead of underscores.
// gateway/docs/live.md explains them.
var liveNumbers = metrics.Numbers[liveStats]{
	metrics.Gauge("downpour_live_queries",
		"Distinct live queries, those kept for a client that may come back included.",
		func(s *liveStats) int64 { return int64(s.Queries) }),
	metrics.Gauge("downpour_live_subscribers", "Subscriptions to live queries.",
		func(s *liveStats) int64 { return int64(s.Subscribers) }),
	metrics.Gauge("downpour_live_bytes", "Memory that the answers of live queries and what they are made of take.",
		func(s *liveStats) int64 { return s.Bytes }),
	metrics.Counter("downpour_live_asks_total", "Ticks of live queries.", func(s *liveStats) int64 { return s.Asks }),
	metrics.Counter("downpour_live_merged_total", "Messages that stood for several changes, because a client was slow.",
		func(s *liveStats) int64 { return s.Merged }),
	metrics.Counter("downpour_live_whole_total",
		"Sub-queries run in full at a tick, instead of being updated by what has changed.",
		func(s *liveStats) int64 { return s.feed.FullRuns }),
	metrics.Counter("downpour_live_loads_total", "Views of sub-queries loaded, first or again.",
		func(s *liveStats) int64 { return s.feed.Loads }),
	metrics.Counter("downpour_live_continued_total",
		"Views loaded from what the result cache had of their older hours, and from newer rows.",
		func(s *liveStats) int64 { return s.feed.Continued }),
	metrics.Counter("downpour_live_late_looks_total",
		"Times that rows were looked through for late points; HBase only.",
		func(s *liveStats) int64 { return s.feed.Late }),
	metrics.Counter("downpour_live_rows_changed_total", "Rows found changed.",
		func(s *liveStats) int64 { return s.feed.Changed }),
	metrics.Counter("downpour_live_rows_read_total", "Rows read again because of changes.",
		func(s *liveStats) int64 { return s.feed.Rows }),
}

// liveCounts collects liveNumbers for the registry.
type liveCounts struct {
	hub  *live.Hub
	feed *changefeed.Feed
}

// Describe implements prometheus.Collector.
func (c liveCounts) Describe(to chan<- *prometheus.Desc) { liveNumbers.Describe(to) }

// Collect implements prometheus.Collector.
func (c liveCounts) Collect(to chan<- prometheus.Metric) {
	liveNumbers.Collect(to, &liveStats{c.hub.Stats(), c.feed.Stats()})
}
