package operator_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
)

// drawn is a random table with a plan over it.
type drawn struct {
	store *operatortest.Store
	plan  scanplan.Plan
}

const hours = 6

// draw makes a table of a few series, salted or not, with points of second and
// millisecond times, holes of hours, and values of both types.
func draw(t *rapid.T) drawn {
	s := encoding.DefaultSchema()
	if rapid.Bool().Draw(t, "salted") {
		s.SaltWidth, s.SaltBuckets = 1, 3
	}
	m := &operatortest.Store{BlockRows: rapid.IntRange(0, 3).Draw(t, "block"), Sealed: rapid.Bool().Draw(t, "sealed")}
	for i := range rapid.IntRange(1, 4).Draw(t, "series") {
		m.Load(s, metric, operatortest.Series{
			Tags:     []encoding.TagPair{operatortest.Tag(1, i+1)},
			Points:   drawPoints(t),
			Appended: rapid.Bool().Draw(t, "appended"),
		})
	}
	p := operatortest.Plan(s, metric, base, base+hours*3600)
	p.Start += rapid.Int64Range(0, 3_600_000).Draw(t, "start")
	p.End -= rapid.Int64Range(0, 3_600_000).Draw(t, "end")
	p.Downsample = drawDownsample(t)
	return drawn{m, p}
}

func drawPoints(t *rapid.T) (p encoding.Points) {
	at := int64(base)*1000 + rapid.Int64Range(0, 2*3600_000).Draw(t, "first")
	gap := rapid.SampledFrom([]int64{0, 0, 1000, 60_000, 420_000}).Draw(t, "gap of all")
	if gap > 0 { // at equal distances of whole seconds, see encoding.EvenlySpaced
		at -= at % 1000
	}
	for range rapid.IntRange(1, 25).Draw(t, "points") {
		if at >= (base+hours*3600)*1000 {
			break
		}
		if gap == 0 && rapid.Bool().Draw(t, "float") {
			p.Append(at, encoding.FloatValue(float64(rapid.IntRange(-40, 40).Draw(t, "value"))/4))
		} else {
			p.Append(at, encoding.IntValue(int64(rapid.IntRange(-40, 40).Draw(t, "value"))))
		}
		if gap > 0 {
			at += gap
			continue
		}
		at += rapid.SampledFrom([]int64{1, 999, 1000, 60_000, 420_000, 1_800_000, 5_400_000}).Draw(t, "gap")
	}
	return p
}

func drawDownsample(t *rapid.T) *scanplan.Downsample {
	d := &scanplan.Downsample{
		Function: rapid.SampledFrom([]scanplan.Aggregator{"sum", "avg", "min", "max", "count", "dev", "first", "last",
			"p95"}).Draw(t, "function"),
		Fill: scanplan.FillNone,
	}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0: // divides the hour
		d.Interval = rapid.SampledFrom([]int64{1000, 60_000, 300_000, 3_600_000}).Draw(t, "interval")
	case 1:
		d.Interval = rapid.SampledFrom([]int64{420_000, 7_000, 7_200_000, 86_400_000}).Draw(t, "interval")
	case 2:
		d.All = true
	case 3:
		d.Calendar, d.Zone, d.Interval = true, "Asia/Kathmandu", 3_600_000
		d.Count, d.Unit = rapid.IntRange(1, 7).Draw(t, "count"), "h"
	}
	return d
}

// parts cuts each range of the plan at random keys, inside hours too.
func parts(t *rapid.T, p *scanplan.Plan) (out []*scanplan.Part) {
	for _, r := range p.Ranges {
		cuts := [][]byte{r.Start}
		for range rapid.IntRange(0, 3).Draw(t, "cuts") {
			hour := base + rapid.Int64Range(0, hours-1).Draw(t, "hour")*3600
			key := p.Schema.AppendRangeKey(nil, 0, p.Metric, uint32(hour))
			copy(key, r.Start[:p.Schema.SaltWidth])
			if n := rapid.IntRange(0, 4).Draw(t, "tag"); n > 0 {
				key = append(append(key, operatortest.UID(1)...), operatortest.UID(n)...)
			}
			cuts = append(cuts, key)
		}
		slices.SortFunc(cuts, bytes.Compare)
		cuts = append(slices.CompactFunc(cuts, bytes.Equal), r.Stop)
		for i := range cuts[1:] {
			out = append(out, &scanplan.Part{Plan: *p, Range: scanplan.KeyRange{Start: cuts[i], Stop: cuts[i+1]}})
		}
	}
	return out
}

var sameFloats = cmpopts.EquateNaNs()

// The fused pass, which downsamples while it decodes, yields what decoding and then downsampling
// yields: for every part of a random cut, whatever the sizes of batches and blocks.
//
//fault:bucket-cut-at-a-part f.ends => true
func TestFusedIsUnfused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		flush := rapid.SampledFrom([]int{0, 1, 100}).Draw(t, "flush")
		for _, part := range parts(t, &d.plan) {
			fused, stats, err := read(t, d.store, part, operator.Options{FlushBytes: flush})
			if err != nil {
				t.Fatal(err)
			}
			raw := *part
			raw.Plan.Downsample = nil
			in, err := operator.New(d.store, &raw, operator.Options{})
			if err != nil {
				t.Fatal(err)
			}
			op, err := operator.Downsample(operatortest.Checked(in, t.Errorf), part, operator.Options{})
			if err != nil {
				t.Fatal(err)
			}
			unfused, err := collect(operatortest.Checked(op, t.Errorf), func(_, _ int) {})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(unfused, fused, sameFloats); diff != "" {
				t.Fatalf("part %s %s of %s (- unfused, + fused):\n%s", part.Range.Start, part.Range.Stop,
					part.Plan.Downsample, diff)
			}
			if got := op.Stats().Points; got != stats.Points {
				t.Fatalf("%d points unfused, %d fused", got, stats.Points)
			}
		}
	})
}

// Whatever the cut, the parts together hold what the whole ranges hold: each
// point once, as itself or in its bucket.
func TestPartsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		d.plan.Downsample.Function = "count"
		d.plan.Downsample.All, d.plan.Downsample.Calendar = false, false
		d.plan.Downsample.Interval = rapid.SampledFrom([]int64{300_000, 420_000, 7_200_000}).Draw(t, "interval")
		d.plan.From = base // no multiple of 420 s: points before the first whole bucket are dropped
		count := func(ps []*scanplan.Part) map[string]map[int64]float64 {
			sums := map[string]map[int64]float64{}
			for _, part := range ps {
				spans, _, err := read(t, d.store, part, operator.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for id, f := range spans {
					addCounts(sums, id, f, &d.plan)
				}
			}
			return sums
		}
		var whole []*scanplan.Part
		for _, r := range d.plan.Ranges {
			whole = append(whole, &scanplan.Part{Plan: d.plan, Range: r})
		}
		if diff := cmp.Diff(count(whole), count(parts(t, &d.plan))); diff != "" {
			t.Fatalf("%s (- whole, + parts):\n%s", d.plan.Downsample, diff)
		}
	})
}

// addCounts adds a span's buckets of counts and its points to sums by bucket;
// points before the first whole bucket of the plan are not counted.
func addCounts(sums map[string]map[int64]float64, id string, f flat, p *scanplan.Plan) {
	if sums[id] == nil {
		sums[id] = map[int64]float64{}
	}
	for i, t := range f.Time {
		sums[id][t] += f.Value[i]
	}
	width := p.Downsample.Interval
	first := (p.From*1000 + width - 1) / width * width
	for _, t := range f.Raw.Time {
		if t >= first {
			sums[id][t-t%width]++
		}
	}
}

// BenchmarkStrict executes a part of 6,000 compacted rows of 360 points, per series; ns/point is
// the figure to watch.
func BenchmarkStrict(b *testing.B) {
	const series, rowHours = 1000, 6
	m := &operatortest.Store{Keep: true, BlockRows: 1000}
	s := encoding.DefaultSchema()
	var all []operatortest.Series
	for i := range series {
		all = append(all, operatortest.Series{
			Tags: []encoding.TagPair{operatortest.Tag(1, i+1)},
			Points: operatortest.Every(base, base+rowHours*3600, 10,
				func(j int) float64 { return float64(i * j % 5000) }),
		})
	}
	m.Load(s, metric, all...)
	plan := operatortest.Plan(s, metric, base, base+rowHours*3600)
	for _, c := range []struct {
		name string
		d    *scanplan.Downsample
	}{
		{"raw", nil},
		{"5m-avg", &scanplan.Downsample{Interval: 300_000, Function: "avg", Fill: scanplan.FillNone}},
		{"7m-avg", &scanplan.Downsample{Interval: 420_000, Function: "avg", Fill: scanplan.FillNone}},
		{"all-sum", &scanplan.Downsample{All: true, Function: "sum", Fill: scanplan.FillNone}},
	} {
		b.Run(fmt.Sprintf("plan=%s", c.name), func(b *testing.B) {
			plan.Downsample = c.d
			b.ReportAllocs()
			var stats operator.Stats
			for b.Loop() {
				op, err := operator.New(m, whole(plan), operator.Options{})
				if err != nil {
					b.Fatal(err)
				}
				if err := operatortest.Drain(b.Context(), op, func(batch.Record) error { return nil }); err != nil {
					b.Fatal(err)
				}
				stats = op.Stats()
			}
			if stats.Points != series*rowHours*360 {
				b.Fatalf("%d points, want those of all series and hours", stats.Points)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(stats.Points), "ns/point")
		})
	}
}
