package merge

import (
	"slices"
	"testing"

	arrowmemory "github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/aggregate/guardtest"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/operator/window"
)

// modeCase is a plan whose parts of so many hours answer in one way.
type modeCase struct {
	name  string
	plan  scanplan.Plan
	mode  scanplan.Mode
	hours int64
	older bool // the first part is merged as older hours
	gap   bool // a series has no points from some time before the second hour to some time after its begin
}

// modeHours is the length of the plans of modeCases.
const modeHours = 2

// modeCases returns plans of the points of modeTable, and one of its histograms, in each way in which parts answer.
func modeCases() (out []modeCase) {
	add := func(name string, mode scanplan.Mode, hours int64, change func(*scanplan.Plan)) *modeCase {
		p := operatortest.Plan(encoding.DefaultSchema(), uid(1), base, base+modeHours*3600)
		p.Start, p.End = p.Start+600_000, (p.To-600)*1000 // at points, which both are in the answer
		p.GroupBy = []encoding.UID{uid(1)}
		change(&p)
		out = append(out, modeCase{name: name, plan: p, mode: mode, hours: hours})
		return &out[len(out)-1]
	}
	const partial = scanplan.PartialAggregation
	asIs := func(*scanplan.Plan) {}
	rates := func(p *scanplan.Plan) { p.Rate = &scanplan.Rate{} }
	buckets := func(p *scanplan.Plan) { p.Downsample = &scanplan.Downsample{Interval: 600_000, Function: "sum"} }
	filled := func(p *scanplan.Plan) { buckets(p); p.Downsample.Fill = scanplan.FillZero }
	histograms := func(p *scanplan.Plan) {
		p.Metric = uid(2)
		p.Histograms = &scanplan.Histograms{Codec: testCodec, Buckets: true, Percentiles: []float32{50}}
		p.Ranges = operatortest.Plan(p.Schema, p.Metric, p.From, p.To).Ranges
	}
	windows := func(groups *scanplan.WindowGroups) func(*scanplan.Plan) {
		return func(p *scanplan.Plan) {
			p.Aggregator, p.GroupBy = scanplan.None, nil
			p.Window = &scanplan.Window{Function: "sum_over_time", Range: 3600_000, Step: 60_000,
				First: p.Start, Last: p.End, Groups: groups}
		}
	}
	add("series", scanplan.PerSeries, 1, asIs)
	add("rates", scanplan.PerSeries, 1, rates)
	add("buckets", scanplan.PerSeries, 1, buckets)
	add("rates of buckets", scanplan.PerSeries, 1, func(p *scanplan.Plan) { buckets(p); rates(p) })
	add("filled buckets", scanplan.PerSeries, 1, filled)
	for _, change := range []func(*scanplan.Plan){asIs, rates, filled} {
		c := add("after older hours", scanplan.PerSeries, 1, change)
		c.older, c.plan = true, c.plan.Untrimmed()
	}
	add("partial", partial, 1, buckets)
	add("partial, of all", partial, modeHours, buckets)
	add("partial, filled", partial, 1, filled)
	add("partial percentiles", partial, 1, func(p *scanplan.Plan) { buckets(p); p.Aggregator = "p50" })
	add("partial, with a gap", partial, 1, func(p *scanplan.Plan) { buckets(p); p.Aggregator = "max" }).gap = true
	add("aligned", scanplan.Aligned, 1, asIs)
	add("aligned rates", scanplan.Aligned, 1, rates)
	add("windows", scanplan.PerSeries, 1, windows(nil))
	add("grouped windows", scanplan.PerSeries, 1,
		windows(&scanplan.WindowGroups{Function: window.Max, Keys: []encoding.UID{uid(1)}}))
	add("histograms", scanplan.PerSeries, 1, histograms)
	add("sums of histograms", partial, 1, histograms)
	add("histograms of calendar buckets", scanplan.PerSeries, 1, func(p *scanplan.Plan) {
		histograms(p)
		p.Downsample = &scanplan.Downsample{Interval: 3600_000, Count: 1, Unit: "h", Calendar: true, Zone: "UTC",
			Function: "sum"}
	})
	return out
}

// modeTable has three series of metric 1 in two groups, with points at the same times and with annotations, and two
// with annotations alone, one of them in a group of its own; and so it has histograms of metric 2. With a gap the first
// series has no points for more than half an hour.
func modeTable(gap bool) *operatortest.Store {
	s := encoding.DefaultSchema()
	var histograms []histogramSeries
	for i, group := range []int{1, 2, 1, 2, 3} {
		tags := []encoding.TagPair{operatortest.Tag(1, group), operatortest.Tag(2, i+1)}
		one := histogramSeries{tags: tags, at: map[int64]encoding.Histogram{}}
		for k := range int64(9) {
			if i > 2 {
				break
			}
			one.at[(base+k*700)*1000] = encoding.NewHistogram(
				[]encoding.HistogramBucket{{Lower: 0, Upper: 1, Count: k}, {Lower: 1, Upper: 2, Count: 3}}, 0, 1)
		}
		histograms = append(histograms, one)
	}
	m := histogramTable(s, uid(2), histograms)
	for i, one := range histograms {
		if i < 3 {
			points := encoding.Points{}
			for at := int64(base); at < base+modeHours*3600; at += 300 {
				if gap && i == 0 && at > base+1800 && at < base+4800 {
					continue
				}
				points.Append(at*1000, encoding.IntValue(at%7+int64(i)))
			}
			m.Load(s, uid(1), operatortest.Series{Tags: one.tags, Points: points})
		}
		for hour := range uint32(modeHours) {
			for metric := range uint64(2) {
				key := s.AppendRowKey(nil, uid(1+metric), base+3600*hour, s.AppendTags(nil, one.tags))
				note := []byte{'{', byte('a' + i), byte('0' + hour), '}'}
				m.Cell(key, []byte{encoding.PrefixAnnotation, 0, byte(i)}, note, 2)
			}
		}
	}
	return m
}

// records executes the parts of a case. It returns their batches by the hour at which each part begins.
func (c *modeCase) records(t *testing.T, table *operatortest.Store) (all [][]batch.Record, parts []scanplan.KeyRange) {
	t.Helper()
	for at := c.plan.From; at < c.plan.To; at += 3600 * c.hours {
		r := scanplan.KeyRange{Start: c.plan.HourKey(c.plan.Ranges[0], at),
			Stop: c.plan.HourKey(c.plan.Ranges[0], at+3600*c.hours)}
		op, err := operator.New(table, &scanplan.Part{Plan: c.plan, Range: r, Mode: c.mode},
			operator.Options{Mem: arrowmemory.DefaultAllocator, FlushBytes: 100})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var of []batch.Record
		err = operatortest.Drain(t.Context(), op, func(rec batch.Record) error {
			rec.Retain()
			of = append(of, rec)
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		all, parts = append(all, of), append(parts, r)
	}
	return all, parts
}

// merged merges batches by parts, within bounds, and makes all groups at once or one by one.
func (c *modeCase) merged(all [][]batch.Record, parts []scanplan.KeyRange, b Bounds, oneByOne bool) (
	groups []Group, older *OlderHours, err error,
) {
	p := &c.plan
	first := 0
	if c.older {
		before, _ := p.Between(p.From, p.From+3600)
		newer, _ := p.Between(p.From+3600, p.To)
		m := New(&before, nil)
		m.SetBounds(b)
		defer m.Free()
		if err := addAll(m, parts[0], all[0]); err != nil {
			return nil, nil, err
		}
		if older, err = m.FinishOlder(); err != nil {
			return nil, nil, err
		}
		p, first = older.ContinuedPlan(&newer), 1
	}
	m := New(p, nil)
	m.SetBounds(b)
	defer m.Free()
	if older != nil {
		if err := m.Continue(older); err != nil {
			return nil, older, err
		}
	}
	for i := len(parts) - 1; i >= first; i-- {
		if err := addAll(m, parts[i], all[i]); err != nil {
			return nil, older, err
		}
	}
	if !oneByOne {
		groups, err = m.Finish()
		return groups, older, err
	}
	gs, err := m.Groups()
	if err != nil {
		return nil, older, err
	}
	for i := range gs.Described {
		for range 2 { // as often as one likes
			if gs.Described[i].Points, err = gs.Points(i); err != nil {
				return nil, older, err
			}
		}
	}
	return gs.Described, older, nil
}

func addAll(m *Merger, part scanplan.KeyRange, records []batch.Record) error {
	for _, rec := range records {
		if err := m.Add(part, rec); err != nil {
			return err
		}
	}
	return nil
}

// In whatever way parts answer, groups are those that the series give, with all annotations; and whichever call of
// its bounds fails, a merge ends with that error, and holds nothing but the older hours that it continued. When it has
// succeeded it holds the points of the groups, which it has counted.
func TestModes_bounds(t *testing.T) {
	for _, c := range modeCases() {
		table := modeTable(c.gap)
		all, parts := c.records(t, table)
		guardtest.EachCall(t, func(g *guardtest.Guard) error {
			var held, counted, want int64
			groups, older, err := c.merged(all, parts, Bounds{
				Reserve: func(n int64) error {
					if n <= 0 {
						t.Errorf("%s: %d bytes are reserved", c.name, n)
					}
					if err := g.Reserve(n); err != nil {
						return err
					}
					held += n
					return nil
				},
				Release: func(n int64) {
					if n <= 0 {
						t.Errorf("%s: %d bytes are released", c.name, n)
					}
					held -= n
				},
				Check:  g.Check,
				Points: func(n int) error { counted += int64(n); return g.Check() },
			}, false)
			if older != nil {
				want = older.Bytes()
			}
			var points int64
			for i := range groups {
				points += int64(groups[i].Points.Len())
			}
			exact := c.plan.Downsample == nil || c.plan.Downsample.Fill != scanplan.FillZero // else few may be missing
			if want += points * PointBytes; held != want || err == nil && !c.older && exact && counted != points {
				t.Errorf("%s: %d bytes are held and %d points counted after %v, want %d and %d", c.name, held, counted,
					err, want, points)
			}
			return err
		})
		groups, _, err := c.merged(all, parts, Bounds{}, false)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for _, g := range groups { // that of the last series has annotations and nothing else
			if slices.ContainsFunc(g.Notes, func(n []byte) bool { return string(n) == "{e0}" }) &&
				(len(g.Spans) > 0 || g.Points.Len() > 0) {
				t.Errorf("%s: a group of annotations has %d members and %d points", c.name, len(g.Spans),
					g.Points.Len())
			}
		}
		c.checkOneByOne(t, all, parts, groups)
		series := c
		series.mode, series.hours, series.older = scanplan.PerSeries, modeHours, false
		all, parts = series.records(t, table)
		want, _, err := series.merged(all, parts, Bounds{}, false)
		if d := cmp.Diff(text(want), text(groups)); d != "" || err != nil || len(want) == 0 {
			t.Errorf("%s: %v, %d groups; of series -, got +: %s", c.name, err, len(want), d)
		}
	}
}

// checkOneByOne compares groups with those that are made one by one, whichever call of the bounds fails then.
func (c *modeCase) checkOneByOne(t *testing.T, all [][]batch.Record, parts []scanplan.KeyRange, want []Group) {
	t.Helper()
	if c.plan.Histograms != nil {
		return // they are not made so
	}
	guardtest.EachCall(t, func(g *guardtest.Guard) error {
		got, _, err := c.merged(all, parts, Bounds{
			Reserve: g.Reserve, Check: g.Check, Points: func(int) error { return g.Check() },
		}, true)
		if err != nil {
			return err
		}
		for i := range got {
			got[i].Notes = want[i].Notes // they are not described
		}
		if d := cmp.Diff(text(want), text(got)); d != "" {
			t.Errorf("%s: all at once -, one by one +: %s", c.name, d)
		}
		return nil
	})
}
