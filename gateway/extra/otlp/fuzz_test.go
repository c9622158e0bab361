package otlp

import (
	"errors"
	"runtime"
	"testing"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"downpour/gateway/extra/prometheus/intake"
)

// allTypes has a metric of each type.
func allTypes() pmetric.Metrics {
	all := pmetric.NewMetrics()
	resource := all.ResourceMetrics().AppendEmpty()
	resource.Resource().Attributes().PutStr("a", "b")
	metrics := resource.ScopeMetrics().AppendEmpty().Metrics()
	p := metrics.AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetIntValue(1)
	p.Attributes().PutEmptySlice("list").AppendEmpty().SetEmptySlice().AppendEmpty().SetStr("deep")
	p.Attributes().PutEmptyMap("map").PutDouble("x", 1)
	p.Attributes().PutEmptyBytes("bytes").FromRaw([]byte{1})
	p.Exemplars().AppendEmpty().SetDoubleValue(1)
	metrics.AppendEmpty().SetEmptySum().DataPoints().AppendEmpty().SetDoubleValue(2)
	h := metrics.AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty()
	h.BucketCounts().FromRaw([]uint64{1, 2})
	h.ExplicitBounds().FromRaw([]float64{1})
	e := metrics.AppendEmpty().SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
	e.Positive().BucketCounts().FromRaw([]uint64{1})
	metrics.AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty().QuantileValues().AppendEmpty()
	return all
}

// Any body is read or refused, and its points can be walked.
func FuzzParse(f *testing.F) {
	b, _ := (&pmetric.ProtoMarshaler{}).MarshalMetrics(allTypes())
	j, _ := (&pmetric.JSONMarshaler{}).MarshalMetrics(allTypes())
	f.Add(b, false)
	f.Add(b[:len(b)/2], false)
	f.Add(j, true)
	f.Add(j[:len(j)/2], true)
	f.Add([]byte(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[null]}}]}]}]}`), true)
	f.Add([]byte(`{"resourceMetrics":null}`), true)
	f.Add([]byte(`[]`), true)
	f.Fuzz(func(t *testing.T, body []byte, asJSON bool) {
		form := Protobuf
		if asJSON {
			form = JSON
		}
		r, err := Parse(body, form, []string{"a"}, func(int64) error { return nil })
		if err != nil {
			return
		}
		var k intake.Key
		for i := range r.Series() {
			_ = r.Key(i, &k)
			r.Each(i, func(intake.Point) bool { return true })
			if i > 0 && r.DataPoint(i) < r.DataPoint(i-1) {
				t.Fatal("the data points are not in order")
			}
		}
	})
}

// What is reserved is at least what reading takes, for messages that take much more than their bytes.
//
//fault:otlp-messages-weigh-nothing messageBytes => 0
func TestParse_memory(t *testing.T) {
	empty := func(path ...byte) (b []byte) { // many empty messages, in the messages of a path
		for range 20_000 {
			b = append(b, path[len(path)-1], 0)
		}
		for i := len(path) - 2; i >= 0; i-- {
			n := len(b)
			head := []byte{path[i]}
			for ; n >= 0x80; n >>= 7 {
				head = append(head, byte(n)|0x80)
			}
			b = append(append(head, byte(n)), b...)
		}
		return b
	}
	json := []byte(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","gauge":{"dataPoints":[{}`)
	for range 20_000 {
		json = append(json, ",{}"...)
	}
	json = append(json, "]}}]}]}]}"...)
	for name, c := range map[string]struct {
		body []byte
		form Form
	}{
		"resources":   {empty(0x0a), Protobuf},
		"scopes":      {empty(0x0a, 0x12), Protobuf},
		"metrics":     {empty(0x0a, 0x12, 0x12), Protobuf},
		"gauges":      {empty(0x0a, 0x12, 0x12, 0x2a, 0x0a), Protobuf},
		"histograms":  {empty(0x0a, 0x12, 0x12, 0x4a, 0x0a), Protobuf},
		"exponential": {empty(0x0a, 0x12, 0x12, 0x52, 0x0a), Protobuf},
		"summaries":   {empty(0x0a, 0x12, 0x12, 0x5a, 0x0a), Protobuf},
		"quantiles":   {empty(0x0a, 0x12, 0x12, 0x5a, 0x0a, 0x32), Protobuf},
		"exemplars":   {empty(0x0a, 0x12, 0x12, 0x2a, 0x0a, 0x2a), Protobuf},
		"attributes":  {empty(0x0a, 0x12, 0x12, 0x2a, 0x0a, 0x3a), Protobuf},
		"values":      {empty(0x0a, 0x0a, 0x0a, 0x12, 0x2a, 0x0a), Protobuf},
		"JSON":        {json, JSON},
	} {
		reserved := int64(0)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := Parse(c.body, c.form, nil, func(n int64) error { reserved += n; return nil })
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// A list that grows leaves its smaller forms to the garbage.
		if took := int64(after.TotalAlloc - before.TotalAlloc); took > 2*reserved {
			t.Errorf("%s: %d bytes took %d, and %d were reserved", name, len(c.body), took, reserved)
		}
		runtime.KeepAlive(r)

		refusal := errors.New("no memory")
		if _, err := Parse(c.body, c.form, nil, func(int64) error { return refusal }); !errors.Is(err, refusal) {
			t.Errorf("%s: got %v, want the refusal", name, err)
		}
	}
}
