package scanplan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
)

// rollupPlan is a valid plan over rollups.
func rollupPlan() Plan {
	s := encoding.DefaultSchema()
	metric := encoding.UID{0, 0, 1}
	return Plan{
		Version:    Version,
		Schema:     s,
		Table:      "r1h",
		Metric:     metric,
		From:       1356998400,
		To:         1357084800,
		End:        1,
		Aggregator: "sum",
		Ranges: []KeyRange{{
			Start: s.AppendRangeKey(nil, 0, metric, 1356998400),
			Stop:  s.AppendRangeKey(nil, 0, metric, 1357084800),
		}},
		Downsample: &Downsample{Interval: 3600_000, Count: 1, Unit: "h", Function: "avg", Fill: FillNone},
		Rollup: &Rollup{Layout: encoding.RollupLayout{Interval: 3600, Span: encoding.RowSpan{Count: 1, Unit: "d"}},
			Column: encoding.RollupColumn{ID: 0, Name: "sum"}, Count: &encoding.RollupColumn{ID: 1, Name: "count"}},
	}
}

// A ticket carries all of a rollup.
func TestTicket_rollup(t *testing.T) {
	p := rollupPlan()
	want := Part{Plan: p, Range: p.Ranges[0]}
	b, err := want.MarshalTicket()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseTicket(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&want, got); d != "" {
		t.Errorf("-sent +received\n%s", d)
	}
	if text := p.String(); !strings.Contains(text, "rollup 3600s in rows of 1d, column 0 (sum) and 1 (count)\n") {
		t.Errorf("the text has no rollup with its columns: %s", text)
	}
}

// A plan over rollups is refused if it would read the wrong cells or cut a bucket.
func TestValidate_rollup(t *testing.T) {
	f := func(want string, change func(*Part)) {
		t.Helper()
		p := rollupPlan()
		part := Part{Plan: p, Range: p.Ranges[0]}
		change(&part)
		if err := part.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	f("without a downsample interval", func(p *Part) { p.Plan.Downsample = nil })
	f("without a downsample interval", func(p *Part) { p.Plan.Downsample.All = true })
	f("want a column of counts with avg", func(p *Part) { p.Plan.Downsample.Function = "sum" })
	f("want a column of counts with avg", func(p *Part) { p.Plan.Rollup.Count = nil })
	f("sums and counts are both in column 0", func(p *Part) { p.Plan.Rollup.Count.ID = 0 })
	f("want base times of rows of 1d", func(p *Part) { p.Plan.From += 3600 })
	f("want base times of rows of 1d", func(p *Part) { p.Plan.To -= 3600 })
	f("row span 1x", func(p *Part) { p.Plan.Rollup.Layout.Span.Unit = "x" })
	f("row span 3d", func(p *Part) { p.Plan.Rollup.Layout.Span.Count = 3 })
	f("rollup interval 0 s", func(p *Part) { p.Plan.Rollup.Layout.Interval = 0 })
	f("has 1 intervals", func(p *Part) { p.Plan.Rollup.Layout.Interval = 86400 })
	f("or with a rate or a rollup", func(p *Part) { p.Mode = PartialAggregation })
}

func TestPlan_BucketsInRows(t *testing.T) {
	f := func(interval int64, calendar bool, count int, unit string, want bool) {
		t.Helper()
		p := rollupPlan()
		p.Rollup.Layout.Span = encoding.RowSpan{Count: count, Unit: unit}
		p.Downsample.Interval, p.Downsample.Calendar = interval*1000, calendar
		if p.BucketsInRows() != want {
			t.Errorf("%d s, calendar %t, rows of %d%s: want %t", interval, calendar, count, unit, want)
		}
	}
	f(3600, false, 1, "d", true)
	f(7200, false, 6, "h", true)
	f(4*3600, false, 6, "h", false)
	f(6*3600, true, 6, "h", false)
	f(86400, false, 1, "n", true)
	f(2*86400, false, 1, "n", false)
	f(86400, false, 1, "y", true)
	f(7*86400, false, 1, "y", false)
}
