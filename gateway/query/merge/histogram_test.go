package merge

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	arrowmemory "github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
)

// histogramSeries is the histograms of one span.
type histogramSeries struct {
	tags []encoding.TagPair
	at   map[int64]encoding.Histogram // by time, ms
}

const testCodec = 42

// histogramTable stores histograms, and a point next to them in each row.
func histogramTable(s encoding.Schema, metric encoding.UID, all []histogramSeries) *operatortest.Store {
	m := &operatortest.Store{}
	for _, one := range all {
		tags := s.AppendTags(nil, one.tags)
		for t, h := range one.at {
			base := encoding.KeyTime(encoding.Hour(t / 1000))
			key := s.AppendRowKey(nil, metric, base, tags)
			m.Cell(key, encoding.AppendHistogramQualifier(nil, int32(t-int64(base)*1000), t%1000 != 0),
				encoding.AppendHistogram([]byte{testCodec}, &h), 1)
			m.Cell(key, []byte{0, 0}, []byte{7}, 1) // a point
		}
	}
	return m
}

// readHistograms executes a plan in parts and merges them.
func readHistograms(t *testing.T, m *operatortest.Store, p *scanplan.Plan, mode scanplan.Mode,
	ranges []scanplan.KeyRange, flush int, keep func([]byte) (bool, error)) ([]Group, error) {
	t.Helper()
	mem := arrowmemory.NewCheckedAllocator(arrowmemory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	merger := New(p, keep)
	defer merger.Free()
	for _, r := range ranges {
		part := &scanplan.Part{Plan: *p, Range: r, Mode: mode}
		ticket, err := part.MarshalTicket()
		if err != nil {
			t.Fatal(err)
		}
		if part, err = scanplan.ParseTicket(ticket); err != nil {
			t.Fatal(err)
		}
		op, err := operator.New(m, part, operator.Options{Mem: mem, FlushBytes: flush})
		if err != nil {
			t.Fatal(err)
		}
		err = operatortest.Drain(t.Context(), op, func(rec batch.Record) error { return merger.Add(r, rec) })
		op.Close()
		if err != nil {
			return nil, err
		}
	}
	return merger.Finish()
}

// lineText returns a line as text.
func lineText(g *Group) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%x%s %v", g.Key, g.Suffix, g.TSUIDs)
	for i := range g.Points.Len() {
		t, v := g.Points.At(i)
		fmt.Fprintf(&b, " %d=%s", t, v)
	}
	return b.String()
}

// modelGroup is an expected group.
type modelGroup struct {
	tsuids [][]byte
	at     map[int64]map[string]int64 // by time and bucket: the count
}

// modelGroups returns the expected groups of a plan, by key, with the counts added up in maps.
func modelGroups(p *scanplan.Plan, all []histogramSeries) map[string]*modelGroup {
	groups := map[string]*modelGroup{}
	for _, one := range all {
		tags := p.Schema.AppendTags(nil, one.tags)
		span := p.Schema.AppendSpan(nil, p.Schema.AppendRowKey(nil, p.Metric, 0, tags))
		key, _ := p.AppendGroupKey(nil, span)
		for t, h := range one.at {
			if t < p.From*1000 || t >= p.To*1000 {
				continue
			}
			g := groups[string(key)]
			if g == nil {
				g = &modelGroup{at: map[int64]map[string]int64{}}
				groups[string(key)] = g
			}
			if tsuid := p.Schema.SpanTSUID(span); !slices.ContainsFunc(g.tsuids,
				func(o []byte) bool { return bytes.Equal(o, tsuid) }) {
				g.tsuids = append(g.tsuids, tsuid)
			}

			if d := p.Downsample; d != nil && !d.All {
				if t -= t % d.Interval; t < p.From*1000 {
					continue
				}
			} else if d != nil {
				if t < p.Start || t >= p.End {
					continue
				}
				t = p.Start
			}
			if g.at[t] == nil {
				g.at[t] = map[string]int64{}
			}
			g.at[t]["U"] += h.Underflow
			g.at[t]["O"] += h.Overflow
			for _, b := range h.Buckets {
				g.at[t][fmt.Sprintf("%g,%g", b.Lower, b.Upper)] += b.Count
			}
		}
	}

	return groups
}

// modelLines returns the expected lines of a plan.
func modelLines(p *scanplan.Plan, all []histogramSeries) (lines []string) {
	for key, g := range modelGroups(p, all) {
		slices.SortFunc(g.tsuids, bytes.Compare)
		var times []int64
		for t := range g.at {
			times = append(times, t)
		}
		slices.Sort(times)
		write := func(suffix, bucket string) {
			line := fmt.Sprintf("%x%s [", key, suffix)
			for i, u := range g.tsuids {
				line += strings.Repeat(" ", min(i, 1)) + encoding.UID(u).String()
			}
			line += "]"
			for _, t := range times {
				if t >= p.Start && t <= p.End && (p.Downsample == nil || !p.Downsample.All) {
					line += fmt.Sprintf(" %d=%d", t, g.at[t][bucket])
				}
			}
			lines = append(lines, line)
		}
		if len(times) == 0 {
			continue
		}
		write("_UNDERFLOW", "U")
		write("_OVERFLOW", "O")
		for bucket := range g.at[times[0]] {
			if bucket == "U" || bucket == "O" {
				continue
			}
			var lower, upper float32
			fmt.Sscanf(bucket, "%g,%g", &lower, &upper)
			write("_"+javaFloat(lower)+"_"+javaFloat(upper), bucket)
		}
	}
	slices.Sort(lines)
	return lines
}

// However a plan of histograms is cut, and with either kind of aggregation, the lines are those
// that maps of counts give.
func TestHistograms_anyCut(t *testing.T) {
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 3))
	metric := operatortest.UID(1)
	for round := range 150 {
		schema := encoding.DefaultSchema()
		if r.IntN(2) == 0 {
			schema.SaltWidth, schema.SaltBuckets = 1, 3
		}
		const base = 1_356_998_400
		var all []histogramSeries
		for v := range 1 + r.IntN(5) {
			one := histogramSeries{
				tags: []encoding.TagPair{operatortest.Tag(1, v+1), operatortest.Tag(2, v%2+1)},
				at:   map[int64]encoding.Histogram{},
			}
			for range r.IntN(30) {
				at := int64(base+r.IntN(6*3600))*1000 + int64(r.IntN(2)*250)
				if r.IntN(2) == 0 {
					at -= at % 600_000 // a time that other series may have too
				}
				var buckets []encoding.HistogramBucket
				for range r.IntN(4) {
					lower := float32(r.IntN(4))
					buckets = append(buckets,
						encoding.HistogramBucket{Lower: lower, Upper: lower + 1, Count: int64(r.IntN(9))})
				}
				one.at[at] = encoding.NewHistogram(buckets, int64(r.IntN(3)), int64(r.IntN(3)))
			}
			all = append(all, one)
		}

		d := []*scanplan.Downsample{nil, {Interval: 300_000}, {Interval: 420_000}, {Interval: 5_400_000}, {All: true},
			{Interval: 3_600_000, Count: 1, Unit: "h", Calendar: true, Zone: "UTC"}}[r.IntN(6)]
		if d != nil {
			d.Function, d.Fill = "sum", scanplan.FillNone
		}
		start := int64(base+1800+r.IntN(7200)) * 1000
		p := newPlan(schema, metric, start, start+int64(1+r.IntN(7200))*1000, d)
		p.Histograms = &scanplan.Histograms{Codec: testCodec, Buckets: true}
		p.Aggregator = []scanplan.Aggregator{"sum", scanplan.None}[r.IntN(2)]
		if p.Aggregator == "sum" {
			p.GroupBy = [][]encoding.UID{nil, {operatortest.UID(2)},
				{operatortest.UID(1), operatortest.UID(2)}}[r.IntN(3)]
		}
		mode := scanplan.PerSeries
		if r.IntN(2) == 0 && (d == nil || !d.Calendar) {
			mode = scanplan.PartialAggregation
		}

		m := histogramTable(schema, metric, all)
		groups, err := readHistograms(t, m, p, mode, cut(p, nil, func(n int) int { return r.IntN(n) }), 1+r.IntN(3000),
			nil)
		if err != nil {
			t.Fatalf("seed %d, round %d: %v", seed, round, err)
		}
		var got []string
		for i := range groups {
			got = append(got, lineText(&groups[i]))
		}
		slices.Sort(got)
		if diff := cmp.Diff(modelLines(p, all), got); diff != "" {
			t.Fatalf("seed %d, round %d, %s mode %q: want -, got +: %s", seed, round, p, mode, diff)
		}
	}
}

// twoHosts returns a plan for one hour and two series with different buckets.
func twoHosts() (*scanplan.Plan, []histogramSeries) {
	metric, base := operatortest.UID(1), int64(1_356_998_400)
	p := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+3600)
	p.Histograms = &scanplan.Histograms{Codec: testCodec, Percentiles: []float32{50, 99.9}, Buckets: true}
	return &p, []histogramSeries{
		{[]encoding.TagPair{operatortest.Tag(1, 1)}, map[int64]encoding.Histogram{
			base * 1000: encoding.NewHistogram([]encoding.HistogramBucket{{Lower: 0, Upper: 1, Count: 1}}, 0, 0),
			base*1000 + 60000: encoding.NewHistogram([]encoding.HistogramBucket{{Lower: 5, Upper: 6, Count: 2}}, 3,
				4)}},
		{[]encoding.TagPair{operatortest.Tag(1, 2)}, map[int64]encoding.Histogram{
			base * 1000: encoding.NewHistogram([]encoding.HistogramBucket{{Lower: 1, Upper: 2, Count: 2}}, 0, 0)}},
	}
}

// A group has a line for each percentile, and then one for each bucket of its first histogram, at
// the times that any member has.
func TestHistograms_lines(t *testing.T) {
	p, all := twoHosts()
	m := histogramTable(p.Schema, p.Metric, all)
	f := func(mode scanplan.Mode, keep func([]byte) (bool, error), want ...string) {
		t.Helper()
		groups, err := readHistograms(t, m, p, mode, []scanplan.KeyRange{p.Ranges[0]}, 0, keep)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range groups {
			got = append(got, strings.ReplaceAll(lineText(&groups[i]), "1356998", "")) // 400000 is the start, in ms
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("want -, got +: %s", diff)
		}
	}
	both := []string{
		"_pct_50.0 [000001000001000001 000001000001000002] 400000=1.5 460000=5.5",
		"_pct_99.9 [000001000001000001 000001000001000002] 400000=1.5 460000=5.5",
		"_UNDERFLOW [000001000001000001 000001000001000002] 400000=0 460000=3",
		"_0.0_1.0 [000001000001000001 000001000001000002] 400000=1 460000=0",
		"_1.0_2.0 [000001000001000001 000001000001000002] 400000=2 460000=0",
		"_OVERFLOW [000001000001000001 000001000001000002] 400000=0 460000=4",
	}
	f(scanplan.PartialAggregation, nil, both...)
	f(scanplan.PerSeries, nil, both...)

	// A filter on names drops a series before it is added.
	second := func(span []byte) (bool, error) { return span[len(span)-1] == 2, nil }
	p.Histograms.Percentiles = []float32{0}
	f(scanplan.PerSeries, second, "_pct_0.0 [000001000001000002] 400000=-1.0",
		"_UNDERFLOW [000001000001000002] 400000=0",
		"_1.0_2.0 [000001000001000002] 400000=2", "_OVERFLOW [000001000001000002] 400000=0")

	// The first histogram gives the buckets even if it is before the query's start.
	p.Start += 60_000
	p.Histograms.Percentiles = nil
	f(scanplan.PartialAggregation, nil, "_UNDERFLOW [000001000001000001 000001000001000002] 460000=3",
		"_0.0_1.0 [000001000001000001 000001000001000002] 460000=0",
		"_1.0_2.0 [000001000001000001 000001000001000002] 460000=0",
		"_OVERFLOW [000001000001000001 000001000001000002] 460000=4")
}

// In calendar buckets, which begin where each series begins, a series has the lines that it has alone.
func TestHistograms_calendar(t *testing.T) {
	one, _ := twoHosts()
	plan := operatortest.Plan(one.Schema, one.Metric, one.From-86_400, one.From+2*86_400) // a year begins at one.From
	p := &plan
	p.Aggregator, p.Histograms = scanplan.None, &scanplan.Histograms{Codec: testCodec, Buckets: true}
	p.Downsample = &scanplan.Downsample{Interval: 5 * 3600_000, Count: 5, Unit: "h", Calendar: true, Zone: "UTC",
		Function: "sum", Fill: scanplan.FillNone}
	var all []histogramSeries
	for i := range 3 {
		one := histogramSeries{[]encoding.TagPair{operatortest.Tag(1, i+1)}, map[int64]encoding.Histogram{}}
		for k := range int64(6) { // a day behind those of the series before
			at := p.Start + 86_400_000*int64(i) + 3*3600_000*k
			one.at[at] = encoding.NewHistogram([]encoding.HistogramBucket{{Lower: 0, Upper: 1, Count: k + 1}}, 0, 0)
		}
		all = append(all, one)
	}
	lines := func(of ...histogramSeries) (out []string) {
		m := histogramTable(p.Schema, p.Metric, of)
		groups, err := readHistograms(t, m, p, scanplan.PerSeries, p.Ranges, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range groups {
			out = append(out, lineText(&groups[i]))
		}
		return out
	}
	if d := cmp.Diff(slices.Concat(lines(all[0]), lines(all[1]), lines(all[2])), lines(all...)); d != "" {
		t.Errorf("alone -, together +: %s", d)
	}
}

// A histogram of another codec, a damaged one, or too little memory fails the query.
func TestHistograms_errors(t *testing.T) {
	p, all := twoHosts()
	f := func(change func(*scanplan.Plan, *operatortest.Store), want string) {
		t.Helper()
		plan := *p
		h := *p.Histograms
		plan.Histograms = &h
		m := histogramTable(p.Schema, p.Metric, all)
		change(&plan, m)
		_, err := readHistograms(t, m, &plan, scanplan.PartialAggregation, []scanplan.KeyRange{p.Ranges[0]}, 0, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	key := p.Schema.AppendRowKey(nil, p.Metric, 1_356_998_400, p.Schema.AppendTags(nil, all[0].tags))
	f(func(p *scanplan.Plan, _ *operatortest.Store) { p.Histograms.Codec = 7 }, "has codec 42, want 7")
	f(func(p *scanplan.Plan, _ *operatortest.Store) { p.Histograms.Codec = scanplan.NoCodec }, "DOWNPOUR_HISTOGRAMS")
	f(func(_ *scanplan.Plan, m *operatortest.Store) {
		m.Cell(key, []byte{6, 0, 9}, []byte{testCodec, 0, 3, 1}, 1)
	}, "is corrupt")
	f(func(_ *scanplan.Plan, m *operatortest.Store) { m.Cell(key, []byte{6, 0, 9}, nil, 1) }, "is empty")
	f(func(_ *scanplan.Plan, m *operatortest.Store) {
		m.Cell(key, []byte{6, 0, 9, 1, 1, 1, 1}, []byte{testCodec, 0, 0, 0, 0}, 1)
	}, "histogram column")
	f(func(p *scanplan.Plan, _ *operatortest.Store) { p.MaxBytes = 100 }, "more than 100 bytes")
}

// Members and annotations of a group are in the order of spans, in whatever order parts name them.
// An annotation of a series that has no histogram is not among them. An error of the filter on names
// fails the query.
func TestHistograms_order(t *testing.T) {
	p, all := twoHosts()
	spans := make([][]byte, 3)
	for i := range spans {
		tags := p.Schema.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, i+1)})
		spans[i] = p.Schema.AppendSpan(nil, p.Schema.AppendRowKey(nil, p.Metric, 0, tags))
	}
	w := batch.NewHistogramWriter(arrowmemory.DefaultAllocator)
	defer w.Release()
	for _, i := range []int{1, 0} {
		row := batch.Histograms{
			Spans:    [][]byte{spans[i]},
			NoteSpan: [][]byte{spans[i], spans[2]},
			Notes:    [][]byte{{byte('a' + i)}, {'c'}},
		}
		for ms, h := range all[i].at {
			row.Add(ms, &h)
		}
		w.Append(&row)
	}
	rec := w.Record()
	defer rec.Release()

	m := New(p, nil)
	if err := m.Add(p.Ranges[0], rec); err != nil {
		t.Fatal(err)
	}
	groups, err := m.Finish()
	if err != nil || len(groups) == 0 {
		t.Fatalf("%d groups, error %v", len(groups), err)
	}
	if diff := cmp.Diff([][][]byte{spans[:2], {{'a'}, {'b'}}},
		[][][]byte{groups[0].Spans, groups[0].Notes}); diff != "" {
		t.Errorf("want -, got +: %s", diff)
	}

	failing := New(p, func([]byte) (bool, error) { return false, errFull })
	if err := failing.Add(p.Ranges[0], rec); !errors.Is(err, errFull) {
		t.Errorf("got %v, want the error of the filter", err)
	}
}

// Floats are written as Java 17 writes them, Float.toString included exponents.
func TestJavaFloat(t *testing.T) {
	for want, f := range map[string]float32{"0.0": 0, "50.0": 50, "99.9": 99.9, "0.001": 0.001, "9.0E-4": 0.0009,
		"9999999.0": 9999999, "1.0E7": 1e7,
		"1.25E10": 1.25e10, "-10.0": -10, "3.4028235E38": 3.4028235e38, "-1.5E-5": -1.5e-5} {
		if got := javaFloat(f); got != want {
			t.Errorf("%v is %s, want %s", f, got, want)
		}
	}
}
