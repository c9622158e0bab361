package dispatch

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
)

// chosen is how the parts of a plan are to answer.
type chosen struct {
	what   string
	change func(*scanplan.Plan)
	how    Aggregation
	at     places
	form   string // of partial, whole and aligned
	reason string
}

// Changes of a plan, for tests.
type planChange = func(*scanplan.Plan)

func asIs(*scanplan.Plan)            {}
func hour(p *scanplan.Plan)          { buckets(3600_000)(p) }
func twoRanges(p *scanplan.Plan)     { p.Ranges = append(p.Ranges, p.Ranges[0]) }
func rateWithDrops(p *scanplan.Plan) { p.Rate = &scanplan.Rate{Counter: true, DropResets: true} }
func corrected(p *scanplan.Plan)     { p.Fix = scanplan.FixGaps }
func ofRollup(p *scanplan.Plan)      { p.Rollup = &scanplan.Rollup{} }

func by(a scanplan.Aggregator) planChange { return func(p *scanplan.Plan) { p.Aggregator = a } }

func window(g *scanplan.WindowGroups) planChange {
	return func(p *scanplan.Plan) { p.Window = &scanplan.Window{Groups: g} }
}

func buckets(interval int64) planChange {
	return func(p *scanplan.Plan) {
		p.Downsample = &scanplan.Downsample{Interval: interval, Function: "sum", Fill: scanplan.FillNone}
	}
}

func hoursOf(n int64) planChange {
	return func(p *scanplan.Plan) {
		*p = operatortest.Plan(p.Schema, p.Metric, base, base+n*3600)
		hour(p)
	}
}

func with(changes ...planChange) planChange {
	return func(p *scanplan.Plan) {
		for _, change := range changes {
			change(p)
		}
	}
}

func chosenForms() []chosen {
	remote, before := places{remote: true}, places{remote: true, before: true}
	few := places{remote: true, path: operator.Access{Few: true}}
	return []chosen{
		{"windows", window(nil), Auto, remote, "", "a value of each window"},
		{"windows of groups", window(&scanplan.WindowGroups{}), Auto, remote, "", "a value of each group"},
		{"an unknown aggregator", by("nope"), Auto, remote, "", "unknown aggregator"},
		{"strict", hour, PerSeries, remote, "", "asked for"},
		{"none", with(hour, by(scanplan.None)), PartialAggregation, remote, "", "none aggregates nothing"},
		{"percentiles", with(hour, by("p50")), Auto, remote, "partial", "the same bits, less"},
		{"percentiles of two salts", with(hour, by("p50"), twoRanges), Auto, remote, "", "p50 needs all values"},
		{"percentiles in process", with(hour, by("p50")), PartialAggregation, places{}, "", "p50 needs all values"},
		{"percentiles, with a server of before", with(hour, by("p50")), Auto, before, "", "p50 needs all values"},
		{"sums of two salts", with(hour, twoRanges), Auto, remote, "partial", "the same bits if no addition rounds"},
		{"maxima of two salts", with(hour, twoRanges, by("max")), Auto, remote, "partial", "the same bits, less"},
		{"differences of two salts", with(hour, twoRanges, by("diff")), Auto, remote, "partial", "the same bits, less"},
		{"deviations of two salts", with(hour, twoRanges, by("dev")), Auto, remote, "", "the order of salt buckets"},
		{"deviations", with(hour, by("dev")), Auto, remote, "partial", "the same bits, less"},
		{"corrections", with(hour, corrected), PartialAggregation, remote, "", "OpenTSDB's errors"},
		{"rollups", with(hour, ofRollup), PartialAggregation, remote, "", "rollups are few values"},
		{"points", asIs, Auto, remote, "aligned", "no buckets: aggregated row by row"},
		{"points, with a server of before", asIs, Auto, before, "", "no buckets, and there is a pushdown server"},
		{"buckets, with a server of before", hour, Auto, before, "partial", "the same bits, less"},
		{"points of two salts, with a server of before", twoRanges, Auto, before, "", "no buckets that divide"},
		{"points of two salts", twoRanges, Auto, remote, "", "no buckets that divide the hour"},
		{"rates that drop resets", rateWithDrops, Auto, remote, "", "rates need both points"},
		{"rates of buckets", with(hour, rateWithDrops), Auto, remote, "", "rates need both points"},
		{"buckets of seven minutes", buckets(420_000), PartialAggregation, remote, "", "no buckets that divide"},
		{"as many buckets as can be", func(p *scanplan.Plan) {
			*p = operatortest.Plan(p.Schema, p.Metric, base, base+maxPartialBuckets)
			p.To, p.Downsample = p.From+maxPartialBuckets, &scanplan.Downsample{Interval: 1000, Function: "sum"}
		}, PartialAggregation, places{}, "partial", "asked for"},
		{"one bucket more", func(p *scanplan.Plan) {
			p.To, p.Downsample = p.From+maxPartialBuckets+1, &scanplan.Downsample{Interval: 1000, Function: "sum"}
		}, PartialAggregation, places{}, "", "too many buckets"},
		{"in process", hour, Auto, places{}, "", "nothing is shipped in process"},
		{"few rows", hour, Auto, few, "", "few rows are looked at"},
	}
}

// sideBySideForms are those of plans in a process that reads hours side by side.
func sideBySideForms() []chosen {
	side, few := places{sideBySide: true}, operator.Access{Few: true}
	return []chosen{
		{"side by side", hour, Auto, side, "whole partial", "the same bits, the hours are read side by side"},
		{"side by side, asked for", hour, PartialAggregation, side, "partial", "asked for"},
		{"side by side, of two salts", with(hour, twoRanges), Auto, side, "", "nothing is shipped in process"},
		{"side by side, of few rows", hour, Auto, places{sideBySide: true, path: few}, "", "nothing is shipped"},
		{"side by side, of no row", hour, Auto, places{sideBySide: true, path: operator.Access{Nothing: true}}, "",
			"nothing is shipped"},
		{"side by side, at servers", hour, Auto, places{sideBySide: true, remote: true}, "partial", "the same bits,"},
		{"side by side, as many hours as can be", hoursOf(operator.MaxHoursSideBySide), Auto, side, "whole partial",
			"the same"},
		{"side by side, an hour more", hoursOf(operator.MaxHoursSideBySide + 1), Auto, side, "", "nothing is shipped"},
		{"side by side, as many buckets as can be", buckets(4 * 3600_000 / maxBucketsSideBySide), Auto, side,
			"whole partial", "the same"},
		{"side by side, more buckets", buckets(3600_000 / (maxBucketsSideBySide/4 + 20)), Auto, side, "",
			"nothing is shipped"},
		{"side by side, of rows behind the plan", with(hour, func(p *scanplan.Plan) { p.To -= 3600 }), Auto, side, "",
			"nothing is shipped"},
		{"side by side, of rows before the plan", with(hour, func(p *scanplan.Plan) { p.From += 3600 }), Auto, side, "",
			"nothing is shipped"},
		{"side by side, of half an hour", with(hour, func(p *scanplan.Plan) {
			p.Ranges[0].Stop = append(p.HourKey(p.Ranges[0], p.To-3600), 1)
		}), Auto, side, "", "nothing is shipped"},
	}
}

// A plan's parts answer in the form that ships least and keeps the bits, for the first reason that counts.
func TestChooseAggregation(t *testing.T) {
	for _, c := range slices.Concat(chosenForms(), sideBySideForms()) {
		p := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+4*3600)
		c.change(&p)
		got := chooseAggregation(&p, c.how, c.at)
		form := ""
		for name, is := range map[string]bool{"partial": got.partial, "aligned": got.aligned} {
			if is {
				form += name
			}
		}
		if got.whole {
			form = "whole " + form
		}
		if form != c.form || !strings.HasPrefix(got.reason, c.reason) {
			t.Errorf("%s: %q, because of %q, want %q because of %q", c.what, form, got.reason, c.form, c.reason)
		}
	}
}

// The mode of a part is that of its plan where the part is of whole hours.
func TestAggregationChoice_mode(t *testing.T) {
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+2*3600)
	whole := plan.Ranges[0]
	half := scanplan.KeyRange{Start: whole.Start, Stop: append(plan.HourKey(whole, base+3600), 1)}
	histograms := plan
	histograms.Histograms = &scanplan.Histograms{}
	for _, c := range []struct {
		choice aggregationChoice
		plan   *scanplan.Plan
		r      scanplan.KeyRange
		want   scanplan.Mode
	}{
		{aggregationChoice{partial: true}, &plan, whole, scanplan.PartialAggregation},
		{aggregationChoice{partial: true}, &plan, half, scanplan.PerSeries},
		{aggregationChoice{}, &plan, whole, scanplan.PerSeries},
		{aggregationChoice{aligned: true}, &plan, whole, scanplan.Aligned},
		{aggregationChoice{partial: true, whole: true}, &plan, whole, scanplan.PartialAggregation},
		{aggregationChoice{partial: true, whole: true, unnamed: true}, &plan, whole, scanplan.PartialWithoutNames},
		{aggregationChoice{partial: true, unnamed: true}, &plan, whole, scanplan.PartialAggregation},
		{aggregationChoice{partial: true}, &histograms, half, scanplan.PartialAggregation},
		{aggregationChoice{}, &histograms, whole, scanplan.PerSeries},
	} {
		if got := c.choice.mode(c.plan, c.r); got != c.want {
			t.Errorf("%+v, %v: got %q, want %q", c.choice, c.r, got, c.want)
		}
	}
}

// Around a border inside an hour that hour is a part of its own; a border between hours adds none.
func TestCutAroundSplitHours(t *testing.T) {
	for _, width := range []int{0, 1} {
		s := encoding.DefaultSchema()
		s.SaltWidth, s.SaltBuckets = width, max(1, 2*width)
		plan := operatortest.Plan(s, metric, base, base+4*3600)
		r := plan.Ranges[0]
		at := func(hour int64) string { return string(plan.HourKey(r, base+hour*3600)) }
		for border, want := range map[string][]string{
			at(1):                                   nil,
			at(1) + "\x00":                          {at(1), at(2)},
			at(1) + "tags":                          {at(1), at(2)},
			at(0) + "tags":                          {at(1)},
			at(3) + "tags":                          {at(3)},
			string(plan.HourKey(r, base+3600+1800)): {at(1), at(2)},
			at(1)[:len(at(1))-1]:                    {at(1)}, // in the hour before: what is missing counts as 0
		} {
			got := cutAroundSplitHours(&plan, r, [][]byte{[]byte(border)})[1:]
			var texts []string
			for _, b := range got {
				texts = append(texts, string(b))
			}
			if d := cmp.Diff(want, texts); d != "" {
				t.Errorf("salts of %d bytes, border %x: %s", width, border, d)
			}
		}
	}
}

// The server of a key is that of the region that has it.
func TestRegionServer(t *testing.T) {
	regions := []store.Region{
		{Start: []byte("b"), Stop: []byte("d"), Server: "1"}, {Start: []byte("d"), Stop: []byte("e"), Server: "2"},
		{Start: []byte("g"), Server: "3"},
	}
	for key, want := range map[string]string{
		"a": "", "b": "1", "c": "1", "d": "2", "dz": "2", "e": "", "f": "", "g": "3", "zz": "3",
	} {
		if got := regionServer(regions, []byte(key)); got != want {
			t.Errorf("%s is at server %q, want %q", key, got, want)
		}
	}
	r := scanplan.KeyRange{Start: key('b'), Stop: key('d')}
	for text, want := range map[string]bool{"a": false, "b": false, "b0": true, "c": true, "d": false, "e": false} {
		if got := strictlyInside(r, []byte(text)); got != want {
			t.Errorf("%s is strictly inside %v: %v", text, r, got)
		}
	}
	if !strictlyInside(scanplan.KeyRange{Start: key('b')}, key('z')) {
		t.Error("z is not inside a range without an end")
	}
}

// A region that ends inside an hour makes that hour a part of its own where other hours are partial, and cuts a plan of
// series or of histograms there alone.
func TestCutPlan_splitHour(t *testing.T) {
	s := encoding.DefaultSchema()
	border := append(s.AppendRangeKey(nil, 0, metric, base+3600), 0, 0, 1)
	regions := []store.Region{{Stop: border, Server: "a"}, {Start: border, Server: "b"}}
	buckets := &scanplan.Downsample{Interval: 300_000, Function: "sum", Fill: scanplan.FillNone}
	for _, c := range []struct {
		choice     aggregationChoice
		histograms *scanplan.Histograms
		want       string // mode and server of each part
	}{
		{aggregationChoice{partial: true}, nil, "partial a, series a, series b, partial b, "},
		{aggregationChoice{}, nil, "series a, series b, "},
		{aggregationChoice{partial: true}, &scanplan.Histograms{}, "partial a, partial b, "},
		{aggregationChoice{partial: true, whole: true}, nil, "partial a, "},
	} {
		plan := operatortest.Plan(s, metric, base, base+4*3600)
		plan.Downsample, plan.Histograms = buckets, c.histograms
		got := ""
		for _, p := range cutPlan(&plan, regions, cutGoal{parts: 1}, c.choice) {
			mode := "partial"
			if p.Mode == scanplan.PerSeries {
				mode = "series"
			}
			got += mode + " " + p.RegionServer + ", "
		}
		if got != c.want {
			t.Errorf("%+v, histograms %v: got %s, want %s", c.choice, c.histograms != nil, got, c.want)
		}
	}
}

// A plan is cut where each row is in one bucket, or where histograms of one are added up.
func TestCutsBetweenBuckets(t *testing.T) {
	hour, seven := &scanplan.Downsample{Interval: 3600_000}, &scanplan.Downsample{Interval: 420_000}
	for _, c := range []struct {
		d    *scanplan.Downsample
		h    *scanplan.Histograms
		want bool
	}{
		{nil, nil, true}, {hour, nil, true}, {seven, nil, false}, {seven, &scanplan.Histograms{}, true},
	} {
		plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+4*3600)
		plan.Downsample, plan.Histograms = c.d, c.h
		if got := cutsBetweenBuckets(&plan); got != c.want {
			t.Errorf("buckets %v, histograms %v: %v, want %v", c.d, c.h != nil, got, c.want)
		}
	}
}

// The bytes of a part are counted from the border of its region on: two regions of a part each are not cut further.
func TestBordersByBytes_regions(t *testing.T) {
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+10*3600)
	r := plan.Ranges[0]
	hours := accumulate(slices.Repeat([]float64{1}, 10))
	middle := [][]byte{plan.HourKey(r, base+5*3600)}
	if got := bordersByBytes(&plan, r, middle, hours, 4); len(got) != 0 {
		t.Errorf("regions of 5 bytes each are cut at %X for parts of 4", got)
	}
	if got := bordersByBytes(&plan, r, nil, hours, 4); len(got) == 0 {
		t.Error("a region of 10 bytes is not cut for parts of 4")
	}
}
