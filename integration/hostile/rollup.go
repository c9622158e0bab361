package hostile

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Rollups configures rollups of intervals that no usual query has, so that the answers of
// those are of raw data.
const Rollups = `{"aggregationIds":{"sum":0,"count":1,"min":2,"max":3},"intervals":[` +
	`{"table":"tsdb","preAggregationTable":"tsdb-preagg","interval":"1m","rowSpan":"1h","defaultInterval":true},` +
	`{"table":"tsdb-rollup-11m","preAggregationTable":"tsdb-rollup-preagg-11m","interval":"11m","rowSpan":"1d",` +
	`"delaySla":"1h"},` +
	`{"table":"tsdb-rollup-7h","preAggregationTable":"tsdb-rollup-preagg-7h","interval":"7h","rowSpan":"1n"}]}`

// What rollups say of themselves, right and wrong.
var (
	rollupIntervals = []string{"11m", "11m", "11m", "7h", "7h", "1m", "12m", "11M", "", "0m", "99999999999h"}
	rollupFunctions = []string{"sum", "SUM", "count", "count", "min", "max", "avg", "dev", "p99", "nope", ""}
	rollupValues    = []string{
		"1", "300", "70000", "1.5", "-2.25", "1e30", `"7"`, `""`, "NaN", "null", "9223372036854775808",
	}
	rollupUsages = []string{
		"rollup_raw", "rollup_nofallback", "rollup_fallback", "rollup_fallback_raw", "rollup_nope", "pre-agg",
	}
)

// rollup writes or asks for rollups, whose intervals are written again and again with
// other types.
func (d *drawing) rollup() Request {
	switch d.r.IntN(4) {
	case 0:
		return d.rollupLines()
	case 1:
		return d.rollupQuery()
	}

	var points []string
	for range max(1, d.size(20_000)) {
		p := fmt.Sprintf(`"metric":"hostile.rollup","timestamp":%d,"value":%s,"tags":{"host":"h%d"}`,
			d.rollupTime(), pick(d, rollupValues), d.r.IntN(20))
		if !d.one(10) {
			p += fmt.Sprintf(`,"interval":"%s"`, pick(d, rollupIntervals))
		}
		if !d.one(10) {
			p += fmt.Sprintf(`,"aggregator":"%s"`, pick(d, rollupFunctions))
		}
		if d.one(4) {
			p += fmt.Sprintf(`,"groupByAggregator":"%s"`, pick(d, rollupFunctions))
		}
		points = append(points, "{"+p+"}")
	}
	m := message{
		method: "POST",
		path:   "/api/rollup?" + pick(d, []string{"details", "summary", "sync", ""}),
		body:   []byte("[" + strings.Join(points, ",") + "]"),
	}
	return m.request()
}

// rollupTime is a time in one of a few rows.
func (d *drawing) rollupTime() int64 {
	return pick(d, []int64{Era, Era, Era + 86400, 1, -1, 1 << 40}) + d.r.Int64N(86400)
}

// rollupLines are telnet lines of rollups.
func (d *drawing) rollupLines() Request {
	var b strings.Builder
	for range max(1, d.size(5000)) {
		what := pick(d, rollupIntervals) + "-" + pick(d, rollupFunctions)
		if d.one(3) {
			what += ":" + pick(d, rollupFunctions)
		}
		if d.one(10) {
			what = pick(d, []string{"", "-", ":", "--:", strings.Repeat("x", 900), "sum"})
		}
		fmt.Fprintf(&b, "rollup %s hostile.rollup %d %s host=h%d\n",
			what, d.rollupTime(), pick(d, rollupValues), d.r.IntN(20))
	}
	return Request{
		Door:   Telnet,
		Wire:   []byte(b.String()),
		Manner: pick(d, []Manner{HalfClosed, HalfClosed, Stops, Leaves}),
	}
}

// rollupQuery asks for rollups over times of all lengths.
func (d *drawing) rollupQuery() Request {
	m := fmt.Sprintf("%s:%s-%s%s:%s:hostile.rollup{host=*}",
		pick(d, aggregators), pick(d, []string{"11m", "22m", "77m", "7h", "1w", "1n", "77mc"}),
		pick(d, []string{"sum", "avg", "count", "mimmax", "last"}), pick(d, usualFills), pick(d, rollupUsages))
	if d.one(3) {
		m = strings.Replace(m, ":", ":rate:", 1)
	}
	v := url.Values{"m": {m}, "start": {strconv.FormatInt(pick(d, []int64{0, Era, Era + 7200}), 10)}}
	if d.one(2) {
		v.Set("end", strconv.FormatInt(Era+d.r.Int64N(1<<30), 10))
	}
	q := message{method: pick(d, []string{"GET", "GET", "GET", "DELETE"}), path: "/api/query?" + v.Encode()}
	return q.request()
}
