package extra_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"

	"downpour/encoding/batch"
	"downpour/gateway"
	"downpour/gateway/extra/prometheus/remote"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
	"downpour/pushdown/store/pebble"
)

// rwAt is the time of the first samples, in ms.
const rwAt = 1356998400_000

// rwSeries is a series of labels, given in pairs, with a sample each second from rwAt.
func rwSeries(values []float64, pairs ...string) (s prompb.TimeSeries) {
	for i := 0; i < len(pairs); i += 2 {
		s.Labels = append(s.Labels, prompb.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	for i, v := range values {
		s.Samples = append(s.Samples, prompb.Sample{Timestamp: rwAt + int64(i)*1000, Value: v})
	}
	return s
}

// rwPack is the body of a request.
func rwPack(series ...prompb.TimeSeries) string {
	r := prompb.WriteRequest{Timeseries: series}
	body, err := r.Marshal()
	if err != nil {
		panic(err)
	}
	return string(s2.EncodeSnappy(nil, body))
}

// rwSend sends a request as Prometheus does.
func rwSend(b *bench, series ...prompb.TimeSeries) answer {
	b.Helper()
	return b.Post("prometheus/api/v1/write", rwPack(series...), "Content-Encoding", "snappy",
		"Content-Type", "application/x-protobuf", "X-Prometheus-Remote-Write-Version", "0.1.0")
}

// rwMust sends a request that must be stored.
func rwMust(b *bench, series ...prompb.TimeSeries) {
	b.Helper()
	if a := rwSend(b, series...); a.Status != http.StatusNoContent || a.Body != "" {
		b.Fatalf("write: %d %s", a.Status, a.Body)
	}
}

// rwRead reads series by remote read, a line each.
func rwRead(b *bench, matchers ...*prompb.LabelMatcher) []string {
	b.Helper()
	r := &prompb.ReadRequest{Queries: []*prompb.Query{{StartTimestampMs: 0, EndTimestampMs: 5e12, Matchers: matchers}}}
	body, _ := r.Marshal()
	a := b.Post("prometheus/api/v1/read", string(s2.EncodeSnappy(nil, body)))
	if a.Status != http.StatusOK {
		b.Fatalf("read: %d %s", a.Status, a.Body)
	}
	return readSamples(b.T, []byte(a.Body))
}

func named(name string) *prompb.LabelMatcher {
	return &prompb.LabelMatcher{Name: "__name__", Value: name}
}

// rwNames are labels that OpenTSDB cannot hold as they are, and some that it can.
var rwNames = [][]string{
	{"__name__", "up", "instance", "10.0.0.7:9100", "job", "node exporter"},
	{"__name__", "up", "instance", "web01", "job", "plain"},
	{"__name__", "up", "instance", "U__10.0.0.7_3a_9100", "job", "node exporter"},
	{"__name__", "job:errors:rate5m", "path", "/a?b=c|d", "größe", "日本"},
	{"__name__", "GET /x", "weird label", "x", "le", "+Inf"},
	{"__name__", "alone"},
	{"__name__", "empty", "gone", ""},
	{"__name__", "U__", "U__", "U__"},
	{"__name__", "up", "instance", "\x00\x01 \n\"'\\", "job", "*"},
}

// Labels come back as they were sent, by every matcher and list: PromQL and remote read undo the rule by which names
// are stored, also in what they push down.
//
//fault:names-escaped-not-listed {start, escaped} => {start}
//fault:promql-no-labels-shown t.V == names.None => t.V == ""
func TestPromQL_escaped(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	var all []prompb.TimeSeries
	for i, pairs := range rwNames {
		all = append(all, rwSeries([]float64{float64(i)}, pairs...))
	}
	rwMust(b, all...)

	for text, want := range map[string][]int{
		`up{instance="10.0.0.7:9100"}`:               {0},
		`up{instance="U__10.0.0.7_3a_9100"}`:         {2},
		`up{instance=~"10.*"}`:                       {0},
		`up{instance=~"10.0.0.7:9100|web01"}`:        {0, 1},
		`up{instance=~"10\\.0\\.0\\.7:.*"}`:          {0},
		`up{instance=~"U__10.*"}`:                    {2},
		`up{instance!="10.0.0.7:9100"}`:              {1, 2, 8},
		`up{instance!~"10.*|U.*"}`:                   {1, 8},
		`up{job="node exporter"}`:                    {0, 2},
		`up{job="node exporter",instance!~".*:9.*"}`: {2},
		`up{job="*"}`:                                {8},
		`up{job="U__node_20_exporter"}`:              nil,
		`job:errors:rate5m`:                          {3},
		`job:errors:rate5m{"größe"="日本"}`:            {3},
		`job:errors:rate5m{path=~"/a.b.*"}`:          {3},
		`{"größe"="日本",__name__=~"job.*"}`:           {3},
		`{__name__=~"job:.*"}`:                       {3},
		`{__name__=~"j.*"}`:                          {3},
		`{"GET /x"}`:                                 {4},
		`{"GET /x","weird label"="x"}`:               {4},
		`{"GET /x","weird label"!=""}`:               {4},
		`{"GET /x",le="+Inf"}`:                       {4},
		`alone`:                                      {5},
		`alone{U__=""}`:                              {5},
		`alone{U__="U__"}`:                           nil,
		`empty`:                                      {6},
		`empty{gone=""}`:                             {6},
		`U__{U__="U__"}`:                             {7},
		`{__name__=~"U__"}`:                          {7},
		`{__name__=~".+"}`:                           {0, 1, 2, 3, 4, 5, 6, 7, 8},
	} {
		_, body := promAsk(b, "query", "query", text, "time", "1356998400")
		var lines []string
		for _, i := range want {
			lines = append(lines, fmt.Sprintf("%v %d", labelsOf(i), i))
		}
		slices.Sort(lines)
		if d := cmp.Diff(lines, promVector(t, body)); d != "" {
			t.Errorf("%s: -want +got\n%s", text, d)
		}
	}
	escapedLists(b)
	escapedReads(b)
}

// labelsOf are labels of rwNames as they are read.
func labelsOf(i int) map[string]string {
	m := map[string]string{}
	for k := 0; k < len(rwNames[i]); k += 2 {
		if rwNames[i][k+1] != "" {
			m[rwNames[i][k]] = rwNames[i][k+1]
		}
	}
	return m
}

// escapedLists checks lists of names.
func escapedLists(b *bench) {
	b.Helper()
	t := b.T
	// Where only letters, digits, _ and : are allowed.
	_, body := promAsk(b, "query", "query", "GET__x", "time", "1356998400")
	if got := promVector(t, body); len(got) != 1 || !strings.HasPrefix(got[0], "map[__name__:GET__x le:+Inf") {
		t.Errorf("GET__x: got %q", got)
	}
	for _, c := range []struct{ route, want string }{
		{"labels", `["U__","__name__","größe","instance","job","le","path","weird label"]`},
		{"label/job/values", `["*","node exporter","plain"]`},
		{"label/gr%C3%B6%C3%9Fe/values", `["日本"]`},
		{"label/weird%20label/values", `["x"]`},
		{"label/U__weird_20_label/values", `["x"]`}, // Prometheus' escape in a path
		{"label/__name__/values", `["GET /x","U__","alone","empty","job:errors:rate5m","up"]`},
	} {
		a := b.Get("prometheus/api/v1/" + c.route)
		if want := `{"status":"success","data":` + c.want + `}`; a.Body != want {
			t.Errorf("%s: got %s, want %s", c.route, a.Body, want)
		}
	}
}

// escapedReads checks that remote read has the labels that were sent, and OpenTSDB's API those that are stored.
func escapedReads(b *bench) {
	b.Helper()
	t := b.T
	for i := range rwNames {
		labels := labelsOf(i)
		var m []*prompb.LabelMatcher
		for k, v := range labels {
			m = append(m, &prompb.LabelMatcher{Name: k, Value: v})
		}
		want := []string{promLine(labels, []string{promPoint(rwAt/1000, float64(i))})}
		if d := cmp.Diff(want, rwRead(b, m...)); d != "" {
			t.Errorf("remote read of %v: -want +got\n%s", labels, d)
		}
	}
	// OpenTSDB's API has the names as they are stored.
	a := b.Get("api/query?start=1356998400&end=1356998500&m=sum:up%7Binstance=U__10.0.0.7_3a_9100%7D")
	if !strings.Contains(a.Body, `"job":"U__node_20_exporter"`) {
		t.Errorf("/api/query: %s", a.Body)
	}
	a = b.Get("api/query?start=1356998400&end=1356998500&m=none:alone")
	if !strings.Contains(a.Body, `"tags":{"U__":"U__"}`) {
		t.Errorf("/api/query: %s", a.Body)
	}
}

// A name that another protocol has stored as it is, because the settings allow its signs, is found next to escaped
// ones.
//
//fault:promql-one-key-of-two > 1 => > 9
//fault:series-of-two-keys-counted-twice s.h.twoKeys => false
func TestPromQL_specialChars(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *gateway.Config) { c.AllowSpecialChars = ": " })
	b.Put("up 1356998400 1 instance=a:1", "a:b 1356998400 3 x:y=1", "dup 1356998400 1 i=a:1")
	rwMust(b, rwSeries([]float64{2}, "__name__", "up", "instance", "a:2"),
		rwSeries([]float64{4}, "__name__", "a:b", "x:y", "2"), rwSeries([]float64{2}, "__name__", "dup", "i", "a:1"))
	for text, want := range map[string]string{
		`up{instance="a:1"}`:         `[map[__name__:up instance:a:1] 1]`,
		`up{instance="a:2"}`:         `[map[__name__:up instance:a:2] 2]`,
		`count(up{instance=~"a:."})`: `[map[] 2]`,
		`count({__name__="a:b"})`:    `[map[] 2]`,
		`count({__name__=~"a:.*"})`:  `[map[] 2]`,
		`a:b{"x:y"="1"}`:             `[map[__name__:a:b x:y:1] 3]`,
		`a:b{"x:y"!="1"}`:            `[map[__name__:a:b x:y:2] 4]`,
	} {
		_, body := promAsk(b, "query", "query", text, "time", "1356998400")
		if got := fmt.Sprint(promVector(t, body)); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"dup", "count(dup)"} {
		if status, body := promAsk(b, "query", "query", text, "time", "1356998400"); status == 200 ||
			!strings.Contains(body, "twice") {
			t.Errorf("%s, a series under two row keys: %d %s", text, status, body)
		}
	}
}

// Values have the bits that were sent, and times their milliseconds.
func TestRemoteWrite_values(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	values := []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 1 << 53, 1<<53 + 2, math.MaxFloat64, -math.MaxFloat64,
		math.SmallestNonzeroFloat64, 0.5, 16777217, 1e-300, math.Pi}
	s := rwSeries(nil, "__name__", "m", "host", "a")
	var want []string
	for i, v := range values {
		at := rwAt + int64(i)*1001
		s.Samples = append(s.Samples, prompb.Sample{Timestamp: at, Value: v})
		want = append(want, promPoint(float64(at)/1000, v))
	}
	s.Samples = append(s.Samples,
		prompb.Sample{Timestamp: rwAt + 60_000, Value: math.NaN()},
		prompb.Sample{Timestamp: rwAt + 61_000, Value: math.Float64frombits(value.StaleNaN)})
	// Prometheus' own encoder makes 0 of -0.
	series := remote.AppendLabel(remote.AppendLabel(nil, "__name__", "m"), "host", "a")
	for _, p := range s.Samples {
		series = remote.AppendSample(series, p.Timestamp, p.Value)
	}
	if a := b.Post("prometheus/api/v1/write", string(remote.Pack(remote.AppendSeries(nil, series)))); a.Status != 204 {
		t.Fatal(a.Body)
	}
	for i, line := range rwRead(b, named("m")) {
		if d := cmp.Diff(promLine(mapOf(s.Labels), want), line); d != "" || i > 0 {
			t.Errorf("-want +got\n%s", d)
		}
	}
	a := b.Get("api/query?start=1356998400&end=1356998500&ms&arrays&m=none:m")
	if !strings.Contains(a.Body, "[1356998401001,-0.0]") {
		t.Errorf("/api/query: %s", a.Body)
	}
	metrics := b.Get("metrics").Body
	for _, line := range []string{
		`downpour_put_left_out_points_total{source="remote_write"} 2`,
		fmt.Sprintf(`downpour_put_stored_points_total{source="remote_write"} %d`, len(values)),
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("/metrics: no line %s", line)
		}
	}
	if a := b.Get("api/stats"); !strings.Contains(a.Body, "downpour.put.left.out.points.total") {
		t.Error("/api/stats has no points that were left out")
	}

	// A sample that is sent again with another value overwrites the first, whatever the order.
	for _, v := range []float64{1, 0.1, 3} {
		again := rwSeries([]float64{9, v}, "__name__", "again", "host", "a")
		slices.Reverse(again.Samples)
		rwMust(b, again)
	}
	want = []string{promLine(map[string]string{"__name__": "again", "host": "a"},
		[]string{promPoint(rwAt/1000, 9), promPoint(rwAt/1000+1, 3)})}
	if d := cmp.Diff(want, rwRead(b, named("again"))); d != "" {
		t.Errorf("overwritten: -want +got\n%s", d)
	}
}

// What cannot be stored is named, and costs no other sample.
//
//fault:infinite-sample-stored p.Value.Float => false
func TestRemoteWrite_badNeighbours(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *gateway.Config) { c.AutoMetrics, c.MaxTags = "false", 3 })
	for _, name := range []string{"m", "other"} {
		if a := b.Post("api/uid/assign", `{"metric":["`+name+`"]}`); a.Status != 200 {
			t.Fatal(a.Body)
		}
	}
	good := 0
	bad := func(says string, s prompb.TimeSeries) {
		t.Helper()
		good++
		host := strconv.Itoa(good)
		a := rwSend(b, rwSeries([]float64{1}, "__name__", "m", "host", host), s,
			rwSeries([]float64{2}, "__name__", "m", "host", host+"b"))
		if a.Status != 400 || !strings.Contains(a.Body, says) || strings.Count(a.Body, "\n") != 1 ||
			!strings.Contains(a.Body, "1 of 3 samples refused, 2 stored") {
			t.Errorf("got %d %q, want 400 with %q", a.Status, a.Body, says)
		}
		got := rwRead(b, named("m"), &prompb.LabelMatcher{Type: 2, Name: "host", Value: host + "b?"})
		if len(got) != 2 {
			t.Errorf("with %q: the neighbours are %q, want two series", says, got)
		}
	}
	one := []float64{1}
	bad("DOWNPOUR_MAX_TAGS", rwSeries(one, "__name__", "m", "a", "1", "b", "1", "c", "1", "d", "1"))
	bad("DOWNPOUR_AUTO_METRICS", rwSeries(one, "__name__", "new", "host", "a"))
	bad("there twice", rwSeries(one, "__name__", "m", "host", "a", "host", "a"))
	bad("there twice", rwSeries(one, "__name__", "m", "__name__", "other", "host", "a"))
	bad("no metric name", rwSeries(one, "host", "a"))
	bad("no name", rwSeries(one, "__name__", "m", "", "a"))
	bad("valid UTF-8", rwSeries(one, "__name__", "m", "host", "\xff"))
	bad("valid UTF-8", rwSeries(one, "__name__", "m", "ho\xc3", "x"))
	bad("at most 32767", rwSeries(one, "__name__", "m", "host", strings.Repeat("x", 40_000)))
	bad("stored in", rwSeries(one, "__name__", "m", "host", strings.Repeat(":", 20_000)))
	bad("infinite", rwSeries([]float64{math.Inf(1)}, "__name__", "m", "host", "inf"))
	bad("infinite", rwSeries([]float64{math.Inf(-1)}, "__name__", "m", "host", "inf"))
	for _, at := range []int64{0, -1, 1, -1 << 63, 1<<32 - 1, 4294967296_000, 9999999999_999, 1<<63 - 1} {
		s := rwSeries(one, "__name__", "m", "host", "t")
		s.Samples[0].Timestamp = at
		bad("Invalid timestamp", s)
	}
	native := rwSeries(nil, "__name__", "m", "host", "native")
	native.Histograms = []prompb.Histogram{{Timestamp: rwAt}}
	bad("native histograms", native)
	counted := `downpour_put_refused_points_total{reason="time",via="/prometheus/api/v1/write"} 8`
	if !strings.Contains(b.Get("metrics").Body, counted) {
		t.Errorf("the refused points are not counted by their reasons")
	}

	// Times that a row can hold, at both ends.
	for _, at := range []int64{1000, 4294967000, 1 << 32, 4294967295_999} {
		s := rwSeries(one, "__name__", "other", "host", strconv.FormatInt(at, 10))
		s.Samples[0].Timestamp = at
		rwMust(b, s)
		want := []string{promLine(mapOf(s.Labels), []string{promPoint(float64(at)/1000, 1)})}
		got := rwRead(b, named("other"), &prompb.LabelMatcher{Name: "host", Value: s.Labels[1].Value})
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d ms: -want +got\n%s", at, d)
		}
	}
	// Labels in any order are one series; what is no sample is passed over.
	r := prompb.WriteRequest{
		Timeseries: []prompb.TimeSeries{
			rwSeries(one, "z", "1", "__name__", "other", "a", "1"),
			rwSeries([]float64{1, 2}, "a", "1", "z", "1", "__name__", "other"),
			{Labels: []prompb.Label{{Name: "x"}}},
		},
		Metadata: []prompb.MetricMetadata{{MetricFamilyName: "other", Help: "h"}},
	}
	r.Timeseries[0].Exemplars = []prompb.Exemplar{{Value: 7, Timestamp: rwAt}}
	body, _ := r.Marshal()
	if a := b.Post("prometheus/api/v1/write", string(s2.EncodeSnappy(nil, body))); a.Status != 204 {
		t.Errorf("got %d %s, want 204", a.Status, a.Body)
	}
	if got := rwRead(b, named("other"), &prompb.LabelMatcher{Name: "a", Value: "1"}); len(got) != 1 {
		t.Errorf("got %q, want one series", got)
	}
}

// Requests that are none are refused, before they take memory.
func TestRemoteWrite_refusedRequests(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	good := rwPack(rwSeries([]float64{1}, "__name__", "m", "host", "a"))
	zeros := string(s2.EncodeSnappy(nil, make([]byte, 100<<20)))
	million := rwSeries([]float64{1}, "__name__", "m")
	for i := range 1_000_000 {
		million.Labels = append(million.Labels, prompb.Label{Name: "l" + strconv.Itoa(i), Value: "x"})
	}
	header := func(pairs ...string) []string { return pairs }
	for name, c := range map[string]struct {
		body   string
		header []string
		status int
		says   string
	}{
		"nothing":             {"", nil, 400, "snappy"},
		"no snappy":           {"hello", nil, 400, "snappy"},
		"cut off":             {good[:len(good)-3], nil, 400, "snappy"},
		"zeros":               {zeros, nil, 413, "unpacks to 104857600 bytes, at most 33554432"},
		"a length too large":  {"\xff\xff\xff\xff\x0f\x01", nil, 413, "at most"},
		"zeros that are few":  {string(s2.EncodeSnappy(nil, make([]byte, 1<<20))), nil, 400, "cut off or broken"},
		"a message cut off":   {string(s2.EncodeSnappy(nil, []byte{0x0a, 0x7f, 1})), nil, 400, "cut off or broken"},
		"a number for series": {string(s2.EncodeSnappy(nil, []byte{0x08, 1})), nil, 400, "cut off or broken"},
		"a million labels":    {rwPack(million), nil, 400, "labels"},
		"version 2": {good, header("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request"), 415,
			"proto=prometheus.WriteRequest"},
		"JSON": {good, header("Content-Type", "application/json"), 415, "application/x-protobuf"},
		"gzip": {good, header("Content-Encoding", "gzip"), 415, "snappy"},
	} {
		a := b.Post("prometheus/api/v1/write", c.body, c.header...)
		if a.Status != c.status || !strings.Contains(a.Body, c.says) ||
			!strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s: got %d %.300s, want %d with %q", name, a.Status, a.Body, c.status, c.says)
		}
	}
	for _, kind := range []string{"application/x-protobuf", "application/x-protobuf;proto=prometheus.WriteRequest",
		"application/x-protobuf; charset=x"} {
		a := b.Post("prometheus/api/v1/write", good, "Content-Encoding", "snappy", "Content-Type", kind)
		if a.Status != 204 {
			t.Errorf("%s: %d %s", kind, a.Status, a.Body)
		}
	}
	if a := b.Get("prometheus/api/v1/write"); a.Status != 405 {
		t.Errorf("GET: got %d, want 405", a.Status)
	}
	if a := b.Post("prometheus/api/v1/write", string(s2.EncodeSnappy(nil, nil))); a.Status != 204 {
		t.Errorf("an empty request: got %d, want 204", a.Status)
	}
	b.Settled()

	// Where the memory of one request is not enough, that is said, and it is not sent again.
	small := open(t, func(c *gateway.Config) { c.Memory = "64MiB" })
	many := make([]byte, 0, 30<<20)
	for len(many) < 30<<20 {
		many = append(many, 0x0a, 2, 0x12, 0)
	}
	a := small.Post("prometheus/api/v1/write", string(s2.EncodeSnappy(nil, many)))
	if a.Status != 413 || !strings.Contains(a.Body, "send fewer points at a time") {
		t.Errorf("with 64 MiB: got %d %.300s, want 413", a.Status, a.Body)
	}
	small.Settled()
}

// Points are on the disk when the answer is 204. If the store does not take them, the answer makes the sender send
// them again, and then each point is there once.
//
//fault:remote-write-not-waited-for p.batch.Wait(ctx) => error(nil)
//fault:good-sample-refused-for-ever write.IsStorage(err) => err == nil
func TestRemoteWrite_durable(t *testing.T) {
	t.Parallel()
	const sent = 700 // more than share a batch
	series := func(metric string) (all []prompb.TimeSeries) {
		for i := range sent {
			all = append(all, rwSeries([]float64{float64(i)}, "__name__", metric, "host", "h:"+strconv.Itoa(i)))
		}
		return all
	}
	cfg, files := config(0), vfs.NewCrashableMem()
	disk := func(cfg *gateway.Config, files vfs.FS) *pebble.Store {
		st := gatewaytest.Embedded(t, cfg, files)
		t.Cleanup(func() { st.Close() }) // after the gateway
		return st
	}
	faulty := gatewaytest.NewFaulty(disk(cfg, files))
	b := &bench{T: t, Config: cfg, Store: faulty, Gateway: start(t, cfg, faulty)}
	otlp := func(metric string) answer {
		return b.Post("v1/metrics", otlpGauge(metric, 1), "Content-Type", "application/json")
	}
	for _, few := range []bool{true, false} {
		metric := fmt.Sprint("few_", few)
		all := series(metric)
		if few {
			all = all[:3]
		}
		rwMust(b, all...)
		if a := otlp(metric + "_otlp"); a.Status != 200 {
			t.Fatalf("otlp: %d %s", a.Status, a.Body)
		}

		left := files.CrashClone(vfs.CrashCloneCfg{})
		cfg2 := *cfg
		cfg2.Extras = everything()
		crashed := &bench{T: t, Config: &cfg2, Gateway: start(t, &cfg2, disk(&cfg2, left))}
		if got := rwRead(crashed, named(metric)); len(got) != len(all) {
			t.Errorf("after a crash there are %d series, want %d", len(got), len(all))
		}
		if got := rwRead(crashed, named(metric+"_otlp")); len(got) != 1 {
			t.Errorf("after a crash there are %d series by OTLP, want 1", len(got))
		}

		for i, fault := range []faultstore.Rule{
			{Op: faultstore.Apply, Table: "tsdb", Err: store.ErrUnavailable},
			{Op: faultstore.Apply, Table: "tsdb", Err: store.ErrFull},
			{Op: faultstore.Apply, Table: "tsdb", Err: store.ErrStalled},
			{Op: faultstore.Get, Table: "tsdb-uid", Err: store.ErrDenied}, // the names are new
		} {
			metric := metric + strconv.Itoa(i)
			all := series(metric)[:len(all)]
			faulty.Set(fault)
			a := rwSend(b, all...)
			if a.Status != 503 || a.Header.Get("Retry-After") == "" ||
				!strings.Contains(a.Body, "send the request again") {
				t.Errorf("%v: got %d %s, want 503 with Retry-After", fault.Err, a.Status, a.Body)
			}
			a = otlp(metric)
			if a.Status != 503 || a.Header.Get("Retry-After") == "" || !strings.Contains(a.Body, `"code":14`) {
				t.Errorf("otlp, %v: got %d %s, want 503 with Retry-After", fault.Err, a.Status, a.Body)
			}
			faulty.Set()
			rwMust(b, all...)
			if got := rwRead(b, named(metric)); len(got) != len(all) {
				t.Errorf("sent again after %v: %d series, want %d", fault.Err, len(got), len(all))
			}
		}
	}
}

// promVector is an instant vector of an answer, sorted lines of labels and value.
func promVector(t *testing.T, body string) (lines []string) {
	t.Helper()
	var a struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &a); err != nil || a.Error != "" {
		return []string{body}
	}
	for _, r := range a.Data.Result {
		lines = append(lines, fmt.Sprintf("%v %s", r.Metric, r.Value[1]))
	}
	slices.Sort(lines)
	return lines
}

// readers read the points of a metric by each protocol.
func readers(b *bench) map[string]func(metric string) string {
	return map[string]func(metric string) string{
		"/api/query": func(m string) string {
			return b.Get("api/query?start=1356998400&end=1357006400&ms&arrays&m=none:" + m).Body
		},
		"Arrow": func(m string) string {
			a := b.Get("api/query?start=1356998400&end=1357006400&ms&integers=true&m=none:"+m, "Accept",
				batch.StreamMediaType)
			return arrowRows(b.T, a.Body)
		},
		"PromQL": func(m string) string {
			return b.Get("prometheus/api/v1/query?time=1357005600&query=" + url.QueryEscape(`{"`+m+`"}[3h]`)).Body
		},
		"remote read": func(m string) string { return strings.Join(rwRead(b, named(m)), "\n") },
		"export": func(m string) string {
			return b.Get("api/tools/export?start=1356998400&end=1357006400&m=none:" + m).Body
		},
	}
}

// A point reads the same by each protocol, whichever it came by.
func TestProtocols(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	at := []int64{rwAt, rwAt + 1250, rwAt + 3_000, rwAt + 3_599_999, rwAt + 7_200_000}
	values := []float64{1.5, -2.25, 1e300, 0.1, 3.75}
	ints := []int64{7, -1, 1 << 40}
	const tags, inJSON = "host=web01 dc=a/b", `{"host":"web01","dc":"a/b"}`
	const attributes = `[{"key":"host","value":{"stringValue":"web01"}},{"key":"dc","value":{"stringValue":"a/b"}}]`

	// By telnet, a put, remote write and OTLP, under one metric each.
	var lines, puts []string
	series := prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: "by.remote"},
		{Name: "dc", Value: "a/b"}, {Name: "host", Value: "web01"}}}
	var otlpPoints, otlpInts []string
	when := func(ms int64) int64 {
		if ms%1000 == 0 {
			return ms / 1000
		}
		return ms
	}
	for i, ms := range at {
		lines = append(lines, fmt.Sprintf("by.telnet %d %v %s", when(ms), values[i], tags))
		puts = append(puts, fmt.Sprintf(`{"metric":"by.put","timestamp":%d,"value":%v,"tags":%s}`, when(ms),
			values[i], inJSON))
		series.Samples = append(series.Samples, prompb.Sample{Timestamp: ms, Value: values[i]})
		otlpPoints = append(otlpPoints, fmt.Sprintf(`{"timeUnixNano":"%d000000","asDouble":%v,"attributes":%s}`, ms,
			values[i], attributes))
	}
	for i, v := range ints {
		lines = append(lines, fmt.Sprintf("int.telnet %d %d %s", when(at[i]), v, tags))
		puts = append(puts, fmt.Sprintf(`{"metric":"int.put","timestamp":%d,"value":%d,"tags":%s}`, when(at[i]), v,
			inJSON))
		otlpInts = append(otlpInts, fmt.Sprintf(`{"timeUnixNano":"%d000000","asInt":"%d","attributes":%s}`, at[i], v,
			attributes))
	}
	b.Put(lines...)
	if a := b.Post("api/put", "["+strings.Join(puts, ",")+"]"); a.Status != 204 {
		t.Fatal(a.Body)
	}
	rwMust(b, series)
	body := `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"by.otlp","gauge":{"dataPoints":[` +
		strings.Join(otlpPoints, ",") + `]}},{"name":"int.otlp","sum":{"dataPoints":[` + strings.Join(otlpInts, ",") +
		`]}}]}]}]}`
	if a := b.Post("v1/metrics", body, "Content-Type", "application/json"); a.Status != 200 || a.Body != "{}" {
		t.Fatal(a.Body)
	}

	for reader, read := range readers(b) {
		for prefix, protocols := range map[string][]string{
			"by.": {"telnet", "put", "remote", "otlp"}, "int.": {"telnet", "put", "otlp"},
		} {
			want := ""
			for _, p := range protocols {
				got := strings.ReplaceAll(read(prefix+p), prefix+p, "METRIC")
				if want == "" {
					want = got
				}
				if got != want || len(got) < 100 {
					t.Errorf("by %s the points of %s%s read\n%s\nand those of %s%s\n%s", reader, prefix, p, got, prefix,
						protocols[0], want)
				}
			}
		}
	}
}

// arrowRows prints the rows of a stream.
func arrowRows(t *testing.T, stream string) (text string) {
	t.Helper()
	r, err := ipc.NewReader(strings.NewReader(stream))
	if err != nil {
		t.Fatal(err, stream)
	}
	defer r.Release()
	for r.Next() {
		text += fmt.Sprintln(r.Record())
	}
	return text
}
