package rollup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
)

const good = `{"aggregationIds":{"SUM":0,"count":1,"zimsum":127},"unknown":[1],"intervals":[
 {"table":"tsdb","preAggregationTable":"tsdb-pre","interval":"1m","rowSpan":"1h","defaultInterval":true},
 {"table":"r10m","preAggregationTable":"r10m-pre","interval":"10m","rowSpan":"6h"},
 {"table":"r1h","preAggregationTable":"r1h","interval":"1h","rowSpan":"1d","delaySla":"2d","more":1}]}`

func TestParse(t *testing.T) {
	c, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	want := []Interval{
		{
			Name:     "1m",
			Table:    "tsdb",
			PreTable: "tsdb-pre",
			Layout:   encoding.RollupLayout{Interval: 60, Span: encoding.RowSpan{Count: 1, Unit: "h"}},
			Default:  true,
		},
		{
			Name:     "10m",
			Table:    "r10m",
			PreTable: "r10m-pre",
			Layout:   encoding.RollupLayout{Interval: 600, Span: encoding.RowSpan{Count: 6, Unit: "h"}},
		},
		{
			Name:     "1h",
			Table:    "r1h",
			PreTable: "r1h",
			Layout:   encoding.RollupLayout{Interval: 3600, Span: encoding.RowSpan{Count: 1, Unit: "d"}},
			Delay:    172800,
		},
	}
	if d := cmp.Diff(want, c.Intervals); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff([]string{"r10m", "r10m-pre", "r1h", "tsdb-pre"}, c.Tables()); d != "" {
		t.Errorf("tables: -want +got\n%s", d)
	}
	if id, ok := c.ID("Sum"); id != 0 || !ok {
		t.Errorf("sum has ID %d, %t, want 0, true", id, ok)
	}
	if id, ok := c.ID("zimsum"); id != 127 || !ok {
		t.Errorf("zimsum has ID %d, %t, want 127, true", id, ok)
	}
	if _, ok := c.ID("max"); ok {
		t.Error("max has a column")
	}
	if c.Raw().Name != "1m" || c.ByName("1h") != &c.Intervals[2] || c.ByName("60m") != nil {
		t.Error("intervals are not found by their names")
	}
}

// Every mistake is refused with an error that names it.
func TestParse_refused(t *testing.T) {
	f := func(old, new, want string) {
		t.Helper()
		text := strings.Replace(good, old, new, 1)
		if text == good {
			t.Fatalf("%s is not there", old)
		}
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s for %s: got %v, want %s", new, old, err, want)
		}
	}
	f(good, `[]`, "want the JSON of tsd.rollups.config")
	f(good, `/etc/rollups`, "want the JSON of tsd.rollups.config")
	f(`{"SUM":0,"count":1,"zimsum":127}`, `{}`, "no aggregationIds")
	f(`"count":1`, `"count":0`, "SUM and count both have 0")
	f(`"count":1`, `"count":-1`, "count has -1, want 0 to 127")
	f(`"zimsum":127`, `"zimsum":128`, "zimsum has 128, want 0 to 127")
	f(`"count":1`, `"sum":1`, "sum is there twice")
	f(`"count":1`, `"nope":1`, "nope is no aggregator")
	f(`"interval":"10m"`, `"interval":"1h"`, `interval "1h"`)
	f(`"interval":"1h","rowSpan":"1d"`, `"interval":"10m","rowSpan":"1d"`, `interval "10m" is there twice`)
	f(`,"defaultInterval":true`, ``, "0 intervals have defaultInterval, want 1")
	f(`"rowSpan":"6h"`, `"rowSpan":"6h","defaultInterval":true`, "2 intervals have defaultInterval, want 1")
	f(`"table":"r10m",`, ``, `table "" and preAggregationTable "r10m-pre", want both`)
	f(`"preAggregationTable":"r10m-pre"`, `"preAggregationTable":"tsdb"`,
		`table tsdb holds interval "1m" and interval "10m"`)
	f(`"interval":"10m"`, `"interval":"10"`, `got "10", want a number and ms, s`)
	f(`"interval":"10m"`, `"interval":"0m"`, `got "0m"`)
	f(`"interval":"10m"`, `"interval":"99999999999y"`, `got "99999999999y"`)
	f(`"interval":"10m"`, `"interval":"1500ms"`, "got 1500 ms, want whole seconds")
	f(`"rowSpan":"6h"`, `"rowSpan":"3h"`, "row span 3h, want")
	f(`"rowSpan":"6h"`, `"rowSpan":"2d"`, "row span 2d, want")
	f(`"rowSpan":"6h"`, `"rowSpan":"1w"`, "row span 1w, want")
	f(`"rowSpan":"6h"`, `"rowSpan":""`, `rowSpan: got ""`)
	f(`"rowSpan":"6h"`, `"rowSpan":"1h"`, "a row span of 1h has 6 intervals of 600 s, want 12 to 4096")
	f(`"rowSpan":"6h"`, `"rowSpan":"1y"`, "a row span of 1y has 52704 intervals of 600 s, want 12 to 4096")
	f(`"delaySla":"2d"`, `"delaySla":"soon"`, `delaySla: got "soon"`)
	f(`"delaySla":"2d"`, `"delaySla":"999ms"`, "delaySla 999ms, want at least 1s")
}

// Matching returns the intervals that divide the given one, the longest first.
func TestMatching(t *testing.T) {
	c, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	f := func(seconds int64, want ...string) {
		t.Helper()
		var got []string
		for _, i := range c.Matching(seconds) {
			got = append(got, i.Name)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d s: -want +got\n%s", seconds, d)
		}
	}
	f(3600, "1h", "10m", "1m")
	f(5400, "10m", "1m")
	f(7200, "1h", "10m", "1m")
	f(60, "1m")
	f(90)
	f(1)
}

// Read accepts the JSON, or the path of a file with it that is not too large.
func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rollups.json")
	if err := os.WriteFile(file, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, setting := range []string{good, file} {
		c, err := Read(setting)
		if err != nil || len(c.Intervals) != 3 {
			t.Errorf("%.40s: %v", setting, err)
		}
	}

	if _, err := Read(file + ".json"); err == nil {
		t.Error("a file that is not there was read")
	}
	if err := os.WriteFile(file, []byte(strings.Repeat(" ", maxText+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file); err == nil || !strings.Contains(err.Error(), "want at most") {
		t.Errorf("a large file: %v, want an error", err)
	}
}
