package tools_test

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/gateway/extra/tools"
	"downpour/gateway/extra/tools/pointfile/pointfiletest"
)

// queryLines are points of both types, among them integers that no double holds, and a tag value that CSV has to quote.
const queryLines = "m 1356998400 1 host=a dc=b\nm 1356998401 9007199254740993 host=a dc=b\n" +
	"m 1356998402250 -3 host=a dc=b\nm 1356998400 0.5 host=c\n" +
	"m 1356998402 1e300 host=c\nm 1356998403 2.0 host=c\nm 1356998400 7 host=x,\"y\"\n"

// queried returns a store with queryLines.
func queried(t *testing.T) *place {
	p := embedded(t)
	p.cfg.AllowSpecialChars = `,"`
	if err := p.tool("", strings.NewReader(queryLines), "import", "-"); err != nil {
		t.Fatal(err)
	}
	return p
}

// The forms of an answer have the same points, from a gateway and from the store itself: integers stay integers, and
// what CSV has to quote is quoted.
func TestQuery_forms(t *testing.T) {
	p := queried(t)
	ask := func(url string) {
		t.Helper()
		f := func(form, want string) {
			t.Helper()
			err := p.tool(url, nil, "query", "-format", form, "1356998400", "1356998410", "none:m")
			if diff := cmp.Diff(want, p.out.String()); err != nil || diff != "" || p.errs.Len() > 0 {
				t.Errorf("%s at %s: %v, %q, %s", form, url, err, &p.errs, diff)
			}
		}
		f("lines", `m 1356998400000 1 {dc=b, host=a}
m 1356998401000 9007199254740993 {dc=b, host=a}
m 1356998402250 -3 {dc=b, host=a}
m 1356998400000 0.500000 {host=c}
m 1356998402000 `+strconv.FormatFloat(1e300, 'f', 6, 64)+` {host=c}
m 1356998403000 2.000000 {host=c}
m 1356998400000 7 {host=x,"y"}
`)
		f("csv", `metric,dc,host,timestamp,value
m,b,a,2013-01-01T00:00:00.000Z,1
m,b,a,2013-01-01T00:00:01.000Z,9007199254740993
m,b,a,2013-01-01T00:00:02.250Z,-3
m,,c,2013-01-01T00:00:00.000Z,0.5
m,,c,2013-01-01T00:00:02.000Z,1e+300
m,,c,2013-01-01T00:00:03.000Z,2.0
m,,"x,""y""",2013-01-01T00:00:00.000Z,7
`)
		f("table", `metric  dc  host   timestamp                 value
m       b   a      2013-01-01T00:00:00.000Z  1
m       b   a      2013-01-01T00:00:01.000Z  9007199254740993
m       b   a      2013-01-01T00:00:02.250Z  -3
m           c      2013-01-01T00:00:00.000Z  0.5
m           c      2013-01-01T00:00:02.000Z  1e+300
m           c      2013-01-01T00:00:03.000Z  2.0
m           x,"y"  2013-01-01T00:00:00.000Z  7
`)
		f("json", `[{"metric":"m","tags":{"host":"a","dc":"b"},"aggregateTags":[],"dps":{"1356998400000":1,`+
			`"1356998401000":9007199254740993,"1356998402250":-3}},{"metric":"m","tags":{"host":"c"},`+
			`"aggregateTags":[],"dps":{"1356998400000":0.5,"1356998402000":1.0E300,"1356998403000":2.0}},`+
			`{"metric":"m","tags":{"host":"x,\"y\""},"aggregateTags":[],"dps":{"1356998400000":7}}]`+"\n")
	}
	ask("http://127.0.0.1:1")
	p.serve(func(url string, _ tools.Store) { ask(url) })
}

// point is a row of an Arrow stream or a Parquet file as text.
func point(query int, metric string, tags map[string]string, ms int64, value string) string {
	return fmt.Sprint(query, " ", metric, " ", tags, " ", ms, " ", value)
}

// arrowPoints reads an Arrow stream.
func arrowPoints(t *testing.T, data []byte) (all []string) {
	t.Helper()
	in, err := batch.NewResultReader(bytes.NewReader(data))
	if err == nil {
		err = in.Each(func(g *batch.ResultGroup) error {
			tags := map[string]string{}
			for i, k := range g.TagKeys {
				tags[k] = g.TagValues[i]
			}
			for i := range g.Points.Len() {
				ms, v := g.Points.At(i)
				value := v.String()
				if g.NaNIsNull && value == "NaN" {
					value = "null"
				}
				all = append(all, point(g.Query, g.Metric, tags, ms, value))
			}
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// parquetPoints reads a Parquet file.
func parquetPoints(t *testing.T, data []byte) (all []string) {
	t.Helper()
	_, rows, _ := pointfiletest.Read(t, data)
	for _, r := range rows {
		metric := r.Texts["metric"]
		delete(r.Texts, "metric")
		value := r.Int
		switch {
		case r.Null:
			value = "null"
		case value == "null":
			value = encoding.FloatValue(math.Float64frombits(r.Bits)).String()
		}
		all = append(all, point(int(r.Query), metric, r.Texts, r.Time, value))
	}
	return all
}

// The points of a Parquet file are those of the Arrow stream of the same query, and those of an export: also null and
// NaN, which are apart, and the sub-query that they answer.
func TestQuery_files(t *testing.T) {
	p := queried(t)
	f := func(words ...string) (points []string) {
		t.Helper()
		p.mustTool("query", append([]string{"-format", "arrow"}, words...)...)
		points = arrowPoints(t, p.out.Bytes())
		p.mustTool("query", append([]string{"-format", "parquet"}, words...)...)
		if diff := cmp.Diff(points, parquetPoints(t, p.out.Bytes())); diff != "" || len(points) == 0 {
			t.Errorf("%q: %d points in the stream, and (-Arrow +Parquet) %s", words, len(points), diff)
		}
		return points
	}
	all := f("1356998400", "1356998410", "none:m")
	p.mustTool("export", "-format", "parquet", "1356998400", "1356998410", "m")
	if diff := cmp.Diff(all, parquetPoints(t, p.out.Bytes())); diff != "" {
		t.Errorf("(-query +export) %s", diff)
	}

	times := []string{"1356998400", "1356998403"}
	both := append(slices.Clone(times), "sum:1s-sum-null:m{host=a}", "sum:1s-sum-nan:m{host=c}")
	got := f(both...)
	if diff := cmp.Diff([]string{
		"0 m map[dc:b host:a] 1356998400000 1.0", "0 m map[dc:b host:a] 1356998401000 9.007199254740992e+15",
		"0 m map[dc:b host:a] 1356998402000 -3.0", "0 m map[dc:b host:a] 1356998403000 null",
		"1 m map[host:c] 1356998400000 0.5", "1 m map[host:c] 1356998401000 NaN",
		"1 m map[host:c] 1356998402000 1e+300", "1 m map[host:c] 1356998403000 2.0",
	}, got); diff != "" {
		t.Error(diff)
	}
	p.mustTool("query", append([]string{"-format", "csv"}, both...)...)
	p.said("metric,dc,host,timestamp,value,query\n")
	p.said("m,b,a,2013-01-01T00:00:03.000Z,,0\n")
	p.said("m,,c,2013-01-01T00:00:01.000Z,NaN,1\n")
	p.mustTool("query", both...)
	p.said("m 1356998403000 NaN {dc=b, host=a}\nm 1356998400000 0.500000 {host=c}\nm 1356998401000 NaN {host=c}\n")
}

// An expression has the answer that the words for the same have, with and without m=, and as a START the last hour.
func TestQuery_expressions(t *testing.T) {
	p := queried(t)
	p.now = func() time.Time { return time.Unix(1356998400+1800, 0) }
	words := p.mustTool("query", "1356998400", "1356998410", "sum", "rate", "downsample", "1s", "max", "m", "host=a|c")
	for _, args := range [][]string{
		{"1356998400", "1356998410", "sum:1s-max:rate:m{host=a|c}"}, {"1356998400", "m=sum:1s-max:rate:m{host=a|c}"},
		{"2013/01/01-00:00:00", "2013/01/01-00:01", "sum:1s-max:rate:m{host=a|c}"}, {"sum:1s-max:rate:m{host=a|c}"},
	} {
		if got := p.mustTool("query", args...); got != words || strings.Count(got, "\n") < 3 {
			t.Errorf("%q: %q, want %q, as the words", args, got, words)
		}
	}
	two := p.mustTool("query", "1356998400", "sum:m{host=a}", "m=max:m{host=c}")
	if one := p.mustTool("query", "1356998400", "sum", "m", "host=a", "max", "m", "host=c"); two != one {
		t.Errorf("two expressions: %q, want %q", two, one)
	}
}

// What cannot be meant is refused with the reason, and what is passed over is said. A terminal gets no bytes that are
// no text.
func TestQuery_refused(t *testing.T) {
	p := queried(t)
	f := func(want string, args ...string) {
		t.Helper()
		p.failTool(want, "query", args...)
	}
	f(`-format: got "xml", want one of lines, table, json, csv, arrow, parquet`, "-format", "xml", "1", "sum:m")
	f(`"sum": want nothing but expressions behind an expression`, "1", "sum:m", "sum", "m")
	f(`AGG: got "some:m", want one of`, "1", "some:m", "x")
	f("not enough :-separated parts", "1", "m=sum")
	f("No such name for 'metrics': 'n'", "1", "sum:n")
	f("Invalid parameter m=sum:m{host=a:b} (a ':' in the tag", "1", "m=sum:m{host=a:b}")

	p.mustTool("query", "1356998400", "1356998401", "sum:reat:m{host=a}")
	p.said(`warning: the part "reat" of m=sum:reat:m{host=a} means nothing`)
	p.serve(func(url string, _ tools.Store) {
		if err := p.tool(url, nil, "mkmetric", "sys.cpu.user"); err != nil {
			t.Fatal(err)
		}
		p.refusedAt(url, "No such name for 'metrics': 'sys.cpu.usr', did you mean sys.cpu.user?",
			"query", "1", "sum:sys.cpu.usr")
	})

	p.shown = true
	for _, form := range []string{"arrow", "parquet"} {
		f("-format "+form+": standard output is a terminal", "-format", form, "1", "sum:m")
	}
	p.mustTool("query", "-format", "csv", "1356998400", "sum:m")
	p.failTool("standard output is a terminal", "export", "-format", "parquet", "1", "m")
}

// An answer that ends too early is an error in every form, and what came of it is no whole file.
func TestQuery_cut(t *testing.T) {
	p := queried(t)
	p.mustTool("query", "-format", "arrow", "1356998400", "none:m")
	whole := bytes.Clone(p.out.Bytes())
	p.mustTool("query", "-format", "json", "1356998400", "none:m")
	asJSON := bytes.Clone(p.out.Bytes())
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/config":
			fmt.Fprint(w, "{}")
		case strings.Contains(r.Header.Get("Accept"), "arrow"):
			w.Write(whole[:len(whole)-8])
		default:
			w.Write(asJSON[:len(asJSON)/2])
		}
	}))
	defer cut.Close()
	for _, form := range []string{"lines", "table", "csv", "arrow", "parquet"} {
		err := p.tool("", nil, "query", "-gateway", cut.URL, "-format", form, "1356998400", "none:m")
		if err == nil || !strings.Contains(err.Error(), cut.URL) {
			t.Errorf("%s: got %v, want that the answer is cut", form, err)
		}
		if form == "parquet" && bytes.HasSuffix(p.out.Bytes(), []byte("PAR1")) && p.out.Len() > 4 {
			t.Errorf("a file of %d bytes with a footer, want none", p.out.Len())
		}
	}
}
