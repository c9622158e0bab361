package gateway

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"downpour/gateway/admin/activity"
	"downpour/gateway/api/httpapi/adminroutes"
	"downpour/pushdown/process/metrics"
)

// counters are the gateway's own metrics, for /metrics.
type counters struct {
	log      *slog.Logger
	registry *prometheus.Registry
	own      *prometheus.Registry // those that are stored with this host's metrics
	points   *prometheus.CounterVec
	sources  *prometheus.CounterVec
	refused  *prometheus.CounterVec
	queries  *prometheus.HistogramVec
}

// newCounters registers the metrics of puts and queries; components add theirs.
func newCounters(log *slog.Logger) *counters {
	c := &counters{
		log:      log,
		registry: metrics.NewRegistry(),
		own:      prometheus.NewRegistry(),
		points: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "downpour_put_points_total",
			Help: "Points put, this host's own metrics included, by outcome: stored or refused."}, []string{"outcome"}),
		sources: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "downpour_put_stored_points_total",
			Help: "Points stored, by source: http, telnet, remote_write, otlp, or own for this host's own metrics."},
			[]string{"source"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "downpour_put_refused_points_total",
			Help: "Points refused, by the route or telnet command by which they came and the reason that the log " +
				"names, with _ for spaces; without those of requests that could not be read."},
			[]string{"via", "reason"}),
		queries: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "downpour_query_seconds",
			Help: "Time to answer a query, by HTTP status, or mistake: a query that does not parse and is answered " +
				"by 500, as OpenTSDB does.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}, []string{"status"}),
	}
	c.registry.MustRegister(c.points, c.sources, c.refused, c.queries)
	c.own.MustRegister(c.points, c.queries)

	// A counter that begins at 0 has a rate from the first time that it counts.
	c.Puts(0, 0)
	for _, d := range activity.Sources() {
		c.sources.WithLabelValues(d.String())
	}
	c.queries.WithLabelValues(strconv.Itoa(http.StatusOK))
	return c
}

// handler serves /metrics: the metrics of the gateway and those of the HBase client.
func (c *counters) handler() http.Handler {
	return promhttp.HandlerFor(metrics.WithHBase(c.registry), promhttp.HandlerOpts{})
}

// Puts counts points: those that came over HTTP or telnet, and this host's own metrics.
func (c *counters) Puts(ok, failed int) {
	c.points.WithLabelValues("stored").Add(float64(ok))
	c.points.WithLabelValues("refused").Add(float64(failed))
}

// lines returns the counters as the telnet command stats prints them.
func (c *counters) lines(host string) string {
	families, err := c.registry.Gather()
	if err != nil {
		return "stats: " + err.Error() + "\n"
	}

	var b strings.Builder
	now := time.Now().Unix()
	for _, f := range families {
		for _, m := range f.GetMetric() {
			value, ok := ownNumber(f, m)
			if !ok {
				continue
			}

			fmt.Fprintf(&b, "%s %d %.0f", strings.ReplaceAll(f.GetName(), "_", "."), now, value)
			for _, l := range m.GetLabel() {
				fmt.Fprintf(&b, " %s=%s", l.GetName(), l.GetValue())
			}
			fmt.Fprintf(&b, " host=%s\n", host)
		}
	}

	return b.String()
}

// stats returns the counters for /api/stats. A counter that OpenTSDB has, too, is
// there under both names. Source: TSDB.collectStats.
func (c *counters) stats() []adminroutes.Stat {
	now, host := time.Now().Unix(), version().Host
	var out []adminroutes.Stat
	add := func(metric string, value float64, tags map[string]string) {
		all := map[string]string{"host": host}
		for k, v := range tags {
			all[k] = v
		}
		out = append(out, adminroutes.Stat{
			Metric:    metric,
			Timestamp: now,
			Value:     fmt.Sprintf("%.0f", value),
			Tags:      all,
		})
	}

	// Gather returns with its error what it could gather; that is answered.
	families, err := c.registry.Gather()
	if err != nil {
		c.log.Warn("stats are incomplete", "err", err)
	}

	for _, f := range families {
		for _, m := range f.GetMetric() {
			value, ok := ownNumber(f, m)
			if !ok {
				continue
			}

			tags := map[string]string{}
			for _, l := range m.GetLabel() {
				tags[l.GetName()] = l.GetValue()
			}

			switch {
			case f.GetName() == "downpour_put_points_total" && tags["outcome"] == "stored":
				add("tsd.datapoints.added", value, map[string]string{"type": "all"})
			case f.GetName() == "downpour_put_points_total" && tags["outcome"] == "refused":
				add("tsd.rpc.errors", value, map[string]string{"type": "illegal_arguments"})
			}

			add(strings.ReplaceAll(f.GetName(), "_", "."), value, tags)
		}
	}

	return out
}

// ownNumber returns the value of a counter or gauge of ours. ok is false for
// histograms and for metrics of the HBase client and of Go.
func ownNumber(f *dto.MetricFamily, m *dto.Metric) (value float64, ok bool) {
	switch {
	case !strings.HasPrefix(f.GetName(), "downpour_"):
		return 0, false
	case m.Counter != nil:
		return m.Counter.GetValue(), true
	case m.Gauge != nil:
		return m.Gauge.GetValue(), true
	}
	return 0, false
}

// Query counts one query.
func (c *counters) Query(status string, took time.Duration) {
	c.queries.WithLabelValues(status).Observe(took.Seconds())
}

// version describes this build in the form of OpenTSDB's answer. Its version number is that
// of the OpenTSDB with which Downpour is compatible, because clients decide by it what to send.
func version() adminroutes.Version {
	host, _ := os.Hostname()
	// MINT and MODIFIED are the words of OpenTSDB's build for a work tree without and with changes.
	v := adminroutes.Version{Repo: "downpour", Host: host, Version: "2.4.1", RepoStatus: "MINT", Branch: "main"}
	if info, ok := debug.ReadBuildInfo(); ok { // what go run has built says nothing of its revision
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.FullRevision = s.Value
				v.ShortRevision = s.Value[:min(7, len(s.Value))]
			case "vcs.time":
				// As in OpenTSDB the time is in seconds since 1970.
				if t, err := time.Parse(time.RFC3339, s.Value); err == nil {
					v.Timestamp = strconv.FormatInt(t.Unix(), 10)
				}
			case "vcs.modified":
				if s.Value == "true" {
					v.RepoStatus = "MODIFIED"
				}
			}
		}
	}
	return v
}
