package incremental

import (
	"errors"
	"runtime"
	"testing"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
)

// meter is a guard that counts, and refuses beyond its limit.
type meter struct{ limit, reserved int64 }

var errMeter = errors.New("over the meter's limit")

func (m *meter) Reserve(n int64) error {
	if m.reserved += n; m.reserved > m.limit {
		return errMeter
	}
	return nil
}

func (m *meter) Check() error { return nil }

// filledView makes a view over some hours, downsampled to seconds that are filled with 0, and loads
// series of one point each.
func filledView(hours int64, series int, within Bounds) (*View, error) {
	schema := encoding.DefaultSchema()
	metric := encoding.UID{0, 0, 1}
	t, err := New(&scanplan.Plan{
		Schema:     schema,
		Metric:     metric,
		From:       testHour,
		To:         testHour + hours*3600,
		Start:      testHour * 1000,
		End:        (testHour+hours*3600)*1000 - 1,
		Downsample: &scanplan.Downsample{Interval: 1000, Function: "sum", Fill: scanplan.FillZero},
		Aggregator: "none",
	}, nil, within)
	if err != nil {
		return nil, err
	}
	load := t.Load()
	for i := range series {
		row := schema.AppendRowKey(nil, metric, uint32(testHour),
			schema.AppendTags(nil,
				[]encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, byte(i >> 8), byte(i)}}}))
		s := batch.Series{Span: schema.AppendSpan(nil, row), Time: []int64{bucketAt}, Value: []float64{1}}
		if err := load.addSeries("", &s); err != nil {
			return nil, err
		}
	}
	if err := load.Finish(); err != nil {
		return nil, err
	}
	_, err = t.Groups(Window{t.plan.Start, t.plan.End})
	return t, err
}

// A view whose fill policy would make too many buckets of a few points is refused before they are
// made.
func TestBounds_filled(t *testing.T) {
	f := func(hours int64, series int, within Bounds, want error) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := filledView(hours, series, within)
		runtime.ReadMemStats(&after)
		if limit := new(LimitError); want == nil && !errors.As(err, &limit) || want != nil && !errors.Is(err, want) {
			t.Errorf("%d hours of %d series: %v, want %v or, if that is nil, a *LimitError", hours, series, err, want)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 40<<20 {
			t.Errorf("%d hours of %d series: %d MiB were allocated, want 40 at most", hours, series, grown>>20)
		}
	}
	f(400_000, 1, Bounds{Bytes: 10 << 20}, nil) // 46 years of seconds: the grid alone is too large
	f(400_000, 1, Bounds{Guard: &meter{limit: 10 << 20}}, errMeter)
	f(24, 5000, Bounds{Bytes: 10 << 20}, nil) // a day of seconds for each of 5,000 series
	f(24, 5000, Bounds{Guard: &meter{limit: 10 << 20}}, errMeter)
}

// A view counts the bytes of its points, and has reserved at least as many; at most three times as
// many, because loading takes more.
func TestBounds_counted(t *testing.T) {
	m := &meter{limit: 1 << 40}
	view, err := filledView(24, 20, Bounds{Guard: m})
	if err != nil {
		t.Fatal(err)
	}
	const buckets = 24 * 3600
	if least := int64(20 * buckets * (8 + pointBytes)); view.Bytes() < least || view.Bytes() > least*5/4 {
		t.Errorf("the view holds %d bytes, want %d or a little more", view.Bytes(), least)
	}
	if m.reserved < view.Bytes() || m.reserved > 3*view.Bytes() {
		t.Errorf("%d bytes were reserved for a view of %d, want one to three times as many", m.reserved, view.Bytes())
	}
}
