package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/ipc"

	"downpour/encoding/batch"
	"downpour/gateway"
	"downpour/gateway/gatewaytest"
)

// twice asks for 2 * m over the six hours that bench.load has filled.
const twice = `{"time":{"start":1356998400,"end":1357020000,"aggregator":"sum",` +
	`"downsampler":{"interval":"1m","aggregator":"avg"}},
	"filters":[],"metrics":[{"id":"a","metric":"m"}],"expressions":[{"id":"e","expr":"2 * a"}],"outputs":[{"id":"e"}]}`

// The trace of a request for expressions is that of the query that reads its metrics. It stands at
// the end of the answer, which is otherwise the one without a trace.
func TestExp_trace(t *testing.T) {
	b := open(t, nil)
	putSixHours(b)
	cfg := config(0)
	cfg.Pushdown = []string{gatewaytest.Pushdown(t, cfg, b.Store)}
	pushed := serve(t, cfg, b.Store)
	for name, at := range map[string]*bench{"in process": b, "pushed down": pushed} {
		plain, a := at.Post("/api/query/exp", twice), at.Post("/api/query/exp?trace=true", twice)
		var got struct{ Trace *tree }
		if err := json.Unmarshal([]byte(a.Body), &got); err != nil || got.Trace == nil || a.Status != 200 {
			t.Fatalf("%s: %d %v %.300s", name, a.Status, err, a.Body)
		}
		if n := len(got.Trace.find("scan")); n == 0 || len(got.Trace.find("merge")) != 1 {
			t.Errorf("%s: got %d scans, want some, and one merge, in %.500s", name, n, a.Body)
		}
		before, _, ok := strings.Cut(a.Body, `,"trace":`)
		if !ok || before+"}" != plain.Body || strings.Contains(plain.Body, `"trace"`) {
			t.Errorf("%s: %.300s, want %.300s and the trace", name, a.Body, plain.Body)
		}
	}
}

// An incomplete answer to an expression is an error that names the missing key ranges. With
// allowPartial the expression is computed from what is there, and the answer names the ranges.
func TestExp_allowPartial(t *testing.T) {
	b := open(t, func(cfg *gateway.Config) { cfg.QueryTimeout = max(2*time.Second, 4*little(t)) })
	putSixHours(b)
	loseLastHours(b)
	if a := postUntil(b, "/api/query/exp", twice, answered(503)); a.Status != 503 ||
		!strings.Contains(a.Body, `"missing":[["00000150e2`) {
		t.Errorf("%d %.300s, want 503 with the missing ranges", a.Status, a.Body)
	}
	a := postUntil(b, "/api/query/exp?allowPartial=true", twice, answered(200))
	if a.Status != 200 || a.Header.Get("Downpour-Missing-Ranges") == "" ||
		!strings.Contains(a.Body, `"missing":[["00000150e2`) || !strings.Contains(a.Body, `[1356998400000,0.6`) ||
		strings.Contains(a.Body, `[1357019940000,`) {
		t.Errorf("got %d %v %.300s, want the first hours and the missing ranges", a.Status, a.Header, a.Body)
	}

	a = postUntil(b, "/api/query/exp?allowPartial=true", twice, answered(200), "Accept", batch.StreamMediaType,
		"Accept-Encoding", "identity")
	r, err := ipc.NewReader(strings.NewReader(a.Body))
	if err != nil {
		t.Fatalf("Arrow: got %d %v, want a stream", a.Status, err)
	}
	defer r.Release()
	m := r.Schema().Metadata()
	at := m.FindKey(batch.MissingKey)
	if at < 0 || !strings.HasPrefix(m.Values()[at], `[["00000150e2`) || a.Header.Get("Downpour-Missing-Ranges") == "" {
		t.Errorf("Arrow metadata %v, headers %v, want the missing ranges", m, a.Header)
	}
}
