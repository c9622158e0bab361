//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/integration/e2e"
)

// The real apache-arrow reads what the JSON says, row by row.
func TestArrow_javascript(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	urls := arrowQuestions(ctx, t)
	sayWhatJSONSays(ctx, t, urls, 1, must[[]byte](t)(e2e.Node(ctx, "integration/readers/read.mjs", urls...)))
}

// So do the real pyarrow, pandas, polars and DuckDB, and our package for Python.
func TestArrow_python(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	urls := arrowQuestions(ctx, t)
	urls = append(urls, urls[0]+"&compression=zstd")
	sayWhatJSONSays(ctx, t, urls, 7, must[[]byte](t)(e2e.Python(ctx, "integration/readers/read.py", urls...)))
}

// sayWhatJSONSays compares what so many readers have printed with the JSON answers.
func sayWhatJSONSays(ctx context.Context, t *testing.T, urls []string, readers int, printed []byte) {
	read := readings(t, printed)
	if len(read) != readers {
		t.Fatalf("got the readers %v, want %d", slices.Sorted(maps.Keys(read)), readers)
	}
	for i, url := range urls {
		want := rowsOfJSON(ctx, t, url)
		if none := strings.Contains(url, "elsewhere"); none != (len(want) == 0) {
			t.Errorf("%s: %d points, want none of odd.elsewhere and some of the others", url, len(want))
		}
		for reader, answers := range read {
			if d := cmp.Diff(want, answers[i], comparers(reader)...); d != "" {
				t.Errorf("%s of %s: -JSON +Arrow\n%.3000s", reader, url, d)
			}
		}
	}
}

// arrowQuestions starts a gateway with data and returns addresses of what is asked of it.
func arrowQuestions(ctx context.Context, t *testing.T) (urls []string) {
	ours := embedded(t, nil)
	put(ctx, t, ours.URL, introduce())
	put(ctx, t, ours.URL, dataset(12))
	put(ctx, t, ours.URL, oddities())
	for _, query := range []string{
		"m=sum:load.int",
		"m=none:load.int&integers=true",
		"m=avg:load.float{host=*}",
		"m=sum:5m-avg:rate:load.mixed{host=*,dc=lga}",
		"m=max:load.ms&compression=lz4",
		"m=sum:1m-avg-nan:load.int{host=*}",
		"m=sum:1m-avg-null:load.int&integers=true",
		"m=sum:load.int&m=max:1m-max:load.float{dc=*}&m=sum:odd.large",
		"m=sum:load.int{host=*}&m=none:odd.tags&integers=true",
		"m=none:odd.large&integers=true",
		"m=none:odd.large",
		"m=sum:odd.tags",
		"m=none:odd.tags&compression=lz4",
		"m=sum:odd.elsewhere", // no points in range
		"m=none:odd.elsewhere{value=*}&integers=true",
	} {
		urls = append(urls, fmt.Sprintf("%s/api/query?start=%d&end=%d&%s",
			ours.URL, dataStart, dataStart+7200, escaped(query)))
	}
	return urls
}

func escaped(query string) string {
	return strings.NewReplacer("{", "%7B", "}", "%7D", "|", "%7C").Replace(query)
}

// oddities are what a reader can stumble over: integers that no double holds,
// tags named like columns, points outside the range that is asked.
func oddities() (points []e2e.Point) {
	add := func(metric string, at int64, value string, tags ...string) {
		p := e2e.Point{
			Metric:    metric,
			Timestamp: dataStart + at,
			Value:     json.RawMessage(value),
			Tags:      map[string]string{},
		}
		for i := 0; i < len(tags); i += 2 {
			p.Tags[tags[i]] = tags[i+1]
		}
		points = append(points, p)
	}
	for i, v := range []string{
		"9007199254740993", "-9007199254740993", strconv.Itoa(math.MaxInt64), strconv.Itoa(math.MinInt64), "0",
		"1.5",
	} {
		add("odd.large", int64(10*i), v, "host", "web01")
	}
	for i, key := range []string{"metric", "timestamp", "value", "value_int", "query", "tag_value", "host"} {
		add("odd.tags", int64(i), strconv.Itoa(i), key, "a", "dc", "lga")
		add("odd.tags", int64(i), strconv.Itoa(i), key, "b", "dc", "lga")
	}
	add("odd.elsewhere", -9000, "1", "value", "a")
	return points
}

// reading is one row as text. aggregated is set by readers that see a batch's metadata.
type reading struct {
	text       string
	aggregated []string
}

// comparers compares what a reader can tell: only pyarrow sees the metadata, and pandas has one
// word for NaN and null.
func comparers(reader string) (options cmp.Options) {
	normal := func(r reading) reading { return r }
	if reader == "pandas" {
		normal = func(r reading) reading {
			r.text = strings.NewReplacer(" null", " nan").Replace(r.text)
			return r
		}
	}
	return cmp.Options{cmp.Comparer(func(a, b reading) bool {
		same := normal(a).text == normal(b).text
		return same && (!strings.HasPrefix(reader, "pyarrow") || slices.Equal(a.aggregated, b.aggregated))
	})}
}

// rowsOfJSON asks for the arrays form in milliseconds.
func rowsOfJSON(ctx context.Context, t *testing.T, url string) (rows []reading) {
	t.Helper()
	a := must[e2e.Answer](t)(e2e.Get(ctx, url+"&arrays=true&ms=true&show_query=true"))
	var results []struct {
		Metric        string
		Tags          map[string]string
		AggregateTags []string
		Query         struct{ Index int }
		Dps           [][2]json.RawMessage
	}
	if err := json.Unmarshal(a.Body, &results); err != nil || a.Status != 200 {
		t.Fatalf("status %d, %v: %.500s", a.Status, err, a.Body)
	}
	exact := strings.Contains(url, "integers=true")
	for _, r := range results {
		for _, p := range r.Dps {
			text := row(r.Query.Index, r.Metric, r.Tags, string(p[0]), number(t, string(p[1]), exact))
			rows = append(rows, reading{text, r.AggregateTags})
		}
	}
	return rows
}

// row is "query metric tags timestamp value".
func row(query int, metric string, tags map[string]string, at, value string) string {
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		pairs = append(pairs, k+"="+tags[k])
	}
	return fmt.Sprintf("%d %s{%s} %s %s", query, metric, strings.Join(pairs, ","), at, value)
}

// number writes a value of any form the same way: an integer as it is if exact is set, else as a
// double.
func number(t *testing.T, text string, exact bool) string {
	t.Helper()
	text = strings.ToLower(strings.Trim(text, `"`))
	if text == "null" || text == "nan" {
		return text
	}
	if exact && !strings.ContainsAny(text, ".e") {
		return text
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// readings reads what the scripts of integration/readers print: rows by reader and index of the
// URL.
func readings(t *testing.T, out []byte) map[string]map[int][]reading {
	t.Helper()
	read := map[string]map[int][]reading{}
	var reader string
	var i int
	for text := range bytes.Lines(out) {
		text = bytes.TrimSpace(text)
		switch {
		case len(text) == 0:
		case text[0] == '!':
			t.Errorf("%s, address %d: %s", reader, i, text)
		case text[0] == '#':
			if _, err := fmt.Sscanf(string(text), "# %s %d", &reader, &i); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if read[reader] == nil {
				read[reader] = map[int][]reading{}
			}
		default:
			read[reader][i] = append(read[reader][i], arrowRow(t, text))
		}
	}
	return read
}

// arrowRow takes the fixed columns away; what is left are tags.
func arrowRow(t *testing.T, text []byte) (r reading) {
	t.Helper()
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(text, &columns); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if raw, ok := columns["aggregateTags"]; ok {
		if err := json.Unmarshal(raw, &r.aggregated); err != nil {
			t.Fatal(err)
		}
		delete(columns, "aggregateTags")
	}
	take := func(name string) string {
		raw := columns[name]
		delete(columns, name)
		var s string
		if json.Unmarshal(raw, &s) == nil && string(raw) != "null" {
			return s
		}
		return string(raw)
	}
	query, _ := strconv.Atoi(take("query")) // no such column means sub-query 0
	metric, at, value, whole := take("metric"), take("timestamp"), take("value"), take("value_int")
	exact := whole != "" && whole != "null"
	if exact {
		value = whole
	}
	r.text = row(query, metric, tagsOf(take, columns), at, number(t, value, exact))
	return r
}

// tagsOf gives tags with the name of a fixed column that name back: their columns are called
// tag_NAME, or tag_tag_NAME if there is a tag called tag_NAME too.
func tagsOf(take func(string) string, columns map[string]json.RawMessage) map[string]string {
	tags, all := map[string]string{}, maps.Clone(columns)
	for name := range all {
		tag := take(name)
		if tag == "null" {
			continue
		}
		for _, fixed := range []string{"metric", "timestamp", "value", "value_int", "query"} {
			if _, another := all["tag_tag_"+fixed]; name == "tag_"+fixed && !another || name == "tag_tag_"+fixed {
				name = fixed
			}
		}
		tags[name] = tag
	}
	return tags
}
