// Package metrics has the metrics that gateway and pushdown server have in common: of
// the build, of the process, of Go's runtime, and of the HBase client.
package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"downpour/pushdown/process/version"
)

// NewRegistry returns a registry with the metrics of the build, of the process and of Go, for a
// program to add its own.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo())
	return r
}

// buildInfo says what runs, in the way of Prometheus' own programs: by labels of a constant.
func buildInfo() prometheus.Collector {
	commit, goVersion := version.Build()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "downpour_build_info",
		Help:        "1, with the release, its commit and Go's version as labels.",
		ConstLabels: prometheus.Labels{"version": version.Version, "revision": commit, "goversion": goVersion},
	}, func() float64 { return 1 })
}

// WithHBase returns the metrics of a registry and those of the HBase client. The client
// registers its metrics in Prometheus's default registry, which has others as well.
func WithHBase(own *prometheus.Registry) prometheus.Gatherers {
	return prometheus.Gatherers{own, prometheus.GathererFunc(hbaseClient)}
}

// hbaseClient returns the metrics of the HBase client, which it finds by their prefix.
func hbaseClient() (out []*dto.MetricFamily, err error) {
	all, err := prometheus.DefaultGatherer.Gather()
	for _, f := range all {
		if strings.HasPrefix(f.GetName(), "gohbase_") {
			out = append(out, f)
		}
	}
	return out, err
}
