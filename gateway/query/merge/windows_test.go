package merge

import (
	"context"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/operator/window"
)

// Parts that are cut anywhere give each series the values that its points have in one piece: windows inside a part
// are computed there, and others here. So it is where the plan groups series. Parts ship fewer points than they read
// where windows are shorter than they.
//
//fault:window-edge-not-shipped > s.tail => > s.tail+1000
//fault:window-crossing-not-counted AddSeries => AddGroup
//fault:window-group-with-salt make([]byte, s.SaltWidth) => span[:s.SaltWidth]
func TestWindows_cut(t *testing.T) {
	r := seedtest.Rand(t)
	const hours = 5
	var read, shipped int64
	for range 300 {
		s := encoding.DefaultSchema()
		if r.IntN(3) == 0 {
			s.SaltWidth, s.SaltBuckets = 1, 2
		}
		metric := operatortest.UID(1)
		p := operatortest.Plan(s, metric, base, base+hours*3600)
		p.Aggregator = scanplan.None
		p.Window = &scanplan.Window{
			Function: []string{"rate", "sum_over_time", "count_over_time", "first_over_time", window.Last}[r.IntN(5)],
			Range:    []int64{1, 1000, 61_003, 300_000, 3600_000, 2 * 3600_000}[r.IntN(6)],
			First:    base*1000 + r.Int64N(3*3600_000) - 600_000,
			Step:     []int64{500, 10_000, 300_000, 3700_000}[r.IntN(4)],
		}
		if r.IntN(2) == 0 {
			p.Window.First -= p.Window.First % p.Window.Step // so that a window begins where a part does
		}
		p.Window.Last = p.Window.First + p.Window.Step*r.Int64N(1000)

		var st operatortest.Store
		st.BlockRows = r.IntN(4)
		var all []series
		for tag := 1; tag < 5; tag++ {
			one := series{metric: metric, points: drawWindowPoints(r, hours)}
			tags := []encoding.TagPair{operatortest.Tag(1, tag)}
			if r.IntN(3) > 0 {
				tags = append(tags, operatortest.Tag(2, 1+r.IntN(2)))
			}
			one.tags = s.AppendTags(nil, tags)
			all = append(all, one)
			st.Load(s, metric, operatortest.Series{Tags: tags, Points: one.points})
		}
		p.Window.Groups = drawGroups(r)

		m := New(&p, nil)
		parts := cut(&p, all, r.IntN)
		r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		for _, part := range parts {
			stats := addWindowPart(t, m, &st, &p, part)
			read, shipped = read+stats.Points*17, shipped+stats.ShippedBytes
		}
		groups, err := m.Finish()
		if err != nil {
			t.Fatal(err)
		}
		m.Free()
		if d := cmp.Diff(wantWindows(t, &p, all), windowValues(groups)); d != "" {
			t.Fatalf("%s of %d parts: want -, got +: %s", &p, len(parts), d)
		}
	}
	if shipped > read/2 {
		t.Errorf("parts shipped %d bytes of %d that they read, want half of it at most", shipped, read)
	}
}

// Windows of a function that nobody knows, and a group of several series, are refused.
func TestWindows_refuses(t *testing.T) {
	p := operatortest.Plan(encoding.DefaultSchema(), uid(1), base, base+3600)
	p.Aggregator, p.Window = scanplan.None, &scanplan.Window{Function: "nope", Range: 1000, Step: 1000,
		First: p.Start, Last: p.End}
	if _, err := New(&p, nil).Finish(); err == nil || !strings.Contains(err.Error(), "nope") {
		t.Errorf("got %v, want that there is no such function", err)
	}

	p.Aggregator, p.Window.Function = "sum", "rate"
	var out encoding.Points
	w, err := newWindows(New(&p, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.points(make([]aggregate.Series, 2), &out); err == nil || !strings.Contains(err.Error(), "2 series") {
		t.Errorf("got %v, want that there are two series", err)
	}

	for _, c := range []struct {
		segments []*segment
		ok       bool
	}{
		{[]*segment{{time: []int64{5, 6}, value: []float64{1, 2}}, {time: []int64{7}, value: []float64{3}}}, true},
		{[]*segment{{time: []int64{5, 5}, value: []float64{1, 2}}}, false},
		{[]*segment{{time: []int64{5, 7, 6}, value: []float64{1, 2, 3}}}, false},
		{[]*segment{{time: []int64{5, 6}, value: []float64{1, 2}}, {time: []int64{6}, value: []float64{3}}}, false},
		{[]*segment{{raw: ints(0, 1, 60, 2)}, {raw: ints(60, 2)}}, false},
	} {
		if _, err := w.ofSeries(nil, c.segments); (err == nil) != c.ok {
			t.Errorf("%+v: got %v, want an error: %v", c.segments, err, !c.ok)
		}
	}

	// A series may take its values as they have come, those of its points, and two at each time. A group takes it once.
	segments := []*segment{{time: make([]int64, 3)}, {raw: ints(0, 1, 60, 2)}}
	if got, want := w.bytesNeeded(segments), int64(5+2*p.Window.Len())*bucketBytes; got != want {
		t.Errorf("a series takes %d bytes, want %d", got, want)
	}
	if err := w.begin(); err != nil || w.merger.used != 0 {
		t.Errorf("%v, %d bytes are counted where series are not grouped", err, w.merger.used)
	}
	p.Window.Groups = &scanplan.WindowGroups{Function: window.Max}
	want := int64(2*p.Window.Len()) * bucketBytes
	if err := w.begin(); err != nil || w.merger.used != want || w.bytesNeeded(segments) != 0 {
		t.Errorf("%v, a group counts as %d bytes, its series as %d", err, w.merger.used, w.bytesNeeded(segments))
	}
}

// addWindowPart executes a part, and adds its batches.
func addWindowPart(t *testing.T, m *Merger, st *operatortest.Store, p *scanplan.Plan,
	part scanplan.KeyRange) operator.Stats {
	t.Helper()
	op, err := operator.New(st, &scanplan.Part{Plan: *p, Range: part}, operator.Options{FlushBytes: 512})
	if err != nil {
		t.Fatal(err)
	}
	op = operatortest.CheckedWindows(op, t.Errorf)
	defer op.Close()
	for {
		rec, err := op.Next(context.Background())
		if err == io.EOF {
			return op.Stats()
		}
		if err == nil {
			err = m.Add(part, rec)
			rec.Release()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// drawWindowPoints draws a counter with gaps, which begins and ends at any time.
func drawWindowPoints(r *rand.Rand, hours int64) (p encoding.Points) {
	step := []int64{1000, 10_000, 60_000, 7_003, 1200_000}[r.IntN(5)]
	value := 0.0
	for at := base*1000 + r.Int64N(2*3600_000); at < (base+hours*3600)*1000; at += step {
		if value += float64(r.IntN(9)); r.IntN(30) == 0 {
			value = 0
		}
		if r.IntN(2) == 0 {
			p.Append(at, encoding.IntValue(int64(value)))
		} else {
			p.Append(at, encoding.FloatValue(value+0.1))
		}
		if r.IntN(100) == 0 {
			at += r.Int64N(2 * 3600_000)
		}
	}
	return p
}

// wantWindows computes the values of all points of each series at once.
func wantWindows(t *testing.T, p *scanplan.Plan, all []series) (want [][]float64) {
	t.Helper()
	for _, s := range all {
		c, err := window.New(p.Window)
		if err != nil {
			t.Fatal(err)
		}
		c.AddPoints(s.points)
		times, values := c.Append(nil, nil, 0, p.Window.Len())
		var one []float64
		for i := range times {
			one = append(one, float64(times[i]), values[i])
		}
		if one != nil || p.Window.Groups != nil {
			want = append(want, one)
		}
	}
	if p.Window.Groups != nil {
		want = groupNaively(p, all, want)
	}
	slices.SortFunc(want, slices.Compare[[]float64])
	return want
}

// drawGroups draws groups of the tag keys 1 and 2, or none.
func drawGroups(r *rand.Rand) *scanplan.WindowGroups {
	if r.IntN(2) == 0 {
		return nil
	}
	g := &scanplan.WindowGroups{
		Function: []string{window.Min, window.Max, window.Count, window.Any}[r.IntN(4)], Without: r.IntN(2) == 0,
	}
	for key := range 3 {
		if r.IntN(2) == 0 {
			g.Keys = append(g.Keys, operatortest.UID(1+key))
		}
	}
	return g
}

// groupNaively returns what groups have of the values of all series, each a list of times and values.
func groupNaively(p *scanplan.Plan, all []series, values [][]float64) (groups [][]float64) {
	g, at := p.Window.Groups, map[string]map[float64][]float64{}
	for i, s := range all {
		key := ""
		for _, t := range p.Schema.AppendPairs(nil, s.tags) {
			named := slices.ContainsFunc(g.Keys, func(k encoding.UID) bool { return string(k) == string(t.K) })
			if named != g.Without {
				key += string(t.K) + string(t.V)
			}
		}
		if at[key] == nil {
			at[key] = map[float64][]float64{}
		}
		for k := 0; k < len(values[i]); k += 2 {
			at[key][values[i][k]] = append(at[key][values[i][k]], values[i][k+1])
		}
	}
	for _, times := range at {
		var one []float64
		for _, t := range slices.Sorted(maps.Keys(times)) {
			one = append(one, t, map[string]float64{
				window.Min: slices.Min(times[t]), window.Max: slices.Max(times[t]),
				window.Count: float64(len(times[t])), window.Any: 1,
			}[g.Function])
		}
		if one != nil {
			groups = append(groups, one)
		}
	}
	return groups
}

func windowValues(groups []Group) (got [][]float64) {
	for _, g := range groups {
		var one []float64
		for i := range g.Points.Len() {
			one = append(one, float64(g.Points.Time[i]), math.Float64frombits(g.Points.Bits[i]))
		}
		if one != nil {
			got = append(got, one)
		}
	}
	slices.SortFunc(got, slices.Compare[[]float64])
	return got
}
