package remotewrite

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/prompb"

	"downpour/gateway/extra/prometheus/intake"
)

// messages are requests of all fields, and bytes that are none.
func messages() [][]byte {
	full := prompb.WriteRequest{
		Timeseries: []prompb.TimeSeries{
			{
				Labels: []prompb.Label{{Name: "__name__", Value: "up"}, {Name: "job", Value: "a b"}},
				Samples: []prompb.Sample{
					{Value: 1, Timestamp: 1356998400_000}, {Value: math.Inf(-1), Timestamp: -1}, {},
				},
				Exemplars: []prompb.Exemplar{{Value: 2}},
			},
			{Labels: []prompb.Label{{}}, Histograms: []prompb.Histogram{{Timestamp: 5}}},
			{},
		},
		Metadata: []prompb.MetricMetadata{{MetricFamilyName: "up"}},
	}
	b, _ := full.Marshal()
	return [][]byte{nil, b, b[:len(b)-1], {0x0a, 0x00}, {0x0a, 2, 0x12, 0}, {0x0a, 4, 0x0a, 0, 0x12, 0},
		{0x0a, 6, 0x0a, 0, 0x12, 0, 0x0a, 0}, {0x08, 1}, {0x0b}, {0x0a, 0xff}, {0}}
}

// Messages are the same if their known fields are, to the bit.
var (
	sameSample = cmp.Comparer(func(a, b prompb.Sample) bool {
		return math.Float64bits(a.Value) == math.Float64bits(b.Value) && a.Timestamp == b.Timestamp
	})
	sameLabel = cmp.Comparer(func(a, b prompb.Label) bool { return a.Name == b.Name && a.Value == b.Value })
)

// A body that is read, is read as Prometheus' own messages are.
func FuzzParse(f *testing.F) {
	for _, m := range messages() {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := Parse(body, func(int64) error { return nil })
		var want prompb.WriteRequest
		if err != nil || want.Unmarshal(body) != nil { // that of Prometheus looks into exemplars, too
			return
		}
		points, i := 0, 0
		for _, s := range want.Timeseries {
			if len(s.Samples)+len(s.Histograms) == 0 {
				continue
			}
			got := 0
			var samples []prompb.Sample
			r.Each(i, func(p intake.Point) bool {
				got++
				if p.Err == nil {
					samples = append(samples, prompb.Sample{Value: p.Value.Double(), Timestamp: p.Time})
				}
				return true
			})
			if d := cmp.Diff(s.Samples, samples, sameSample); d != "" && len(s.Samples)+len(samples) > 0 {
				t.Fatalf("% x: series %d: -want +got\n%s", body, i, d)
			}
			if got != len(s.Samples)+len(s.Histograms) {
				t.Fatalf("% x: series %d has %d points, want %d", body, i, got, len(s.Samples)+len(s.Histograms))
			}
			var k intake.Key
			if err := r.Key(i, &k); err == nil && len(k.Bytes()) == 0 {
				t.Fatalf("% x: series %d has no key", body, i)
			}
			if spelling := r.Spelling(i); len(spelling) > 0 {
				var alone prompb.TimeSeries
				if err := alone.Unmarshal(spelling); err != nil || !cmp.Equal(alone.Labels, s.Labels, sameLabel) {
					t.Fatalf("% x: series %d is spelled % x: %v %v, want %v", body, i, spelling, alone.Labels, err,
						s.Labels)
				}
			}
			points, i = points+got, i+1
		}
		if r.Series() != i || r.Points() != points {
			t.Fatalf("% x: %d series of %d points, want %d of %d", body, r.Series(), r.Points(), i, points)
		}
	})
}

// Memory is reserved before it is taken, and a refusal is returned.
func TestParse_reserve(t *testing.T) {
	refusal := errors.New("no memory")
	if _, err := Parse(messages()[1], func(int64) error { return refusal }); !errors.Is(err, refusal) {
		t.Errorf("got %v, want the refusal", err)
	}
}

// A label that is broken costs its series alone.
func TestParse_brokenLabel(t *testing.T) {
	good := messages()[1]
	broken := append([]byte{0x0a, 14, 0x0a, 8}, "__name__"...)
	broken = append(broken, 0x12, 2, 'u', 'p', 0x0a, 2, 0x0a, 5, 0x12, 0) // a name of 5 bytes, and none follows
	body := append(append(bytes.Clone(good), 0x0a, byte(len(broken))), broken...)
	r, err := Parse(body, func(int64) error { return nil })
	if err != nil || r.Series() < 2 {
		t.Fatalf("got %v, want two series at least", err)
	}
	var k intake.Key
	if err := r.Key(0, &k); err != nil {
		t.Errorf("the good series: %v", err)
	}
	if err := r.Key(r.Series()-1, &k); !errors.Is(err, errBrokenLabel) {
		t.Errorf("got %v, want %v", err, errBrokenLabel)
	}
}
