package metrics

import (
	"fmt"
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
		if name := f.GetName(); strings.HasSuffix(name, "_test_total") || name == "go_goroutines" ||
			name == "process_start_time_seconds" {
			names = append(names, name)
		}
		if len(f.GetMetric()) != 1 && f.GetName() == "go_goroutines" {
			t.Errorf("%s is there %d times, want once", f.GetName(), len(f.GetMetric()))
		}
	}
	slices.Sort(names)
	if want := []string{"downpour_test_total", "go_goroutines", "gohbase_test_total",
		"process_start_time_seconds"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

// testTotals are those of TestNumbers, read by testCollector.
type testTotals struct{ done, left int64 }

var testNumbers = Numbers[testTotals]{
	Counter("downpour_test_done_total", "Done.", func(t *testTotals) int64 { return t.done }),
	Gauge("downpour_test_left", "Left.", func(t *testTotals) int64 { return t.left }),
}

type testCollector struct{ Totals[testTotals] }

func (c *testCollector) Describe(to chan<- *prometheus.Desc) { testNumbers.Describe(to) }

func (c *testCollector) Collect(to chan<- prometheus.Metric) {
	t := c.Read()
	testNumbers.Collect(to, &t)
}

// Numbers are read from the totals as they are when they are collected.
func TestNumbers(t *testing.T) {
	c := &testCollector{}
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	c.Add(func(t *testTotals) { t.done += 2; t.left = 5 })
	c.Add(func(t *testTotals) { t.done += 3; t.left-- })
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, f := range families {
		got += fmt.Sprintf("%s %s %g;", f.GetName(), f.GetType(),
			f.GetMetric()[0].GetCounter().GetValue()+f.GetMetric()[0].GetGauge().GetValue())
	}
	if want := "downpour_test_done_total COUNTER 5;downpour_test_left GAUGE 4;"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
