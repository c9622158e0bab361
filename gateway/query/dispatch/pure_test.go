package dispatch

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
)

const base = 1356998400

var metric = operatortest.UID(1)

func key(b ...byte) scanplan.HexBytes { return b }

//fault:attempt-merged-twice => if len(rest) == 0 { c.holes = slices.Delete(c.holes, i, i+1) }
//fault:interval-accepted-unwanted || !stopsBy(r.Stop, c.holes[i].Stop) =>
func TestCoverage(t *testing.T) {
	r := func(start, stop byte) scanplan.KeyRange {
		k := scanplan.KeyRange{Start: key(start)}
		if stop != 0 {
			k.Stop = key(stop)
		}
		return k
	}
	l := newCoverage([]scanplan.KeyRange{r(10, 20), r(30, 40), r(50, 0)})
	f := func(k scanplan.KeyRange, want bool) {
		t.Helper()
		before := l.missing()
		if got := l.accept(k); got != want {
			t.Errorf("accept %v: %t, want %t", k, got, want)
		}
		if !want && !cmp.Equal(before, l.missing()) {
			t.Errorf("a refused interval %v changed what is missing: %v", k, l.missing())
		}
	}
	f(r(5, 12), false)
	f(r(12, 15), true)
	f(r(12, 15), false)
	f(r(14, 16), false)
	f(r(10, 20), false)
	f(r(10, 12), true)
	f(r(15, 20), true)
	f(r(20, 30), false)
	f(r(12, 12), false)
	f(r(35, 0), false)
	f(r(60, 0), true)
	f(r(55, 0), false)
	if diff := cmp.Diff([]scanplan.KeyRange{r(30, 40), r(50, 60)}, l.missing()); diff != "" {
		t.Error(diff)
	}
	f(r(50, 60), true)
	f(r(30, 40), true)
	if !l.complete() {
		t.Errorf("missing %v", l.missing())
	}
}

// For random attempts, repeated or overlapping, every wanted key is either accepted once or
// missing, and no other key is accepted.
func TestCoverage_property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 40
		edges := rapid.SliceOfNDistinct(rapid.IntRange(0, size), 2, 8, rapid.ID).Draw(t, "wanted")
		slices.Sort(edges)
		var wanted []scanplan.KeyRange
		want := map[int]int{}
		for i := 0; i+1 < len(edges); i += 2 {
			wanted = append(wanted, scanplan.KeyRange{Start: key(byte(edges[i])), Stop: key(byte(edges[i+1]))})
			countKeys(want, edges[i], edges[i+1])
		}
		l, got := newCoverage(wanted), map[int]int{}
		for range rapid.IntRange(0, 30).Draw(t, "attempts") {
			a, b := rapid.IntRange(0, size).Draw(t, "start"), rapid.IntRange(0, size).Draw(t, "stop")
			if l.accept(scanplan.KeyRange{Start: key(byte(a)), Stop: key(byte(b))}) {
				countKeys(got, a, b)
			}
		}
		for i, h := range l.missing() {
			if i > 0 && bytes.Compare(l.missing()[i-1].Stop, h.Start) > 0 {
				t.Fatalf("missing %v is out of order", l.missing())
			}
			countKeys(got, int(h.Start[0]), int(h.Stop[0]))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("keys and how often each was accepted or missing:\n%s", diff)
		}
	})
}

func countKeys(counts map[int]int, from, to int) {
	for i := from; i < to; i++ {
		counts[i]++
	}
}

// For random regions and sizes, the parts of a plan cover its ranges in order without gap or
// overlap. Where a plan can be cut between buckets, no part crosses a region border; other plans
// are not cut.
//
//fault:cut-loses-a-row => start = append(bytes.Clone(b), 0)
func TestCut_property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := encoding.DefaultSchema()
		if rapid.Bool().Draw(t, "salted") {
			s.SaltWidth, s.SaltBuckets = 1, 5
		}
		row := int64(3600)
		daily := rapid.Bool().Draw(t, "rollups in rows of a day")
		if daily {
			row = 86_400
		}
		plan := operatortest.Plan(s, metric, base, base+rapid.Int64Range(1, 30).Draw(t, "rows")*row)
		if daily {
			plan.Rollup = &scanplan.Rollup{
				Layout: encoding.RollupLayout{Interval: 3600, Span: encoding.RowSpan{Count: 1, Unit: "d"}},
			}
			plan.Downsample = &scanplan.Downsample{Interval: 3_600_000, Function: "sum", Fill: scanplan.FillNone}
		}
		if rapid.Bool().Draw(t, "straddling") {
			plan.Downsample = &scanplan.Downsample{Interval: 420_000, Function: "sum", Fill: scanplan.FillNone}
		}
		regions := drawRegions(t, &plan)
		want := cutGoal{parts: rapid.IntRange(1, 40).Draw(t, "want")}
		if rapid.Bool().Draw(t, "sizes known") {
			want.bytes = accumulate(drawHours(t, &plan))
		}
		parts := cutPlan(&plan, regions, want, aggregationChoice{})
		i := 0
		for _, r := range plan.Ranges {
			at := r.Start
			for ; i < len(parts) && bytes.Compare(parts[i].Range.Start, r.Stop) < 0; i++ {
				p := parts[i]
				if !bytes.Equal(p.Range.Start, at) || empty(p.Range) {
					t.Fatalf("part %d is %v, want it to start at %s", i, p.Range, at)
				}
				at = p.Range.Stop
				checkPart(t, &plan, p, regions)
			}
			if !bytes.Equal(at, r.Stop) {
				t.Fatalf("parts of range %v end at %s", r, at)
			}
		}
		if i != len(parts) {
			t.Fatalf("%d parts, %d of them in the ranges", len(parts), i)
		}
		if !cutsBetweenBuckets(&plan) && len(parts) != len(plan.Ranges) {
			t.Fatalf("%d parts of %d ranges that must not be cut", len(parts), len(plan.Ranges))
		}
	})
}

// drawHours draws the bytes of each hour: none, few, or more than a part may have.
func drawHours(t *rapid.T, plan *scanplan.Plan) []float64 {
	n := int((plan.To - plan.From) / encoding.RowSeconds)
	return rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1, minPartBytes / 3, minPartBytes, maxPartBytes / 2,
		3 * maxPartBytes}), n, n).Draw(t, "bytes")
}

func checkPart(t *rapid.T, plan *scanplan.Plan, p part, regions []store.Region) {
	for _, region := range regions {
		if cutsBetweenBuckets(plan) && strictlyInside(p.Range, region.Start) {
			t.Fatalf("part %v crosses the border %X", p.Range, region.Start)
		}
	}
	if want := regionServer(regions, p.Range.Start); p.RegionServer != want {
		t.Fatalf("part %v is sent to %s, want %s", p.Range, p.RegionServer, want)
	}
}

func drawRegions(t *rapid.T, plan *scanplan.Plan) (regions []store.Region) {
	var borders [][]byte
	for range rapid.IntRange(0, 6).Draw(t, "borders") {
		k := plan.Schema.AppendRangeKey(nil, rapid.IntRange(0, 5).Draw(t, "bucket"), metric,
			uint32(base+rapid.IntRange(-1, 30).Draw(t, "hour")*3600))
		borders = append(borders, append(k, rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "rest")...))
	}
	slices.SortFunc(borders, bytes.Compare)
	borders = append(append([][]byte{nil}, slices.CompactFunc(borders, bytes.Equal)...), nil)
	for i := range borders[1:] {
		regions = append(regions, store.Region{Start: borders[i], Stop: borders[i+1], Server: string(rune('a' + i%3))})
	}
	return regions
}

func TestCut_hours(t *testing.T) {
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+10*3600)
	if got := cutPlan(&plan, nil, cutGoal{parts: 4}, aggregationChoice{}); len(got) != 4 {
		t.Errorf("%d parts, want 4", len(got))
	}
	if got := cutPlan(&plan, nil, cutGoal{parts: 100}, aggregationChoice{}); len(got) != 10 {
		t.Errorf("%d parts, want one an hour", len(got))
	}
	plan.TSUIDs = []encoding.UID{{0, 0, 1, 0, 0, 1, 0, 0, 1}}
	if got := cutPlan(&plan, nil,
		cutGoal{parts: 100, path: operator.ChooseAccess(&scanplan.Part{Plan: plan, Range: plan.Ranges[0]}, nil)},
		aggregationChoice{}); len(got) != 1 {
		t.Errorf("%d parts of a plan that seeks, want 1", len(got))
	}
	plan = operatortest.Plan(encoding.DefaultSchema(), metric, base, base+10*3600)
	plan.Downsample = &scanplan.Downsample{All: true, Function: "sum"}
	if got := cutPlan(&plan, nil, cutGoal{parts: 100}, aggregationChoice{}); len(got) != 1 {
		t.Errorf("%d parts of a plan with one bucket, want 1", len(got))
	}
}

// A plan is one part once a scan is recorded that looked at few rows, and several parts again after
// one that looked at many.
func TestCut_memory(t *testing.T) {
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+10*3600)
	plan.Tags = []scanplan.TagPredicate{{
		TagK:   operatortest.UID(2),
		Op:     scanplan.In,
		Values: []encoding.UID{operatortest.UID(1)},
	}}
	memory := access.NewPrefixCache()
	part := scanplan.Part{Plan: plan, Range: plan.Ranges[0]}
	f := func(want int) {
		t.Helper()
		if got := cutPlan(&plan, nil, cutGoal{parts: 4, path: operator.ChooseAccess(&part, memory)},
			aggregationChoice{}); len(got) != want {
			t.Errorf("%d parts, want %d", len(got), want)
		}
	}
	f(4)
	operator.RecordScan(memory, &part, operator.Stats{Ranges: 20, RowsScanned: 30, Rows: 10})
	f(1)
	operator.RecordScan(memory, &part, operator.Stats{Ranges: 20, RowsScanned: 10_000, Rows: 10})
	f(4)
}

// A run uses the executor's prefix cache: a plan that is known to look at few rows is one part.
func TestRun_memory(t *testing.T) {
	m, s := table(false)
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	plan.Tags = []scanplan.TagPredicate{{
		TagK:   operatortest.UID(2),
		Op:     scanplan.In,
		Values: []encoding.UID{operatortest.UID(1)},
	}}
	memory := access.NewPrefixCache()
	operator.RecordScan(memory, &scanplan.Part{Plan: plan, Range: plan.Ranges[0]},
		operator.Stats{Ranges: 20, RowsScanned: 30, Rows: 10})
	for _, c := range []struct {
		seek *access.PrefixCache
		one  bool
	}{{nil, false}, {memory, true}} {
		cfg := quiet(m, nil)
		cfg.Seek = c.seek
		stats, err := New(cfg).Run(t.Context(), &plan, Options{Aggregation: PerSeries}, answer{}.sink(t))
		if err != nil || (stats.Parts == 1) != c.one {
			t.Errorf("known to be few: %t; %d parts, %v", c.one, stats.Parts, err)
		}
	}
}

// A plan of very many hours is cut into no more parts than are wanted: parts find out themselves
// where they seek, and sizes of hours say nothing of what they read.
func TestCut_manyHours(t *testing.T) {
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+100_000*3600)
	plan.Tags = []scanplan.TagPredicate{{
		TagK:   operatortest.UID(2),
		Op:     scanplan.In,
		Values: []encoding.UID{operatortest.UID(1)},
	}}
	known := newSizes()
	known.learn(&plan, []partRead{{plan.Ranges[0], operator.Stats{Rows: 1 << 20, Bytes: 1 << 40}}})
	path := operator.ChooseAccess(&scanplan.Part{Plan: plan, Range: plan.Ranges[0]}, nil)
	if !skipsRows(path) {
		t.Errorf("%q skips no rows", path.Reason)
	}
	goal := cutGoal{parts: 2, path: path, bytes: known.estimate(&plan, path)}
	if parts := cutPlan(&plan, nil, goal, aggregationChoice{}); len(parts) != 2 {
		t.Errorf("%d parts, want 2", len(parts))
	}
}

// A plan without buckets is aligned if all its parts are of whole hours: a time cannot be finished if
// another part has some of its series. Neither can one be in another salt bucket, with
// corrections, or of an aggregator that needs all values.
func TestCutPlan_aligned(t *testing.T) {
	s := encoding.DefaultSchema()
	modes := func(change func(*scanplan.Plan), how Aggregation, borders ...[]byte) (aligned, perSeries int) {
		plan := operatortest.Plan(s, metric, base, base+4*3600)
		change(&plan)
		var regions []store.Region
		for i, b := range append(borders, nil) {
			r := store.Region{Stop: b}
			if i > 0 {
				r.Start = borders[i-1]
			}
			regions = append(regions, r)
		}
		for _, p := range cutPlan(&plan, regions, cutGoal{parts: 4}, chooseAggregation(&plan, how, places{})) {
			part := scanplan.Part{Plan: plan, Range: p.Range, Mode: p.Mode}
			if err := part.Validate(); err != nil {
				t.Error(err)
			}
			if p.Mode == scanplan.Aligned {
				aligned++
			} else {
				perSeries++
			}
		}
		return aligned, perSeries
	}
	f := func(what string, want bool, change func(*scanplan.Plan), how Aggregation, borders ...[]byte) {
		t.Helper()
		if aligned, perSeries := modes(change, how, borders...); want != (aligned > 0) || want == (perSeries > 0) {
			t.Errorf("%s: %d parts aligned, %d per series, want aligned %t", what, aligned, perSeries, want)
		}
	}
	as := func(*scanplan.Plan) {}
	hour := s.AppendRangeKey(nil, 0, metric, base+3600)
	f("whole hours", true, as, Auto)
	f("asked for partial", true, as, PartialAggregation)
	f("a region from an hour on", true, as, Auto, hour)
	f("a region that cuts an hour", false, as, Auto, append(hour, 0, 0, 1))
	f("asked for per series", false, as, PerSeries)
	f("rate", true, func(p *scanplan.Plan) { p.Rate = &scanplan.Rate{} }, Auto)
	f("rate that drops resets", false,
		func(p *scanplan.Plan) { p.Rate = &scanplan.Rate{Counter: true, DropResets: true} }, Auto)
	f("none", false, func(p *scanplan.Plan) { p.Aggregator = scanplan.None }, Auto)
	f("median", false, func(p *scanplan.Plan) { p.Aggregator = "median" }, Auto)
	f("corrections", false, func(p *scanplan.Plan) { p.Fix = scanplan.FixGaps }, Auto)
	f("buckets", false, func(p *scanplan.Plan) {
		p.Downsample = &scanplan.Downsample{Interval: 420_000, Function: "avg", Fill: scanplan.FillNone}
	}, Auto)
	s.SaltWidth, s.SaltBuckets = 1, 2
	f("salted", false, as, Auto)
}

// Partial aggregates of several salt buckets come in span order at each time, and keep the bits of all functions
// but deviations.
func TestChooseAggregation_salted(t *testing.T) {
	s := encoding.DefaultSchema()
	s.SaltWidth, s.SaltBuckets = 1, 4
	for _, f := range []scanplan.Aggregator{"min", "count", "last", "diff", "sum", "avg", "dev"} {
		plan := operatortest.Plan(s, metric, base, base+3*3600)
		plan.Aggregator = f
		plan.Downsample = &scanplan.Downsample{Interval: 300_000, Function: "avg", Fill: scanplan.FillNone}
		got := chooseAggregation(&plan, Auto, places{remote: true})
		if want := f != "dev"; got.partial != want {
			t.Errorf("%s: %+v, want partial aggregates: %t", f, got, want)
		}
	}
}
