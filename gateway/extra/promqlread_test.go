package extra_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"downpour/encoding/seedtest"
)

// promSelectors are matchers of remote reads, by the numbers of their types.
var promSelectors = [][]*prompb.LabelMatcher{
	{{Type: 0, Name: "__name__", Value: "temp"}},
	{{Type: 0, Name: "__name__", Value: "reqs_total"}, {Type: 1, Name: "host", Value: "web01"}},
	{{Type: 2, Name: "__name__", Value: "m.*|temp"}, {Type: 3, Name: "host", Value: "web.*|"}},
	{{Type: 2, Name: "dc", Value: "a.s|fra"}, {Type: 0, Name: "host", Value: ""}},
	{{Type: 0, Name: "__name__", Value: "nothing"}},
}

var promTypes = []labels.MatchType{labels.MatchEqual, labels.MatchNotEqual, labels.MatchRegexp, labels.MatchNotRegexp}

// Remote read has the series that match, with the bits of their points, as samples and as chunks: what Prometheus' own
// messages read of it.
//
//fault:promql-chunk-first-time n == 0 => n == 1
func TestPromQL_remoteRead(t *testing.T) {
	t.Parallel()
	peer := newPromPeer()
	drawPromSeries(seedtest.Rand(t), peer)
	cfg := config(0)
	cfg.AllowSpecialChars = "| "
	b := &bench{T: t, Config: cfg, Gateway: start(t, cfg, memoryStore(t, cfg))}
	promPut(b, peer.series)

	for _, types := range [][]prompb.ReadRequest_ResponseType{nil, {0}, {1, 0}, {0, 1}} {
		request := &prompb.ReadRequest{AcceptedResponseTypes: types}
		var want []string
		for i, s := range promSelectors {
			from, to := int64(promStart+i*100_001), int64(promStart+2_000_000)
			request.Queries = append(request.Queries,
				&prompb.Query{StartTimestampMs: from, EndTimestampMs: to, Matchers: s})
			want = append(want, peer.selected(t, s, from, to)...)
		}
		body, err := request.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		a := b.Post("prometheus/api/v1/read", string(s2.EncodeSnappy(nil, body)), "Content-Encoding", "snappy",
			"Content-Type", "application/x-protobuf", "Accept-Encoding", "snappy")
		if a.Status != http.StatusOK {
			t.Fatalf("%v: %d %.300s", types, a.Status, a.Body)
		}
		got := readSamples
		if strings.HasPrefix(a.Header.Get("Content-Type"), "application/x-streamed") {
			got = readChunks
		}
		if d := cmp.Diff(want, got(t, []byte(a.Body))); d != "" || len(want) < 10 {
			t.Errorf("%v: %d series, want -, got +: %.2000s", types, len(want), d)
		}
		if chunked := len(types) > 0 && types[0] == 1; chunked != (a.Header.Get("Content-Encoding") == "") {
			t.Errorf("%v: the answer is %s", types, a.Header.Get("Content-Type"))
		}
	}
}

// selected returns the peer's series for a selector, a line each. An escaped name is that of the answer.
func (p *promPeer) selected(t *testing.T, selector []*prompb.LabelMatcher, from, to int64) (lines []string) {
	t.Helper()
	for _, s := range p.series {
		l := s.labels
		if l.Get(model.MetricNameLabel) == "reqs.total" && selector[0].Value == "reqs_total" {
			l = labels.NewBuilder(l).Set(model.MetricNameLabel, "reqs_total").Labels()
		}
		good := true
		for _, m := range selector {
			good = good && labels.MustNewMatcher(promTypes[m.Type], m.Name, m.Value).Matches(l.Get(m.Name))
		}
		var points []string
		for _, p := range s.points {
			if p.T >= from && p.T <= to {
				points = append(points, promPoint(float64(p.T)/1000, p.F))
			}
		}
		if good && len(points) > 0 {
			lines = append(lines, promLine(l.Map(), points))
		}
	}
	return lines
}

func promLine(l map[string]string, points []string) string {
	text, _ := json.Marshal(l)
	return fmt.Sprintf("%s %s", text, strings.Join(points, "; "))
}

func mapOf(list []prompb.Label) map[string]string {
	out := map[string]string{}
	for _, l := range list {
		out[l.Name] = l.Value
	}
	return out
}

func readSamples(t *testing.T, body []byte) (lines []string) {
	t.Helper()
	plain, err := s2.Decode(nil, body)
	if err != nil {
		t.Fatal(err)
	}
	var r prompb.ReadResponse
	if err := r.Unmarshal(plain); err != nil {
		t.Fatal(err)
	}
	for _, result := range r.Results {
		for _, s := range result.Timeseries {
			var points []string
			for _, p := range s.Samples {
				points = append(points, promPoint(float64(p.Timestamp)/1000, p.Value))
			}
			lines = append(lines, promLine(mapOf(s.Labels), points))
		}
	}
	return lines
}

func readChunks(t *testing.T, body []byte) (lines []string) {
	t.Helper()
	for len(body) > 0 {
		size, n := binary.Uvarint(body)
		sum, frame := binary.BigEndian.Uint32(body[n:]), body[n+4:n+4+int(size)]
		body = body[n+4+int(size):]
		if crc32.Checksum(frame, crc32.MakeTable(crc32.Castagnoli)) != sum {
			t.Fatal("a frame has another checksum")
		}
		var r prompb.ChunkedReadResponse
		if err := r.Unmarshal(frame); err != nil {
			t.Fatal(err)
		}
		for _, s := range r.ChunkedSeries {
			var points []string
			for _, c := range s.Chunks {
				chunk, err := chunkenc.FromData(chunkenc.EncXOR, c.Data)
				if err != nil {
					t.Fatal(err)
				}
				for it := chunk.Iterator(nil); it.Next() != chunkenc.ValNone; {
					ms, v := it.At()
					if ms < c.MinTimeMs || ms > c.MaxTimeMs {
						t.Errorf("a chunk from %d to %d has a point at %d", c.MinTimeMs, c.MaxTimeMs, ms)
					}
					points = append(points, promPoint(float64(ms)/1000, v))
				}
			}
			lines = append(lines, promLine(mapOf(s.Labels), points))
		}
	}
	return lines
}

// Bodies that are no request are refused before they take memory.
func TestPromQL_remoteReadRefused(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	zeros := s2.EncodeSnappy(nil, make([]byte, 100<<20))
	query := func(m ...*prompb.LabelMatcher) []byte {
		r := prompb.ReadRequest{Queries: []*prompb.Query{{EndTimestampMs: promStart, Matchers: m}}}
		body, _ := r.Marshal()
		return s2.EncodeSnappy(nil, body)
	}
	long := prompb.LabelMatcher{Type: 2, Name: "a", Value: strings.Repeat("[a-z]{999}", 60)}
	for name, c := range map[string]struct {
		body   []byte
		status int
		says   string
	}{
		"nothing":              {nil, 400, "snappy"},
		"no snappy":            {[]byte("hello"), 400, "snappy"},
		"zeros":                {zeros, 413, ""},
		"a length too large":   {[]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 1}, 400, ""},
		"cut off":              {s2.EncodeSnappy(nil, []byte{0x0a, 0x7f, 1}), 400, "cut off"},
		"another type":         {s2.EncodeSnappy(nil, []byte{0x10, 7}), 400, "types of answers"},
		"a matcher's type":     {query(&prompb.LabelMatcher{Type: 9, Name: "a"}), 400, "matcher of the type 9"},
		"all series":           {query(), 400, "non-empty matcher"},
		"a broken expression":  {query(&prompb.LabelMatcher{Type: 2, Name: "a", Value: "("}), 400, "missing closing"},
		"an expensive one":     {query(&long), 400, "steps"},
		"an unfolding message": {s2.EncodeSnappy(nil, make([]byte, 2<<20)), 400, "unpacks to"},
	} {
		a := b.Post("prometheus/api/v1/read", string(c.body), "Content-Encoding", "snappy")
		if c.status == 413 && a.Status == 422 { // Prometheus has no 413
			a.Status = 413
		}
		if a.Status != c.status || !strings.Contains(a.Body, c.says) || !strings.Contains(a.Body, `"status":"error"`) {
			t.Errorf("%s: got %d %.300s, want %d with %q", name, a.Status, a.Body, c.status, c.says)
		}
	}
	if a := b.Get("prometheus/api/v1/read"); a.Status != http.StatusMethodNotAllowed {
		t.Errorf("GET: got %d, want 405", a.Status)
	}
}
