package aggregate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate/guardtest"
)

// bits is a point as text that shows its type and every bit.
func bits(ms int64, v encoding.Value) string {
	if v.Float {
		if d := v.Double(); d != d {
			return fmt.Sprintf("%d NaN", ms)
		}
		return fmt.Sprintf("%d %v (%x)", ms, v.Double(), v.Bits)
	}
	return fmt.Sprintf("%d %d", ms, v.Int())
}

func diff(got, want encoding.Points) string {
	for i := 0; i < max(got.Len(), want.Len()); i++ {
		g, w := "nothing", "nothing"
		if i < got.Len() {
			g = bits(got.At(i))
		}
		if i < want.Len() {
			w = bits(want.At(i))
		}
		if g != w {
			return fmt.Sprintf("point %d: got %s, want %s", i, g, w)
		}
	}
	return ""
}

// drawDouble draws from the doubles on which the rules differ.
func drawDouble(t *rapid.T) float64 {
	return rapid.OneOf(
		rapid.Float64Range(-1000, 1000),
		rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), 1e308, -1e308, math.MaxFloat64,
			-math.MaxFloat64, 5e-324, 1 << 53, math.Inf(1), math.Inf(-1)}),
	).Draw(t, "double")
}

func drawLong(t *rapid.T) int64 {
	return rapid.OneOf(
		rapid.Int64Range(-100, 100),
		rapid.SampledFrom([]int64{math.MaxInt64, math.MinInt64, 1<<53 + 1, 0, -1}),
	).Draw(t, "long")
}

// drawSeries draws a member: gridded or not, of one type or mixed, perhaps empty.
func drawSeries(t *rapid.T, rate bool) (p encoding.Points) {
	kind := rapid.SampledFrom([]string{"int", "double", "mixed"}).Draw(t, "kind")
	if rate {
		kind = "double"
	}
	step := rapid.SampledFrom([]int64{1, 250, 1000, 30_000}).Draw(t, "step")
	gaps := rapid.Bool().Draw(t, "gaps")
	n := rapid.IntRange(0, 12).Draw(t, "n")
	ms := rapid.Int64Range(0, 40).Draw(t, "begin") * step
	for range n {
		if gaps {
			ms += step * rapid.Int64Range(0, 3).Draw(t, "gap")
		}
		if kind == "double" || kind == "mixed" && rapid.Bool().Draw(t, "float") {
			p.Append(3_600_000+ms, encoding.FloatValue(drawDouble(t)))
		} else {
			p.Append(3_600_000+ms, encoding.IntValue(drawLong(t)))
		}
		ms += step
	}
	return p
}

func drawQuery(t *rapid.T) Query {
	q := Query{From: 3600, To: 7200, Start: 0, End: math.MaxInt64, Rate: rapid.Bool().Draw(t, "rate")}
	if rapid.Bool().Draw(t, "trimmed") {
		q.Start = 3_600_000 + rapid.Int64Range(0, 60_000).Draw(t, "start")
		q.End = q.Start + rapid.Int64Range(0, 60_000).Draw(t, "length")
	}
	q.From += rapid.SampledFrom([]int64{0, 0, 5}).Draw(t, "from")
	return q
}

// seriesOf returns points as a member of a group: as doubles in Value if asValues is set, else as
// bits with their types.
func seriesOf(p encoding.Points, asValues bool) Series {
	if !asValues {
		return Series{Time: p.Time, Bits: append([]uint64{}, p.Bits...), Float: p.Float}
	}
	return Series{Time: p.Time, Value: p.AppendDoubles([]float64{})}
}

func TestGroupEqualsNaive(t *testing.T) {
	var g Group // one for all groups, to notice what a group leaves in its scratch memory
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuery(t)
		f := &table[rapid.IntRange(0, len(table)-1).Draw(t, "function")]
		most := 6
		if f.Name == "none" {
			most = 1
		}
		points := make([]encoding.Points, rapid.IntRange(0, most).Draw(t, "members"))
		members := make([]Series, len(points))
		for i := range points {
			points[i] = drawSeries(t, q.Rate)
			if i > 0 && rapid.IntRange(0, 3).Draw(t, "same grid") == 0 {
				points[i].Time = points[i-1].Time[:min(points[i].Len(), points[i-1].Len())]
				points[i] = points[i].Slice(0, len(points[i].Time))
			}
			// Next to members with integers, too, one may have doubles only.
			doubles := i%2 == 0 && !slices.Contains(points[i].Float, false)
			members[i] = seriesOf(points[i], q.Rate || doubles)
		}
		want, infinite := naiveGroup(string(f.Name), f.Interpolation, q, points)
		var got encoding.Points
		err := g.Aggregate(f, q, members, &got)
		var inf *InfinityError
		if errors.As(err, &inf) != (infinite != 0) || inf != nil && inf.Time != infinite {
			t.Fatalf("%s: error %v, want infinity at %d", f.Name, err, infinite)
		}
		if d := diff(got, want); err == nil && d != "" {
			t.Fatalf("%s %+v: %s", f.Name, q, d)
		}
	})
}

// A line begins at its first point and ends at its last.
//
//fault:line-begun-at-the-wrong-end y0 => y1
func TestLerpDouble(t *testing.T) {
	got := make([]float64, 3)
	lerpDouble(got, []int64{1000, 3000, 5000}, 1000, 5000, 1, 4)
	if want := []float64{1, 2.5, 4}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestManyBlocks: every function gives what naiveGroup gives, also over more timestamps than a
// block has.
func TestManyBlocks(t *testing.T) {
	points := make([]encoding.Points, 3)
	for i := range points {
		ms := int64(3_600_000 + 1000*i)
		for k := range 3*blockTimes + 5 {
			ms += int64(100 + (k*k+i*7)%900)
			v := encoding.IntValue(int64(k * (i + 1) % 1000))
			if i == 2 && k > blockTimes && k < blockTimes+50 {
				v = encoding.FloatValue(float64(k) / 3)
			}
			points[i].Append(ms, v)
		}
	}
	q := Query{From: 3600, To: 1 << 40, Start: 0, End: math.MaxInt64}
	for i := range table {
		f := &table[i]
		members := points
		if f.Name == "none" {
			members = points[2:]
		}
		var in []Series
		for _, p := range members {
			in = append(in, seriesOf(p, false))
		}
		want, _ := naiveGroup(string(f.Name), f.Interpolation, q, members)
		var got encoding.Points
		var g Group
		if err := g.Aggregate(f, q, in, &got); err != nil && f.Name != "mult" {
			t.Errorf("%s: %v", f.Name, err)
		} else if d := diff(got, want); d != "" {
			t.Errorf("%s: %s", f.Name, d)
		}
	}
}

// A group that has had such members before reserves memory for the result alone, which takes no
// more: the union of times has the memory of the unions before.
func TestGroup_memory(t *testing.T) {
	members := make([]Series, 6)
	for i := range members {
		for k := range int64(1000) { // other times for each, so that their union is made in steps
			members[i].Time = append(members[i].Time, 10*k+int64(i))
			members[i].Value = append(members[i].Value, 1)
		}
	}
	f, _ := Lookup("sum")
	guard := &guardtest.Guard{}
	g := Group{Guard: guard}
	var out encoding.Points
	for range 5 {
		out, guard.Reserved = encoding.Points{}, 0
		if err := g.Aggregate(f, Query{To: 7200, End: math.MaxInt64}, members, &out); err != nil {
			t.Fatal(err)
		}
	}
	n := out.Len()
	if guard.Reserved != int64(n)*pointBytes {
		t.Errorf("reserved %d bytes for %d points, want %d each", guard.Reserved, n, pointBytes)
	}
	got := []int{cap(out.Time), cap(out.Bits), cap(out.Float)}
	want := []int{cap(slices.Grow([]int64(nil), n)), cap(slices.Grow([]uint64(nil), n)),
		cap(slices.Grow([]bool(nil), n))}
	if !slices.Equal(got, want) {
		t.Errorf("columns of %d points have room for %v, want %v", n, got, want)
	}
}

// Of integers next to doubles each member gets a column of the other type, and each time a type: their memory is
// reserved, too.
func TestGroup_memoryOfBoth(t *testing.T) {
	const n = 1000
	members := make([]Series, 3)
	for i := range members {
		for k := range int64(n) {
			members[i].Time = append(members[i].Time, 10*k)
		}
	}
	members[0].Bits, members[0].Float = make([]uint64, n), make([]bool, n)
	members[1].Value, members[2].Value = make([]float64, n), make([]float64, n)
	f, _ := Lookup("sum")
	guard := &guardtest.Guard{}
	var out encoding.Points
	if err := (&Group{Guard: guard}).Aggregate(f, Query{To: 10, End: math.MaxInt64}, members, &out); err != nil {
		t.Fatal(err)
	}
	if want := int64(n*pointBytes + n + 2*8*n + 8*n); out.Len() != n || guard.Reserved != want {
		t.Errorf("%d bytes are reserved for %d points, want %d", guard.Reserved, out.Len(), want)
	}
}

// Whichever call of the guard fails, Aggregate ends with its error: for members of one type, of both,
// at equal and at other times. Not many members come between two checks.
func TestGroup_guard(t *testing.T) {
	const members = 3*checkMembers + 1
	same, both := make([]Series, members), make([]Series, members)
	for i := range members {
		same[i] = Series{Time: []int64{0, 1000}, Value: []float64{1, 2}}
		both[i] = Series{Time: []int64{int64(i), 500}, Bits: []uint64{1, 2}, Float: []bool{i%2 == 0, false}}
	}
	doubles := slices.Clone(both)
	for i := range doubles {
		doubles[i].Float = []bool{true, true}
	}
	f, _ := Lookup("sum")
	aggregate := func(in []Series) *guardtest.Guard {
		return guardtest.EachCall(t, func(guard *guardtest.Guard) error {
			g := Group{Guard: guard}
			var out encoding.Points
			return g.Aggregate(f, Query{To: 7200, End: math.MaxInt64}, in, &out)
		})
	}
	// Where both types are the type of each time takes a byte, and each value is kept as a double, too.
	const times, values = members + 1, 2 * members
	if more := aggregate(both).Reserved - aggregate(doubles).Reserved; more != times+8*values {
		t.Errorf("members of both types reserve %d bytes more, want %d", more, times+8*values)
	}
	if n := aggregate(same).Checks; n < members/checkMembers || n > members/4 {
		t.Errorf("%d checks for %d members, want one for %d", n, members, checkMembers)
	}
}

// TestScalarEqualsNaive: a function that gets values in two pieces gives after each of them what
// naiveDoubles gives.
func TestScalarEqualsNaive(t *testing.T) {
	var s State
	rapid.Check(t, func(t *rapid.T) {
		values := make([]float64, rapid.IntRange(1, 80).Draw(t, "n"))
		for i := range values {
			values[i] = drawDouble(t)
		}
		cut := rapid.IntRange(0, len(values)).Draw(t, "cut")
		for i := range table {
			f := &table[i]
			f.Reset(&s)
			for _, piece := range [][2]int{{0, cut}, {cut, len(values)}} {
				if f.Update(&s, values[piece[0]:piece[1]]); piece[1] == 0 {
					continue
				}
				got, want := f.Value(&s), naiveDoubles(string(f.Name), values[:piece[1]])
				if math.Float64bits(got) != math.Float64bits(want) && (got == got || want == want) {
					t.Fatalf("%s of %v: got %v, want %v", f.Name, values[:piece[1]], got, want)
				}
			}
		}
	})
}

// TestWorkedExamples: of two series of integers, 30 s apart, functions give the values that a
// real OpenTSDB answers.
func TestWorkedExamples(t *testing.T) {
	const base = 1_600_000_000_000
	a := points(base, 0, 10, 60, 20, 120, 30)
	b := points(base, 30, 1, 90, 4)
	f := func(name scanplan.Aggregator, want ...int64) {
		t.Helper()
		got := worked(t, name, false, a, b)
		var w encoding.Points
		for i, v := range want {
			w.Append(base+30_000*int64(i), encoding.IntValue(v))
		}
		if d := diff(got, w); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	f("sum", 10, 16, 22, 29, 30)
	f("avg", 10, 8, 11, 14, 30)
	f("max", 10, 15, 20, 25, 30)
	f("mimmax", 10, 1, 20, 4, 30)
	f("mimmin", 10, 1, 20, 4, 30)
	f("zimsum", 10, 1, 20, 4, 30)
	f("pfsum", 10, 11, 21, 24, 30)
	f("count", 1, 2, 2, 2, 1)
	f("first", 10, 0, 20, 0, 30)

	// The value assumed in gaps is beyond all values, negative ones too.
	c, d := points(base, 0, -10, 60, -20, 120, -30), points(base, 30, -1, 90, -4)
	a, b, c, d = c, d, a, b
	f("mimmax", -10, -1, -20, -4, -30)
	f("mimmin", -10, -1, -20, -4, -30)
	a, b = c, d

	b.Bits[1], b.Float[1] = math.Float64bits(4), true
	got := worked(t, "sum", false, a, b)
	want := encoding.Points{}
	want.Append(base, encoding.IntValue(10))
	for i, v := range []float64{16, 22.5, 29} {
		want.Append(base+30_000*int64(i+1), encoding.FloatValue(v))
	}
	want.Append(base+120_000, encoding.IntValue(30))
	if d := diff(got, want); d != "" {
		t.Errorf("sum with a float: %s", d)
	}
}

// points makes integers from offsets in s and values.
func points(base int64, pairs ...int64) (p encoding.Points) {
	for i := 0; i < len(pairs); i += 2 {
		p.Append(base+1000*pairs[i], encoding.IntValue(pairs[i+1]))
	}
	return p
}

func worked(t *testing.T, name scanplan.Aggregator, rate bool, members ...encoding.Points) (out encoding.Points) {
	t.Helper()
	fn, ok := Lookup(name)
	if !ok {
		t.Fatalf("no function %s", name)
	}
	var in []Series
	for _, p := range members {
		in = append(in, seriesOf(p, rate))
	}
	var g Group
	q := Query{From: 1_599_998_400, To: 1_600_005_600, Start: 1_600_000_000_000, End: 1_600_000_200_000, Rate: rate}
	if err := g.Aggregate(fn, q, in, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTable(t *testing.T) {
	if len(Names()) != 35 || len(byName) != 35 {
		t.Errorf("%d names, %d functions, want 35 of each", len(Names()), len(byName))
	}
	if !slices.IsSorted(Names()) {
		t.Errorf("names %q, want them sorted", Names())
	}
	if _, ok := Lookup("SUM"); ok {
		t.Error("names are case-sensitive, yet SUM was found")
	}
}

func TestNoneOfTwoMembers(t *testing.T) {
	fn, _ := Lookup("none")
	p := points(0, 4000, 1)
	var g Group
	var out encoding.Points
	err := g.Aggregate(fn, Query{To: 7200, End: 1 << 40}, []Series{seriesOf(p, false), seriesOf(p, false)}, &out)
	if err == nil {
		t.Error("two members in a group of none, want an error")
	}
}
