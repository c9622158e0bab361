package write

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/pushdown/rollup"
	"downpour/pushdown/store"
)

// entryOf returns the entry of a value in column 0 of a rollup table whose interval is an hour
// and whose row span is a day.
func entryOf(t *testing.T, at int64, v encoding.Value) []byte {
	t.Helper()
	p := &Point{
		Time:   at,
		Value:  v,
		Rollup: &RollupCell{&encoding.RollupLayout{Interval: 3600, Span: encoding.RowSpan{Count: 1, Unit: "d"}}, 0},
	}
	entry, base, err := p.appendEntry(nil)
	if err != nil || base != 86400 {
		t.Fatalf("base %d, %v", base, err)
	}
	return entry
}

// If a batch has several values of one interval, only the last one is written: all cells of a
// batch have the same timestamp, so that the store could not know which is newer.
func TestCells_rollups(t *testing.T) {
	schema := encoding.DefaultSchema()
	r := newRows()
	s := newSeriesKey(encoding.UID{0, 0, 1}, []byte{0, 0, 1, 0, 0, 1})
	for _, e := range [][]byte{entryOf(t, 86400, encoding.IntValue(5)), entryOf(t, 90000, encoding.IntValue(6)),
		entryOf(t, 86401, encoding.FloatValue(1.5)), entryOf(t, 90001, encoding.IntValue(300))} {
		r.add(&schema, s, 86400, rowItem{entry: e})
	}
	r.groupByRow()
	mutations, err := r.cells.build(r, rollupCells)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]byte{}
	for _, m := range mutations {
		got[string(m.Qualifier)] = m.Value
	}
	want := map[string][]byte{"\x00\x00\x0f": {0x3f, 0xf8, 0, 0, 0, 0, 0, 0}, "\x00\x00\x11": {1, 44}}
	if d := gocmp.Diff(want, got); d != "" || len(mutations) != 2 {
		t.Errorf("%d mutations, -want +got\n%s", len(mutations), d)
	}
}

const (
	rollupHour   = 1_356_998_400
	rollupTables = `{"aggregationIds":{"SUM":0,"count":1,"avg":2},"intervals":[
 {"table":"tsdb","preAggregationTable":"tsdb-pre","interval":"1m","rowSpan":"1h","defaultInterval":true},
 {"table":"r1h","preAggregationTable":"r1h-pre","interval":"1h","rowSpan":"1d"}]}`
)

// tables keeps the rows that are written, by table.
type tables struct {
	memory
	rows map[string]int
	tags map[string]int // row keys' lengths
}

func (s *tables) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	s.memory.mu.Lock()
	s.rows[table] += len(mutations)
	for _, m := range mutations {
		s.tags[table] = len(m.Row)
	}
	s.memory.mu.Unlock()
	return s.memory.Apply(ctx, table, mutations)
}

type rollupCase struct {
	what   string
	p      RollupPoint
	change func(*RollupsConfig)
	want   string // the error, or the table and the tags of the row
}

// aggregated are tags with that of a pre-aggregate.
func aggregated(v string) []Tag { return []Tag{{"_aggregate", v}, {"host", "a"}} }

func rollupCases() []rollupCase {
	blocked := func(c *RollupsConfig) { c.BlockDerived = true }
	computed := func(c *RollupsConfig) { c.RollupsComputed = true }
	return []rollupCase{
		{"of series", RollupPoint{Interval: "1h", Aggregator: "sum"}, nil, "r1h 1"},
		{"of series, tagged", RollupPoint{Interval: "1h", Aggregator: "sum"},
			func(c *RollupsConfig) { c.TagRaw = true }, "r1h 2"},
		{"of groups", RollupPoint{Interval: "1h", Aggregator: "sum", Grouped: true, GroupBy: "max"}, nil, "r1h-pre 2"},
		{"of groups, with its tag", RollupPoint{Interval: "1h", Aggregator: "sum", Grouped: true, GroupBy: "max",
			Point: Point{Tags: aggregated("Max")}}, nil, "r1h-pre 2"},
		{"of groups alone", RollupPoint{Grouped: true, GroupBy: "max"}, nil, "tsdb-pre 2"},
		{"without a configuration", RollupPoint{}, func(c *RollupsConfig) { c.Rollups = nil }, errNoRollups.Error()},
		{"of no function", RollupPoint{Grouped: true}, nil,
			"without specifying the aggregation function. Metric=m tags={host=a}"},
		{"in milliseconds", RollupPoint{Point: Point{Time: rollupHour * 1000, Value: encoding.IntValue(-2)}}, nil,
			"bad timestamp=1356998400000 when trying to add value=[-2]/0 to metric=m, tags={host=a}"},
		{"a float in milliseconds", RollupPoint{Point: Point{Time: rollupHour * 1000, Narrow: true,
			Value: encoding.FloatValue(1.5)}}, nil, "value=[63, -64, 0, 0]/11 to metric=m"},
		{"of another tag", RollupPoint{Grouped: true, GroupBy: "max", Point: Point{Tags: aggregated("sum")}}, nil,
			"Given tag value for _aggregate of sum did not match the group by aggregator of max for m {_aggregate=sum"},
		{"of series with the tag",
			RollupPoint{Interval: "1h", Aggregator: "sum", Point: Point{Tags: aggregated("RAW")}}, nil,
			"Given tag value for _aggregate of RAW did not match the group by aggregator of null"},
		{"of groups by nothing known", RollupPoint{Grouped: true, GroupBy: "nope"}, nil,
			"Invalid group by aggregator nope with metric m {_aggregate=NOPE, host=a}"},
		{"of derived groups", RollupPoint{Grouped: true, GroupBy: "avg"}, blocked,
			"Derived group by aggregations are not allowed avg with metric m"},
		{"of groups that deviate", RollupPoint{Grouped: true, GroupBy: "dev"},
			blocked, "Derived group by aggregations are not allowed dev"},
		{"of derived groups that are allowed", RollupPoint{Grouped: true, GroupBy: "avg"}, nil, "tsdb-pre 2"},
		{"of groups, others are not allowed", RollupPoint{Grouped: true, GroupBy: "max"},
			blocked, "tsdb-pre 2"},
		{"without a name", RollupPoint{Interval: "1h", Aggregator: "sum", Point: Point{Metric: "m m"}}, nil,
			"Invalid metric name"},
		{"without a name, of an interval that is none",
			RollupPoint{Interval: "2h", Aggregator: "sum", Point: Point{Metric: "m m"}}, nil, "Invalid metric name"},
		{"of no interval", RollupPoint{}, nil, ErrNoInterval.Error()},
		{"of an interval that is none", RollupPoint{Interval: "2h", Aggregator: "sum"}, nil,
			"No rollups configured for the interval: 2h"},
		{"of the interval of raw data", RollupPoint{Interval: "1m", Aggregator: "sum"}, nil,
			"The interval 1m is that of raw data"},
		{"by no aggregator", RollupPoint{Interval: "1h"}, nil, errNoAggregator.Error()},
		{"by an aggregator without a column", RollupPoint{Interval: "1h", Aggregator: "min"}, nil,
			"No ID found mapping to aggregator: min"},
		{"of what is computed", RollupPoint{Interval: "1h", Aggregator: "sum"},
			computed, errComputed.Error()},
		{"of groups of what is computed", RollupPoint{Interval: "1h", Aggregator: "sum", Grouped: true, GroupBy: "max"},
			computed, "r1h-pre 2"},
		{"of averages", RollupPoint{Interval: "1h", Aggregator: "avg"}, blocked,
			"Derived rollup aggregations are not allowed AVG with metric m {host=a}"},
		{"of averages that are allowed", RollupPoint{Interval: "1h", Aggregator: "avg"}, nil, "r1h 1"},
		{"of sums, others are not allowed", RollupPoint{Interval: "1h", Aggregator: "sum"},
			blocked, "r1h 1"},
	}
}

// A rollup is written to the table of its interval, a pre-aggregate to that of pre-aggregates, with its tag; or it is
// refused, in OpenTSDB's words and with the first fault that OpenTSDB finds.
func TestRollups_add(t *testing.T) {
	cfg, err := rollup.Parse([]byte(rollupTables))
	if err != nil {
		t.Fatal(err)
	}
	plain := func() RollupsConfig {
		return RollupsConfig{Rollups: cfg, TagKey: "_aggregate", RawValue: "RAW",
			Config: Config{Schema: encoding.DefaultSchema()}}
	}
	for _, c := range rollupCases() {
		settings := plain()
		if c.change != nil {
			c.change(&settings)
		}
		to := &tables{rows: map[string]int{}, tags: map[string]int{}}
		r := NewRollups(settings, to, newTestSeries(&numbering{}))
		p := c.p
		if p.Metric == "" {
			p.Metric = "m"
		}
		if p.Time == 0 {
			p.Time = rollupHour
		}
		if p.Tags == nil {
			p.Tags = []Tag{{"host", "a"}}
		}
		b, err := r.Add(t.Context(), &p)
		got := fmt.Sprint(err)
		if err == nil {
			if err := b.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			for table, n := range to.rows {
				if got = fmt.Sprint(table, " ", (to.tags[table]-3-4)/6); n != 1 {
					t.Errorf("%s: %d cells in %s, want one", c.what, n, table)
				}
			}
		}
		r.Close()
		if i := slices.IndexFunc(p.Tags, func(tag Tag) bool { return tag.K == "_aggregate" }); err == nil && i >= 0 {
			if want := strings.ToUpper(cmp.Or(p.GroupBy, "RAW")); p.Tags[i].V != want {
				t.Errorf("%s: the tag is %s, want %s", c.what, p.Tags[i].V, want)
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
		if _, err := r.Add(t.Context(), &p); err == nil {
			t.Errorf("%s: it is taken after the end", c.what)
		}
	}
}

// waiting is a store that takes a second for a call.
type waiting struct{}

func (waiting) Apply(context.Context, string, []store.Mutation) error {
	time.Sleep(time.Second)
	return nil
}

// The end waits for all tables, which are written at the same time.
func TestRollups_close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, err := rollup.Parse([]byte(rollupTables))
		if err != nil {
			t.Fatal(err)
		}
		settings := RollupsConfig{Rollups: cfg, TagKey: "_aggregate", RawValue: "RAW",
			Config: Config{Schema: encoding.DefaultSchema(), Window: time.Hour}}
		r := NewRollups(settings, waiting{}, newTestSeries(&numbering{}))
		var batches []*Batch
		for _, p := range []RollupPoint{{Interval: "1h", Aggregator: "sum"}, {Grouped: true, GroupBy: "max"}} {
			p.Metric, p.Time, p.Tags = "m", rollupHour, []Tag{{"host", "a"}}
			b, err := r.Add(t.Context(), &p)
			if err != nil {
				t.Fatal(err)
			}
			batches = append(batches, b)
		}
		synctest.Wait() // both windows are open
		began := time.Now()
		r.Close()
		if took := time.Since(began); took != time.Second {
			t.Errorf("the end took %v, want a second", took)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for _, b := range batches {
			if err := b.Wait(over); err != nil {
				t.Errorf("after the end: %v", err)
			}
		}
	})
}

// Two commits of rollups are a millisecond apart, so that timestamps show which is newer.
func TestRollups_apart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, err := rollup.Parse([]byte(rollupTables))
		if err != nil {
			t.Fatal(err)
		}
		settings := RollupsConfig{Rollups: cfg, TagKey: "_aggregate", Config: Config{Schema: encoding.DefaultSchema()}}
		r := NewRollups(settings, &memory{}, newTestSeries(&numbering{}))
		defer r.Close()
		began := time.Now()
		for range 3 {
			b, err := r.Add(t.Context(), &RollupPoint{Interval: "1h", Aggregator: "sum",
				Point: Point{Metric: "m", Time: rollupHour, Tags: []Tag{{"host", "a"}}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 2*time.Millisecond {
			t.Errorf("three commits took %v, want 2 ms", took)
		}
	})
}
