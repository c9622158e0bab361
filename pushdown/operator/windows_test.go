package operator_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/operator/window"
)

// A part computes the windows that are inside it, and ships the points of those that reach over one of its ends, and no
// others. Times are minutes from base; the series has a point every ten of them, and windows are of 25.
func TestWindows_edges(t *testing.T) {
	const minute = 60_000
	m := table(series(operatortest.Every(base, base+6*3600, 600, identity), operatortest.Tag(1, 1)))
	for _, c := range []struct {
		from, to        int64 // of the part
		first, step     int64 // of the windows
		values, shipped []int64
	}{
		{0, 360, 0, 90, []int64{0, 90, 180, 270}, nil},
		{0, 360, 180, 90, []int64{180, 270}, nil}, // begins late
		{120, 240, 0, 30, []int64{150, 180, 210}, []int64{120, 220, 230}},
		{120, 240, 15, 30, []int64{165, 195, 225}, []int64{120, 130}},
		{120, 240, 50, 60, []int64{170, 230}, nil},
		{120, 240, 55, 60, []int64{175, 235}, nil},
		{120, 240, 205, 55, []int64{205}, nil},
		{120, 240, 230, 30, []int64{230}, nil},
		{120, 240, 300, 30, nil, nil},
	} {
		plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+6*3600)
		plan.Aggregator = scanplan.None
		plan.Window = &scanplan.Window{Function: "count_over_time", Range: 25 * minute,
			First: base*1000 + c.first*minute, Last: (base+6*3600)*1000 - 1, Step: c.step * minute}
		part := whole(plan)
		part.Range.Start = plan.HourKey(part.Range, base+c.from*60)
		part.Range.Stop = plan.HourKey(part.Range, base+c.to*60)
		op, err := operator.New(m, part, operator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		spans, err := collect(operatortest.CheckedWindows(op, t.Errorf), func(_, _ int) {})
		if err != nil {
			t.Fatal(err)
		}
		got := spans[spanOf(operatortest.Tag(1, 1))]
		minutes := func(times []int64) (out []int64) {
			for _, at := range times {
				out = append(out, (at-base*1000)/minute)
			}
			return out
		}
		values, shipped := minutes(got.Time), minutes(got.Raw.Time)
		if !slices.Equal(values, c.values) || !slices.Equal(shipped, c.shipped) {
			t.Errorf("%+v: got values at %d and points at %d", c, values, shipped)
		}
	}
}

// Functions that nobody knows, of windows and of groups of them, are refused.
func TestWindows_functions(t *testing.T) {
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+3600)
	plan.Aggregator = scanplan.None
	for _, c := range []struct{ function, group string }{{"nope", window.Max}, {"rate", "nope"}, {"rate", window.Max}} {
		plan.Window = &scanplan.Window{Function: c.function, Range: 1000, Step: 1000, First: plan.Start, Last: plan.End,
			Groups: &scanplan.WindowGroups{Function: c.group}}
		_, err := operator.New(&operatortest.Store{}, whole(plan), operator.Options{})
		bad := c.function == "nope" || c.group == "nope"
		if errors.Is(err, operator.ErrBadPlan) != bad || bad && !strings.Contains(err.Error(), "nope") {
			t.Errorf("%s of %s: got %v, want it refused: %t", c.group, c.function, err, bad)
		}
	}
}
