package differential

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
)

// RollupTables are the tables of RollupConfig except the data table.
func RollupTables(data string) (tables []string) {
	for _, interval := range []string{"", "-10m", "-1h", "-1d"} {
		tables = append(tables, data+interval+"-pre")
		if interval != "" {
			tables = append(tables, data+interval)
		}
	}
	return tables
}

// RollupConfig is tsd.rollups.config for Rollups: intervals of 10 minutes, an hour and a day
// next to the raw data of table data.
func RollupConfig(data string) string {
	return fmt.Sprintf(`{"aggregationIds": {"sum": 0, "count": 1, "min": 2, "max": 3}, "intervals": [
 {"table": %[1]q, "preAggregationTable": "%[1]s-pre", "interval": "1m", "rowSpan": "1h", "defaultInterval": true},
 {"table": "%[1]s-10m", "preAggregationTable": "%[1]s-10m-pre", "interval": "10m", "rowSpan": "6h"},
 {"table": "%[1]s-1h", "preAggregationTable": "%[1]s-1h-pre", "interval": "1h", "rowSpan": "1d"},
 {"table": "%[1]s-1d", "preAggregationTable": "%[1]s-1d-pre", "interval": "1d", "rowSpan": "1n"}]}`, data)
}

// rolledMetric is a metric whose raw points and rollups are put. The values of each are
// drawn separately, so that an answer shows which table was read.
type rolledMetric struct {
	name      string
	series    int
	float     bool
	intervals []string // that have rollups; "" for raw points
	grouped   bool     // pre-aggregates by dc are put too
}

var rolledMetrics = []rolledMetric{
	{name: "roll.cpu", series: 7, intervals: []string{"", "10m", "1h", "1d"}, grouped: true},
	{name: "roll.req", series: 5, float: true, intervals: []string{"", "10m", "1h"}, grouped: true},
	{name: "roll.raw", series: 3, intervals: []string{""}},
	{name: "roll.ten", series: 4, float: true, intervals: []string{"10m"}},
	{name: "roll.day", series: 4, intervals: []string{"", "1d"}},
}

// rolled are the spans of an interval's rollups from the era on and their distance, in ms.
var rolled = map[string]struct{ span, step int64 }{
	"": {day, hour / 4}, "10m": {2 * day, hour / 6}, "1h": {5 * day, hour}, "1d": {20 * day, day},
}

// Rollups draws raw points and rollups, and the series that they make.
func Rollups(seed uint64) (*Data, []Put) {
	r := rand.New(rand.NewPCG(seed, 2)) // 1, 2 and 3 keep Generate, Rollups and Histograms apart
	d := &Data{Era: eras[r.IntN(len(eras))]}
	// OpenTSDB reads times of rollups as signed numbers of 32 bits: from 2038 on it finds
	// none, or fails.
	for d.Era >= 1<<31 {
		d.Era = eras[r.IntN(len(eras))]
	}
	d.Era -= d.Era % (day / second) // where rollups of a day begin

	points := map[string][]json.RawMessage{}
	for _, m := range rolledMetrics {
		for _, s := range distinctSeries(r, m.name, m.series) {
			for _, interval := range m.intervals { // "" for raw points
				span := rolled[interval]
				from, to := window(r, span.span)
				for at := from - from%span.step; at < to; at += span.step {
					if r.IntN(12) == 0 {
						continue
					}
					// Queries draw their times from Points, which need no values. What is put
					// may lie anywhere in its interval.
					s.Points = append(s.Points, Point{MS: d.Era*1000 + at})
					path, all := m.put(r, s, interval, d.Era*1000+at+second*r.Int64N(span.step/second), "")
					points[path] = append(points[path], all...)
				}
			}
			d.Series = append(d.Series, s)
		}
		// After the series, from whose values of dc the groups are made.
		if m.grouped {
			for path, all := range m.groups(r, d) {
				points[path] = append(points[path], all...)
			}
		}
	}
	return d, bodies(points)
}

// put are the bodies of one time, and the path that takes them: a raw point if interval is
// "", else a rollup by each of the four aggregations. With groupBy they are pre-aggregates.
func (m rolledMetric) put(
	r *rand.Rand, s Series, interval string, ms int64, groupBy string,
) (path string, all []json.RawMessage) {
	value := func() any {
		if m.float {
			return float64(r.IntN(10000)) / 8
		}
		return r.Int64N(1<<(1+r.IntN(40))) - 50
	}
	point := map[string]any{"metric": m.name, "tags": s.Tags, "timestamp": ms / 1000}
	if groupBy != "" {
		point["groupByAggregator"] = groupBy
	}
	add := func() {
		text, err := json.Marshal(point)
		if err != nil {
			panic(err) // nothing in it can fail
		}
		all = append(all, text)
	}
	if interval == "" {
		point["value"] = value()
		add()
		if groupBy != "" {
			return "/api/rollup", all
		}
		return "/api/put", all
	}
	point["interval"] = interval
	for _, aggregation := range []string{"sum", "count", "MIN", "max"} { // case does not matter
		point["aggregator"], point["value"] = aggregation, value()
		if aggregation == "count" {
			point["value"] = 1 + r.IntN(60)
		}
		add()
	}
	return "/api/rollup", all
}

// groups are pre-aggregates by dc, raw and rolled up, over the first half of an interval's span.
func (m rolledMetric) groups(r *rand.Rand, d *Data) map[string][]json.RawMessage {
	points := map[string][]json.RawMessage{}
	for _, dc := range d.Values(m.name, "dc") {
		for _, groupBy := range []string{"SUM", "max"} {
			for _, interval := range m.intervals {
				span := rolled[interval]
				for at := int64(0); at < span.span/2; at += span.step {
					path, all := m.put(r, Series{Tags: map[string]string{"dc": dc}}, interval, d.Era*1000+at, groupBy)
					points[path] = append(points[path], all...)
				}
			}
		}
	}
	return points
}

// RandomRollupQuery draws a query that may read rollups.
func RandomRollupQuery(r *rand.Rand, d *Data) Query {
	q := Query{MS: r.IntN(3) == 0, Arrays: r.IntN(4) == 0, ShowQuery: r.IntN(6) == 0, AsGET: r.IntN(5) == 0}
	lengths := []int64{hour, 7 * hour, 18 * hour, day, 2 * day, 3*day + 7*second, 10 * day, 25 * day}
	q.setTimes(r, d, pick(r, []int64{12 * hour, 12 * hour, day, 4 * day}), lengths)
	for range 1 + max(0, r.IntN(6)-4) {
		m := rolledMetrics[max(0, r.IntN(8)-3)] // the first one, which has everything, most often
		s := Sub{
			Aggregator: randomAggregator(r),
			Metric:     m.name,
			Filters:    randomFilters(r, d, m.name),
			Rate:       r.IntN(4) == 0,
		}
		if of := d.Of(m.name); r.IntN(10) > 0 { // most queries should find something
			target := pick(r, of)
			s.Filters = slices.DeleteFunc(s.Filters, func(f Filter) bool { return !admits(f, target.Tags) })
		}
		s.Downsample = randomRollupDownsample(r, q.span())
		s.RollupUsage = pick(r, []string{
			"", "", "", "ROLLUP_RAW", "ROLLUP_NOFALLBACK", "rollup_fallback", "ROLLUP_FALLBACK",
			"ROLLUP_FALLBACK_RAW",
		})
		switch r.IntN(8) {
		case 0:
			s.PreAggregate = true
		case 1: // the tag of pre-aggregates: each value but RAW asks for them
			s.Filters = append(s.Filters, Filter{
				Type:    "literal_or",
				TagK:    "_aggregate",
				Text:    pick(r, []string{"SUM", "MAX", "SUM|MAX", "RAW", "absent"}),
				GroupBy: r.IntN(2) == 0,
			})
		}
		if q.AsGET {
			s.othersFirst()
		}
		q.Subs = append(q.Subs, s)
	}
	return q
}

func randomRollupDownsample(r *rand.Rand, span int64) string {
	if r.IntN(12) == 0 {
		return ""
	}
	interval := pick(r, []string{
		"1m", "5m", "10m", "20m", "30m", "60m", "1h", "1h", "90m", "2h", "6h", "12h", "1d", "2d", "1w", "0all",
		"1hc", "1dc",
	})
	function := pick(r, []string{"sum", "sum", "avg", "avg", "count", "min", "max", "zimsum", "mimmin", "mimmax"})
	if r.IntN(15) == 0 {
		function = pick(r, []string{"dev", "p90", "first", "last", "mult"})
	}
	fill := pick(r, []string{"", "", "", "-none", "-nan", "-null", "-zero"})
	// All fill policies but none make a value for every bucket of the range.
	if (span+2*day)/intervalMS(interval) > maxBuckets {
		fill = ""
	}
	return interval + "-" + function + fill
}
