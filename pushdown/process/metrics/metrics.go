// Package metrics is what gateway and pushdown server show alike at /metrics: the
// process, Go's runtime, and the HBase client.
package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
)

// NewRegistry returns a registry of a program's own metrics, which has those of
// the process and of Go already.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// WithHBase adds to a registry's metrics those of the HBase client, which
// registers its own at large, beside others of the process and of Go.
func WithHBase(own *prometheus.Registry) prometheus.Gatherers {
	return prometheus.Gatherers{own, prometheus.GathererFunc(hbaseClient)}
}

func hbaseClient() (out []*dto.MetricFamily, err error) {
	all, err := prometheus.DefaultGatherer.Gather()
	for _, f := range all {
		if strings.HasPrefix(f.GetName(), "gohbase_") {
			out = append(out, f)
		}
	}
	return out, err
}
