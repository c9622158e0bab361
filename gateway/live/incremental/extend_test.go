package incremental

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
)

// testHour is 2013-01-01 00:00 in seconds. bucketAt is the time, in ms, of the one bucket of that
// hour that has points.
const (
	testHour = int64(1_356_998_400)
	bucketAt = testHour*1000 + 60_000
)

// A later point is added to a bucket whose points were read. If only the bucket's value was read,
// its points are unknown, and the row must be read.
func TestExtend_lastBucket(t *testing.T) {
	var read batch.Series
	read.Raw.Append(bucketAt, encoding.IntValue(1))
	read.Raw.Append(bucketAt+10_000, encoding.IntValue(5))
	var third encoding.Points
	third.Append(bucketAt+20_000, encoding.IntValue(9))
	bucket := batch.Series{Time: []int64{bucketAt}, Value: []float64{3}}
	for _, c := range []struct {
		name          string
		loaded, again *batch.Series
		taken         bool
		want          float64 // average of the bucket: of 1 and 5, and of 9 if that is taken in
	}{
		{"loaded as a bucket", &bucket, nil, false, 3},
		{"read again as a bucket", &bucket, &bucket, false, 3},
		{"read again as points", &bucket, &read, true, 5},
	} {
		view, row := testView(t)
		span := view.plan.Schema.AppendSpan(nil, row)
		load := view.Load()
		if err := load.Add(scanplan.KeyRange{}, record(t, span, c.loaded)); err != nil {
			t.Fatal(err)
		}
		if err := load.Finish(); err != nil {
			t.Fatal(err)
		}
		if c.again != nil {
			if err := view.Replace([][]byte{row}, record(t, span, c.again)); err != nil {
				t.Fatal(err)
			}
		}
		if taken, err := view.Extend(span, third); err != nil || taken != c.taken {
			t.Errorf("%s: taken in %t, %v, want %t", c.name, taken, err, c.taken)
		}
		groups, err := view.Groups(Window{view.plan.Start, view.plan.End})
		if err != nil || len(groups) != 1 {
			t.Fatalf("%s: groups %+v, %v, want one", c.name, groups, err)
		}
		want := encoding.Points{}
		want.Append(bucketAt, encoding.FloatValue(c.want))
		if diff := cmp.Diff(want, groups[0].Points); diff != "" {
			t.Errorf("%s: want -, got +: %s", c.name, diff)
		}
	}
}

// testView returns an empty view of the sum of averages a minute, and the key of a row of its one
// series.
func testView(t *testing.T) (*View, []byte) {
	t.Helper()
	schema := encoding.DefaultSchema()
	metric, one := encoding.UID{0, 0, 1}, encoding.UID{0, 0, 1}
	row := schema.AppendRowKey(nil, metric, uint32(testHour),
		schema.AppendTags(nil, []encoding.TagPair{{K: one, V: one}}))
	view, err := New(&scanplan.Plan{
		Schema:     schema,
		Metric:     metric,
		From:       testHour,
		To:         testHour + 3600,
		Start:      testHour * 1000,
		End:        (testHour+3600)*1000 - 1,
		Downsample: &scanplan.Downsample{Interval: 60_000, Function: "avg", Fill: scanplan.FillNone},
		Aggregator: "sum",
	}, nil, Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	return view, row
}

func record(t *testing.T, span []byte, s *batch.Series) []batch.Record {
	t.Helper()
	w := batch.NewSeriesWriter(memory.DefaultAllocator)
	s.Span = span
	w.Append(s)
	r := w.Record()
	t.Cleanup(r.Release)
	return []batch.Record{r}
}
