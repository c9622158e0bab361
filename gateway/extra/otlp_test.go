package extra_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"downpour/gateway"
	"downpour/gateway/extra/otlp/otlproutes"
	"downpour/gateway/gatewaytest"
)

// otlpGauge is a request of one gauge, in JSON.
func otlpGauge(metric string, v float64) string {
	return fmt.Sprintf(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":%q,"gauge":{"dataPoints":[`+
		`{"timeUnixNano":"1356998400000000000","asDouble":%v}]}}]}]}]}`, metric, v)
}

// otlpAt is the time of the points, in ns.
const otlpAt = rwAt * 1_000_000

// otlpMetrics has a metric of each type.
func otlpMetrics() pmetric.Metrics {
	all := pmetric.NewMetrics()
	resource := all.ResourceMetrics().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "checkout")
	resource.Resource().Attributes().PutStr("host.name", "web:1")
	resource.Resource().Attributes().PutStr("telemetry.sdk.name", "not chosen")
	scope := resource.ScopeMetrics().AppendEmpty()
	add := func(name string) pmetric.Metric {
		m := scope.Metrics().AppendEmpty()
		m.SetName(name)
		return m
	}

	gauge := add("queue.size").SetEmptyGauge().DataPoints().AppendEmpty()
	gauge.SetTimestamp(otlpAt + 1_234_567)
	gauge.SetIntValue(1<<60 + 1)
	gauge.Attributes().PutStr("queue", "a b")
	gauge.Attributes().PutBool("durable", true)
	gauge.Attributes().PutInt("shard", 7)
	gauge.Attributes().PutStr("empty", "")

	sum := add("http.requests").SetEmptySum()
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	point := sum.DataPoints().AppendEmpty()
	point.SetTimestamp(otlpAt)
	point.SetDoubleValue(math.Copysign(0, -1))
	point.Attributes().PutStr("host.name", "own") // counts more than the resource's

	h := add("http.duration").SetEmptyHistogram().DataPoints().AppendEmpty()
	h.SetTimestamp(otlpAt)
	h.ExplicitBounds().FromRaw([]float64{0.005, 1, 2.5})
	h.BucketCounts().FromRaw([]uint64{1, 2, 0, 4})
	h.SetCount(7)
	h.SetSum(12.5)
	h.SetMin(0.001)
	h.SetMax(9)

	s := add("gc.pause").SetEmptySummary().DataPoints().AppendEmpty()
	s.SetTimestamp(otlpAt)
	s.SetCount(3)
	s.SetSum(0.5)
	for q, v := range map[float64]float64{0.5: 0.1, 0.99: 0.25} {
		value := s.QuantileValues().AppendEmpty()
		value.SetQuantile(q)
		value.SetValue(v)
	}
	return all
}

// otlpWant are the series of otlpMetrics.
var otlpWant = []string{
	`map[__name__:gc.pause host.name:web:1 quantile:0.5 service.name:checkout] 0.1`,
	`map[__name__:gc.pause host.name:web:1 quantile:0.99 service.name:checkout] 0.25`,
	`map[__name__:gc.pause_count host.name:web:1 service.name:checkout] 3`,
	`map[__name__:gc.pause_sum host.name:web:1 service.name:checkout] 0.5`,
	`map[__name__:http.duration_bucket host.name:web:1 le:+Inf service.name:checkout] 7`,
	`map[__name__:http.duration_bucket host.name:web:1 le:0.005 service.name:checkout] 1`,
	`map[__name__:http.duration_bucket host.name:web:1 le:1 service.name:checkout] 3`,
	`map[__name__:http.duration_bucket host.name:web:1 le:2.5 service.name:checkout] 3`,
	`map[__name__:http.duration_count host.name:web:1 service.name:checkout] 7`,
	`map[__name__:http.duration_max host.name:web:1 service.name:checkout] 9`,
	`map[__name__:http.duration_min host.name:web:1 service.name:checkout] 0.001`,
	`map[__name__:http.duration_sum host.name:web:1 service.name:checkout] 12.5`,
	`map[__name__:http.requests host.name:own service.name:checkout] -0`,
	`map[__name__:queue.size durable:true host.name:web:1 queue:a b service.name:checkout shard:7] 1152921504606847000`,
}

// otlpBody is a request in a form.
func otlpBody(t *testing.T, all pmetric.Metrics, kind string) string {
	t.Helper()
	r := pmetricotlp.NewExportRequestFromMetrics(all)
	marshal := r.MarshalProto
	if kind == "application/json" {
		marshal = r.MarshalJSON
	}
	body, err := marshal()
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// otlpPartial reads an answer in a form.
func otlpPartial(t *testing.T, a answer, kind string) (rejected int64, why string) {
	t.Helper()
	r := pmetricotlp.NewExportResponse()
	unmarshal := r.UnmarshalProto
	if kind == "application/json" {
		unmarshal = r.UnmarshalJSON
	}
	err := unmarshal([]byte(a.Body))
	if err != nil || a.Status != http.StatusOK || a.Header.Get("Content-Type") != kind {
		t.Fatalf("%s: %d %s %q: %v", kind, a.Status, a.Header.Get("Content-Type"), a.Body, err)
	}
	return r.PartialSuccess().RejectedDataPoints(), r.PartialSuccess().ErrorMessage()
}

var otlpForms = []string{"application/x-protobuf", "application/json"}

// Each type of metric becomes the series that the documentation says, in both forms, packed or not.
//
//fault:otlp-resource-before-point own { => own && false {
func TestOTLP_points(t *testing.T) {
	t.Parallel()
	for _, kind := range otlpForms {
		for _, packed := range []bool{false, true} {
			b := open(t, func(c *gateway.Config) {
				defaults := &otlproutes.Settings{}
				if _, err := gatewaytest.Parse(nil, otlproutes.New(defaults)); err != nil {
					t.Fatal(err)
				}
				*gateway.SettingsOf[otlproutes.Settings](c) = *defaults
			})
			body, header := otlpBody(t, otlpMetrics(), kind), []string{"Content-Type", kind}
			if packed {
				var z bytes.Buffer
				w := gzip.NewWriter(&z)
				w.Write([]byte(body))
				w.Close()
				body, header = z.String(), append(header, "Content-Encoding", "gzip")
			}
			rejected, why := otlpPartial(t, b.Post("v1/metrics", body, header...), kind)
			if rejected != 0 || why != "" {
				t.Errorf("%s: %d rejected: %s", kind, rejected, why)
			}
			_, got := promAsk(b, "query", "query", `{__name__=~".+"}`, "time", "1356998401")
			if d := cmp.Diff(otlpWant, promVector(t, got)); d != "" {
				t.Errorf("%s: -want +got\n%s", kind, d)
			}
			a := b.Get("api/query?start=1356998400&end=1356998500&ms&arrays&m=none:queue.size")
			if !strings.Contains(a.Body, "[1356998400001,1152921504606846977]") {
				t.Errorf("an integer has another value or time: %s", a.Body)
			}
			median := `histogram_quantile(0.5, {"http.duration_bucket"})`
			_, got = promAsk(b, "query", "query", median, "time", "1356998400")
			if d := cmp.Diff([]string{"map[host.name:web:1 service.name:checkout] 2.5"}, promVector(t, got)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		}
	}
}

// What cannot be stored is rejected with its reason and costs no other point; what has no value is left out.
func TestOTLP_partial(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *gateway.Config) { c.MaxTags = 3 })
	for _, kind := range otlpForms {
		all := pmetric.NewMetrics()
		metrics := all.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
		gauge := func(name string, v float64) pmetric.NumberDataPoint {
			m := metrics.AppendEmpty()
			m.SetName(name)
			p := m.SetEmptyGauge().DataPoints().AppendEmpty()
			p.SetTimestamp(otlpAt)
			p.SetDoubleValue(v)
			return p
		}
		gauge("good.1", 1)
		stale := gauge("stale", 0)
		stale.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		gauge("nan", math.NaN())
		exponential := metrics.AppendEmpty()
		exponential.SetName("exp")
		exponential.SetEmptyExponentialHistogram().DataPoints().AppendEmpty().SetTimestamp(otlpAt)
		many := gauge("many", 1)
		for i := range 4 {
			many.Attributes().PutStr(fmt.Sprint("a", i), "x")
		}
		gauge("inf", math.Inf(1))
		gauge("", 1)
		gauge("before", 1).SetTimestamp(0)
		gauge("after", 1).SetTimestamp(math.MaxUint64)
		gauge("name", 1).Attributes().PutStr("__name__", "x")
		metrics.AppendEmpty().SetName("no.data")
		none := metrics.AppendEmpty()
		none.SetName("no.value")
		none.SetEmptyGauge().DataPoints().AppendEmpty().SetTimestamp(otlpAt)
		broken := metrics.AppendEmpty()
		broken.SetName("broken")
		h := broken.SetEmptyHistogram().DataPoints().AppendEmpty()
		h.SetTimestamp(otlpAt)
		h.BucketCounts().FromRaw([]uint64{1, 2})
		wide := metrics.AppendEmpty()
		wide.SetName("wide") // le is one tag too many, so two of its points are refused, and it is one data point
		w := wide.SetEmptyHistogram().DataPoints().AppendEmpty()
		w.SetTimestamp(otlpAt)
		w.BucketCounts().FromRaw([]uint64{1, 2})
		w.ExplicitBounds().FromRaw([]float64{1})
		for i := range 3 {
			w.Attributes().PutStr(fmt.Sprint("a", i), "x")
		}
		gauge("good.2", 2)

		rejected, why := otlpPartial(t, b.Post("v1/metrics", otlpBody(t, all, kind), "Content-Type", kind), kind)
		if rejected != 10 {
			t.Errorf("%s: %d rejected, want 10: %s", kind, rejected, why)
		}
		for _, says := range []string{"exponential", "for time", "OpenTSDB has no infinite values"} {
			if !strings.Contains(why, says) {
				t.Errorf("%s: the message has no %q: %s", kind, says, why)
			}
		}
		_, got := promAsk(b, "query", "query", `{__name__=~"[^w].*"}`, "time", "1356998401")
		want := []string{"map[__name__:good.1] 1", "map[__name__:good.2] 2"}
		if d := cmp.Diff(want, promVector(t, got)); d != "" {
			t.Errorf("%s: -want +got\n%s", kind, d)
		}
	}
	if log := b.Get("metrics").Body; !strings.Contains(log, `downpour_put_left_out_points_total{source="otlp"} 4`) {
		t.Error("points without a value are not counted")
	}
}

// Requests that are none are refused in the form in which they came, before they take memory.
func TestOTLP_refusedRequests(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	good := otlpBody(t, otlpMetrics(), "application/x-protobuf")
	var zeros bytes.Buffer
	w := gzip.NewWriter(&zeros)
	w.Write(make([]byte, 100<<20))
	w.Close()
	// A value in a list in a value …, as protobuf.
	deep := []byte{}
	for range 5000 {
		inner := slices.Concat([]byte{0x0a}, varint(len(deep)), deep)
		deep = slices.Concat([]byte{0x2a}, varint(len(inner)), inner)
	}
	for _, n := range []byte{0x12, 0x3a, 0x0a, 0x2a, 0x12, 0x12, 0x0a} {
		deep = slices.Concat([]byte{n}, varint(len(deep)), deep)
	}
	for name, c := range map[string]struct {
		body, kind, encoding string
		status               int
		says                 string
	}{
		"no type":        {good, "", "", 415, "application/x-protobuf or application/json"},
		"another type":   {good, "text/plain", "", 415, "Content-Type"},
		"cut off":        {good[:len(good)-3], "application/x-protobuf", "", 400, "cut off or broken"},
		"no protobuf":    {"hello", "application/x-protobuf", "", 400, ""},
		"no JSON":        {"hello", "application/json", "", 400, "cannot read"},
		"cut off JSON":   {`{"resourceMetrics":[{`, "application/json", "", 400, "cannot read"},
		"zeros":          {zeros.String(), "application/x-protobuf", "gzip", 413, "33554432"},
		"cut off gzip":   {zeros.String()[:500], "application/x-protobuf", "gzip", 400, ""},
		"no such packer": {good, "application/x-protobuf", "br", 400, "br"},
		"deep":           {string(deep), "application/x-protobuf", "", 400, "nested"},
		"deep JSON":      {strings.Repeat("[", 1<<20), "application/json", "", 400, "nested"},
	} {
		a := b.Post("v1/metrics", c.body, "Content-Type", c.kind, "Content-Encoding", c.encoding)
		kind := c.kind
		if c.status == 415 {
			kind = "application/json"
		}
		if a.Status != c.status || !strings.Contains(a.Body, c.says) || a.Header.Get("Content-Type") != kind {
			t.Errorf("%s: got %d %s %.300q, want %d %s with %q", name, a.Status, a.Header.Get("Content-Type"), a.Body,
				c.status, kind, c.says)
		}
	}
	if a := b.Get("v1/metrics", "Content-Type", "application/json"); a.Status != 405 {
		t.Errorf("GET: got %d, want 405", a.Status)
	}
	for _, kind := range otlpForms {
		body := map[string]string{"application/json": "{}"}[kind]
		rejected, why := otlpPartial(t, b.Post("v1/metrics", body, "Content-Type", kind), kind)
		if rejected != 0 || why != "" {
			t.Errorf("%s: an empty request: %d %s", kind, rejected, why)
		}
	}

	small := open(t, func(c *gateway.Config) { c.Memory = "64MiB" })
	many := strings.Repeat("\x0a\x00", 10<<20) // resources
	a := small.Post("v1/metrics", many, "Content-Type", "application/x-protobuf")
	if a.Status != 413 || !strings.Contains(a.Body, "send fewer points at a time") {
		t.Errorf("with 64 MiB: got %d %.300s, want 413", a.Status, a.Body)
	}
	small.Settled()
	b.Settled()
}

func varint(n int) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// The attributes of resources that become tags are those of the setting.
func TestOTLP_tags(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *gateway.Config) {
		gateway.SettingsOf[otlproutes.Settings](c).OTLPTags = []string{"telemetry.sdk.name"}
	})
	body := otlpBody(t, otlpMetrics(), otlpForms[0])
	otlpPartial(t, b.Post("v1/metrics", body, "Content-Type", otlpForms[0]), otlpForms[0])
	_, got := promAsk(b, "query", "query", `{"gc.pause_sum"}`, "time", "1356998401")
	want := []string{"map[__name__:gc.pause_sum telemetry.sdk.name:not chosen] 0.5"}
	if d := cmp.Diff(want, promVector(t, got)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
