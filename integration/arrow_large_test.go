//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"downpour/encoding/batch"
	"downpour/integration/e2e"
)

const day = 86400

// dayOf asks for a day of one point a second: the fill policy makes them from the single point of
// each series.
func dayOf(url, metric string) string {
	return fmt.Sprintf("%s/api/query?start=%d&end=%d&m=sum:1s-sum-zero:%s%%7Bhost=*%%7D",
		url, dataStart, dataStart+day-1, metric)
}

// The real readers read all of ten million points. Their rates are printed, and that of a client
// that throws the bytes away.
func TestArrow_tenMillion(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	ours := embedded(t, nil)
	const series = 116 // times the 86,400 seconds of a day is ten million
	var points []e2e.Point
	for i := range series {
		points = append(points, e2e.Point{
			Metric:    "many",
			Timestamp: dataStart + int64(i),
			Value:     json.RawMessage(fmt.Sprint(i)),
			Tags:      map[string]string{"host": fmt.Sprint("h", i)},
		})
	}
	put(ctx, t, ours.URL, points)
	url := dayOf(ours.URL, "many")
	for range 2 { // the first one warms
		began := time.Now()
		n := fetchAll(ctx, t, url, []string{"Accept", batch.StreamMediaType})
		took := time.Since(began).Seconds()
		t.Logf("%-20s %5.2f s, %5.1f M points/s, %4.0f MB/s", "wire", took, series*day/took/1e6, float64(n)/took/1e6)
	}
	out := must[[]byte](t)(e2e.Python(ctx, "integration/readers/rate.py", url))
	readers := 0
	for line := range bytes.Lines(out) {
		var r struct {
			Reader       string
			Rows         int
			Sum, Seconds float64
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		readers++
		t.Logf("%-20s %5.2f s, %5.1f M points/s", r.Reader, r.Seconds, float64(r.Rows)/r.Seconds/1e6)
		if r.Rows != series*day || r.Sum != series*(series-1)/2 {
			t.Errorf("%s: %d rows, sum %v; want %d, %d", r.Reader, r.Rows, r.Sum, series*day, series*(series-1)/2)
		}
	}
	if readers != 4 {
		t.Errorf("%d readers, want 4: %s", readers, out)
	}
}

// A stream that is cut in the middle is an error to every reader. Here it is cut because the sum of
// a later group exceeds the largest double.
func TestArrow_cutStream(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	ours := embedded(t, nil)
	point := func(host, dc, value string) e2e.Point {
		return e2e.Point{
			Metric:    "cut",
			Timestamp: dataStart,
			Value:     json.RawMessage(value),
			Tags:      map[string]string{"host": host, "dc": dc},
		}
	}
	put(ctx, t, ours.URL, []e2e.Point{point("long", "a", "1")})
	put(ctx, t, ours.URL, []e2e.Point{point("over", "a", "1.7e308"), point("over", "b", "1.7e308")})
	url := dayOf(ours.URL, "cut")
	if a := must[e2e.Answer](t)(e2e.Get(ctx, url)); a.Status != 400 {
		t.Fatalf("JSON: status %d, %.300s; want 400, because a sum exceeds the largest double", a.Status, a.Body)
	}
	out := must[[]byte](t)(e2e.Python(ctx, "integration/readers/read.py", url))
	out = append(out, must[[]byte](t)(e2e.Node(ctx, "integration/readers/read.mjs", url))...)
	var failed []string
	var reader string
	for line := range bytes.Lines(out) {
		switch line[0] {
		case '#':
			reader = string(line[2:bytes.LastIndexByte(line, ' ')])
		case '!':
			failed = append(failed, reader)
			t.Logf("%s: %s", reader, bytes.TrimSpace(line))
		}
	}
	want := []string{
		"apache-arrow", "downpour", "duckdb", "pandas", "polars", "pyarrow", "pyarrow-gzip", "pyarrow-zstd",
	}
	if slices.Sort(failed); !slices.Equal(failed, want) {
		t.Errorf("readers that failed: %v, want %v", failed, want)
	}
}
