// Package otlp turns OpenTelemetry's metrics into points. Package pdata reads the messages, and this package is the one
// that knows it.
//
//	otlp.go      a request as points
//	weight.go    what a message takes in memory, before it is read
//	response.go  answers, as the request was encoded
//
// A gauge or a sum is a series for each set of attributes. A histogram is the series that Prometheus makes of one,
// NAME_bucket, NAME_sum and NAME_count; a summary is NAME with quantiles, NAME_sum and NAME_count. Tags are attributes
// of points, and those of the resource that are chosen. Sums and histograms are stored as they come, be they cumulative
// or deltas.
// Source: opentelemetry-proto, metrics/v1/metrics.proto; Prometheus' compatibility in OpenTelemetry's specification.
package otlp

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"downpour/encoding"
	"downpour/gateway/extra/prometheus/intake"
)

// Request is the points of a request.
type Request struct {
	items     []item
	resources [][]attribute
}

// attribute is one of a resource that is a tag.
type attribute struct{ name, value string }

// item is a point with its series.
type item struct {
	metric, suffix string
	resource       int
	attributes     pcommon.Map
	label          string // le or quantile, with bound as its value; "" for none
	bound          float64
	point          intake.Point
	of             int // the data point that it is from
}

// itemBytes is the memory of an item.
const itemBytes = 160

// Errors of points that are refused.
var (
	ErrExponential = errors.New("exponential histograms are not supported: send histograms with explicit buckets")
	errNoValue     = errors.New("the data point has no value")
)

// Parse reads a body in a form. It calls reserve before it takes memory, and returns its error. tags are the attributes
// of resources that become tags.
func Parse(body []byte, form Form, tags []string, reserve func(bytes int64) error) (*Request, error) {
	weight, err := weigh(body, form)
	if err != nil {
		return nil, err
	}
	if err := reserve(weight); err != nil {
		return nil, err
	}
	var metrics pmetric.Metrics
	if form == JSON {
		metrics, err = (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(body)
	} else {
		metrics, err = (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(body)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the request: %w", err)
	}
	n := 0
	eachMetric(metrics, func(_ int, m pmetric.Metric) { n += items(m) })
	if err := reserve(int64(n) * itemBytes); err != nil {
		return nil, err
	}
	r := &Request{items: make([]item, 0, n)}
	for _, resource := range metrics.ResourceMetrics().All() {
		r.resources = append(r.resources, chosen(resource.Resource().Attributes(), tags))
	}
	a := adder{to: r}
	eachMetric(metrics, a.metric)
	return r, nil
}

// chosen returns the attributes that are tags.
func chosen(attributes pcommon.Map, tags []string) (all []attribute) {
	for _, name := range tags {
		if v, ok := attributes.Get(name); ok {
			all = append(all, attribute{name, v.AsString()})
		}
	}
	return all
}

func eachMetric(metrics pmetric.Metrics, use func(resource int, m pmetric.Metric)) {
	for i, resource := range metrics.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, m := range scope.Metrics().All() {
				use(i, m)
			}
		}
	}
}

// items returns how many items a metric becomes at most.
func items(m pmetric.Metric) (n int) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			n += p.BucketCounts().Len() + 5
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			n += p.QuantileValues().Len() + 2
		}
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().DataPoints().Len()
	}
	return n
}

// adder adds the items of metrics.
type adder struct {
	to   *Request
	next item // without value
	made int  // data points
}

// metric adds the points of a metric. One without data has none.
func (a *adder) metric(resource int, m pmetric.Metric) {
	a.next.metric, a.next.resource = m.Name(), resource
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		a.numbers(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		a.numbers(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			a.histogram(p)
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			a.summary(p)
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			a.begin(p.Timestamp(), p.Attributes())
			a.refuse(ErrExponential)
		}
	}
}

// begin begins a data point.
func (a *adder) begin(at pcommon.Timestamp, attributes pcommon.Map) {
	a.made++
	a.next.of, a.next.attributes = a.made, attributes
	a.next.point.Time = int64(at / 1e6) // ms
}

// add adds an item of the data point.
func (a *adder) add(suffix string, v encoding.Value) { a.addWith(suffix, "", 0, v) }

func (a *adder) addWith(suffix, label string, bound float64, v encoding.Value) {
	it := a.next
	it.suffix, it.label, it.bound, it.point.Value = suffix, label, bound, v
	a.to.items = append(a.to.items, it)
}

func (a *adder) refuse(err error) {
	it := a.next
	it.point.Err = err
	a.to.items = append(a.to.items, it)
}

// none is the value of a data point whose flags say that it has none, as a stale marker of Prometheus does.
var none = encoding.FloatValue(math.NaN())

func (a *adder) numbers(points pmetric.NumberDataPointSlice) {
	for _, p := range points.All() {
		a.begin(p.Timestamp(), p.Attributes())
		switch {
		case p.Flags().NoRecordedValue():
			a.add("", none)
		case p.ValueType() == pmetric.NumberDataPointValueTypeInt:
			a.add("", encoding.IntValue(p.IntValue()))
		case p.ValueType() == pmetric.NumberDataPointValueTypeDouble:
			a.add("", encoding.FloatValue(p.DoubleValue()))
		default:
			a.refuse(errNoValue)
		}
	}
}

func (a *adder) histogram(p pmetric.HistogramDataPoint) {
	a.begin(p.Timestamp(), p.Attributes())
	counts, bounds := p.BucketCounts(), p.ExplicitBounds()
	switch {
	case p.Flags().NoRecordedValue():
		a.add("_count", none)
		return
	case counts.Len() > 0 && counts.Len() != bounds.Len()+1:
		a.refuse(fmt.Errorf("the histogram has %d buckets and %d bounds, want one bucket more than bounds",
			counts.Len(), bounds.Len()))
		return
	}
	total := uint64(0)
	for i := range max(counts.Len()-1, 0) {
		total += counts.At(i)
		a.addWith("_bucket", "le", bounds.At(i), count(total))
	}
	a.addWith("_bucket", "le", math.Inf(1), count(p.Count()))
	if p.HasSum() {
		a.add("_sum", encoding.FloatValue(p.Sum()))
	}
	a.add("_count", count(p.Count()))
	if p.HasMin() {
		a.add("_min", encoding.FloatValue(p.Min()))
	}
	if p.HasMax() {
		a.add("_max", encoding.FloatValue(p.Max()))
	}
}

func (a *adder) summary(p pmetric.SummaryDataPoint) {
	a.begin(p.Timestamp(), p.Attributes())
	if p.Flags().NoRecordedValue() {
		a.add("_count", none)
		return
	}
	for _, q := range p.QuantileValues().All() {
		a.addWith("", "quantile", q.Quantile(), encoding.FloatValue(q.Value()))
	}
	a.add("_sum", encoding.FloatValue(p.Sum()))
	a.add("_count", count(p.Count()))
}

// count is the value of a count.
func count(n uint64) encoding.Value {
	if n > math.MaxInt64 {
		return encoding.FloatValue(float64(n))
	}
	return encoding.IntValue(int64(n))
}

// Series is how many items there are: each is a series with one point.
func (r *Request) Series() int { return len(r.items) }

// Points is how many points there are.
func (r *Request) Points() int { return len(r.items) }

// DataPoint returns the number of the data point that item i is from. Those of one data point are neighbours.
func (r *Request) DataPoint(i int) int { return r.items[i].of }

// Spelling is nil: attributes are not together with those of their resource.
func (r *Request) Spelling(int) []byte { return nil }

// Each calls yield with the point of item i.
func (r *Request) Each(i int, yield func(intake.Point) bool) { yield(r.items[i].point) }

// maxLabels is the most labels that are looked at: a row key has at most as many tags.
const maxLabels = 255

// Key sets k to the names of item i. An attribute of the point counts more than one of its resource.
func (r *Request) Key(i int, k *intake.Key) error {
	it := &r.items[i]
	name := it.metric
	if name != "" {
		name += it.suffix
	}
	if err := k.Reset(name); err != nil {
		return err
	}
	for _, a := range r.resources[it.resource] {
		if _, own := it.attributes.Get(a.name); own { //fault:otlp-resource-before-point TestOTLP_points
			continue
		}
		if err := k.Add(a.name, a.value); err != nil {
			return err
		}
	}
	if n := it.attributes.Len(); n > maxLabels {
		return fmt.Errorf("%d attributes, at most %d", n, maxLabels)
	}
	for name, v := range it.attributes.All() {
		if err := k.Add(name, v.AsString()); err != nil {
			return err
		}
	}
	if it.label == "" {
		return nil
	}
	return k.Add(it.label, strconv.FormatFloat(it.bound, 'f', -1, 64))
}
