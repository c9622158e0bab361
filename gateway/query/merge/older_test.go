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

	m = New(st.ContinuedPlan(&newer), nil)
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
