package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/operator/operatortest"
)

// cutting is one random table, plan and set of region borders.
type cutting struct {
	store  *operatortest.Store
	plan   scanplan.Plan
	series int
	size   float64   // largest absolute value
	hours  []float64 // bytes of each hour that the executor expects, nil: unknown
}

// However a plan is cut into parts, and wherever they are executed, the answer is that of one
// part. It has the same bits with per-series aggregation, and with partial aggregation unless
// rounding is allowed; then it agrees to 1e-12. Where partial aggregates cannot give that answer,
// the merge fails with ErrOrder; so it does where those of aligned parts cannot, of plans without
// buckets. Hours that are read side by side always have the same bits.
//
//fault:edge-dropped !g.ends => false
func TestCutting_oneAnswer(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	var values, partials, refused, proven, sized, side int
	for i := range 1200 {
		c := randomCutting(rng)
		want, wantErr := c.one()
		if infinite(wantErr) != (wantErr != nil) {
			t.Fatalf("case %d: %v\n%s", i, wantErr, c.plan.String())
		}
		for _, how := range []struct {
			Aggregation
			rounding, sideBySide bool
		}{{PerSeries, false, false}, {Auto, false, false}, {Auto, false, true}, {PartialAggregation, false, false},
			{PartialAggregation, true, false}} {
			got, stats, err := c.run(t, how.Aggregation, how.rounding, how.sideBySide)
			if errors.Is(err, merge.ErrOrder) && how.Aggregation != PerSeries &&
				(!how.sideBySide || c.plan.Downsample == nil) {
				refused++
				continue
			}
			if wantErr != nil || err != nil {
				if fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("seed %d, case %d, mode %q: error %v, want %v\n%s", seed, i, how.Aggregation, err,
						wantErr, c.plan.String())
				}
				continue
			}
			if stats.Partial > 0 {
				partials++
			}
			if stats.Partial > 0 && how.sideBySide {
				side++
			}
			if c.hours != nil && stats.Parts > len(c.plan.Ranges) {
				sized++
			}
			if stats.Partial > 0 && how.Aggregation == Auto && c.proves() {
				proven++
			}
			if diff := c.differ(want, got, how.rounding); diff != "" {
				t.Fatalf("seed %d, case %d, mode %q, side by side %t, %d of %d parts are partial: %s\n%s", seed, i,
					how.Aggregation, how.sideBySide, stats.Partial, stats.Parts, diff, c.plan.String())
			}
			for _, g := range want {
				values += g.Points.Len()
			}
		}
	}
	t.Logf("%d values compared; partial aggregates in %d answers, %d of them sums over salts, "+
		"%d not answered from partial aggregates, %d cut by sizes, %d side by side",
		values, partials, proven, refused, sized, side)
	if values < 100_000 || sized < 500 || partials < 500 || refused < 100 || refused > 2*partials || proven < 20 ||
		side < 200 {
		t.Errorf("%d values, %d answers from partial aggregates, %d sums over salts, %d refused, "+
			"%d cut by sizes, %d side by side: too few, so that the cases test too little",
			values, partials, proven, refused, sized, side)
	}
}

// infinite reports whether a query failed because its answer is infinite.
func infinite(err error) bool {
	var e *aggregate.InfinityError
	return errors.As(err, &e)
}

// proves reports whether partial aggregates of several salts are added up, which only the proof
// of a sum allows.
func (c *cutting) proves() bool {
	f, _ := aggregate.Lookup(c.plan.Aggregator)
	s, _ := f.Mergeability()
	return s.Proven && len(c.plan.Ranges) > 1 && c.series > 2
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

func randomCutting(rng *rand.Rand) *cutting {
	s := encoding.DefaultSchema()
	if rng.IntN(2) == 0 {
		s.SaltWidth, s.SaltBuckets = 1, 1+rng.IntN(4)
	}
	c := &cutting{store: &operatortest.Store{BlockRows: 1 + rng.IntN(9)}}
	hours := int64(1 + rng.IntN(7))
	c.series = 1 + rng.IntN(9)
	value := pick(rng, randomValue, randomValue, randomValue, wholeValue, wholeValue, wideValue, wildValue)
	zeros := rng.IntN(8) == 0
	if zeros {
		value = signedZero
	}
	for i := range c.series {
		p := randomPoints(rng, value, base, base+hours*3600)
		for k := range p.Len() {
			_, v := p.At(k)
			if d := math.Abs(v.Double()); d <= math.MaxFloat64 {
				c.size = max(c.size, d)
			}
		}
		c.store.Load(s, metric, operatortest.Series{
			Tags:   []encoding.TagPair{operatortest.Tag(1, i+1), operatortest.Tag(2, 1+i%2)},
			Points: p,
		})
	}
	c.plan = operatortest.Plan(s, metric, base, base+hours*3600)
	c.plan.Start += rng.Int64N(1800_000)
	c.plan.End -= rng.Int64N(1800_000)
	c.plan.Aggregator = scanplan.Aggregator(pick(rng,
		append(aggregate.Names(), "sum", "sum", "avg", "zimsum", "pfsum", "squareSum", "min", "max", "count", "mimmax",
			"first", "last", "diff")...))
	if zeros && rng.IntN(2) == 0 {
		c.plan.Aggregator = pick[scanplan.Aggregator](rng, "min", "max")
	}
	if c.plan.Aggregator != "none" && rng.IntN(2) == 0 {
		c.plan.GroupBy = []encoding.UID{operatortest.UID(pick(rng, 1, 2, 2))}
	}
	c.plan.Downsample = randomDownsample(rng)
	if rng.IntN(6) == 0 {
		c.plan.Rate = &scanplan.Rate{Counter: rng.IntN(2) == 0, CounterMax: math.MaxInt64, DropResets: rng.IntN(2) == 0}
	}
	c.store.Borders = c.borders(rng)
	c.store.Servers = []string{"rs0:1", "rs1:1", "rs2:1"}
	if rng.IntN(2) == 0 {
		c.hours = randomHours(rng, (c.plan.To-c.plan.From)/3600)
	}
	return c
}

// randomHours returns sizes of hours that are unrelated to the rows.
func randomHours(rng *rand.Rand, n int64) (hours []float64) {
	for range n {
		hours = append(hours, pick[float64](rng, 0, 1000, minPartBytes, 3*minPartBytes, maxPartBytes, 3*maxPartBytes))
	}
	return hours
}

func randomDownsample(rng *rand.Rand) *scanplan.Downsample {
	if rng.IntN(10) == 0 {
		return nil
	}
	minutes := pick[int64](rng, 5, 5, 10, 15, 20, 30, 60, 7, 120)
	d := &scanplan.Downsample{Interval: minutes * 60_000, Count: int(minutes), Unit: "m"}
	d.Function = scanplan.Aggregator(pick(rng, "avg", "sum", "max", "count", "last", "p75"))
	d.Fill = pick(rng, append([]scanplan.Fill{scanplan.FillNone, scanplan.FillNone}, scanplan.Fills...)...)
	return d
}

// signedZero returns 0 or -0, which makes minima and maxima depend on the order of series.
func signedZero(rng *rand.Rand) encoding.Value {
	return encoding.FloatValue(pick(rng, 0, math.Copysign(0, -1)))
}

// randomValue returns mostly fractions, whose sums depend on the order of series.
func randomValue(rng *rand.Rand) encoding.Value {
	switch rng.IntN(8) {
	case 0:
		return encoding.IntValue(rng.Int64N(200) - 100)
	case 1:
		return encoding.FloatValue(pick(rng, 0.0, math.Copysign(0, -1), 0.1))
	}
	return encoding.FloatValue(rng.Float64()*100 - 20)
}

// wholeValue returns values whose sums are not rounded until they are many.
func wholeValue(rng *rand.Rand) encoding.Value {
	switch rng.IntN(8) {
	case 0:
		return encoding.FloatValue(float64(rng.IntN(4000)-1000) / 64)
	case 1:
		return encoding.FloatValue(math.Copysign(0, -1))
	}
	return encoding.IntValue(rng.Int64N(1<<20) - 1<<18)
}

// wideValue returns values whose sums fit into a double, or exceed it by a bit or two.
func wideValue(rng *rand.Rand) encoding.Value {
	return encoding.IntValue(rng.Int64N(1<<5)<<pick(rng, 0, 46, 47, 48, 49) + rng.Int64N(4))
}

// wildValue returns values of any size, among them the smallest and largest ones, infinities and
// NaN.
func wildValue(rng *rand.Rand) encoding.Value {
	switch rng.IntN(20) {
	case 0:
		return encoding.FloatValue(pick(rng, math.NaN(), math.NaN(), math.NaN(), math.Inf(1), math.Inf(-1)))
	case 1:
		return encoding.FloatValue(pick(rng, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 0x1p-1022,
			1<<53, 1<<53+2))
	}
	return encoding.FloatValue(math.Ldexp(float64(rng.IntN(8)-3), rng.IntN(2000)-1040))
}

// randomPoints returns points of a series that may begin late, end early and have holes.
func randomPoints(rng *rand.Rand, value func(*rand.Rand) encoding.Value, from, to int64) (p encoding.Points) {
	step := pick[int64](rng, 60, 150, 300, 300, 900)
	hole := pick(rng, 0, 0, 3, 10, 30)
	if rng.IntN(3) == 0 {
		from += rng.Int64N(to - from)
	}
	if rng.IntN(3) == 0 {
		to -= rng.Int64N(to - from)
	}
	for t := from; t < to; t += step {
		if hole > 0 && rng.IntN(hole) == 0 {
			t += rng.Int64N(4000) / step * step
			continue
		}
		p.Append(t*1000, value(rng))
	}
	return p
}

// borders returns region borders at keys of rows, between hours, just behind a row, and at keys
// that are cut short anywhere.
func (c *cutting) borders(rng *rand.Rand) (borders [][]byte) {
	for range rng.IntN(12) {
		if len(c.store.Rows) == 0 {
			return nil
		}
		key := slices.Clone(c.store.Rows[rng.IntN(len(c.store.Rows))].Key)
		switch rng.IntN(4) {
		case 0:
			key = key[:c.plan.Schema.SaltWidth+c.plan.Schema.MetricWidth+4]
		case 1:
			key = append(key, 0)
		case 2:
			key = key[:1+rng.IntN(len(key))]
		}
		borders = append(borders, key)
	}
	slices.SortFunc(borders, bytes.Compare)
	return slices.CompactFunc(borders, bytes.Equal)
}

// one executes each range of the plan as one part with per-series aggregation: the expected answer.
func (c *cutting) one() ([]merge.Group, error) {
	m := merge.New(&c.plan, nil)
	for _, r := range c.plan.Ranges {
		op, err := operator.New(c.store, &scanplan.Part{Plan: c.plan, Range: r}, operator.Options{})
		if err != nil {
			return nil, err
		}
		for {
			rec, err := op.Next(context.Background())
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, err
			}
			if err := m.Add(r, rec); err != nil {
				return nil, err
			}
			rec.Release()
		}
		op.Close()
	}
	return m.Finish()
}

func (c *cutting) run(t *testing.T, how Aggregation, rounding, sideBySide bool) ([]merge.Group, Stats, error) {
	m := merge.New(&c.plan, nil)
	if rounding {
		m.AllowRounding()
	}
	var servers []*scripted
	for i := range 2 {
		if sideBySide {
			break // in this process alone
		}
		servers = append(servers, &scripted{name: fmt.Sprint("s", i), beside: fmt.Sprintf("rs%d:1", i), store: c.store})
	}
	cfg := quiet(c.store, nil, servers...)
	cfg.SideBySide = sideBySide
	e := New(cfg)
	if c.hours != nil {
		e.sizes.set(&c.plan, c.hours)
	}
	stats, err := e.Run(t.Context(), &c.plan, Options{Aggregation: how},
		func(part scanplan.KeyRange, records []batch.Record) error {
			for _, r := range records {
				if err := m.Add(part, r); err != nil {
					return err
				}
			}
			return nil
		})
	if err != nil {
		return nil, stats, err
	}
	groups, err := m.Finish()
	return groups, stats, err
}

// differ describes the first difference between two answers, "" for none.
func (c *cutting) differ(want, got []merge.Group, rounding bool) string {
	if len(want) != len(got) {
		return fmt.Sprintf("%d groups, want %d", len(got), len(want))
	}
	for i := range want {
		w, g := &want[i], &got[i]
		if fmt.Sprint(w.Key, w.Tags, w.Aggregated, w.TSUIDs,
			w.Points.Time) != fmt.Sprint(g.Key, g.Tags, g.Aggregated, g.TSUIDs, g.Points.Time) {
			return fmt.Sprintf("group %d is %v %v, want %v %v", i, g.Key, g.Points.Time, w.Key, w.Points.Time)
		}
		for k := range w.Points.Len() {
			ms, a := w.Points.At(k)
			_, b := g.Points.At(k)
			if a == b || nan(a) && nan(b) || rounding && c.close(a.Double(), b.Double()) {
				continue
			}
			return fmt.Sprintf("group %d at %d has %v (%016X), want %v (%016X)", i, ms, b.Double(), b.Bits, a.Double(),
				a.Bits)
		}
	}
	return ""
}

// nan reports whether a value is NaN, with whatever bits.
func nan(v encoding.Value) bool { return v.Float && math.IsNaN(v.Double()) }

func (c *cutting) close(a, b float64) bool {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.IsNaN(a) && math.IsNaN(b)
	}
	return math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b), c.size*float64(c.series))
}
