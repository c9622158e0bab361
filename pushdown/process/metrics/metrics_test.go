package metrics

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// WithHBase adds the HBase client's metrics to a program's own. No metric is there twice, which
// would make the whole answer fail.
func TestWithHBase(t *testing.T) {
	counter := func(in prometheus.Registerer, name string) {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name})
		in.MustRegister(c)
		t.Cleanup(func() { in.Unregister(c) })
	}
	own := NewRegistry()
	counter(own, "downpour_test_total")
	counter(prometheus.DefaultRegisterer, "gohbase_test_total")
	counter(prometheus.DefaultRegisterer, "other_test_total")
	families, err := WithHBase(own).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		if name := f.GetName(); strings.HasSuffix(name, "_test_total") || name == "go_goroutines" || name == "process_start_time_seconds" {
			names = append(names, name)
		}
		if len(f.GetMetric()) != 1 && f.GetName() == "go_goroutines" {
			t.Errorf("%s is there %d times, want once", f.GetName(), len(f.GetMetric()))
		}
	}
	slices.Sort(names)
	if want := []string{"downpour_test_total", "go_goroutines", "gohbase_test_total", "process_start_time_seconds"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}
