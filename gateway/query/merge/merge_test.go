package merge

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	arrowmemory "github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
)

// base is the time at which the tests' series begin, in s.
const base = 1_600_002_000

// uid returns the UID with a number, of three bytes.
func uid(n uint64) encoding.UID {
	u, err := encoding.AppendUID(nil, n, 3)
	if err != nil {
		panic(err)
	}
	return u
}

// tagged makes a series of metric 1 from pairs of tagk and tagv numbers.
func tagged(s encoding.Schema, points encoding.Points, tags ...uint64) series {
	var pairs []encoding.TagPair
	for i := 0; i < len(tags); i += 2 {
		pairs = append(pairs, encoding.TagPair{K: uid(tags[i]), V: uid(tags[i+1])})
	}
	return series{metric: uid(1), tags: s.AppendTags(nil, pairs), points: points}
}

// ints makes integer points from pairs of an offset to base, in s, and a value.
func ints(pairs ...int64) (p encoding.Points) {
	for i := 0; i < len(pairs); i += 2 {
		p.Append((base+pairs[i])*1000, encoding.IntValue(pairs[i+1]))
	}
	return p
}

func drawPoints(t *rapid.T) (p encoding.Points) {
	ms := int64(base)*1000 + rapid.Int64Range(0, 7_200_000).Draw(t, "begin")
	kind := rapid.IntRange(0, 2).Draw(t, "kind")
	for range rapid.IntRange(0, 25).Draw(t, "points") {
		if kind == 0 || kind == 1 && rapid.Bool().Draw(t, "int") {
			p.Append(ms, encoding.IntValue(rapid.Int64Range(-50, 1000).Draw(t, "value")))
		} else {
			p.Append(ms, encoding.FloatValue(rapid.Float64Range(-50, 1000).Draw(t, "value")))
		}
		ms += rapid.SampledFrom([]int64{1, 500, 10_000, 61_000, 1_000_000}).Draw(t, "gap")
		if ms > (base+4*3600-1)*1000 {
			break
		}
	}
	return p
}

func drawWorld(t *rapid.T, s encoding.Schema) (all []series) {
	seen := map[string]bool{}
	for range rapid.IntRange(0, 6).Draw(t, "series") {
		var tags []uint64
		for k := uint64(1); k <= 3; k++ {
			if rapid.Bool().Draw(t, "has tag") {
				tags = append(tags, k, uint64(rapid.IntRange(1, 3).Draw(t, "tagv")))
			}
		}
		one := tagged(s, drawPoints(t), append(tags, 4, uint64(len(all)+1))...)
		if rapid.IntRange(0, 4).Draw(t, "notes") == 0 {
			one.notes = [][]byte{[]byte("a"), []byte("bc")}
		}
		if id := string(one.tags); !seen[id] {
			seen[id] = true
			all = append(all, one)
		}
	}
	return all
}

func drawDownsample(t *rapid.T) *scanplan.Downsample {
	if rapid.IntRange(0, 3).Draw(t, "raw") == 0 {
		return nil
	}
	d := &scanplan.Downsample{
		Function: scanplan.Aggregator(rapid.SampledFrom([]string{"sum", "avg", "p50", "last", "dev"}).Draw(t,
			"function")),
		Fill: rapid.SampledFrom(append([]scanplan.Fill{scanplan.FillNone}, scanplan.Fills...)).Draw(t, "fill"),
		Zone: "America/New_York",
	}
	switch rapid.IntRange(0, 5).Draw(t, "form") {
	case 0:
		d.All = true
	case 1:
		d.Calendar, d.Count, d.Unit, d.Interval = true, 7, "m", 420_000
	default:
		d.Interval = rapid.SampledFrom([]int64{1000, 60_000, 420_000, 5_400_000, 7_200_000}).Draw(t, "interval")
	}
	return d
}

func drawPlan(t *rapid.T, s encoding.Schema) *scanplan.Plan {
	start := int64(base)*1000 + rapid.Int64Range(0, 7_200_000).Draw(t, "start")
	p := newPlan(s, uid(1), start, start+rapid.Int64Range(1, 7_200_000).Draw(t, "length"), drawDownsample(t))
	p.Aggregator = scanplan.Aggregator(rapid.SampledFrom(aggregate.Names()).Draw(t, "aggregator"))
	if rapid.IntRange(0, 2).Draw(t, "rate") == 0 {
		p.Rate = &scanplan.Rate{
			Counter:    rapid.Bool().Draw(t, "counter"),
			CounterMax: 1000,
			DropResets: rapid.Bool().Draw(t, "drop"),
		}
	}
	for k := uint64(1); k <= 2; k++ {
		if rapid.Bool().Draw(t, "group by") {
			p.GroupBy = append(p.GroupBy, uid(k))
		}
	}
	return p
}

// However series are cut into parts and batches, and in whatever order parts arrive, the groups are
// those of series that are not cut.
func TestAnyCutGivesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := encoding.DefaultSchema()
		s.SaltWidth, s.SaltBuckets = rapid.IntRange(0, 1).Draw(t, "salt width"), 3
		all := drawWorld(t, s)
		p := drawPlan(t, s)
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		want, wantErr := whole(p, all)
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		got, err := answer(p, all, pick)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("got error %v, want %v", err, wantErr)
		}
		if diff := cmp.Diff(text(want), text(got)); diff != "" {
			t.Fatalf("want -, got +: %s", diff)
		}
	})
}

// plan returns a plan for the two hours from base on, without a downsampler.
func plan(aggregator scanplan.Aggregator, groupBy ...uint64) *scanplan.Plan {
	p := newPlan(encoding.DefaultSchema(), uid(1), base*1000, (base+7200)*1000, nil)
	p.Aggregator = aggregator
	for _, k := range groupBy {
		p.GroupBy = append(p.GroupBy, uid(k))
	}
	return p
}

// shape returns groups without their points, as "key: tagk=tagv … tagk* …" with UIDs as numbers; a
// tagk with a * is aggregated.
func shape(groups []Group) (out []string) {
	number := func(b []byte) string { return strings.ReplaceAll(encoding.UID(b).String(), "00000", "") }
	for _, g := range groups {
		s := number(g.Key) + ":"
		for _, p := range g.Tags {
			s += " " + number(p.K) + "=" + number(p.V)
		}
		for _, k := range g.Aggregated {
			s += " " + number(k) + "*"
		}
		out = append(out, s)
	}
	return out
}

// A group has every tag that none of its members contradicts, also one that some members lack. A
// key with different values is aggregated, whatever later members have.
func TestTags(t *testing.T) {
	s := encoding.DefaultSchema()
	one := ints(0, 1)
	f := func(name string, p *scanplan.Plan, all []series, want ...string) {
		t.Helper()
		groups, err := whole(p, all)
		if diff := cmp.Diff(want, shape(groups)); err != nil || diff != "" {
			t.Errorf("%s: %v, want -, got +: %s", name, err, diff)
		}
	}
	all := []series{tagged(s, one, 1, 1), tagged(s, one, 1, 1, 2, 1), tagged(s, one, 1, 2, 3, 5),
		tagged(s, one, 1, 1, 4, 1)}
	f("all in one", plan("sum"), all, ": 2=1 3=5 4=1 1*")
	f("by tag 1", plan("sum", 1), all, "1: 1=1 2=1 4=1", "2: 1=2 3=5")
	f("by tags 1 and 2", plan("sum", 1, 2), all, "11: 1=1 2=1")
	f("by a tag that none has", plan("sum", 9), all)
	f("nothing", plan("sum"), nil)
	alone, err := whole(plan("none", 1), all)
	if err != nil || len(alone) != 4 || !bytes.Equal(alone[0].Key, alone[0].Spans[0]) {
		t.Errorf("none: %d groups, %v, want one for each span, with the span as its key", len(alone), err)
	}
}

// A group whose members have only annotations has no tags and no points, and keeps its place in the
// order of the groups.
func TestAnnotationsAlone(t *testing.T) {
	s := encoding.DefaultSchema()
	noted := func(one series) series {
		one.notes = [][]byte{[]byte(`{"n":1}`)}
		return one
	}
	all := []series{tagged(s, ints(0, 1), 1, 2), noted(tagged(s, encoding.Points{}, 1, 1)),
		noted(tagged(s, encoding.Points{}, 1, 2, 2, 7))}
	groups, err := whole(plan("sum", 1), all)
	if diff := cmp.Diff([]string{"1:", "2: 1=2"}, shape(groups)); err != nil || diff != "" {
		t.Fatalf("%v, want -, got +: %s", err, diff)
	}
	if len(groups[0].Spans) != 0 || groups[0].Points.Len() != 0 || len(groups[0].Notes) != 1 {
		t.Errorf("got %+v, want only a note", groups[0])
	}
	if len(groups[1].Spans) != 1 || len(groups[1].TSUIDs) != 1 || len(groups[1].Notes) != 1 {
		t.Errorf("got %+v, want one member with points and the other's note", groups[1])
	}
}

// Members whose points all lie outside of the query make a group with tags and without points.
func TestPaddingOnly(t *testing.T) {
	s := encoding.DefaultSchema()
	p := newPlan(s, uid(1), (base+60)*1000, (base+120)*1000, &scanplan.Downsample{All: true, Function: "sum"})
	p.Aggregator = "sum"
	groups, err := whole(p, []series{tagged(s, ints(0, 1), 1, 2)})
	if err != nil || len(groups) != 1 || len(groups[0].Tags) != 1 || groups[0].Points.Len() != 0 {
		t.Errorf("got %+v, %v, want a group with tags and no points", groups, err)
	}
}

// A series under two salts is two members of its group, with the same TSUID.
func TestTSUIDsOfSaltedSpans(t *testing.T) {
	s := encoding.DefaultSchema()
	s.SaltWidth = 1
	p := newPlan(s, uid(1), base*1000, (base+60)*1000, nil)
	p.Aggregator = "sum"
	m := New(p, nil)
	for salt := range byte(2) {
		span := append([]byte{1 - salt}, append(uid(1), append(uid(1), uid(2)...)...)...)
		if err := m.Add(p.Ranges[1-salt], record(batch.Series{Span: span, Raw: ints(int64(salt), 5)})); err != nil {
			t.Fatal(err)
		}
	}
	groups, err := m.Finish()
	if err != nil || len(groups) != 1 || len(groups[0].Spans) != 2 || groups[0].Spans[0][0] != 0 {
		t.Fatalf("got %+v, %v, want one group of two spans in salt order", groups, err)
	}
	if len(groups[0].TSUIDs) != 2 || !bytes.Equal(groups[0].TSUIDs[0], groups[0].TSUIDs[1]) {
		t.Errorf("got TSUIDs %v, want one twice", groups[0].TSUIDs)
	}
}

func record(rows ...batch.Series) batch.Record {
	w := batch.NewSeriesWriter(arrowmemory.DefaultAllocator)
	defer w.Release()
	for i := range rows {
		w.Append(&rows[i])
	}
	return w.Record()
}

// The filter on names is called once for each span, and its error ends the merge.
func TestKeep(t *testing.T) {
	s := encoding.DefaultSchema()
	p := plan("sum")
	all := []series{tagged(s, ints(0, 1), 1, 1), tagged(s, ints(0, 2), 1, 2)}
	asked := 0
	m := New(p, func(span []byte) (bool, error) {
		asked++
		return bytes.Equal(span, all[1].span(s)), nil
	})
	for part := range 2 {
		r := scanplan.KeyRange{Start: []byte{byte(part)}}
		rows := []batch.Series{{Span: all[0].span(s), Raw: ints(int64(part), 1)},
			{Span: all[1].span(s), Raw: ints(int64(part), 2)}}
		if err := m.Add(r, record(rows...)); err != nil {
			t.Fatal(err)
		}
	}
	groups, err := m.Finish()
	if err != nil || asked != 2 || len(groups) != 1 || len(groups[0].Spans) != 1 || groups[0].Points.Len() != 2 {
		t.Errorf("asked %d times, got %+v, %v, want two questions and two points of one span", asked, groups, err)
	}
	boom := errors.New("boom")
	m = New(p, func([]byte) (bool, error) { return false, boom })
	err = m.Add(p.Ranges[0], record(batch.Series{Span: all[0].span(s), Raw: ints(0, 1)}))
	if !errors.Is(err, boom) {
		t.Errorf("got %v, want the filter's error", err)
	}
}

// Rows of a span whose times overlap are an error: a row was merged twice.
//
//fault:overlap-not-noticed first <= last => false
func TestOverlap(t *testing.T) {
	s := encoding.DefaultSchema()
	p := plan("sum")
	one := tagged(s, encoding.Points{}, 1, 1)
	span := one.span(s)
	note := batch.Series{Span: span, Notes: [][]byte{[]byte("a")}} // has no time
	for _, c := range []struct {
		want string
		rows []batch.Series
	}{
		{"another goes on until", []batch.Series{{Span: span, Raw: ints(0, 1, 60, 2)}, {Span: span, Raw: ints(20, 3)}}},
		{"another goes on until", []batch.Series{{Span: span, Raw: ints(0, 1, 60, 2)}, {Span: span, Raw: ints(60, 3)}}},
		{"another goes on until", []batch.Series{{Span: span, Raw: ints(60, 1)}, note, {Span: span, Raw: ints(0, 3)}}},
		{"want ascending times", []batch.Series{{Span: span, Raw: ints(60, 1, 0, 2)}}},
		{"want ascending times", []batch.Series{{Span: span, Raw: ints(60, 1, 60, 2)}}},
		{"<nil>", []batch.Series{{Span: span, Raw: ints(0, 1, 60, 2)}, note, {Span: span, Raw: ints(61, 3)}}},
	} {
		m := New(p, nil)
		for _, row := range c.rows {
			if err := m.Add(p.Ranges[0], record(row)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := m.Finish(); !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%v: got %v, want %s", c.rows, err, c.want)
		}
	}
}

// A segment reaches from the first to the last of the times of its buckets and its points.
func TestExtent(t *testing.T) {
	for _, c := range []struct {
		buckets, points []int64
		first, last     int64
	}{
		{nil, nil, 0, 0},
		{[]int64{20, 30}, nil, 20, 30},
		{nil, []int64{20, 30}, 20, 30},
		{[]int64{20, 30}, []int64{10, 15}, 10, 30},
		{[]int64{20, 30}, []int64{40, 50}, 20, 50},
		{[]int64{20, 30}, []int64{10, 40}, 10, 40},
	} {
		s := &segment{time: c.buckets}
		s.raw.Time = c.points
		first, last, ok := extent(s)
		if first != c.first || last != c.last || ok != (c.last > 0) {
			t.Errorf("buckets %v, points %v: got %d to %d, %v, want %d to %d", c.buckets, c.points, first, last, ok,
				c.first, c.last)
		}
	}
}

// A merge that takes more than the plan's MaxBytes fails with a MemoryError: for rows, for the grid
// of filled buckets, and for series that are filled.
func TestMemory(t *testing.T) {
	s := encoding.DefaultSchema()
	all := []series{tagged(s, ints(0, 1, 60, 2), 1, 1)}
	f := func(name string, limit int64, d *scanplan.Downsample) {
		t.Helper()
		p := newPlan(s, uid(1), base*1000, (base+3600)*1000, d)
		p.Aggregator, p.MaxBytes = "sum", limit
		_, err := whole(p, all)
		var m *MemoryError
		if !errors.As(err, &m) || m.Limit != limit || m.Need <= limit {
			t.Errorf("%s: got %v, want a memory error", name, err)
		}
	}
	f("a row", 100, nil)
	f("a filled grid", 10_000, &scanplan.Downsample{Interval: 1000, Function: "sum", Fill: scanplan.FillNaN})
	f("filled series", 90_000, &scanplan.Downsample{Interval: 1000, Function: "sum", Fill: scanplan.FillNaN})
}

// A grid that takes all of MaxBytes is made, and counted, one that takes more is not.
func TestMemory_grid(t *testing.T) {
	p := newPlan(encoding.DefaultSchema(), uid(1), base*1000, (base+3600)*1000,
		&scanplan.Downsample{Interval: 1000, Function: "sum", Fill: scanplan.FillNaN})
	var c columns
	m := New(p, nil)
	if err := c.init(p, m); err != nil {
		t.Fatal(err)
	}
	need := c.bucketer.GridLen() * bucketBytes
	if _, err := c.bucketer.Grid(); err != nil || m.used < need {
		t.Errorf("%v, a grid of %d bytes counts as %d", err, need, m.used)
	}
	for limit, want := range map[int64]bool{need: false, need - 1: true} {
		p.MaxBytes = limit
		var m *MemoryError
		if err := c.init(p, New(p, nil)); errors.As(err, &m) != want {
			t.Errorf("limit %d of %d bytes: got %v, want a memory error: %t", limit, need, err, want)
		}
	}
}

// The memory of filled buckets is counted before it is taken: a column of values, one of times for
// rates, and the buffer that holds the values first.
func TestMemory_filled(t *testing.T) {
	p := newPlan(encoding.DefaultSchema(), uid(1), base*1000, (base+3600)*1000,
		&scanplan.Downsample{Interval: 1000, Function: "sum", Fill: scanplan.FillNaN})
	for _, c := range []struct {
		rate *scanplan.Rate
		warm bool  // the buffer is there
		want int64 // columns
	}{
		{nil, false, 2},
		{nil, true, 1},
		{&scanplan.Rate{}, false, 3},
		{&scanplan.Rate{}, true, 2},
	} {
		var columns columns
		p.Rate = c.rate
		if err := columns.init(p, New(p, nil)); err != nil {
			t.Fatal(err)
		}
		grid := columns.bucketer.GridLen()
		if c.warm {
			columns.doubles = make([]float64, grid)
		}
		if got, want := columns.bytesNeeded(nil), c.want*8*grid; got != want {
			t.Errorf("with rates %v, with a buffer %v: got %d bytes, want %d", c.rate != nil, c.warm, got, want)
		}
	}
}

// What a series' columns take is counted before they are made: nothing where they are used as they came.
func TestMemory_columns(t *testing.T) {
	var points encoding.Points
	for i := range int64(10) {
		points.Append(i, encoding.IntValue(i))
	}
	raw, ready := &segment{raw: points}, &segment{time: []int64{0, 60_000}, value: []float64{1, 2}}
	rate, buckets := &scanplan.Rate{}, &scanplan.Downsample{Interval: 60_000, Function: "sum"}
	for _, c := range []struct {
		what     string
		rate     *scanplan.Rate
		d        *scanplan.Downsample
		segments []*segment
		want     int64 // points
	}{
		{"points as they are", nil, nil, []*segment{raw, raw}, 0},
		{"rates", rate, nil, []*segment{raw, raw}, 20},
		{"buckets as they came", nil, buckets, []*segment{ready}, 0},
		{"rates of buckets", rate, buckets, []*segment{ready}, 2},
		{"buckets of two parts", nil, buckets, []*segment{ready, ready}, 4},
		{"buckets of points", nil, buckets, []*segment{raw}, 10},
	} {
		p := newPlan(encoding.DefaultSchema(), uid(1), base*1000, (base+3600)*1000, c.d)
		p.Rate = c.rate
		m := New(p, nil)
		var columns columns
		if err := columns.init(p, m); err != nil {
			t.Fatal(err)
		}
		if got := columns.bytesNeeded(c.segments); got != c.want*pointBytes {
			t.Errorf("%s: got %d bytes, want those of %d points", c.what, got, c.want)
		}

		// Of a group the stored points alone are counted at its begin, as far as the groups before had fewer.
		for _, n := range []int{100, 100, 101} {
			used := m.used
			columns.reset()
			if err := columns.reserve(n); err != nil {
				t.Fatal(err)
			}
			want := int64(0)
			if c.rate == nil && c.d == nil && (used == 0 || n == 101) {
				want = int64(n) * pointBytes
			}
			if got := m.used - used; got != want {
				t.Errorf("%s: a group of %d points counts as %d bytes, want %d", c.what, n, got, want)
			}
			room := min(len(columns.times.chunk), len(columns.bits.chunk), len(columns.floats.chunk))
			if want > 0 && room != n {
				t.Errorf("%s: room for %d points is made at once, want %d", c.what, room, n)
			}
		}
	}
}

// The memory of a group's columns is used again for the next group.
func TestColumns_reset(t *testing.T) {
	var c columns
	begin := func() (begins []any) {
		c.reset()
		return []any{&c.times.alloc(1)[0], &c.values.alloc(1)[0], &c.bits.alloc(1)[0], &c.floats.alloc(1)[0]}
	}
	if first, second := begin(), begin(); !slices.Equal(first, second) {
		t.Errorf("columns begin at %v, then at %v", first, second)
	}
}

// There is no rate of a point or bucket at 1970, to which time is measured from there.
func TestRate_of1970(t *testing.T) {
	s := encoding.DefaultSchema()
	for time, d := range map[int64]*scanplan.Downsample{0: nil, 5000: {Interval: 60_000, Function: "sum"}} {
		p := newPlan(s, uid(1), 0, 3_600_000, d)
		p.Aggregator, p.Rate = "sum", &scanplan.Rate{}
		var points encoding.Points
		points.Append(time, encoding.IntValue(1))
		if _, err := whole(p, []series{tagged(s, points, 1, 1)}); err == nil ||
			!strings.Contains(err.Error(), "Next timestamp (0)") {
			t.Errorf("a point at %d: got %v, want that time 0 is not after 0", time, err)
		}
	}
}

// With FixRateStart a series has no rate at its first point.
func TestRate_start(t *testing.T) {
	s := encoding.DefaultSchema()
	for _, d := range []*scanplan.Downsample{nil, {Interval: 60_000, Function: "sum"}} {
		p := newPlan(s, uid(1), base*1000, (base+3600)*1000, d)
		p.Aggregator, p.Rate, p.Fix = "sum", &scanplan.Rate{}, scanplan.FixRateStart
		groups, err := whole(p, []series{tagged(s, ints(0, 1, 60, 61), 1, 1)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]int64{(base + 60) * 1000}, groups[0].Points.Time); diff != "" {
			t.Errorf("downsampling %v: %s", d, diff)
		}
	}
}

// An infinite sum fails a query only if its time is in the query.
func TestInfinityOnlyInsideTheQuery(t *testing.T) {
	s := encoding.DefaultSchema()
	var p encoding.Points
	p.Append((base+60)*1000, encoding.FloatValue(math.MaxFloat64))
	p.Append((base+7300)*1000, encoding.FloatValue(math.MaxFloat64))
	all := []series{tagged(s, p, 1, 1), tagged(s, p, 1, 2)}
	_, err := whole(plan("sum"), all)
	var inf *aggregate.InfinityError
	if !errors.As(err, &inf) || !strings.HasPrefix(err.Error(), "Got Infinity: Infinity in this SpanGroup.Iterator(") {
		t.Errorf("got %v, want an *InfinityError in OpenTSDB's words", err)
	}
	late := plan("sum")
	late.Start += 120_000
	if groups, err := whole(late, all); err != nil || groups[0].Points.Len() != 0 {
		t.Errorf("got %v, %v, want no points and no error", groups, err)
	}
}

func TestBadRecordAndPlan(t *testing.T) {
	other := array.NewRecord(arrow.NewSchema(nil, nil), nil, 0)
	if err := New(plan("sum"), nil).Add(scanplan.KeyRange{}, other); err == nil {
		t.Error("a record of another schema: want an error")
	}
	if _, err := New(plan("nope"), nil).Finish(); err == nil || err.Error() != "No such aggregation function: nope" {
		t.Errorf("got %v, want that there is no such function", err)
	}
}
