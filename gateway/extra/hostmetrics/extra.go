package hostmetrics

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/admin/activity"
	"downpour/gateway/extra/dashboards/dashboard"
	"downpour/gateway/write"
)

// firstInterval is the time between the first samples of this host's metrics: a page that is
// opened with the gateway then has lines after a few seconds. Later it is that of the setting.
const firstInterval = 2 * time.Second

// ownAtMost bounds the number of metrics that the gateway looks at to see whether others than
// this host's are stored; there are fewer of this host's.
const ownAtMost = 100

// Settings are those of this host's metrics.
type Settings struct {
	// SelfMetrics is the interval of this host's own metrics, 0 for none, or auto: 10s, and
	// more often at the start, in a store that was empty when a gateway first started on it.
	// Empty is auto on the embedded store and 0 on HBase.
	SelfMetrics string `env:"DOWNPOUR_SELF_METRICS"`
}

// SetDefaults lets a fresh installation have something to look at; tables on HBase get what their users put.
func (s *Settings) SetDefaults(c *gateway.Config) {
	if s.SelfMetrics == "" {
		s.SelfMetrics = "0"
		if c.Embedded() {
			s.SelfMetrics = autoMetrics
		}
	}
}

// Validate returns the fault of an interval that is none.
func (s *Settings) Validate(*gateway.Config) error {
	_, err := s.interval()
	return err
}

// autoMetrics is the value of DOWNPOUR_SELF_METRICS that leaves it to the store.
const autoMetrics = "auto"

// interval returns the interval of the host's own metrics, 0 for none.
func (s *Settings) interval() (time.Duration, error) {
	switch s.SelfMetrics {
	case "0":
		return 0, nil
	case autoMetrics:
		return 10 * time.Second, nil
	}
	d, err := time.ParseDuration(s.SelfMetrics)
	// The points have whole seconds: two samples in one would be duplicates.
	if err != nil || d < time.Second {
		return 0, fmt.Errorf("DOWNPOUR_SELF_METRICS: got %q, want auto, 0, or a time of at least 1s, such as 10s",
			s.SelfMetrics)
	}
	return d, nil
}

// New returns what puts this host's metrics, like any collector.
func New(s *Settings) gateway.Extra {
	return gateway.Extra{Name: "host metrics", Settings: s, Open: s.open}
}

func (s *Settings) open(ctx context.Context, c *gateway.Core) (gateway.Parts, error) {
	h := s.newHost(ctx, c)
	parts := gateway.Parts{Provides: h}
	if h.collector != nil {
		parts.Jobs = []gateway.Job{{Name: "own metrics", Run: h.collector.Run}}
	}
	return parts, nil
}

// host is this host, whose metrics are put.
type host struct {
	*gateway.Core
	collector *Collector // nil if they are not collected
	since     time.Time  // of the first sample; the zero value if that was another gateway's
}

// newHost decides whether this host's metrics are collected. With auto they go into a store
// that was empty when a gateway first started on it: those who bring their own data get no
// metrics that they did not request. In mode ro nothing is put.
func (s *Settings) newHost(ctx context.Context, c *gateway.Core) *host {
	h := &host{Core: c}
	interval, _ := s.interval() // Validate reports the error
	if interval == 0 || c.ReadOnly() {
		return h
	}
	names, err := c.Names.Suggest(ctx, encoding.UIDMetric, "", ownAtMost)
	// A gateway that ended during its first sample may have left any of the names.
	if err == nil && s.SelfMetrics == autoMetrics && !onlyOwn(names) {
		var known []string
		known, err = c.Names.Suggest(ctx, encoding.UIDMetric, First, 1)
		if err == nil && !slices.Contains(known, First) {
			return h
		}
	}
	if err != nil {
		c.Log.Warn("this host's metrics are not collected", "error", err)
		return h
	}

	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "localhost"
	}
	h.collector = &Collector{Interval: interval, Host: name, Read: h.read, Put: h.put, Log: c.Log}
	if s.SelfMetrics == autoMetrics {
		h.collector.First = firstInterval
	}
	if len(names) == 0 {
		h.since = time.Now()
	}
	return h
}

// read takes a sample of this host, and of what the gateway counts.
func (h *host) read(ctx context.Context) ([]Point, error) {
	points, err := ReadHost(ctx)
	points = append(points, h.counts()...)
	return append(points, Point{
		Metric: GatewayPrefix + "live.subscribers",
		Value:  encoding.IntValue(int64(h.Live.Stats().Subscribers)),
	}), err
}

// put stores one sample of all metrics and waits until it is durable.
func (h *host) put(ctx context.Context, points []Point) error {
	// All points are added before any is waited for, so that they share a commit window.
	batches := map[*write.Batch]bool{}
	for _, p := range points {
		q := write.Point{Metric: p.Metric, Time: p.Time, Value: p.Value, Narrow: true}
		for k, v := range p.Tags {
			q.Tags = append(q.Tags, write.Tag{K: k, V: v})
		}
		b, err := h.Points.Add(ctx, &q)
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

	h.CountPuts(activity.Own, len(points), 0)
	return nil
}

// Dashboards returns the dashboards that are served while none of their names are saved: that of
// this host, if its metrics are collected.
func (h *host) Dashboards() map[string]func() []byte {
	if h.collector == nil {
		return nil
	}
	name := Sanitize(h.collector.Host)
	return map[string]func() []byte{
		dashboard.HostName: func() []byte { return dashboard.Host(name, h.since, time.Now()) },
	}
}

// StartDashboard returns the name of the dashboard that the page at / leads to: that of this
// host while nothing but its metrics is stored, else none.
func (h *host) StartDashboard(ctx context.Context) (string, error) {
	if h.collector == nil {
		return "", nil
	}
	names, err := h.Names.Suggest(ctx, encoding.UIDMetric, "", ownAtMost)
	if err != nil || !onlyOwn(names) {
		return "", err
	}
	return dashboard.HostName, nil
}

// onlyOwn reports whether the first ownAtMost metrics of a store are all that it has, and all
// of this host.
func onlyOwn(names []string) bool {
	return len(names) < ownAtMost && !slices.ContainsFunc(names, func(n string) bool { return !Collects(n) })
}

// counts returns the counts of points and of queries, as this host's metrics have them.
func (h *host) counts() []Point {
	families, err := h.Own.Gather()
	if err != nil {
		return nil // only a metric that is registered wrongly fails
	}

	var points []Point
	for _, f := range families {
		for _, m := range f.GetMetric() {
			p := Point{Metric: strings.ReplaceAll(f.GetName(), "_", "."), Tags: map[string]string{}}
			count := m.GetCounter().GetValue()
			if m.Histogram != nil {
				p.Metric += ".count"
				count = float64(m.Histogram.GetSampleCount())
			}
			p.Value = encoding.IntValue(int64(count))
			for _, l := range m.GetLabel() {
				p.Tags[l.GetName()] = l.GetValue()
			}
			points = append(points, p)
		}
	}
	return points
}
