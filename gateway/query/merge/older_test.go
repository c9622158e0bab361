package merge

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
	"downpour/pushdown/operator/aggregate"
)

// stretchComparisons is the number of answers with a seam that TestStretch compares. It draws
// plans, each with a seam at every hour, until it has so many:
//
//	go test ./gateway/query/merge -run TestStretch -args -stretches 100000
var stretchComparisons = flag.Int("stretches", 3500, "comparisons that TestStretch makes")

// stretchHours is the length of the tests' plans.
const stretchHours = 5

// stretchWorld draws series over stretchHours hours: with points at common times or at times
// of their own, that end early, pause, begin late, or change their type.
func stretchWorld(rng *rand.Rand, s encoding.Schema) (all []series) {
	common := []int64{10_000, 60_000, 300_000, 1_000_000, 3_600_000}[rng.IntN(5)]
	for n := range 1 + rng.IntN(6) {
		var points encoding.Points
		gap, kind, falls := common, rng.IntN(4), max(0, rng.Int64N(2000)-1500)
		ms := int64(base) * 1000
		if rng.IntN(3) == 0 {
			gap, ms = 1+rng.Int64N(2_000_000), ms+rng.Int64N(3_000_000)
		}
		for end := ms + stretchHours*3_600_000; ms < min(end, (base+stretchHours*3600)*1000) &&
			points.Len() < 200; ms += gap {
			switch rng.IntN(40) {
			case 0:
				ms += gap * rng.Int64N(100) // a pause, or a late beginning
			case 1:
				end = ms + 1 // it ends
			}
			if rng.IntN(12) == 0 {
				continue
			}
			if ms >= (base+stretchHours*3600)*1000 {
				break
			}
			value := rng.Int64N(1000) - 50
			if falls > 0 {
				value -= falls * int64(points.Len()) // counters are reset again and again
			}
			switch {
			case kind == 0, kind == 1 && rng.IntN(2) == 0, kind == 3 && ms < (base+3*3600)*1000:
				points.Append(ms, encoding.IntValue(value))
			case rng.IntN(30) == 0:
				points.Append(ms, encoding.FloatValue(math.NaN()))
			default:
				points.Append(ms, encoding.FloatValue(float64(value)+rng.Float64()))
			}
		}
		tags := []uint64{4, uint64(n + 1)}
		for k := uint64(1); k <= 2; k++ {
			if rng.IntN(4) > 0 {
				tags = append(tags, k, uint64(1+rng.IntN(2)))
			}
		}
		one := tagged(s, points, tags...)
		if rng.IntN(5) == 0 {
			one.notes = [][]byte{[]byte("a"), []byte("bc")}
		}
		all = append(all, one)
	}
	return all
}

// stretchPlan draws an untrimmed plan of stretchHours hours whose stretches can be continued.
func stretchPlan(rng *rand.Rand, s encoding.Schema) *scanplan.Plan {
	var d *scanplan.Downsample
	if rng.IntN(3) > 0 {
		d = &scanplan.Downsample{
			Function: []scanplan.Aggregator{"sum", "avg", "last", "count"}[rng.IntN(4)],
			Fill:     append([]scanplan.Fill{scanplan.FillNone}, scanplan.Fills...)[rng.IntN(1+len(scanplan.Fills))],
			Interval: []int64{60_000, 300_000, 900_000, 3_600_000}[rng.IntN(4)],
		}
	}
	p := newPlan(s, uid(1), base*1000, (base+stretchHours*3600-1)*1000-1, d)
	between, ok := p.Between(base, base+stretchHours*3600)
	if !ok {
		panic("the plan has no whole hours")
	}
	p = &between
	names := aggregate.Names()
	p.Aggregator = scanplan.Aggregator(names[rng.IntN(len(names))])
	if rng.IntN(2) == 0 {
		p.Rate = &scanplan.Rate{Counter: rng.IntN(2) == 0, CounterMax: 1000, DropResets: rng.IntN(2) == 0}
	}
	if rng.IntN(4) == 0 {
		p.Fix = scanplan.Fixes(rng.IntN(8))
	}
	for k := uint64(1); k <= 2; k++ {
		if rng.IntN(3) == 0 {
			p.GroupBy = append(p.GroupBy, uid(k))
		}
	}
	return p
}

// continued answers a plan by a stretch up to the seam, in s, and the rows after it.
func continued(p *scanplan.Plan, all []series, seam int64, pick choose) ([]Group, error) {
	older, ok := p.Between(p.From, seam)
	newer, _ := p.Between(seam, p.To)
	if !ok || !CanContinue(p) {
		return nil, fmt.Errorf("the plan cannot be continued")
	}

	m, err := added(&older, all, pick)
	if err != nil {
		return nil, err
	}
	st, err := m.FinishOlder()
	if err != nil {
		return nil, err
	}

	from := st.ContinuedPlan(&newer)
	if from.Start != from.From*1000 || from.From > seam || from.To != newer.To || from.End != newer.End {
		return nil, fmt.Errorf("%s continues %s", from, &older)
	}
	m = New(from, nil)
	if err := m.Continue(st); err != nil {
		return nil, err
	}
	// The harness has annotations in the first hour of a plan: here that of the stretch.
	later := slices.Clone(all)
	for i := range later {
		later[i].notes = nil
	}
	if err := addTo(m, &newer, later, pick); err != nil {
		return nil, err
	}
	return m.Finish()
}

// Wherever a plan is cut into a stretch and newer rows, the groups are those of the plan that
// is not cut, to the last bit.
func TestStretch(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))

	worlds, same, seams := 0, 0, 0
	for ; same < *stretchComparisons; worlds++ {
		s := encoding.DefaultSchema()
		s.SaltWidth, s.SaltBuckets = rng.IntN(2), 3
		all, p := stretchWorld(rng, s), stretchPlan(rng, s)
		want, wantErr := whole(p, all)

		for hour := int64(1); hour < stretchHours; hour++ {
			got, err := continued(p, all, base+hour*3600, rng.IntN)
			if errors.Is(err, ErrOlderChanged) {
				seams++
				continue
			}
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("seam after %d hours of %s: error %v, want %v", hour, p, err, wantErr)
			}
			if diff := cmp.Diff(text(want), text(got)); diff != "" {
				t.Fatalf("seam after %d hours of %s: want -, got +: %s", hour, p, diff)
			}
			same++
		}
	}
	if same < worlds || seams < worlds/10 {
		t.Errorf("%d comparisons and %d seams of %d plans, want at least %d and %d", same, seams, worlds, worlds,
			worlds/10)
	}
	t.Logf("%d comparisons of %d plans; %d seams that newer rows change", same, worlds, seams)
}

// A series that begins after the seam changes the points before it if it makes floats of integers.
func TestStretch_newMember(t *testing.T) {
	s := encoding.DefaultSchema()
	for _, c := range []struct {
		first   encoding.Value
		changes bool
	}{
		{encoding.IntValue(7), false},
		{encoding.FloatValue(7), true},
	} {
		var late encoding.Points
		late.Append((base+7300)*1000, c.first)
		p := newPlan(s, uid(1), base*1000, (base+3*3600-1)*1000, nil)
		p.Aggregator = "sum"
		all := []series{tagged(s, ints(0, 1, 3700, 2, 7300, 3), 1, 1), tagged(s, late, 1, 2)}
		_, err := continued(p, all, base+7200, func(int) int { return 0 })
		if changed := errors.Is(err, ErrOlderChanged); changed != c.changes || !changed && err != nil {
			t.Errorf("%v: got %v, want a change: %v", c.first, err, c.changes)
		}
	}
}

// What a stretch takes stays counted when its merger is freed, and no less than it says.
func TestStretch_memory(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	s := encoding.DefaultSchema()
	for range 50 {
		all, p := stretchWorld(rng, s), stretchPlan(rng, s)
		held := int64(0)
		m := New(p, nil)
		m.SetBounds(Bounds{
			Reserve: func(n int64) error { held += n; return nil },
			Release: func(n int64) { held -= n },
		})
		if err := addTo(m, p, all, rng.IntN); err != nil {
			t.Fatal(err)
		}
		st, err := m.FinishOlder()
		if err != nil {
			t.Fatal(err)
		}
		m.Free()
		if held < st.Bytes() || st.Bytes() < int64(len(st.members))*olderMemberBytes {
			t.Fatalf("%d bytes are counted for a stretch of %d members that takes %d", held, len(st.members),
				st.Bytes())
		}
	}
}

// Newer points change final ones where they are of a series that has ended, or make its group another one than it was.
func TestOlderHours_changedBy(t *testing.T) {
	st := &OlderHours{groups: map[string]olderGroup{
		"integers": {members: true, integers: true}, "floats": {members: true}, "empty": {},
	}}
	ended, live, silent := &OlderMember{columns: true, ended: true}, &OlderMember{columns: true}, &OlderMember{}
	integer, float, none := FirstPoint{Any: true}, FirstPoint{Any: true, Float: true}, FirstPoint{}
	plain, fills, bogus := Arithmetic{}, Arithmetic{Fills: true}, Arithmetic{BogusStart: true}
	for _, c := range []struct {
		group string
		tail  *OlderMember
		first FirstPoint
		how   Arithmetic
		want  bool
	}{
		{"floats", ended, integer, plain, true}, {"floats", ended, none, plain, false},
		{"floats", live, float, plain, false}, {"integers", live, float, fills, false},
		{"floats", nil, none, fills, true}, {"empty", nil, none, fills, true},
		{"integers", nil, none, plain, false}, {"integers", nil, none, bogus, false},
		{"integers", nil, integer, bogus, true}, {"empty", nil, integer, bogus, false},
		{"empty", silent, integer, bogus, true},
		{"integers", nil, integer, plain, false}, {"integers", nil, float, plain, true},
		{"integers", silent, float, plain, true}, {"floats", nil, float, plain, false},
		{"empty", nil, float, plain, false},
	} {
		if got := st.ChangedBy(c.group, c.tail, c.first, c.how); got != c.want {
			t.Errorf("%s, tail %+v, first point %+v, %+v: got %v, want %v", c.group, c.tail, c.first, c.how, got,
				c.want)
		}
	}
}

// A member says when its last two values are, and all that it has counts as memory.
func TestOlderHours_members(t *testing.T) {
	s := encoding.DefaultSchema()
	p := newPlan(s, uid(1), base*1000, (base+3600)*1000-1, nil)
	p.Aggregator = "sum"
	m, err := added(p, []series{tagged(s, ints(0, 1), 1, 1), tagged(s, ints(0, 1, 60, 2, 120, 3), 1, 2)},
		func(int) int { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	st, err := m.FinishOlder()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][2]int64{{base * 1000, -1}, {(base + 120) * 1000, (base + 60) * 1000}} {
		if got := st.Members()[i].Last; got != want {
			t.Errorf("member %d has its last values at %v, want %v", i, got, want)
		}
	}

	one := OlderMember{Span: []byte("ab"), Time: make([]int64, 3), Raw: ints(0, 1), notes: [][]byte{[]byte("abc")}}
	if got, want := st.add(one), int64(olderMemberBytes+2+3*bucketBytes+pointBytes+sliceBytes+3); got != want {
		t.Errorf("a member takes %d bytes, want %d", got, want)
	}
}

// The first new point of a span is in the first part that has one, whatever is added first, and never in the tail.
func TestFirstNewPoint(t *testing.T) {
	tail, b, a := &segment{raw: ints(0, 1)}, &segment{part: "b", raw: ints(0, 1)}, &segment{part: "a", time: []int64{1}}
	again, note := &segment{part: "a", raw: ints(0, 1)}, &segment{part: "a"}
	for i, c := range []struct {
		segments []*segment
		want     *segment
	}{
		{nil, nil}, {[]*segment{tail, note}, nil}, {[]*segment{tail, b}, b}, {[]*segment{tail, b, note, a}, a},
		{[]*segment{a, b}, a}, {[]*segment{a, again}, a},
	} {
		var sp seriesData
		for _, s := range c.segments {
			s.next = nil
			sp.addSegment(s)
		}
		if got := sp.firstNewPoint(); got != c.want {
			t.Errorf("case %d: got %+v, want %+v", i, got, c.want)
		}
	}
}
