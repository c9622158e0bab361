package gateway

import (
	"context"
	"os"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/gateway/admin/activity"
	"downpour/gateway/admin/selfmetrics"
	"downpour/gateway/dashboard"
	"downpour/gateway/live"
	"downpour/gateway/write"
)

// firstInterval is the time between the first samples of this host's metrics: a page that is
// opened with the gateway then has lines after a few seconds. Later it is that of the setting.
const firstInterval = 2 * time.Second

// ownAtMost bounds the number of metrics that the gateway looks at to see whether others than
// this host's are stored; there are fewer of this host's.
const ownAtMost = 100

// ownMetrics puts the metrics of this host, like any collector.
type ownMetrics struct {
	*common
	names     *names
	writes    *writes
	hub       *live.Hub
	collector *selfmetrics.Collector // nil if they are not collected
	since     time.Time              // of the first sample; the zero value if that was another gateway's
}

// newOwnMetrics decides whether this host's metrics are collected. With auto they go into a store
// that was empty when a gateway first started on it: whoever brings data of their own gets no
// metrics that they did not ask for. In mode ro nothing is put.
func newOwnMetrics(ctx context.Context, c *common, n *names, w *writes, l *liveQueries) *ownMetrics {
	o := &ownMetrics{common: c, names: n, writes: w, hub: l.hub}
	interval, _ := c.cfg.selfMetrics() // Validate reports the error
	if interval == 0 || c.readOnly() {
		return o
	}
	names, err := n.Suggest(ctx, encoding.UIDMetric, "", ownAtMost)
	// A gateway that ended during its first sample may have left any of the names.
	if err == nil && c.cfg.SelfMetrics == autoMetrics && !onlyOwn(names) {
		var known []string
		known, err = n.Suggest(ctx, encoding.UIDMetric, selfmetrics.First, 1)
		if err == nil && !slices.Contains(known, selfmetrics.First) {
			return o
		}
	}
	if err != nil {
		c.log.Warn("this host's metrics are not collected", "error", err)
		return o
	}

	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	o.collector = &selfmetrics.Collector{Interval: interval, Host: host, Read: o.read, Put: o.put, Log: c.log}
	if c.cfg.SelfMetrics == autoMetrics {
		o.collector.First = firstInterval
	}
	if len(names) == 0 {
		o.since = time.Now()
	}
	return o
}

// start has the metrics put until its context ends.
func (o *ownMetrics) start(start func(name string, work func(context.Context))) {
	if o.collector != nil {
		start("own metrics", o.collector.Run)
	}
}

// read takes a sample of this host, and of what the gateway counts.
func (o *ownMetrics) read(ctx context.Context) ([]selfmetrics.Point, error) {
	points, err := selfmetrics.ReadHost(ctx)
	points = append(points, o.count.ownPoints()...)
	return append(points, selfmetrics.Point{Metric: selfmetrics.GatewayPrefix + "live.subscribers", Value: encoding.IntValue(int64(o.hub.Stats().Subscribers))}), err
}

// put stores one sample of all metrics and waits until it is durable.
func (o *ownMetrics) put(ctx context.Context, points []selfmetrics.Point) error {
	// All points are added before any is waited for, so that they share a commit window.
	batches := map[*write.Batch]bool{}
	for _, p := range points {
		q := write.Point{Metric: p.Metric, Time: p.Time, Value: p.Value, Narrow: true}
		for k, v := range p.Tags {
			q.Tags = append(q.Tags, write.Tag{K: k, V: v})
		}
		b, err := o.writes.points.Add(ctx, &q)
		if err != nil {
			return err
		}
		batches[b] = true
	}

	for b := range batches {
		if err := b.Wait(ctx); err != nil {
			return err
		}
	}

	sourceCounter{o.writes, activity.Own}.Puts(len(points), 0)
	return nil
}

// dashboards returns the dashboards that are served while none of their names are saved: that of
// this host, if its metrics are collected.
func (o *ownMetrics) dashboards() map[string]func() []byte {
	if o.collector == nil {
		return nil
	}
	host := selfmetrics.Sanitize(o.collector.Host)
	return map[string]func() []byte{dashboard.HostName: func() []byte { return dashboard.Host(host, o.since, time.Now()) }}
}

// startDashboard returns the name of the dashboard that the page at / leads to: that of this
// host while nothing but its metrics is stored, else none.
func (o *ownMetrics) startDashboard(ctx context.Context) (string, error) {
	if o.collector == nil {
		return "", nil
	}
	names, err := o.names.Suggest(ctx, encoding.UIDMetric, "", ownAtMost)
	if err != nil || !onlyOwn(names) {
		return "", err
	}
	return dashboard.HostName, nil
}

// onlyOwn reports whether the first ownAtMost metrics of a store are all that it has, and all
// of this host.
func onlyOwn(names []string) bool {
	return len(names) < ownAtMost && !slices.ContainsFunc(names, func(n string) bool { return !selfmetrics.Collects(n) })
}
