package plan

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/pushdown/rollup"
)

const rollups = `{"aggregationIds":{"sum":0,"count":1,"max":3},"intervals":[
 {"table":"tsdb","preAggregationTable":"pre","interval":"1m","rowSpan":"1h","defaultInterval":true},
 {"table":"r10m","preAggregationTable":"r10m-pre","interval":"10m","rowSpan":"6h"},
 {"table":"r1h","preAggregationTable":"r1h-pre","interval":"1h","rowSpan":"1d","delaySla":"2h"},
 {"table":"r1d","preAggregationTable":"r1d-pre","interval":"1d","rowSpan":"1n"}]}`

func rollupOptions(t *testing.T) Options {
	t.Helper()
	c, err := rollup.Parse([]byte(rollups))
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Schema:  encoding.DefaultSchema(),
		Table:   "tsdb",
		Rollups: &Rollups{Config: c, TagKey: "dc", RawValue: "lga"},
	}
}

// compileURI compiles an m= over the three hours from 2013-01-02 03:04:05 on.
func compileURI(t *testing.T, m string, opt Options) (*Compiled, error) {
	t.Helper()
	q, err := query.ParseURI(url.Values{"start": {"1357095845"}, "end": {"1357106645"}, "m": {m}}, time.Unix(1.7e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	return Compile(q, 0, names3.look(NeedsOf(&q.Queries[0], opt)), opt)
}

// reads lists the tables that a query reads, each fallback after a semicolon.
func reads(c *Compiled) string {
	var out []string
	for ; c != nil; c = c.Fallback() {
		p := c.Plan
		text := fmt.Sprintf("%s %s %d-%d %s", c.Reads, p.Table, p.From, p.To, p.Downsample)
		if p.Downsample == nil {
			text = fmt.Sprintf("%s %s", c.Reads, p.Table)
		}
		if p.Rollup != nil {
			text += fmt.Sprintf(" column %d", p.Rollup.Column.ID)
			if p.Rollup.Count != nil {
				text += fmt.Sprintf("/%d", p.Rollup.Count.ID)
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func TestCompile_rollups(t *testing.T) {
	f := func(m, want string) {
		t.Helper()
		c, err := compileURI(t, m, rollupOptions(t))
		if err != nil {
			t.Fatalf("%s: %v", m, err)
		}
		if err := c.Plan.Validate(); err != nil {
			t.Errorf("%s: %v", m, err)
		}
		if d := cmp.Diff(want, reads(c)); d != "" {
			t.Errorf("%s: -want +got\n%s", m, d)
		}
	}
	// From the row of the start to the row after the end.
	const hours = "1357084800-1357171200"
	f("sum:1h-sum:sys.cpu", "1h r1h "+hours+" 1h-sum-none column 0")
	f("max:2h-zimsum-nan:sys.cpu", "1h r1h "+hours+" 2h-zimsum-nan column 0")
	f("sum:1h-avg:sys.cpu", "1h r1h "+hours+" 1h-avg-none column 0/1")
	f("sum:1h-count:sys.cpu", "1h r1h "+hours+" 1h-sum-none column 1")
	f("sum:1h-mimmax:sys.cpu", "1h r1h "+hours+" 1h-mimmax-none column 3")
	f("sum:rate:1h-sum:sys.cpu", "1h r1h 1356998400-1357171200 1h-sum-none column 0")
	f("sum:30m-sum:sys.cpu", "10m r10m 1357084800-1357128000 30m-sum-none column 0")
	f("sum:1d-sum:sys.cpu", "1d r1d 1356998400-1359676800 1d-sum-none column 0")
	f("sum:1w-sum:sys.cpu", "1d r1d 1356998400-1359676800 1w-sum-none column 0")

	// Raw data.
	f("sum:sys.cpu", "raw tsdb")
	f("sum:1h-sum:rollup_raw:sys.cpu", "raw tsdb 1357095600-1357110000 1h-sum-none")
	f("sum:5m-last:sys.cpu", "raw tsdb 1357095600-1357110000 5m-last-none")
	f("sum:90s-last:sys.cpu", "raw tsdb 1357095600-1357110000 90s-last-none")
	f("sum:3600001ms-last:sys.cpu", "raw tsdb 1357092000-1357110000 3600001ms-last-none")
	f("sum:500ms-last:sys.cpu", "raw tsdb 1357095600-1357110000 500ms-last-none")
	f("sum:0all-last:sys.cpu", "raw tsdb 1357095600-1357110000 0all-last-none")

	// Pre-aggregates.
	f("sum:1h-sum:pre-agg:sys.cpu", "1h r1h-pre "+hours+" 1h-sum-none column 0")
	f("sum:pre-agg:sys.cpu", "raw pre")
	f("sum:1h-sum:sys.cpu{dc=sjc}", "1h r1h-pre "+hours+" 1h-sum-none column 0")
	f("sum:1h-sum:sys.cpu{dc=lga}", "1h r1h "+hours+" 1h-sum-none column 0")
	f("sum:1h-sum:sys.cpu{dc=iliteral_or(LGA)}", "1h r1h-pre "+hours+" 1h-sum-none column 0")
	f("sum:1h-sum:sys.cpu{dc=not_literal_or(sjc)}", "1h r1h "+hours+" 1h-sum-none column 0")
	f("sum:1h-sum:sys.cpu{dc=*}", "1h r1h "+hours+" 1h-sum-none column 0")
	f("sum:sys.cpu{dc=sjc}", "raw pre")

	// Fallbacks.
	f("sum:1d-mimmax-zero:rollup_fallback:sys.cpu",
		"1d r1d 1356998400-1359676800 1d-mimmax-zero column 3; 1h r1h "+hours+" 1d-mimmax-zero column 3; "+
			"10m r10m 1357084800-1357128000 1d-mimmax-zero column 3; raw tsdb 1357095600-1357110000 600s-max-zero")
	f("sum:1d-count:rollup_fallback_raw:sys.cpu{dc=sjc}",
		"1d r1d-pre 1356998400-1359676800 1d-sum-none column 1; raw pre 1357084800-1357171200 86400s-count-none")
	f("sum:30m-sum:rollup_nofallback:sys.cpu", "10m r10m 1357084800-1357128000 30m-sum-none column 0")
}

func TestCompile_rollupWithoutColumn(t *testing.T) {
	f := func(m, want string) {
		t.Helper()
		_, err := compileURI(t, m, rollupOptions(t))
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", m, err, want)
		}
	}
	f("sum:1h-last:sys.cpu", "No ID found mapping to aggregator: last")
	f("sum:1h-mimmin:rollup_fallback:sys.cpu", "No ID found mapping to aggregator: min")
	f("sum:1h-last:sys.nope", "No such name for 'metrics': 'sys.nope'")
}

// A split is at the start of a bucket. Its raw part scans from there on, or for a rate
// from one bucket earlier.
func TestCompile_split(t *testing.T) {
	f := func(m string, now int64, want string) {
		t.Helper()
		opt := rollupOptions(t)
		opt.Rollups.Split, opt.Rollups.Now = true, now*1000
		c, err := compileURI(t, m, opt)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s to %d", c.Reads, c.Plan.End)
		if rest := c.Rest(); rest != nil {
			got += fmt.Sprintf(", %s %s %d-%d from %d", rest.Reads, rest.Plan.Table, rest.Plan.From, rest.Plan.To,
				rest.Plan.Start)
			if rest.Plan.Rollup != nil || rest.Fallback() != nil || rest.Rest() != nil ||
				rest.Plan.End != 1357106645000 {
				t.Errorf("%s: the rest is not a plan that reads only raw data, to the end", m)
			}
		}
		if got != want {
			t.Errorf("%s at %d: got %s, want %s", m, now, got, want)
		}
	}
	const end = 1357106645
	f("sum:1h-sum:sys.cpu", end+7200, "1h to 1357106645000")
	f("sum:1h-sum:sys.cpu", end+7199, "1h to 1357106399999, raw tsdb 1357106400-1357110000 from 1357106400000")
	f("sum:rate:1h-sum:sys.cpu", end+7199, "1h to 1357106399999, raw tsdb 1357102800-1357110000 from 1357106400000")
	f("sum:2h-sum:rollup_fallback_raw:pre-agg:sys.cpu", end+7199,
		"1h to 1357106399999, raw pre 1357106400-1357113600 from 1357106400000")
	f("sum:1h-sum:sys.cpu", 1357095845+7200, "raw to 1357106645000")
	f("sum:1h-sum:sys.cpu", 0, "raw to 1357106645000")
	f("sum:10m-sum:sys.cpu", 0, "10m to 1357106645000") // its table has no delaySla
	f("sum:1h-sum:rollup_raw:sys.cpu", end+7199, "raw to 1357106645000")
}

// The range of a rollup's rows holds the query's start and is in the table, also for
// times that no row key can hold.
func TestRollupRange_ends(t *testing.T) {
	for _, span := range []encoding.RowSpan{{Count: 1, Unit: "h"}, {Count: 6, Unit: "h"}, {Count: 1, Unit: "d"},
		{Count: 1, Unit: "n"}, {Count: 1, Unit: "y"}} {
		l := encoding.RollupLayout{Interval: span.Seconds() / 12, Span: span}
		for _, start := range []int64{0, 1, 1 << 42, 1 << 45} {
			for _, rate := range []bool{false, true} {
				from, to := rollupRange(start, start+1, l, rate)
				p := &scanplan.Plan{Rollup: &scanplan.Rollup{Layout: l}}
				if from < 0 || from >= to || p.RowBase(from) != from || p.RowBase(to) != to || from > maxBaseTime ||
					p.RowBase(to-1) > maxBaseTime {
					t.Errorf("%s from %d: rows from %d to %d, want some, whole, and none beyond the table", span,
						start, from, to)
				}
				if at := start / 1000; at < maxBaseTime && (at < from || at >= to) {
					t.Errorf("%s: rows from %d to %d do not hold %d", span, from, to, at)
				}
			}
		}
	}
}
