package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/google/go-cmp/cmp"

	"downpour/encoding/batch"
	"downpour/gateway"
)

// percent asks for 100 * m / n by host, and for m itself.
const percent = `{"time":{"start":1356998400,"end":1356998520,"aggregator":"sum"},
	"filters":[{"id":"hosts","tags":[{"type":"wildcard","tagk":"host","filter":"*","groupBy":true}]}],
	"metrics":[{"id":"a","metric":"m","filter":"hosts"},{"id":"b","metric":"n","filter":"hosts"}],
	"expressions":[{"id":"e","expr":"100 * a / b"}],"outputs":[{"id":"e","alias":"percent"},{"id":"a"}]}`

func withPercent(t *testing.T, change func(*gateway.Config)) *bench {
	t.Helper()
	b := open(t, change)
	b.put("m 1356998400 1 host=x", "m 1356998460 2 host=x", "m 1356998400 3 host=y", "n 1356998400 4 host=x", "n 1356998460 4 host=x", "n 1356998400 6 host=y", "n 1356998520 5 host=y")
	return b
}

// An Arrow answer has a row for each time of a group and a column for each output. The last time is
// n's alone: there a, which is m by itself, is null.
func TestExp_arrow(t *testing.T) {
	b := withPercent(t, nil)
	a := b.post("/api/query/exp", percent, "Accept", batch.StreamMediaType, "Accept-Encoding", "identity")
	if a.status != 200 || a.header.Get("Content-Type") != batch.StreamMediaType || a.header.Get("ETag") == "" {
		t.Fatalf("got %d %v %s, want an Arrow stream with an ETag", a.status, a.header, a.body)
	}
	r, err := ipc.NewReader(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var got []string
	for _, f := range r.Schema().Fields() {
		alias, _ := f.Metadata.GetValue(batch.AliasKey)
		got = append(got, f.Name+" "+alias)
	}
	for r.Next() {
		rec := r.Record()
		for i := range int(rec.NumRows()) {
			row := ""
			for _, c := range rec.Columns() {
				row += c.ValueStr(i) + " "
			}
			got = append(got, row)
		}
	}
	want := []string{"host ", "timestamp ", "e percent", "a ",
		"x 2013-01-01 00:00:00Z 25 1 ", "x 2013-01-01 00:01:00Z 50 2 ", "x 2013-01-01 00:02:00Z 0 (null) ",
		"y 2013-01-01 00:00:00Z 50 3 ", "y 2013-01-01 00:01:00Z 0 0 ", "y 2013-01-01 00:02:00Z 0 (null) "}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}

	b.refused(b.post("/api/query/exp?compression=brotli", percent, "Accept", batch.StreamMediaType), 400, "brotli, want lz4 or zstd")
	if a := b.post("/api/query/exp", percent, "Accept", batch.StreamMediaType, "If-None-Match", a.header.Get("ETag")); a.status != 304 {
		t.Errorf("with its tag: %d %s", a.status, a.body)
	}
}

// With useGroupTags, series that different filters have selected are joined by the tags that the
// filters group by.
func TestExp_groupTags(t *testing.T) {
	b := open(t, nil)
	b.put("cpu 1356998400 1 host=x type=user", "cpu 1356998400 3 host=x type=idle", "cpu 1356998400 1 host=y type=user", "cpu 1356998400 1 host=z type=idle")
	filter := func(kind string) string {
		return fmt.Sprintf(`{"id":"f%s","tags":[{"type":"wildcard","tagk":"host","filter":"*","groupBy":true},{"type":"literal_or","tagk":"type","filter":"%s","groupBy":false}]}`, kind, kind)
	}
	busy := func(join string) string {
		return `{"time":{"start":1356998400,"end":1356998520,"aggregator":"sum"},"filters":[` + filter("user") + "," + filter("idle") + `],
			"metrics":[{"id":"a","metric":"cpu","filter":"fuser"},{"id":"b","metric":"cpu","filter":"fidle"}],
			"expressions":[{"id":"busy","expr":"a / (a + b) * 100","join":` + join + `}],"outputs":[{"id":"busy"}]}`
	}
	b.refused(b.post("/api/query/exp", busy(`{"operator":"intersection","useQueryTags":true}`)), 400, "No intersections found: a has 2 series, b has 2 series")
	a := b.post("/api/query/exp", busy(`{"operator":"intersection","includeAggTags":false,"useGroupTags":true}`))
	if a.status != 200 || !strings.Contains(a.body, `"dps":[[1356998400000,25.0]]`) || !strings.Contains(a.body, `"useGroupTags":true`) {
		t.Errorf("%d %s; want 25 for host x alone", a.status, a.body)
	}
}

// The limits of queries hold for requests for expressions. The answer has 10 points: 6 of the
// expression and 4 of the metric.
func TestExp_limits(t *testing.T) {
	f := func(json, arrow int64, accept string, status int) {
		t.Helper()
		b := withPercent(t, func(c *gateway.Config) { c.LimitJSON, c.LimitArrow = json, arrow })
		a := b.post("/api/query/exp", percent, "Accept", accept)
		if a.status != status || status == 413 && !strings.Contains(a.body, "DOWNPOUR_LIMIT_") {
			t.Errorf("limits %d, %d: %d %s, want %d", json, arrow, a.status, a.body, status)
		}
	}
	f(10, 0, "*/*", 200)
	f(9, 0, "*/*", 413)
	f(1, 10, batch.StreamMediaType, 200)
	f(0, 9, batch.StreamMediaType, 413)

	b := withPercent(t, func(c *gateway.Config) { c.LimitPoints = 3 })
	b.refused(b.post("/api/query/exp", percent), 413, "more than our limit of 3 data points")
	b = withPercent(t, func(c *gateway.Config) { c.LimitQueries = 1 })
	b.refused(b.post("/api/query/exp", percent), 413, "Too many metrics, at most 1")
}

// A request for expressions is a query: explain shows its plans, it is listed among the completed
// queries, and it gives its memory back.
func TestExp_isAQuery(t *testing.T) {
	b := withPercent(t, nil)
	if a := b.post("/api/query/exp?explain=true", percent); a.status != 200 || !strings.Contains(a.body, `"parts"`) {
		t.Errorf("explain: %d %s", a.status, a.body)
	}
	if a := b.post("/api/query/exp", percent); a.status != 200 {
		t.Fatalf("got %d %s, want 200", a.status, a.body)
	}
	if a := b.get("/api/stats/query"); !strings.Contains(a.body, `"emittedDPs":10`) {
		t.Errorf("want a completed query that has emitted 10 points, got %s", a.body)
	}
	b.settled()

	nested := strings.Replace(percent, `"expr":"100 * a / b"`, fmt.Sprintf(`"expr":%q`, strings.Repeat("(", 100)+"a"), 1)
	b.refused(b.post("/api/query/exp", nested), 400, "nested deeper than 64")
	b.settled()
}
