package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Totals are numbers that work in the background adds up. Its methods may be called from many goroutines.
type Totals[T any] struct {
	mu  sync.Mutex
	now T
}

// Add changes the numbers.
func (t *Totals[T]) Add(change func(*T)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.now)
}

// Read returns the numbers as they are.
func (t *Totals[T]) Read() T {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}

// Number is a metric that is read from a T.
type Number[T any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*T) int64
}

// Counter returns a number that only grows.
func Counter[T any](name, help string, value func(*T) int64) Number[T] {
	return Number[T]{prometheus.NewDesc(name, help, nil, nil), prometheus.CounterValue, value}
}

// Gauge returns a number that grows and falls.
func Gauge[T any](name, help string, value func(*T) int64) Number[T] {
	return Number[T]{prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, value}
}

// Numbers are metrics that are read from one T.
type Numbers[T any] []Number[T]

// Describe is that of a prometheus.Collector.
func (n Numbers[T]) Describe(to chan<- *prometheus.Desc) {
	for _, x := range n {
		to <- x.desc
	}
}

// Collect is that of a prometheus.Collector which has t.
func (n Numbers[T]) Collect(to chan<- prometheus.Metric, t *T) {
	for _, x := range n {
		to <- prometheus.MustNewConstMetric(x.desc, x.kind, float64(x.value(t)))
	}
}
