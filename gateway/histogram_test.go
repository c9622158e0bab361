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
func (b *bench) putHistogram(time int, host, rest string) answer {
	b.Helper()
	return b.post("api/histogram?details", fmt.Sprintf(`{"metric":"m","timestamp":%d,"tags":{"host":%q},%s}`, time, host, rest))
}

// mustPut puts a histogram with these buckets and fails the test if it is refused.
func (b *bench) mustPut(time int, host, buckets string) {
	b.Helper()
	if a := b.putHistogram(time, host, `"buckets":`+buckets); a.status != http.StatusOK {
		b.Fatalf("put: got %d %s, want 200", a.status, a.body)
	}
}

// lines returns the results of a query as short texts: the metric, and the points without the
// leading 1356998 of their times.
func (b *bench) lines(query string) (out []string) {
	b.Helper()
	a := b.get("api/query?arrays&start=1356998400&end=1356998700&" + query)
	var results []struct {
		Metric string
		DPs    json.RawMessage
	}
	if err := json.Unmarshal([]byte(a.body), &results); err != nil || a.status != http.StatusOK {
		b.Fatalf("%s: %d %s", query, a.status, a.body)
	}
	for _, r := range results {
		out = append(out, r.Metric+" "+strings.ReplaceAll(string(r.DPs), "1356998", ""))
	}
	return out
}

// Bad histograms are refused with a reason, and nothing is stored of them.
func TestHistogram_refused(t *testing.T) {
	b := openHistograms(t, nil)
	f := func(rest, want string) {
		t.Helper()
		a := b.putHistogram(1356998400, "a", rest)
		var got struct {
			Success, Failed int
			Errors          []struct{ Error string }
		}
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusBadRequest || got.Success != 0 || got.Failed != 1 || len(got.Errors) != 1 {
			t.Errorf("%.100s: %d %.300s: %v", rest, a.status, a.body, err)
		} else if diff := cmp.Diff(want, got.Errors[0].Error); diff != "" {
			t.Errorf("%.100s: want -, got +: %s", rest, diff)
		}
	}
	finite := "want bounds that are finite; underflow and overflow count what lies outside"
	f(`"buckets":{"0,NaN":1}`, "Invalid bucket 0,NaN: "+finite)
	f(`"buckets":{"NaN,1":1}`, "Invalid bucket NaN,1: "+finite)
	f(`"buckets":{"0,Infinity":1}`, "Invalid bucket 0,+Inf: "+finite)
	f(`"buckets":{"-1e39,1":1}`, "Invalid bucket -Inf,1: "+finite)
	f(`"buckets":{"2,1":1}`, "Invalid bucket 2,1: want the lower bound not above the upper one")
	f(`"buckets":{"0,1":-1}`, "Invalid bucket 0,1: got the count -1, want at least 0")
	f(`"buckets":{"0,1":1},"overflow":-1`, "Invalid histogram: got the underflow 0 and the overflow -1, want at least 0")
	f(`"buckets":{"":1}`, "Unable to parse bucket bounds: ")
	f(`"buckets":{",":1}`, "Unable to parse value to a number")
	f(`"buckets":{"0,1x":1}`, "Unable to parse value to a number")

	// Histograms in binary are checked in the same way.
	binary := func(h encoding.Histogram) string {
		return fmt.Sprintf(`"id":42,"value":%q`, base64.StdEncoding.EncodeToString(encoding.AppendHistogram(nil, &h)))
	}
	f(binary(encoding.NewHistogram([]encoding.HistogramBucket{{Lower: 0, Upper: 1, Count: -5}}, 0, 0)), "Invalid bucket 0,1: got the count -5, want at least 0")
	f(binary(encoding.NewHistogram([]encoding.HistogramBucket{{Lower: 3, Upper: 1, Count: 5}}, 0, 0)), "Invalid bucket 3,1: want the lower bound not above the upper one")
	f(`"id":42,"value":"f/8AAAAAAAA="`, "encoding: histogram of 8 bytes is said to have 32767 buckets, want at most 0")
	f(`"id":42,"value":"AAIAAAAAP4AAAAU/gAAAQAA"`, "encoding: histogram of 15 bytes is said to have 2 buckets, want at most 1")

	// More buckets than a cell can have.
	many := strings.Builder{}
	for i := range encoding.MaxHistogramBuckets + 1 {
		fmt.Fprintf(&many, `"%d,%d":1,`, i, i+1)
	}
	list := strings.TrimSuffix(many.String(), ",")
	f(`"buckets":{`+list+`}`, "Too many buckets: 32768, maximum allowed: 32767")

	// A bucket's count that is no number fails the whole request, as in OpenTSDB.
	b.refused(b.putHistogram(1356998400, "a", `"buckets":{"0,1":"x"}`), http.StatusBadRequest, "Unable to parse the given JSON")
	b.refused(b.putHistogram(1356998400, "a", `"buckets":{"0,1":[1]}`), http.StatusBadRequest, "Unable to parse the given JSON")
	b.refused(b.putHistogram(1356998400, "a", `"buckets":[1]`), http.StatusBadRequest, "Unable to parse the given JSON")
	b.refused(b.putHistogram(1356998400, "a", `"buckets":{"0,1":1`), http.StatusBadRequest, "Unable to parse the given JSON")

	if got := b.telnet("histogram m 1356998400 0,1=-3 host=a", "histogram m 1356998400 1,NaN=3 host=a", "histogram m 1356998400 1,0=3 host=a", "histogram m 1356998400  host=a", "histogram m 1356998400 42  host=a"); got !=
		"histogram: illegal argument: Invalid bucket 0,1: got the count -3, want at least 0\n"+
			"histogram: illegal argument: Invalid bucket 1,NaN: "+finite+"\n"+
			"histogram: illegal argument: Invalid bucket 1,0: want the lower bound not above the upper one\n"+
			"histogram: illegal argument: empty histogram value\n"+
			"histogram: illegal argument: empty histogram value\n" {
		t.Errorf("telnet: %s", got)
	}

	// Of one good histogram among bad ones only the good one is stored.
	a := b.post("api/histogram?summary", `[{"metric":"m","timestamp":1356998400,"tags":{"host":"a"},"buckets":{"2,1":1}},
		{"metric":"m","timestamp":1356998460,"tags":{"host":"a"},"buckets":{"1,2":7}},{"metric":"m","timestamp":1356998520,"tags":{"host":"a"},"buckets":{}}]`)
	if a.status != http.StatusBadRequest || strings.Join(strings.Fields(a.body), "") != `{"success":1,"failed":2}` {
		t.Errorf("got %d %s, want 400 with one success and two failures", a.status, a.body)
	}
	want := []string{"m_UNDERFLOW [[460,0]]", "m_1.0_2.0 [[460,7]]", "m_OVERFLOW [[460,0]]"}
	if diff := cmp.Diff(want, b.lines("m=sum:show-histogram-buckets:m")); diff != "" {
		t.Errorf("stored: want -, got +: %s", diff)
	}
}

// telnet sends lines and returns the answers.
func (b *bench) telnet(lines ...string) string {
	b.Helper()
	c := b.dial()
	fmt.Fprint(c, strings.Join(lines, "\n")+"\n")
	return c.rest()
}

// A row holds a series' points beside its histograms. A query reads one kind or the other, also
// from the result cache.
func TestHistogram_besidePoints(t *testing.T) {
	b := openHistograms(t, nil)
	b.put("m 1356998400 5 host=a", "m 1356998430 6 host=b")
	b.mustPut(1356998400, "a", `{"0,1":1,"1,2":9}`)
	b.mustPut(1356998400, "b", `{"0,1":30}`)
	b.mustPut(1356998460, "a", `{"0,1":2}`)
	b.mustPut(1356998460, "a", `{"0,1":4}`) // the later one counts

	for range 3 {
		for query, want := range map[string][]string{
			"m=none:m":                                                 {"m [[400,5]]", "m [[430,6]]"},
			"m=sum:percentiles[50]:m":                                  {"m_pct_50.0 [[400,0.5],[460,0.5]]"},
			"m=sum:percentiles[50,99]:m":                               {"m_pct_50.0 [[400,0.5],[460,0.5]]", "m_pct_99.0 [[400,1.5],[460,0.5]]"},
			"m=sum:show-histogram-buckets:m{host=a}":                   {"m_UNDERFLOW [[400,0],[460,0]]", "m_0.0_1.0 [[400,1],[460,4]]", "m_1.0_2.0 [[400,9],[460,0]]", "m_OVERFLOW [[400,0],[460,0]]"},
			"m=sum:5m-sum:show-histogram-buckets:m":                    {"m_UNDERFLOW [[400,0]]", "m_0.0_1.0 [[400,35]]", "m_1.0_2.0 [[400,9]]", "m_OVERFLOW [[400,0]]"},
			"m=sum:percentiles[75]:m&m=sum:m&m=none:percentiles[75]:m": {"m_pct_75.0 [[400,0.5],[460,0.5]]", "m [[400,5],[430,6]]", "m_pct_75.0 [[400,1.5],[460,0.5]]", "m_pct_75.0 [[400,0.5]]"},
		} {
			if diff := cmp.Diff(want, b.lines(query)); diff != "" {
				t.Errorf("%s: want -, got +: %s", query, diff)
			}
		}
	}
}

// A query that deletes cannot read histograms, because rows hold points beside them: whichever it
// read, it would delete the other kind unseen.
func TestHistogram_delete(t *testing.T) {
	b := openHistograms(t, func(c *gateway.Config) { c.AllowDelete = true })
	b.put("m 1356998400 5 host=a")
	b.mustPut(1356998400, "a", `{"0,1":1}`)
	for _, m := range []string{`{"percentiles":[50],"aggregator":"sum","metric":"m"}`, `{"aggregator":"sum","metric":"m"},{"showHistogramBuckets":true,"aggregator":"sum","metric":"m"}`} {
		b.refused(b.post("api/query", `{"start":1356998400,"delete":true,"queries":[`+m+`]}`), http.StatusBadRequest, "A query that deletes cannot read histograms")
		if diff := cmp.Diff([]string{"m [[400,5]]", "m_pct_50.0 [[400,0.5]]"}, b.lines("m=sum:m&m=sum:percentiles[50]:m")); diff != "" {
			t.Errorf("%s: want -, got +: %s", m, diff)
		}
	}
}

// Queries of histograms read raw data, also where a rollup table would serve their downsampler.
func TestHistogram_besideRollups(t *testing.T) {
	b := openHistograms(t, withRollups)
	b.rollups("10m-sum m 1356998400 42 host=a")
	b.mustPut(1356998400, "a", `{"0,1":1}`)
	b.mustPut(1356998430, "a", `{"0,1":2}`)
	if diff := cmp.Diff([]string{"m_pct_50.0 [[400,0.5]]"}, b.lines("m=sum:10m-sum:percentiles[50]:m")); diff != "" {
		t.Errorf("want -, got +: %s", diff)
	}
	if diff := cmp.Diff([]string{"m [[400,42.0]]"}, b.lines("m=sum:10m-sum:m")); diff != "" {
		t.Errorf("want -, got +: %s", diff)
	}
}

// A query of histograms that is asked again is answered from the result cache until a histogram is
// put. A query of other percentiles uses the same cached part.
func TestHistogram_cached(t *testing.T) {
	b := openHistograms(t, nil)
	b.mustPut(1356998400, "a", `{"0,1":1}`)
	ask := func(percentiles, value, said string) {
		t.Helper()
		a := b.get("api/query?trace=true&start=1356998400&end=1356998700&m=sum:percentiles[" + percentiles + "]:m")
		if !strings.Contains(a.body, `"1356998400":`+value) || !strings.Contains(a.body, `"resultCache":"`+said) {
			t.Errorf("%d %s, want the value %s and a trace that says %q", a.status, a.body, value, said)
		}
	}
	b.get("api/query?start=1356998400&end=1356998700&m=sum:percentiles[50]:m")
	ask("50", "0.5", "kept")
	ask("50", "0.5", "answered from memory whole")
	ask("99", "0.5", "answered from memory")
	b.mustPut(1356998400, "b", `{"4,6":9}`)
	ask("50", "5.0", "read: rows may have changed")
	ask("50", "5.0", "kept")
	ask("50", "5.0", "answered from memory whole")
}

// A gateway without the setting takes no histograms. A query that meets stored ones is refused and
// not answered without them; so it is if the setting has another codec.
func TestHistogram_notConfigured(t *testing.T) {
	b := openHistograms(t, nil)
	b.put("plain 1356998400 5 host=a")
	b.mustPut(1356998400, "a", `{"0,1":1}`)

	without := &bench{T: t, cfg: config(0), store: b.store}
	without.g = start(t, without.cfg, b.store)
	without.refused(without.putHistogram(1356998400, "a", `"buckets":{"0,1":1}`), http.StatusServiceUnavailable, "Histogram storage has not been enabled")
	without.refused(without.get("api/query?start=1356998400&end=1356998700&m=sum:percentiles[50]:m"), http.StatusBadRequest, "DOWNPOUR_HISTOGRAMS")
	if got := without.lines("m=sum:percentiles[50]:plain"); len(got) != 0 {
		t.Errorf("percentiles of a metric that has only points: got %q, want nothing", got)
	}

	other := &bench{T: t, cfg: config(0), store: b.store}
	other.cfg.Histograms = `{"net.opentsdb.core.SimpleHistogramDecoder": 7}`
	other.g = start(t, other.cfg, b.store)
	other.refused(other.get("api/query?start=1356998400&end=1356998700&m=sum:percentiles[50]:m"), http.StatusBadRequest, "has codec 42, want 7")
}

// DOWNPOUR_HISTOGRAMS is checked at start.
func TestHistogram_setting(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		c := config(0)
		c.Histograms = text
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "DOWNPOUR_HISTOGRAMS") || !strings.Contains(err.Error(), want) {
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

// An Arrow answer has a row for each point of each line; the name of the metric tells the
// percentile or bucket. Only counts are integers.
func TestHistogram_arrow(t *testing.T) {
	b := openHistograms(t, nil)
	b.mustPut(1356998400, "a", `{"0,1":1,"1,2":9}`)
	b.mustPut(1356998460, "a", `{"0,1":2}`)
	a := b.arrow("m=sum:percentiles[50]:show-histogram-buckets:m&integers=true")
	if a.status != http.StatusOK {
		t.Fatalf("got %d %s, want 200", a.status, a.body)
	}
	r, err := ipc.NewReader(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var got []string
	for r.Next() {
		rec := r.Record()
		column := func(name string) int { return r.Schema().FieldIndices(name)[0] }
		metric, values, ints := rec.Column(column("metric")), rec.Column(column("value")).(*array.Float64), rec.Column(column("value_int")).(*array.Int64)
		for i := range int(rec.NumRows()) {
			whole := "null"
			if ints.IsValid(i) {
				whole = fmt.Sprint(ints.Value(i))
			}
			got = append(got, fmt.Sprintf("%s %v %s", metric.ValueStr(i), values.Value(i), whole))
		}
	}
	want := []string{"m_pct_50.0 1.5 null", "m_pct_50.0 0.5 null", "m_UNDERFLOW 0 0", "m_UNDERFLOW 0 0", "m_0.0_1.0 1 1", "m_0.0_1.0 2 2",
		"m_1.0_2.0 9 9", "m_1.0_2.0 0 0", "m_OVERFLOW 0 0", "m_OVERFLOW 0 0"}
	if diff := cmp.Diff(want, got); diff != "" || r.Err() != nil {
		t.Errorf("%v, want -, got +: %s", r.Err(), diff)
	}
}

// The middle of a bucket with huge bounds overflows a 32-bit float to infinity, which JSON has as a
// string.
func TestHistogram_infinite(t *testing.T) {
	b := openHistograms(t, nil)
	b.mustPut(1356998400, "a", `{"3e38,3.2e38":1}`)
	b.mustPut(1356998460, "a", `{"-3.2e38,-3e38":1}`)
	want := []string{`m_pct_50.0 [[400,"Infinity"],[460,"-Infinity"]]`}
	if diff := cmp.Diff(want, b.lines("m=sum:percentiles[50]:m")); diff != "" {
		t.Errorf("want -, got +: %s", diff)
	}
}

// A live query of percentiles has a group for each of them, and a later histogram changes both.
func TestHistogram_live(t *testing.T) {
	b := openHistograms(t, nil)
	b.mustPut(1356998400, "a", `{"0,1":1,"1,2":9}`)
	s := b.subscribe(`{"start":1356998400,"queries":[{"aggregator":"sum","metric":"m","percentiles":[50,99]}]}`, "")
	lines := func() string {
		var out []string
		for i := range len(s.groups) {
			g := s.groups[i]
			out = append(out, fmt.Sprint(g.Metric, g.DPS))
		}
		return strings.Join(out, " ")
	}
	s.until("a snapshot", func(m *liveMessage) bool { return m.Type == "snapshot" })
	if got, want := lines(), "m_pct_50.0[[1356998400 1.5]] m_pct_99.0[[1356998400 1.5]]"; got != want {
		t.Errorf("snapshot: %s, want %s", got, want)
	}
	b.mustPut(1356998460, "b", `{"4,6":3}`)
	s.until("a delta", func(m *liveMessage) bool { return m.Type == "delta" })
	if got, want := lines(), "m_pct_50.0[[1356998400 1.5] [1356998460 5.0]] m_pct_99.0[[1356998400 1.5] [1356998460 5.0]]"; got != want {
		t.Errorf("after a change: %s, want %s", got, want)
	}
}

// Queries for too many percentiles or buckets, or of too large histograms, are refused.
func TestHistogram_limits(t *testing.T) {
	b := openHistograms(t, func(c *gateway.Config) { c.LimitJSON = 50 })
	b.mustPut(1356998400, "a", `{"0,1":1}`)
	var many strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, `"%d,%d":1,`, i, i+1)
	}
	b.mustPut(1356998400, "b", "{"+strings.TrimSuffix(many.String(), ",")+"}")

	const query = "api/query?start=1356998400&end=1356998700&m=sum:"
	b.refused(b.get(query+"percentiles["+strings.Repeat("1,", 1000)+"1]:m"), http.StatusBadRequest, "Too many percentiles in one sub query: 1001, at most 1000")
	b.refused(b.get(query+"percentiles["+strings.Repeat("1,", 50)+"1]:m"), http.StatusRequestEntityTooLarge, "the answer has")
	b.refused(b.get(query+"show-histogram-buckets:m"), http.StatusRequestEntityTooLarge, "the answer has")
	b.refused(b.get(query+"percentiles[NaN]:m"), http.StatusBadRequest, "Invalid percentile parameters: NaN")

	small := openHistograms(t, func(c *gateway.Config) { c.LimitMemory = 100_000 })
	small.mustPut(1356998400, "b", "{"+strings.TrimSuffix(many.String(), ",")+"}")
	small.refused(small.get(query+"percentiles[50]:m"), http.StatusRequestEntityTooLarge, "100000 bytes of memory")
}
