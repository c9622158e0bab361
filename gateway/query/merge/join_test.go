package merge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	arrowmemory "github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/operator/operatortest"
)

// testContext is what testing.T and rapid.T have in common here.
type testContext interface {
	Context() context.Context
	Fatal(args ...any)
}

// addPart executes a part and gives its batches to a Merger.
func addPart(t testContext, m *Merger, from *operatortest.Store, part *scanplan.Part) error {
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
	s.SaltWidth, s.SaltBuckets = min(1, rapid.IntRange(0, 3).Draw(t, "salt width")), 2
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
	p := operatortest.Plan(s, uid(1), base, base+hours*3600)
	p.Start += rapid.Int64Range(0, 3_600_000).Draw(t, "start")
	p.End -= rapid.Int64Range(0, 3_600_000).Draw(t, "end")
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
		var parts []scanplan.Part
		for _, r := range p.Ranges {
			for from := p.From; from < p.To; {
				to := min(from+3600*rapid.Int64Range(1, 3).Draw(t, "hours"), p.To)
				parts = append(parts, scanplan.Part{
					Range: scanplan.KeyRange{Start: p.HourKey(r, from), Stop: p.HourKey(r, to)},
					Mode: rapid.SampledFrom([]scanplan.Mode{scanplan.PerSeries, scanplan.PartialAggregation,
						scanplan.PartialAggregation}).Draw(t, "mode"),
				})
				from = to
			}
		}
		parts = rapid.Permutation(parts).Draw(t, "order")
		for _, name := range aggregate.Names() {
			if f, _ := aggregate.Lookup(scanplan.Aggregator(name)); !f.Mergeable() {
				continue
			}
			p.Aggregator = scanplan.Aggregator(name)
			var whole []scanplan.Part
			for _, r := range p.Ranges {
				whole = append(whole, scanplan.Part{Range: r})
			}
			want, wantErr := merged(t, table, &p, whole)
			got, err := merged(t, table, &p, parts)
			if errors.Is(err, ErrOrder) {
				refused++
				continue
			}
			answered++
			if diff := cmp.Diff(text(want), text(got)); diff != "" || (err == nil) != (wantErr == nil) {
				t.Fatalf("%s: %v, want %v; series -, joined +: %s", &p, err, wantErr, diff)
			}
		}
	})
	if answered < refused || refused == 0 {
		t.Errorf("%d were joined, %d refused, want more of the former and some of the latter", answered, refused)
	}
}

// Of a series the merge keeps one run of parts between two pauses, in whatever order these come, and interpolates
// between the runs by the values at their ends. What it holds does not grow with the parts.
func TestPartials_runs(t *testing.T) {
	const hours, pause = 48, 24
	s := encoding.DefaultSchema()
	table := &operatortest.Store{}
	for i, dense := range []bool{true, false} {
		one := operatortest.Series{Tags: []encoding.TagPair{operatortest.Tag(1, 1), operatortest.Tag(2, i+1)}}
		for q := range 4 * hours {
			// The pause is the last quarter of one hour and the first two of the next.
			if at := q - 4*pause; dense || at < -1 || at > 1 {
				one.Points.Append(int64(base+q*900)*1000, encoding.FloatValue(float64(8*q*q)))
			}
		}
		table.Load(s, uid(1), one)
	}
	p := operatortest.Plan(s, uid(1), base, base+hours*3600)
	p.Downsample = &scanplan.Downsample{Interval: 900_000, Function: "sum", Fill: scanplan.FillNone}
	p.Aggregator = "sum"
	want, err := merged(t, table, &p, []scanplan.Part{{Range: p.Ranges[0]}})
	if err != nil {
		t.Fatal(err)
	}

	var parts []scanplan.Part
	for from := p.From; from < p.To; from += 3600 {
		parts = append(parts, scanplan.Part{Mode: scanplan.PartialAggregation, Plan: p,
			Range: scanplan.KeyRange{Start: p.HourKey(p.Ranges[0], from), Stop: p.HourKey(p.Ranges[0], from+3600)}})
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for round := range 20 { // the parts are in order at first, then each after the next one, then mixed
		m := New(&p, nil)
		for i := range parts {
			if err := addPart(t, m, table, &parts[i]); err != nil {
				t.Fatal(err)
			}
		}
		for i, sp := range m.kept {
			sp.runs = m.joinRuns(sp.runs)
			if len(sp.runs) != i+1 || sp.first != nil {
				t.Errorf("series %d has %d runs and segments %v, want %d and none", i, len(sp.runs), sp.first, i+1)
			}
			if room := cap(sp.runs); round == 1 && room > 8 {
				t.Errorf("series %d has room for %d runs, want 8 at most", i, room)
			}
		}
		// Of four buckets of a part there are Live and A, and a proof of Low and High.
		if most := int64(len(parts)*(columnsBytes+4*16) + 2*(spanBytes+100)); round == 0 && m.used > most {
			t.Errorf("%d bytes are held, want %d at most", m.used, most)
		}
		got, err := m.Finish()
		if diff := cmp.Diff(text(want), text(got)); diff != "" || err != nil {
			t.Fatalf("%v: series -, joined +: %s", err, diff)
		}
		if round > 0 {
			rnd.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			continue
		}
		for i := 0; i < len(parts); i += 2 {
			parts[i], parts[i+1] = parts[i+1], parts[i]
		}
	}
}

// orderCase is points in a table of two salt buckets, whose hours but those of the first bucket are partial.
type orderCase struct {
	what     string
	function scanplan.Aggregator
	fill     scanplan.Fill
	mode     scanplan.Mode // of the first salt bucket
	points   []orderPoint
	refused  bool
	rounding bool // is allowed
}

type orderPoint struct {
	salt  byte
	n     int // of the series, in its salt bucket
	hour  int64
	value float64
}

func orderCases() []orderCase {
	const partial, perSeries = scanplan.PartialAggregation, scanplan.PerSeries
	negativeZero := math.Copysign(0, -1)
	// Of two series only the first has rows in the first hour.
	absent := func(first float64) []orderPoint { return []orderPoint{{0, 0, 0, first}, {0, 0, 1, 2}, {0, 1, 1, 3}} }
	// These have other sums in another order: the first and the last give 0, then 0.1.
	rounding := []orderPoint{{0, 0, 0, 0.1}, {1, 0, 0, 1e16}, {1, 1, 0, -1e16}}
	// A series has no point in the second hour, where two others add up in their order.
	gap := []orderPoint{{0, 0, 0, 1}, {0, 0, 2, 1}, {0, 1, 1, 0.1}, {0, 2, 1, 1e16}}
	return []orderCase{
		{"zeros in a sum", "sum", scanplan.FillZero, partial, absent(5), false, false},
		{"a zero is the least", "min", scanplan.FillZero, partial, absent(5), false, false},
		{"a zero next to -0.0", "min", scanplan.FillZero, partial, absent(negativeZero), true, false},
		{"zeros in a deviation", "dev", scanplan.FillZero, partial, absent(5), true, false},
		{"zeros in a product", "mult", scanplan.FillZero, partial, absent(5), true, false},
		{"NaN in a deviation", "dev", scanplan.FillNaN, partial, absent(5), false, false},
		{"a series before a sum", "zimsum", scanplan.FillNone, perSeries, rounding, true, false},
		{"a gap in a sum", "zimsum", scanplan.FillNone, partial, gap, false, false},
		{"a series before a sum, roughly", "zimsum", scanplan.FillNone, perSeries, rounding, false, true},
		{"a series before a difference", "diff", scanplan.FillNone, perSeries, rounding, true, true},
		{"differences of two salts", "diff", scanplan.FillNone, partial, rounding, false, false},
		{"maxima of two salts", "max", scanplan.FillNone, partial, rounding, false, false},
		{"a zero of a series next to -0.0", "min", scanplan.FillNone, perSeries,
			[]orderPoint{{0, 0, 0, 0}, {1, 0, 0, negativeZero}}, true, false},
		{"NaN in a product", "mult", scanplan.FillNaN, partial, absent(5), true, false},
		{"NaN in a difference", "diff", scanplan.FillNaN, partial, absent(5), true, false},
		{"percentiles of hours", "p99", scanplan.FillNone, partial, absent(5), false, false},
		{"NaN in a percentile", "p99", scanplan.FillNaN, partial, absent(5), false, false},
		{"zeros in a percentile", "p99", scanplan.FillZero, partial, absent(5), true, true},
		{"a gap in a percentile", "p99", scanplan.FillNone, partial, gap, true, true},
		{"percentiles of two salts", "median", scanplan.FillNone, partial, rounding, true, true},
		{"percentiles of two salts, then of one", "median", scanplan.FillNone, partial,
			[]orderPoint{{0, 0, 0, 1}, {1, 0, 0, 2}, {1, 0, 1, 3}}, true, true},
		{"a series next to a percentile", "median", scanplan.FillNone, perSeries, rounding, true, true},
	}
}

// Partial aggregates are joined where that gives the bits of span order, and refused where it does not.
func TestPartials_order(t *testing.T) {
	for _, c := range orderCases() {
		s := encoding.DefaultSchema()
		s.SaltWidth, s.SaltBuckets = 1, 2
		var all [2][]operatortest.Series
		for i := 0; min(len(all[0]), len(all[1])) < 3; i++ {
			one := operatortest.Series{Tags: []encoding.TagPair{operatortest.Tag(1, i+1)}}
			salt := s.AppendRowKey(nil, uid(1), base, s.AppendTags(nil, one.Tags))[0]
			all[salt] = append(all[salt], one)
		}
		for _, p := range c.points {
			all[p.salt][p.n].Points.Append((base+p.hour*3600)*1000, encoding.FloatValue(p.value))
		}
		table := &operatortest.Store{}
		for _, one := range slices.Concat(all[0], all[1]) {
			table.Load(s, uid(1), one)
		}

		p := operatortest.Plan(s, uid(1), base, base+3*3600)
		p.Aggregator = c.function
		p.Downsample = &scanplan.Downsample{Interval: 3_600_000, Function: "last", Fill: c.fill}
		var whole, parts []scanplan.Part
		for salt, r := range p.Ranges {
			whole = append(whole, scanplan.Part{Range: r})
			for at := p.From; at < p.To; at += 3600 {
				hour := scanplan.KeyRange{Start: p.HourKey(r, at), Stop: p.HourKey(r, at+3600)}
				mode := []scanplan.Mode{c.mode, scanplan.PartialAggregation}[salt]
				parts = append(parts, scanplan.Part{Range: hour, Mode: mode})
			}
		}
		want, err := merged(t, table, &p, whole)
		if err != nil {
			t.Fatal(err)
		}
		m := New(&p, nil)
		if c.rounding {
			m.AllowRounding()
		}
		got, err := mergedBy(t, m, table, &p, parts)
		if refused := errors.Is(err, ErrOrder); refused != c.refused || !refused && err != nil {
			t.Errorf("%s: got %v, want it refused: %v", c.what, err, c.refused)
		} else if diff := cmp.Diff(text(want), text(got)); diff != "" && !refused && !c.rounding {
			t.Errorf("%s: %s", c.what, diff)
		}
	}
}

// merged executes parts of a plan and merges what they return.
func merged(t testContext, table *operatortest.Store, p *scanplan.Plan, parts []scanplan.Part) ([]Group, error) {
	return mergedBy(t, New(p, nil), table, p, parts)
}

func mergedBy(t testContext, m *Merger, table *operatortest.Store, p *scanplan.Plan,
	parts []scanplan.Part) ([]Group, error) {
	for _, part := range parts {
		part.Plan = *p
		if err := addPart(t, m, table, &part); err != nil {
			return nil, err
		}
	}
	return m.Finish()
}

// Annotations, buckets and points of series count in the memory of the merge, which may take all of its limit.
func TestSegmentSize(t *testing.T) {
	with := batch.Series{
		Notes: [][]byte{make([]byte, 300), make([]byte, 40)}, Time: make([]int64, 3), Raw: ints(0, 1, 2, 3),
	}
	if grown := segmentSize(&with) - segmentSize(&batch.Series{}); grown != 340+3*bucketBytes+2*pointBytes {
		t.Errorf("annotations of 340 bytes, 3 buckets and 2 points count as %d", grown)
	}
	m := New(&scanplan.Plan{MaxBytes: 100}, nil)
	if err := m.account(100); err != nil {
		t.Errorf("100 bytes of 100: %v", err)
	}
	if err := m.account(1); err == nil {
		t.Error("101 bytes of 100: want an error")
	}
}

// Rows that are aligned are finished groups: series of another part cannot be added to them.
func TestAligned_notWithSeries(t *testing.T) {
	table := &operatortest.Store{}
	for i := range 2 {
		one := operatortest.Series{Tags: []encoding.TagPair{operatortest.Tag(1, i+1)}}
		for at := int64(base); at < base+7200; at += 600 {
			one.Points.Append(at*1000, encoding.IntValue(at))
		}
		table.Load(encoding.DefaultSchema(), uid(1), one)
	}
	p := operatortest.Plan(encoding.DefaultSchema(), uid(1), base, base+7200)
	middle := p.HourKey(p.Ranges[0], base+3600)
	for _, modes := range [][2]scanplan.Mode{
		{scanplan.Aligned, scanplan.Aligned}, {scanplan.PerSeries, scanplan.PerSeries},
		{scanplan.Aligned, scanplan.PerSeries}, {scanplan.PerSeries, scanplan.Aligned},
	} {
		_, err := merged(t, table, &p, []scanplan.Part{
			{Mode: modes[0], Range: scanplan.KeyRange{Start: p.Ranges[0].Start, Stop: middle}},
			{Mode: modes[1], Range: scanplan.KeyRange{Start: middle, Stop: p.Ranges[0].Stop}},
		})
		if mixed := modes[0] != modes[1]; errors.Is(err, ErrOrder) != mixed || !mixed && err != nil {
			t.Errorf("parts of modes %q: got %v", modes, err)
		}
	}
}

func alignedBatch(row *batch.Aligned) batch.Record {
	w := batch.NewAlignedWriter(arrowmemory.DefaultAllocator)
	defer w.Release()
	w.Append(row)
	return w.Record()
}

// An aggregate that is infinite is an error, and an integer of the same bits is none.
func TestAligned_infinity(t *testing.T) {
	s := encoding.DefaultSchema()
	p := operatortest.Plan(s, uid(1), base, base+3600)
	one := tagged(s, encoding.Points{}, 1, 1)
	for _, kind := range []uint8{0, batch.AlignedFloat} {
		m := New(&p, nil)
		err := m.Add(p.Ranges[0], alignedBatch(&batch.Aligned{Kind: kind, Time: []int64{p.Start},
			Bits: []uint64{math.Float64bits(math.Inf(1))}, Spans: [][]byte{one.span(s)}, Flags: []uint8{0}}))
		if err != nil {
			t.Fatal(err)
		}
		var infinite *aggregate.InfinityError
		if _, err := m.Finish(); errors.As(err, &infinite) != (kind == batch.AlignedFloat) {
			t.Errorf("kind %d: got %v", kind, err)
		}
	}
}

// Rows that no part can have aligned are refused: each would make a wrong answer, or another panic.
func TestAligned_refuses(t *testing.T) {
	s := encoding.DefaultSchema()
	span := func(n uint64) []byte { one := tagged(s, encoding.Points{}, 1, n); return one.span(s) }
	row := func(change func(*batch.Aligned)) *batch.Aligned {
		a := &batch.Aligned{Time: []int64{base * 1000, (base + 60) * 1000}, Bits: []uint64{1, 2},
			Spans: [][]byte{span(1), span(2)}, Flags: []uint8{0, 0}}
		change(a)
		return a
	}
	asIs := func(*batch.Aligned) {}
	asRates := func(a *batch.Aligned) {
		a.Kind = batch.AlignedFloat
		for i := range int64(4) {
			a.AddEdge(encoding.IntValue(i))
		}
	}
	rate := func(p *scanplan.Plan) { p.Rate = &scanplan.Rate{} }
	f := func(what, want string, change func(*scanplan.Plan), rows ...*batch.Aligned) {
		t.Helper()
		p := operatortest.Plan(s, uid(1), base, base+3600)
		change(&p)
		var err error
		m := New(&p, nil)
		for _, r := range rows {
			if err == nil {
				err = m.Add(p.Ranges[0], alignedBatch(r))
			}
		}
		if got := fmt.Sprint(err); !strings.Contains(got, want) {
			t.Errorf("%s: got %v, want %s", what, got, want)
		}
	}
	f("a row", "<nil>", func(*scanplan.Plan) {}, row(asIs))
	f("two of other groups", "<nil>", func(*scanplan.Plan) {}, row(asIs),
		row(func(a *batch.Aligned) { a.Group = []byte{1} }))
	f("two of a group", "comes twice", func(*scanplan.Plan) {}, row(asIs), row(asIs))
	f("buckets", "cannot have them", func(p *scanplan.Plan) {
		p.Downsample = &scanplan.Downsample{Interval: 60_000, Function: "sum"}
	}, row(asIs))
	f("two salts", "cannot have them", func(p *scanplan.Plan) { p.Ranges = append(p.Ranges, p.Ranges[0]) }, row(asIs))
	f("one span twice", "want them ascending", func(*scanplan.Plan) {},
		row(func(a *batch.Aligned) { a.Spans[1] = a.Spans[0] }))
	f("rates", "<nil>", rate, row(asRates))
	f("rates without edges", "lacks edges", rate, row(func(a *batch.Aligned) { a.Kind = batch.AlignedFloat }))
	f("rates of a series that begins late", "<nil>", rate, row(func(a *batch.Aligned) {
		asRates(a)
		a.EdgeBits, a.EdgeFloat, a.Flags[1] = a.EdgeBits[:3], a.EdgeFloat[:3], batch.SpanLate
	}))
	f("rates that are integers", "that are integers", rate, row(func(a *batch.Aligned) { asRates(a); a.Kind = 0 }))
	f("annotations alone", "<nil>", rate, row(func(a *batch.Aligned) {
		a.Time, a.Bits, a.Flags = nil, nil, []uint8{batch.SpanAnnotationsOnly, batch.SpanAnnotationsOnly}
	}))
	f("members without times", "2 members with points and 0 times", func(*scanplan.Plan) {},
		row(func(a *batch.Aligned) { a.Time, a.Bits = nil, nil }))
	f("times without members", "0 members with points and 2 times", func(*scanplan.Plan) {},
		row(func(a *batch.Aligned) { a.Flags = []uint8{batch.SpanAnnotationsOnly, batch.SpanAnnotationsOnly} }))
}

// Aligned rows count in the merge's memory by their times and their members, and so do annotations.
func TestAligned_memory(t *testing.T) {
	s := encoding.DefaultSchema()
	p := operatortest.Plan(s, uid(1), base, base+3600)
	used := func(times, members, notes int) int64 {
		row := &batch.Aligned{}
		for i := range times {
			row.Time, row.Bits = append(row.Time, base*1000+int64(i)), append(row.Bits, 1)
		}
		for i := range members {
			one := tagged(s, encoding.Points{}, 1, uint64(i+1))
			row.Spans, row.Flags = append(row.Spans, one.span(s)), append(row.Flags, 0)
		}
		if notes > 0 {
			row.Notes, row.NoteSpan = [][]byte{make([]byte, notes)}, []int32{int32(members - 1)}
		}
		m := New(&p, nil)
		if err := m.Add(p.Ranges[0], alignedBatch(row)); err != nil {
			t.Fatal(err)
		}
		return m.used
	}
	one := used(1, 1, 0)
	for _, c := range []struct {
		what string
		got  int64
		each int64
	}{
		{"times", used(1001, 1, 0) - one, 16},
		{"members", used(1, 1001, 0) - one, alignedMemberBytes + spanBytes},
		{"bytes of an annotation", used(1, 1, 1000) - one, 1},
	} {
		if c.got < 1000*c.each || c.got > 3000*c.each {
			t.Errorf("1,000 %s more count as %d bytes, want %d for each", c.what, c.got, c.each)
		}
	}
}
