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
	b.Put("m 1356998400 1 host=x", "m 1356998460 2 host=x", "m 1356998400 3 host=y", "n 1356998400 4 host=x",
		"n 1356998460 4 host=x", "n 1356998400 6 host=y", "n 1356998520 5 host=y")
	return b
}

// An Arrow answer has a row for each time of a group and a column for each output. The last time is
// n's alone: there a, which is m by itself, is null.
func TestExp_arrow(t *testing.T) {
	b := withPercent(t, nil)
	a := b.Post("/api/query/exp", percent, "Accept", batch.StreamMediaType, "Accept-Encoding", "identity")
	if a.Status != 200 || a.Header.Get("Content-Type") != batch.StreamMediaType || a.Header.Get("ETag") == "" {
		t.Fatalf("got %d %v %s, want an Arrow stream with an ETag", a.Status, a.Header, a.Body)
	}
	r, err := ipc.NewReader(strings.NewReader(a.Body))
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

	b.Refused(b.Post("/api/query/exp?compression=brotli", percent, "Accept", batch.StreamMediaType), 400,
		"brotli, want lz4 or zstd")
	if a := b.Post("/api/query/exp", percent, "Accept", batch.StreamMediaType,
		"If-None-Match", a.Header.Get("ETag")); a.Status != 304 {
		t.Errorf("with its tag: %d %s", a.Status, a.Body)
	}
}

// A request for expressions gives its memory back.
func TestExp_memory(t *testing.T) {
	b := withPercent(t, nil)
	if a := b.Post("/api/query/exp", percent); a.Status != 200 {
		t.Fatalf("got %d %s, want 200", a.Status, a.Body)
	}
	b.Settled()

	nested := strings.Replace(percent, `"expr":"100 * a / b"`,
		fmt.Sprintf(`"expr":%q`, strings.Repeat("(", 100)+"a"), 1)
	b.Refused(b.Post("/api/query/exp", nested), 400, "nested deeper than 64")
	b.Settled()
}
