package dispatch

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/rpc/server"
)

// hosts returns a table of hosts like that of the bench: 1,000 series with a point every 10 s,
// integers from 0 to 100, and the tags host, region (of 9), dc (of 27) and rack (of 100). cells is
// the size of its rows in single cells, with HBase's overhead in addition to key, qualifier and
// value; compacted is that in one compacted cell an hour, without it.
func hosts(s encoding.Schema, hours int64, order func(int) []int) (m *operatortest.Store, cells, compacted int64) {
	rng := rand.New(rand.NewPCG(1, 1))
	m = &operatortest.Store{BlockRows: 500, Keep: true}
	uids := order(1000)
	for i := range 1000 {
		value := rng.IntN(101)
		points := operatortest.Every(base, base+hours*3600, 10, func(int) float64 { return 0 })
		for k := range points.Len() {
			value = max(0, min(100, value+rng.IntN(7)-3))
			points.Bits[k], points.Float[k] = uint64(value), false
		}
		m.Load(s, metric, operatortest.Series{Points: points, Tags: []encoding.TagPair{
			operatortest.Tag(1, 200+uids[i]), operatortest.Tag(2, 1+i%27%9), operatortest.Tag(3, 10+i%27),
			operatortest.Tag(4, 40+(i*7+i/100)%100),
		}})
	}
	for _, r := range m.Rows {
		for _, c := range r.Cells {
			cells += int64(len(c.Qualifier)/2) * int64(len(r.Key)+1+2+1+8+1+
				12) // key, family, qualifier, value, stamp, type, lengths
			compacted += int64(len(r.Key) + len(c.Qualifier) + len(c.Value))
		}
	}
	return m, cells, compacted
}

// inOrder and shuffled return orders in which the values of a tag got their UIDs.
func inOrder(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

func shuffled(n int) []int { return rand.New(rand.NewPCG(2, 2)).Perm(n) }

// overFlight returns an executor with one pushdown server over a connection, which sends no heartbeats: how many
// there are depends on how busy the machine is, and they count as shipped.
func overFlight(t testing.TB, m *operatortest.Store, s encoding.Schema) *Executor {
	t.Helper()
	c, _ := flightServer(t, m, server.Config{Schema: s, Mem: memory.NewGoAllocator(), Heartbeat: time.Hour})
	t.Cleanup(func() { c.Close() })
	return withServer(c, quiet(m, nil))
}

// For sum:5m-avg over the table of hosts a pushdown server sends at most 1 % of the bytes of single
// cells with per-series aggregation. With partial aggregation it sends at most 1 % of the bytes of compacted cells,
// also of percentiles, whatever the order of UIDs.
func TestShipped_onePercent(t *testing.T) {
	s := encoding.DefaultSchema()
	for name, order := range map[string]func(int) []int{"UIDs in order": inOrder, "UIDs shuffled": shuffled} {
		m, cells, compacted := hosts(s, 2, order)
		plan := operatortest.Plan(s, metric, base, base+2*3600)
		plan.Downsample = &scanplan.Downsample{Interval: 300_000, Function: "avg", Fill: scanplan.FillNone}
		e := overFlight(t, m, s)
		f := func(aggregator scanplan.Aggregator, how Aggregation, most int64) {
			plan.Aggregator = aggregator
			stats, err := e.Run(t.Context(), &plan, Options{Aggregation: how},
				func(scanplan.KeyRange, []batch.Record) error { return nil })
			if err != nil || stats.Remote != stats.Parts || (stats.Partial == stats.Parts) != (how == Auto) {
				t.Fatalf("%s, %s, mode %q: %v, %+v", name, aggregator, how, err, stats)
			}
			if stats.ShippedBytes > most {
				t.Errorf("%s, %s, mode %q: %d bytes, want at most %d", name, aggregator, how, stats.ShippedBytes, most)
			}
		}
		f("sum", PerSeries, cells/100)
		f("sum", Auto, compacted/100)
		f("p99", Auto, compacted/100)
		f("median", Auto, compacted/100)
	}
}

// With salt, no part has all values of a time, so percentiles and deviations are computed from values of series. These
// take at most 1 % of the bytes of single cells, and integers as they are stored half of those of compacted cells.
func TestShipped_salted(t *testing.T) {
	s := encoding.DefaultSchema()
	s.SaltWidth = 1
	m, cells, compacted := hosts(s, 2, inOrder)
	e := overFlight(t, m, s)
	f := func(aggregator scanplan.Aggregator, d *scanplan.Downsample, most int64) {
		plan := operatortest.Plan(s, metric, base, base+2*3600)
		plan.Aggregator, plan.Downsample = aggregator, d
		stats, err := e.Run(t.Context(), &plan, Options{},
			func(scanplan.KeyRange, []batch.Record) error { return nil })
		if err != nil || stats.Remote != stats.Parts || stats.Partial != 0 || stats.ShippedBytes > most {
			t.Errorf("%s of %v: %v, %+v, want at most %d bytes, of series", aggregator, d, err, stats, most)
		}
	}
	d := scanplan.Downsample{Interval: 300_000, Function: "avg", Fill: scanplan.FillNone}
	for _, aggregator := range []scanplan.Aggregator{"p99", "median", "dev"} {
		f(aggregator, &d, cells/100)
		f(aggregator, nil, compacted/2)
	}
}

// BenchmarkShipped measures sum:5m-avg and p99:5m-avg over the table of hosts through a pushdown server, and the
// bytes that it sends.
func BenchmarkShipped(b *testing.B) {
	s := encoding.DefaultSchema()
	for name, order := range map[string]func(int) []int{"UIDs in order": inOrder, "UIDs shuffled": shuffled} {
		m, cells, compacted := hosts(s, 6, order)
		plan := operatortest.Plan(s, metric, base, base+6*3600)
		plan.Downsample = &scanplan.Downsample{Interval: 300_000, Function: "avg", Fill: scanplan.FillNone}
		e := overFlight(b, m, s)
		for _, how := range []Aggregation{PerSeries, Auto, "p99"} {
			of := map[Aggregation]string{PerSeries: "strict", Auto: "partial", "p99": "percentile"}[how]
			b.Run(name+"/"+of, func(b *testing.B) {
				var stats Stats
				plan.Aggregator = "sum"
				if how == "p99" {
					plan.Aggregator, how = "p99", Auto
				}
				for b.Loop() {
					var err error
					if stats, err = e.Run(b.Context(), &plan, Options{Aggregation: how},
						func(scanplan.KeyRange, []batch.Record) error { return nil }); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(stats.ShippedBytes), "bytes")
				b.ReportMetric(100*float64(stats.ShippedBytes)/float64(cells), "%ofcells")
				b.ReportMetric(100*float64(stats.ShippedBytes)/float64(compacted), "%ofcompacted")
				b.ReportMetric(float64(stats.Parts), "parts")
			})
		}
	}
}

// readRows is a sink that reads each row.
func readRows(_ scanplan.KeyRange, records []batch.Record) error {
	var s batch.Series
	for _, r := range records {
		reader, err := batch.NewSeriesReader(r)
		if err != nil {
			return err
		}
		for i := range reader.Len() {
			if err := reader.At(i, &s); err != nil {
				return err
			}
		}
	}
	return nil
}

// BenchmarkShipped_points measures p99 without a downsample over 1,000 series of 6 h in 20 salt buckets through a
// pushdown server, by kinds of values, and the bytes that it sends.
func BenchmarkShipped_points(b *testing.B) {
	s := encoding.DefaultSchema()
	s.SaltWidth = 1
	for name, value := range map[string]func(r *rand.Rand, last uint64) (uint64, bool){
		"integers": func(r *rand.Rand, _ uint64) (uint64, bool) { return r.Uint64N(100), false },
		"counters": func(r *rand.Rand, last uint64) (uint64, bool) { return last + r.Uint64N(100_000), false },
		"decimals": func(r *rand.Rand, _ uint64) (uint64, bool) {
			return math.Float64bits(float64(r.IntN(10_000)) / 100), true
		},
		"doubles": func(r *rand.Rand, _ uint64) (uint64, bool) { return math.Float64bits(r.Float64()), true },
	} {
		m := &operatortest.Store{BlockRows: 500, Keep: true}
		rng := rand.New(rand.NewPCG(1, 1))
		for i := range 1000 {
			points := operatortest.Every(base, base+6*3600, 10, func(int) float64 { return 0 })
			last := rng.Uint64N(1 << 40)
			for k := range points.Len() {
				last, points.Float[k] = value(rng, last)
				points.Bits[k] = last
			}
			m.Load(s, metric, operatortest.Series{Points: points, Tags: []encoding.TagPair{operatortest.Tag(1, 200+i)}})
		}
		plan := operatortest.Plan(s, metric, base, base+6*3600)
		plan.Aggregator = "p99"
		e := overFlight(b, m, s)
		b.Run(name, func(b *testing.B) {
			var stats Stats
			for b.Loop() {
				var err error
				if stats, err = e.Run(b.Context(), &plan, Options{}, readRows); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(stats.ShippedBytes), "bytes")
		})
	}
}

// Over a pushdown server a plan of all series has parts with partial aggregates, and one that looks
// at few rows has the series themselves, unless it asks for partial aggregates.
func TestExplain_fewRows(t *testing.T) {
	s := encoding.DefaultSchema()
	m, _, _ := hosts(s, 1, inOrder)
	e := overFlight(t, m, s)
	plan := operatortest.Plan(s, metric, base, base+3600)
	plan.Downsample = &scanplan.Downsample{Interval: 300_000, Function: "avg", Fill: scanplan.FillNone}
	f := func(how Aggregation, want string) {
		t.Helper()
		parts, err := e.Explain(t.Context(), &plan, how, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			if p.Mode != want {
				t.Errorf("a part is %s (%s, %s), want %s", p.Mode, p.Why, p.Rows, want)
			}
		}
	}
	f(Auto, "partial")
	plan.Tags = []scanplan.TagPredicate{{
		TagK:   operatortest.UID(1),
		Op:     scanplan.In,
		Values: []encoding.UID{operatortest.UID(217)},
	}}
	f(Auto, "strict")
	f(PartialAggregation, "partial")
}
