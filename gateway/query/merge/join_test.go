package merge

import (
	"errors"
	"math"
	"testing"

	arrowmemory "github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/operator/operatortest"
)

// addPart executes a part and gives its batches to a Merger.
func addPart(t *rapid.T, m *Merger, from *operatortest.Store, part *scanplan.Part) error {
	mem := arrowmemory.NewCheckedAllocator(arrowmemory.NewGoAllocator())
	op, err := operator.New(from, part, operator.Options{Mem: mem, FlushBytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	defer op.Close()
	for {
		r, err := op.Next(t.Context())
		if err != nil {
			return nil // io.EOF: a store in memory does not fail
		}
		err = m.Add(part.Range, r)
		r.Release()
		if err != nil {
			return err
		}
	}
}

// drawJoined draws a table of some hours and a plan whose parts can have partial aggregates.
func drawJoined(t *rapid.T) (*operatortest.Store, scanplan.Plan) {
	const hours = 4
	s := encoding.DefaultSchema()
	s.SaltWidth, s.SaltBuckets = rapid.IntRange(0, 1).Draw(t, "salt width"), 2
	values := rapid.SampledFrom([][]float64{{1, 2, 3, 0.5}, {0, math.Copysign(0, -1), 5},
		{0.1, 1e16, -1e16, 7, math.NaN()}, {math.MaxFloat64, 2, 0}}).Draw(t, "values")
	m := &operatortest.Store{}
	for i := range rapid.IntRange(0, 5).Draw(t, "series") {
		one := operatortest.Series{Tags: []encoding.TagPair{
			operatortest.Tag(1, rapid.IntRange(1, 2).Draw(t, "group")), operatortest.Tag(2, i+1)}}
		for at := int64(base); one.Points.Len() < 8; {
			at += rapid.SampledFrom([]int64{60, 900, 900, 1800, 3600, 7200}).Draw(t, "gap")
			if at >= base+hours*3600 {
				break
			}
			one.Points.Append(at*1000, encoding.FloatValue(rapid.SampledFrom(values).Draw(t, "value")))
		}
		m.Load(s, uid(1), one)
	}
	var mergeable []scanplan.Aggregator
	for _, name := range aggregate.Names() {
		if f, _ := aggregate.Lookup(scanplan.Aggregator(name)); f.Mergeable() {
			mergeable = append(mergeable, f.Name)
		}
	}
	p := operatortest.Plan(s, uid(1), base, base+hours*3600)
	p.Start += rapid.Int64Range(0, 3_600_000).Draw(t, "start")
	p.End -= rapid.Int64Range(0, 3_600_000).Draw(t, "end")
	p.Aggregator = rapid.SampledFrom(mergeable).Draw(t, "aggregator")
	p.Downsample = &scanplan.Downsample{
		Interval: rapid.SampledFrom([]int64{300_000, 900_000, 3_600_000}).Draw(t, "interval"),
		Function: "sum",
		Fill:     rapid.SampledFrom(append([]scanplan.Fill{scanplan.FillNone}, scanplan.Fills...)).Draw(t, "fill"),
	}
	if rapid.Bool().Draw(t, "groups") {
		p.GroupBy = []encoding.UID{uid(1)}
	}
	return m, p
}

// However the hours of a plan are cut into parts, and whichever of these return partial aggregates, the
// groups are those of the series themselves, to the last bit, or the merge says that the order matters.
func TestPartials_anyCut(t *testing.T) {
	answered, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		table, p := drawJoined(t)
		series := New(&p, nil)
		var parts []*scanplan.Part
		for _, r := range p.Ranges {
			if err := addPart(t, series, table, &scanplan.Part{Plan: p, Range: r}); err != nil {
				t.Fatal(err)
			}
			for from := p.From; from < p.To; {
				to := min(from+3600*rapid.Int64Range(1, 3).Draw(t, "hours"), p.To)
				parts = append(parts, &scanplan.Part{
					Plan:  p,
					Range: scanplan.KeyRange{Start: p.HourKey(r, from), Stop: p.HourKey(r, to)},
					Mode: rapid.SampledFrom([]scanplan.Mode{scanplan.PerSeries, scanplan.PartialAggregation,
						scanplan.PartialAggregation}).Draw(t, "mode"),
				})
				from = to
			}
		}
		want, wantErr := series.Finish()

		joined := New(&p, nil)
		var err error
		for _, part := range rapid.Permutation(parts).Draw(t, "order") {
			if err = addPart(t, joined, table, part); err != nil {
				break
			}
		}
		var got []Group
		if err == nil {
			got, err = joined.Finish()
		}
		if errors.Is(err, ErrOrder) {
			refused++
			return
		}
		answered++
		if diff := cmp.Diff(text(want), text(got)); diff != "" || (err == nil) != (wantErr == nil) {
			t.Fatalf("%s: %v, want %v; series -, joined +: %s", &p, err, wantErr, diff)
		}
	})
	t.Logf("%d joined, %d refused", answered, refused)
	if answered < refused || refused == 0 {
		t.Errorf("%d were joined, %d refused, want more of the former and some of the latter", answered, refused)
	}
}
