package aggregate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
)

// sparse makes members with points at some of 200 times: all integers, or integers and doubles
// mixed.
func sparse(r *rand.Rand, allInts bool) (members []Series) {
	for range 1 + r.IntN(5) {
		var p encoding.Points
		for t := range int64(200) {
			if r.IntN(4) > 0 {
				continue
			}
			v := encoding.IntValue(r.Int64N(100) - 50)
			if !allInts && r.IntN(2) == 0 {
				v = encoding.FloatValue(float64(r.IntN(100)) / 4)
			}
			p.Append(1000*t, v)
		}
		members = append(members, Series{Time: p.Time, Bits: p.Bits, Float: p.Float})
	}
	return members
}

// own are the values of the members that have a point at a time, in span order.
func own(members []Series, t int64) (values []encoding.Value) {
	for _, s := range members {
		if i, ok := slices.BinarySearch(s.Time, t); ok {
			values = append(values, encoding.Value{Float: s.Float[i], Bits: s.Bits[i]})
		}
	}
	return values
}

func fixed(t *testing.T, name scanplan.Aggregator, fix scanplan.Fixes, members []Series) (out encoding.Points) {
	t.Helper()
	f, ok := Lookup(name)
	if !ok {
		t.Fatal(name)
	}
	var g Group
	if err := g.Aggregate(f, Query{From: 0, To: 3600, Start: 0, End: 3600_000, Fix: fix}, members, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// With FixGaps, count, first and last take only the members that have a point at the time. Their
// values keep their types, and the other functions do not change.
func TestFixGaps(t *testing.T) {
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 60 {
		members := sparse(r, r.IntN(2) == 0)
		for _, name := range []scanplan.Aggregator{"count", "first", "last", "sum", "zimsum", "mimmin", "avg"} {
			before, after := fixed(t, name, 0, members), fixed(t, name, scanplan.FixGaps, members)
			if diff := cmp.Diff(before.Time, after.Time); diff != "" {
				t.Fatalf("seed %d: %s: times %s", seed, name, diff)
			}
			for i, at := range after.Time {
				_, got := after.At(i)
				_, was := before.At(i)
				values := own(members, at)
				want := was
				switch name {
				case "count":
					want = encoding.IntValue(int64(len(values)))
				case "first":
					want = values[0]
				case "last":
					want = values[len(values)-1]
				}
				if got.Double() != want.Double() || got.Float != was.Float {
					t.Fatalf("seed %d: %s at %d: %v, want %v, before %v", seed, name, at, got, want, was)
				}
			}
		}
	}
}

// With FixIntegers the result is that of the same points as doubles.
func TestFixIntegers(t *testing.T) {
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 40 {
		members := sparse(r, r.IntN(2) == 0)
		doubles := make([]Series, len(members))
		for i, s := range members {
			doubles[i].Time = s.Time
			for k := range s.Time {
				doubles[i].Value = append(doubles[i].Value, encoding.Value{Float: s.Float[k], Bits: s.Bits[k]}.Double())
			}
		}
		for _, name := range Names() {
			// none takes only one member, and products grow beyond all bounds.
			if name == "none" || name == "mult" {
				continue
			}
			got, want := fixed(t, scanplan.Aggregator(name), scanplan.FixIntegers, members),
				fixed(t, scanplan.Aggregator(name), 0, doubles)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d: %s: %s", seed, name, diff)
			}
		}
	}
	wide := []Series{{Time: []int64{1000}, Bits: []uint64{math.MaxInt64}, Float: []bool{false}},
		{Time: []int64{1000}, Bits: []uint64{1}, Float: []bool{false}}}
	if _, v := ptr(fixed(t, "sum", scanplan.FixIntegers, wide)).At(0); v.Double() != 1<<63 {
		t.Errorf("got %v, want 2^63: the sum must not wrap around", v.Double())
	}
}

func ptr(p encoding.Points) *encoding.Points { return &p }

// With FixRateStart a member counts from its first rate on, even if that is its only one.
func TestFixRateStart(t *testing.T) {
	members := []Series{
		{Time: []int64{2000, 3000}, Value: []float64{1, 2}},
		{Time: []int64{3000}, Value: []float64{10}},
		{},
	}
	f, _ := Lookup("sum")
	var g Group
	var out encoding.Points
	q := Query{From: 0, To: 3600, Start: 0, End: 3600_000, Rate: true, Fix: scanplan.FixRateStart}
	if err := g.Aggregate(f, q, members, &out); err != nil {
		t.Fatal(err)
	}
	var want encoding.Points
	want.Append(2000, encoding.FloatValue(1))
	want.Append(3000, encoding.FloatValue(12))
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
}
