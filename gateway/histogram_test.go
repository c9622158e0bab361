package gateway_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/gatewaytest"
)

// openHistograms starts a gateway that takes histograms.
func openHistograms(t *testing.T, change func(*gateway.Config)) *bench {
	t.Helper()
	return open(t, func(c *gateway.Config) {
		c.Histograms, c.ResultCache = `{"net.opentsdb.core.SimpleHistogramDecoder": 42}`, "1MiB"
		if change != nil {
			change(c)
		}
	})
}

// putHistogram puts one histogram of metric m; rest is its value in JSON, as "buckets":{…}.
func putHistogram(b *bench, time int, host, rest string) answer {
	b.Helper()
	return b.Post("api/histogram?details",
		fmt.Sprintf(`{"metric":"m","timestamp":%d,"tags":{"host":%q},%s}`, time, host, rest))
}

// mustPut puts a histogram with these buckets and fails the test if it is refused.
func mustPut(b *bench, time int, host, buckets string) {
	b.Helper()
	if a := putHistogram(b, time, host, `"buckets":`+buckets); a.Status != http.StatusOK {
		b.Fatalf("put: got %d %s, want 200", a.Status, a.Body)
	}
}

// lines returns the results of a query as short texts: the metric, and the points without the
// leading 1356998 of their times.
func histogramLines(b *bench, query string) (out []string) {
	b.Helper()
	a := b.Get("api/query?arrays&start=1356998400&end=1356998700&" + query)
	var results []struct {
		Metric string
		DPs    json.RawMessage
	}
	if err := json.Unmarshal([]byte(a.Body), &results); err != nil || a.Status != http.StatusOK {
		b.Fatalf("%s: %d %s", query, a.Status, a.Body)
	}
	for _, r := range results {
		out = append(out, r.Metric+" "+strings.ReplaceAll(string(r.DPs), "1356998", ""))
	}
	return out
}

// Histograms in binary are checked like those of JSON, and so is the number of buckets. The story histograms_refused
// has all others.
func TestHistogram_refused(t *testing.T) {
	b := openHistograms(t, nil)
	f := func(rest, want string) {
		t.Helper()
		a := putHistogram(b, 1356998400, "a", rest)
		var got struct {
			Success, Failed int
			Errors          []struct{ Error string }
		}
		if err := json.Unmarshal([]byte(a.Body), &got); err != nil || a.Status != http.StatusBadRequest ||
			got.Success != 0 || got.Failed != 1 || len(got.Errors) != 1 {
			t.Errorf("%.100s: %d %.300s: %v", rest, a.Status, a.Body, err)
		} else if diff := cmp.Diff(want, got.Errors[0].Error); diff != "" {
			t.Errorf("%.100s: want -, got +: %s", rest, diff)
		}
	}
	binary := func(h encoding.Histogram) string {
		return fmt.Sprintf(`"id":42,"value":%q`, base64.StdEncoding.EncodeToString(encoding.AppendHistogram(nil, &h)))
	}
	f(binary(encoding.NewHistogram([]encoding.HistogramBucket{{Lower: 0, Upper: 1, Count: -5}}, 0, 0)),
		"Invalid bucket 0,1: got the count -5, want at least 0")
	f(binary(encoding.NewHistogram([]encoding.HistogramBucket{{Lower: 3, Upper: 1, Count: 5}}, 0, 0)),
		"Invalid bucket 3,1: want the lower bound not above the upper one")
	f(`"id":42,"value":"f/8AAAAAAAA="`, "encoding: histogram of 8 bytes is said to have 32767 buckets, want at most 0")
	f(`"id":42,"value":"AAIAAAAAP4AAAAU/gAAAQAA"`,
		"encoding: histogram of 15 bytes is said to have 2 buckets, want at most 1")

	// More buckets than a cell can have.
	many := strings.Builder{}
	for i := range encoding.MaxHistogramBuckets + 1 {
		fmt.Fprintf(&many, `"%d,%d":1,`, i, i+1)
	}
	list := strings.TrimSuffix(many.String(), ",")
	f(`"buckets":{`+list+`}`, "Too many buckets: 32768, maximum allowed: 32767")
}

// Queries of histograms read raw data, also where a rollup table would serve their downsampler.
func TestHistogram_besideRollups(t *testing.T) {
	b := openHistograms(t, gatewaytest.WithRollups)
	b.Rollups("10m-sum m 1356998400 42 host=a")
	mustPut(b, 1356998400, "a", `{"0,1":1}`)
	mustPut(b, 1356998430, "a", `{"0,1":2}`)
	got := histogramLines(b, "m=sum:10m-sum:percentiles[50]:m")
	if diff := cmp.Diff([]string{"m_pct_50.0 [[400,0.5]]"}, got); diff != "" {
		t.Errorf("want -, got +: %s", diff)
	}
	if diff := cmp.Diff([]string{"m [[400,42.0]]"}, histogramLines(b, "m=sum:10m-sum:m")); diff != "" {
		t.Errorf("want -, got +: %s", diff)
	}
}

// A repeated query of histograms is answered from the result cache until a histogram is put. A query
// of other percentiles uses the same cached part.
func TestHistogram_cached(t *testing.T) {
	b := openHistograms(t, nil)
	mustPut(b, 1356998400, "a", `{"0,1":1}`)
	ask := func(percentiles, value, said string) {
		t.Helper()
		a := b.Get("api/query?trace=true&start=1356998400&end=1356998700&m=sum:percentiles[" + percentiles + "]:m")
		if !strings.Contains(a.Body, `"1356998400":`+value) || !strings.Contains(a.Body, `"resultCache":"`+said) {
			t.Errorf("%d %s, want the value %s and a trace that says %q", a.Status, a.Body, value, said)
		}
	}
	b.Get("api/query?start=1356998400&end=1356998700&m=sum:percentiles[50]:m")
	ask("50", "0.5", "kept")
	ask("50", "0.5", "answered from memory whole")
	ask("99", "0.5", "answered from memory")
	mustPut(b, 1356998400, "b", `{"4,6":9}`)
	ask("50", "5.0", "read: rows may have changed")
	ask("50", "5.0", "kept")
	ask("50", "5.0", "answered from memory whole")
}

// DOWNPOUR_HISTOGRAMS is checked at start.
func TestHistogram_setting(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		c := config(0)
		c.Histograms = text
		err := c.Validate()
		if err == nil || !strings.Contains(err.Error(), "DOWNPOUR_HISTOGRAMS") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	f("{", "want a JSON object")
	f(`{"x.Decoder":1}`, "got 1 classes, want net.opentsdb.core.SimpleHistogramDecoder alone")
	f(`{}`, "got 0 classes")
	f(`{"net.opentsdb.core.SimpleHistogramDecoder":128}`, "has number 128, want 0 to 127")
	f(`{"net.opentsdb.core.SimpleHistogramDecoder":-1}`, "has number -1")
	f("/nowhere/histograms.json", "no such file")
}

// An Arrow answer has a row for each point of each line; the name of the metric shows the
// percentile or bucket. Only counts are integers.
func TestHistogram_arrow(t *testing.T) {
	b := openHistograms(t, nil)
	mustPut(b, 1356998400, "a", `{"0,1":1,"1,2":9}`)
	mustPut(b, 1356998460, "a", `{"0,1":2}`)
	a := arrow(b, "m=sum:percentiles[50]:show-histogram-buckets:m&integers=true")
	if a.Status != http.StatusOK {
		t.Fatalf("got %d %s, want 200", a.Status, a.Body)
	}
	r, err := ipc.NewReader(strings.NewReader(a.Body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var got []string
	for r.Next() {
		rec := r.Record()
		column := func(name string) int { return r.Schema().FieldIndices(name)[0] }
		metric := rec.Column(column("metric"))
		values := rec.Column(column("value")).(*array.Float64)
		ints := rec.Column(column("value_int")).(*array.Int64)
		for i := range int(rec.NumRows()) {
			whole := "null"
			if ints.IsValid(i) {
				whole = fmt.Sprint(ints.Value(i))
			}
			got = append(got, fmt.Sprintf("%s %v %s", metric.ValueStr(i), values.Value(i), whole))
		}
	}
	want := []string{"m_pct_50.0 1.5 null", "m_pct_50.0 0.5 null", "m_UNDERFLOW 0 0", "m_UNDERFLOW 0 0",
		"m_0.0_1.0 1 1", "m_0.0_1.0 2 2", "m_1.0_2.0 9 9", "m_1.0_2.0 0 0", "m_OVERFLOW 0 0", "m_OVERFLOW 0 0"}
	if diff := cmp.Diff(want, got); diff != "" || r.Err() != nil {
		t.Errorf("%v, want -, got +: %s", r.Err(), diff)
	}
}

// Queries for too many percentiles or buckets, or of too large histograms, are refused.
func TestHistogram_limits(t *testing.T) {
	b := openHistograms(t, func(c *gateway.Config) { c.LimitJSON = 50 })
	mustPut(b, 1356998400, "a", `{"0,1":1}`)
	var many strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, `"%d,%d":1,`, i, i+1)
	}
	mustPut(b, 1356998400, "b", "{"+strings.TrimSuffix(many.String(), ",")+"}")

	const query = "api/query?start=1356998400&end=1356998700&m=sum:"
	b.Refused(b.Get(query+"percentiles["+strings.Repeat("1,", 1000)+"1]:m"), http.StatusBadRequest,
		"Too many percentiles in one sub query: 1001, at most 1000")
	b.Refused(b.Get(query+"percentiles["+strings.Repeat("1,", 50)+"1]:m"), http.StatusRequestEntityTooLarge,
		"the answer has")
	b.Refused(b.Get(query+"show-histogram-buckets:m"), http.StatusRequestEntityTooLarge, "the answer has")
	b.Refused(b.Get(query+"percentiles[NaN]:m"), http.StatusBadRequest, "Invalid percentile parameters: NaN")

	small := openHistograms(t, func(c *gateway.Config) { c.LimitMemory = 100_000 })
	mustPut(small, 1356998400, "b", "{"+strings.TrimSuffix(many.String(), ",")+"}")
	small.Refused(small.Get(query+"percentiles[50]:m"), http.StatusRequestEntityTooLarge, "100000 bytes of memory")
}
