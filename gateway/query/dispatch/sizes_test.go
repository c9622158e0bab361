package dispatch

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
)

const mib = 1 << 20

// hoursPlan is a plan over a number of hours and salt buckets.
func hoursPlan(hours int64, buckets int) scanplan.Plan {
	s := encoding.DefaultSchema()
	if buckets > 1 {
		s.SaltWidth, s.SaltBuckets = 1, buckets
	}
	return operatortest.Plan(s, metric, base, base+hours*3600)
}

// spans returns the hours of parts, as "from-to", and their estimated sizes in MiB.
func spans(plan *scanplan.Plan, parts []part) (out []string) {
	for _, p := range parts {
		from, to := hourRange(plan, p.Range)
		out = append(out, fmt.Sprintf("%d-%d %.1f", from, to, float64(p.Bytes)/mib))
	}
	return out
}

func TestCut_bytes(t *testing.T) {
	f := func(name string, buckets, want int, hours []float64, wantSpans ...string) {
		t.Helper()
		plan := hoursPlan(int64(len(hours)), buckets)
		for i := range hours {
			hours[i] *= mib
		}
		parts := cutPlan(&plan, nil, cutGoal{parts: want, bytes: accumulate(hours)}, aggregationChoice{})
		if diff := cmp.Diff(wantSpans, spans(&plan, parts)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	f("too little to be cut", 1, 8, []float64{.1, .1, .1, .1}, "0-4 0.4")
	f("nothing", 1, 8, []float64{0, 0, 0}, "0-3 0.0")
	f("no smaller than is good", 1, 8, []float64{1, 1, 1, 1, 1, 1}, "0-2 2.0", "2-4 2.0", "4-6 2.0")
	f("one for each of two slots", 1, 2*partsPerSlot, []float64{.75, .75, .75, .75}, "0-2 1.5", "2-4 1.5")
	f("too little for two slots", 1, 2*partsPerSlot, []float64{.3, .3, .3, .3}, "0-4 1.2")
	f("as many as wanted", 1, 2, []float64{4, 4, 4, 4}, "0-2 8.0", "2-4 8.0")
	f("one an hour at most", 1, 8, []float64{4, 4}, "0-1 4.0", "1-2 4.0")
	f("more than wanted, of the largest size", 1, 1, []float64{64, 64, 32, 32, 64}, "0-1 64.0", "1-2 64.0", "2-4 64.0",
		"4-5 64.0")
	f("a heavy hour", 1, 2, []float64{1, 1, 20, 1, 1}, "0-2 2.0", "2-3 20.0", "3-5 2.0")
	f("each salt bucket", 2, 4, []float64{4, 4, 4, 4}, "0-2 4.0", "2-4 4.0", "0-2 4.0", "2-4 4.0")
	f("salt buckets too small to be cut", 4, 16, []float64{1, 1}, "0-2 0.5", "0-2 0.5", "0-2 0.5", "0-2 0.5")
}

// Parts are cut inside each region, from its first border to the next, and an hour in which a
// border is counts half for either side.
func TestCut_bytesFromBorders(t *testing.T) {
	f := func(hours []float64, hour int64, tags []byte, want ...string) {
		t.Helper()
		plan := hoursPlan(int64(len(hours)), 1)
		border := append(plan.Schema.AppendRangeKey(nil, 0, metric, uint32(base+hour*3600)), tags...)
		regions := []store.Region{{Stop: border, Server: "a"}, {Start: border, Server: "b"}}
		parts := cutPlan(&plan, regions, cutGoal{parts: 3, bytes: accumulate(hours)}, aggregationChoice{})
		if diff := cmp.Diff(want, spans(&plan, parts)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
	tag := []byte{0, 0, 1}
	f(slices.Repeat([]float64{4 * mib}, 6), 3, nil, "0-2 8.0", "2-3 4.0", "3-4 4.0", "4-6 8.0")
	f([]float64{4 * mib, 1000 * mib}, 1, tag, "0-1 4.0", "1-2 500.0", "1-2 500.0")
	f([]float64{1000 * mib}, 0, tag, "0-1 500.0", "0-1 500.0")
}

// A query whose window has moved is cut at the same hours as before, so that the cached answers of
// its parts are found.
func TestCut_movingWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const long = 400
		hour := rapid.Float64Range(0.1, 40).Draw(t, "MiB of an hour") * mib
		last := map[int64]bool{}
		for _, moved := range []int64{0, rapid.Int64Range(1, 30).Draw(t, "moved")} {
			plan := operatortest.Plan(encoding.DefaultSchema(), metric, base+moved*3600, base+(moved+long)*3600)
			borders := map[int64]bool{}
			for _, p := range cutPlan(&plan, nil,
				cutGoal{parts: 8, bytes: accumulate(slices.Repeat([]float64{hour}, long))}, aggregationChoice{}) {
				from, _ := hourRange(&plan, p.Range)
				if at := moved + int64(from); at > long/2 && at < long-long/8 {
					borders[at] = true
				}
			}
			if moved > 0 {
				if diff := cmp.Diff(last, borders); diff != "" {
					t.Fatalf("moved by %d hours: -before +after\n%s", moved, diff)
				}
			}
			last = borders
		}
	})
}

// A plan has at most maxParts parts, however large the rows are.
func TestCut_mostParts(t *testing.T) {
	plan := hoursPlan(4*maxParts, 1)
	hours := make([]float64, 4*maxParts)
	for i := range hours {
		hours[i] = maxPartBytes
	}
	if n := len(cutPlan(&plan, nil, cutGoal{parts: 8, bytes: accumulate(hours)}, aggregationChoice{})); n != maxParts {
		t.Errorf("%d parts, want %d", n, maxParts)
	}
}

// A part of several hours is not larger than one and a half times the wanted size and its largest
// hour, and the sizes of all parts add up to that of the plan.
func TestCut_bytesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := hoursPlan(rapid.Int64Range(1, 40).Draw(t, "hours"), 1)
		hours := drawHours(t, &plan)
		want := cutGoal{parts: rapid.IntRange(1, 40).Draw(t, "want"), bytes: accumulate(hours)}
		regions := drawRegions(t, &plan)
		size := want.partBytes(&plan)
		var sum int64
		for _, p := range cutPlan(&plan, regions, want, aggregationChoice{}) {
			from, to := hourRange(&plan, p.Range)
			largest := slices.Max(hours[from:to])
			if most := 1.5*size + largest; to-from > 1 && float64(p.Bytes) > most {
				t.Fatalf("a part of %d bytes, want at most 1.5 times %f and the largest hour, %f", p.Bytes, size,
					largest)
			}
			sum += p.Bytes
		}
		if total := want.bytes.total(); math.Abs(total-float64(sum)) > 100 {
			t.Fatalf("parts of %d bytes, want %f", sum, total)
		}
	})
}

// After a run the sizes of its hours are known, however its parts were cut. A later run that has
// read other sizes changes the estimates.
func TestSizes_learn(t *testing.T) {
	plan := hoursPlan(4, 2)
	at := func(bucket int, hour float64) scanplan.HexBytes {
		k := plan.Schema.AppendRangeKey(nil, bucket, metric, uint32(base+int64(hour)*3600))
		if hour != math.Floor(hour) {
			k = append(k, 0, 0, 1)
		}
		return k
	}
	part := func(bucket int, from, to float64, s operator.Stats) partRead {
		return partRead{scanplan.KeyRange{Start: at(bucket, from), Stop: at(bucket, to)}, s}
	}
	z := newSizes()
	f := func(want []float64, parts ...partRead) {
		t.Helper()
		z.learn(&plan, parts)
		var got []float64
		w := z.estimate(&plan, operator.Access{})
		for i := range w[1:] {
			got = append(got, w[i+1]-w[i])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
	if w := z.estimate(&plan, operator.Access{}); w != nil {
		t.Errorf("%v is known of hours that were never read, want nothing", w)
	}
	bytes := func(n int64) operator.Stats { return operator.Stats{Bytes: n, Rows: 1, RowsScanned: 1} }
	f([]float64{10, 10, 40, 0}, part(0, 0, 2, bytes(20)), part(0, 2, 3, bytes(30)), part(0, 3, 4, bytes(0)),
		part(1, 0, 4, operator.Stats{}), part(1, 2, 3, bytes(10)))
	f([]float64{5, 105, 100, 0}, part(0, 0, 1.5, bytes(10)), part(0, 1.5, 3, bytes(200)))
	// Rows that a filter left out count as large as the others, because they were read, too.
	f([]float64{30, 30, 60, 60}, part(0, 0, 2, operator.Stats{Bytes: 20, Rows: 2, RowsScanned: 6}),
		part(0, 2, 4, operator.Stats{RowsScanned: 12}))
	// A run without rows reveals nothing about sizes.
	f([]float64{30, 30, 60, 60}, part(0, 0, 4, operator.Stats{RowsScanned: 5}))
	f([]float64{0, 0, 0, 0}, part(0, 0, 4, operator.Stats{})) // there are no rows
	for _, rows := range []operator.Access{{Few: true}, {Nothing: true}} {
		if w := z.estimate(&plan, rows); w != nil {
			t.Errorf("%v is estimated for access path %+v, want nothing", w, rows)
		}
	}
}

// Each hour of several days has its own size, also behind midnight.
func TestSizes_days(t *testing.T) {
	z := newSizes()
	plan := hoursPlan(50, 1)
	want := make([]float64, 50)
	for i := range want {
		want[i] = float64(i + 1)
	}
	z.set(&plan, want)
	var got []float64
	w := z.estimate(&plan, operator.Access{})
	for i := range w[1:] {
		got = append(got, w[i+1]-w[i])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Hours that were never read are estimated as the mean of the plan's other hours, or else of the
// metric's.
func TestSizes_unknown(t *testing.T) {
	z := newSizes()
	plan := hoursPlan(30, 1)
	z.set(&plan, slices.Repeat([]float64{7}, 30))
	f := func(from, to int64, want float64) {
		t.Helper()
		p := operatortest.Plan(encoding.DefaultSchema(), metric, base+from*3600, base+to*3600)
		if w := z.estimate(&p, operator.Access{}); w == nil || w.total() != want {
			t.Errorf("hours %d to %d: %v, want %f", from, to, w, want)
		}
	}
	f(10, 20, 70)
	f(20, 60, 280)
	f(-24, 6, 210)
	f(1000, 1010, 70)
	last := operatortest.Plan(encoding.DefaultSchema(), metric, base+2000*3600, base+2010*3600)
	z.set(&last, slices.Repeat([]float64{3}, 10))
	f(20, 60, 280)
	f(1000, 1010, 30)
	other := operatortest.Plan(encoding.DefaultSchema(), operatortest.UID(2), base, base+3600)
	if w := z.estimate(&other, operator.Access{}); w != nil {
		t.Errorf("%v is known of another metric, want nothing", w)
	}
}

// What a run has read of a day leaves what is known of its other hours.
func TestSizes_sameDay(t *testing.T) {
	z, plan := newSizes(), hoursPlan(8, 1)
	for from, bytes := range map[int64]float64{0: 7, 4: 3} {
		p := operatortest.Plan(encoding.DefaultSchema(), metric, base+from*3600, base+(from+4)*3600)
		z.set(&p, slices.Repeat([]float64{bytes}, 4))
	}
	if w := z.estimate(&plan, operator.Access{}); w == nil || w.before(4) != 28 || w.total() != 40 {
		t.Errorf("%v, want 28 bytes and 12", w)
	}
}

// The numbers of days and metrics that sizes remembers are bounded.
func TestSizes_forget(t *testing.T) {
	z := newSizes()
	plan := hoursPlan((maxDays+100)*hoursPerDay, 1)
	plan.From, plan.To = plan.From%86400, plan.From%86400+(maxDays+100)*86400
	z.set(&plan, make([]float64, (maxDays+100)*hoursPerDay))
	for i := range maxMetrics + 10 {
		p := operatortest.Plan(encoding.DefaultSchema(), operatortest.UID(i+1), base, base+3600)
		z.set(&p, []float64{1})
	}
	if len(z.days) != maxDays || len(z.meanHour) != maxMetrics {
		t.Errorf("%d days and %d metrics, want %d and %d", len(z.days), len(z.meanHour), maxDays, maxMetrics)
	}
}

// The second run of a query is cut by the sizes that the first one has read: explain and the trace
// show these, and the answer stays the same.
func TestRun_bySize(t *testing.T) {
	m, s := table(true)
	e := New(quiet(m, nil, &scripted{name: "a:1", store: m}, &scripted{name: "b:1", store: m}))
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	run := func() (answer, Stats) {
		got := answer{}
		stats, err := e.Run(t.Context(), &plan, Options{Aggregation: PerSeries, Trace: true}, got.sink(t))
		if err != nil {
			t.Fatal(err)
		}
		return got, stats
	}
	want := truth(t, m, &plan)
	first, cold := run()
	second, warm := run()
	if diff := cmp.Diff(want, first) + cmp.Diff(want, second); diff != "" {
		t.Error(diff)
	}
	if cold.Parts <= len(plan.Ranges) || warm.Parts != len(plan.Ranges) {
		t.Errorf("%d parts, then %d, want more than %d while the sizes are unknown, then one a salt bucket, "+
			"as the rows are few",
			cold.Parts, warm.Parts, len(plan.Ranges))
	}
	infos, err := e.Explain(t.Context(), &plan, PerSeries, false)
	if err != nil {
		t.Fatal(err)
	}
	var told, traced int64
	for i := range infos {
		told, traced = told+infos[i].Bytes, traced+warm.Trace[i].Bytes
	}
	for _, n := range []int64{told, traced} {
		if math.Abs(float64(n-cold.Bytes)) > 10 {
			t.Errorf("explain and trace tell %d and %d bytes, the parts have read %d", told, traced, cold.Bytes)
		}
	}
	if cold.Trace[0].Bytes != 0 {
		t.Errorf("the first run expected %d bytes, want 0", cold.Trace[0].Bytes)
	}
}

// A run that seeks to some rows does not change the estimates, which are of whole hours.
func TestRun_seekingTeachesNothing(t *testing.T) {
	m, s := table(false)
	e := New(quiet(m, nil))
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	sought := plan
	sought.Tags = []scanplan.TagPredicate{{
		TagK:   operatortest.UID(1),
		Op:     scanplan.In,
		Values: []encoding.UID{operatortest.UID(1)},
	}}
	for _, p := range []*scanplan.Plan{&sought, &plan} {
		stats, err := e.Run(t.Context(), p, Options{Aggregation: PerSeries}, answer{}.sink(t))
		if err != nil || stats.Rows == 0 {
			t.Fatalf("%v, %d rows", err, stats.Rows)
		}
		if w := e.sizes.estimate(&plan, operator.Access{}); (w == nil) != (p == &sought) {
			t.Errorf("after %d ranges: %v is known, want sizes after the run of all rows only", stats.Ranges, w)
		}
	}
}

// A run that fails does not change the estimates.
func TestRun_incompleteTeachesNothing(t *testing.T) {
	m, s := table(false)
	e := New(quiet(m, nil))
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	full := fmt.Errorf("full")
	if _, err := e.Run(t.Context(), &plan, Options{Aggregation: PerSeries},
		func(scanplan.KeyRange, []batch.Record) error { return full }); err == nil {
		t.Fatal("no error")
	}
	if w := e.sizes.estimate(&plan, operator.Access{}); w != nil {
		t.Errorf("%v is known after a run that failed, want nothing", w)
	}
}
