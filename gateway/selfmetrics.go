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
	"downpour/gateway/write"
)

// firstInterval is the time between the first samples of this host's metrics: a page that is
// opened with the gateway then has lines after a few seconds. Later it is that of the setting.
const firstInterval = 2 * time.Second

// ownAtMost bounds the number of metrics that the gateway looks at to see whether others than
// this host's are stored; there are fewer of this host's.
const ownAtMost = 100

// own is what the gateway knows of this host's metrics, if it collects them.
type own struct {
	collector *selfmetrics.Collector // nil if it does not
	since     time.Time              // of the first sample; the zero value if that was another gateway's
}

// prepareOwn decides whether this host's metrics are collected. With auto they go into a store
// that was empty when a gateway first started on it: whoever brings data of their own gets no
// metrics that they did not ask for. In mode ro nothing is put.
func (s *Server) prepareOwn(ctx context.Context) {
	interval, _ := s.cfg.selfMetrics() // Validate has told of the error
	if interval == 0 || s.cfg.Mode == "ro" {
		return
	}
	names, err := s.names.Suggest(ctx, encoding.UIDMetric, "", ownAtMost)
	// A gateway that ended during its first sample may have left any of the names.
	if err == nil && s.cfg.SelfMetrics == autoMetrics && !onlyOwn(names) {
		var known []string
		known, err = s.names.Suggest(ctx, encoding.UIDMetric, selfmetrics.First, 1)
		if err == nil && !slices.Contains(known, selfmetrics.First) {
			return
		}
	}
	if err != nil {
		s.log.Warn("this host's metrics are not collected", "error", err)
		return
	}

	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	s.own.collector = &selfmetrics.Collector{Interval: interval, Host: host, Read: s.readOwn, Put: s.putOwn, Log: s.log}
	if s.cfg.SelfMetrics == autoMetrics {
		s.own.collector.First = firstInterval
	}
	if len(names) == 0 {
		s.own.since = time.Now()
	}
}

// collect starts to put this host's own metrics, like any collector's.
func (s *Server) collect(ctx context.Context) {
	if s.own.collector != nil {
		s.inBackground(ctx, "own metrics", func() { s.own.collector.Run(ctx) })
	}
}

// readOwn takes a sample of this host, and of what the gateway counts.
func (s *Server) readOwn(ctx context.Context) ([]selfmetrics.Point, error) {
	points, err := selfmetrics.ReadHost(ctx)
	points = append(points, s.count.ownPoints()...)
	return append(points, selfmetrics.Point{Metric: selfmetrics.GatewayPrefix + "live.subscribers", Value: encoding.IntValue(int64(s.hub.Stats().Subscribers))}), err
}

// putOwn stores one sample of all metrics and waits until it is durable.
func (s *Server) putOwn(ctx context.Context, points []selfmetrics.Point) error {
	// All points are added before any is waited for, so that they share a commit window.
	batches := map[*write.Batch]bool{}
	for _, p := range points {
		q := write.Point{Metric: p.Metric, Time: p.Time, Value: p.Value, Narrow: true}
		for k, v := range p.Tags {
			q.Tags = append(q.Tags, write.Tag{K: k, V: v})
		}
		b, err := s.writer.Add(ctx, &q)
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

	sourceCounter{s, activity.Own}.Puts(len(points), 0)
	return nil
}

// builtIn returns the dashboards that are served while none of their names are saved: that of
// this host, if its metrics are collected.
func (s *Server) builtIn() map[string]func() []byte {
	if s.own.collector == nil {
		return nil
	}
	host := selfmetrics.Sanitize(s.own.collector.Host)
	return map[string]func() []byte{dashboard.HostName: func() []byte { return dashboard.Host(host, s.own.since, time.Now()) }}
}

// startDashboard returns the name of the dashboard that the page at / leads to: that of this
// host while nothing but its metrics is stored, else none.
func (s *Server) startDashboard(ctx context.Context) (string, error) {
	if s.own.collector == nil {
		return "", nil
	}
	names, err := s.names.Suggest(ctx, encoding.UIDMetric, "", ownAtMost)
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
