//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/integration/e2e"
)

// OpenTelemetry's SDK, with the settings that gateway/docs/otlp.md shows, writes its instruments. What the gateway
// refuses costs no other point. An export that a gateway answers by 503, because it waits for its store, is sent again.
func TestOTLP_sdk(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	if err := e2e.SetUp(ctx, "client_libraries"); err != nil {
		t.Fatal(err)
	}
	waiting := e2e.ProgramOptions{Dir: t.TempDir(), Env: map[string]string{
		"DOWNPOUR_STORE":  "hbase:127.0.0.1:1", // nobody is there
		"DOWNPOUR_LISTEN": fmt.Sprintf("127.0.0.1:%d", must[int](t)(e2e.FreePort())),
	}}
	p := must[*e2e.Process](t)(e2e.Launch(ctx, "./gateway/cmd/gateway", "waiting", waiting))
	t.Cleanup(p.Kill)
	err := e2e.UntilProcess(ctx, p, 20*time.Millisecond, func(ctx context.Context) error {
		_, err := e2e.Get(ctx, "http://"+waiting.Env["DOWNPOUR_LISTEN"]+"/healthz")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, compression := range []string{"none", "gzip"} {
		t.Run(compression, func(t *testing.T) {
			t.Parallel()
			tokens := writeFile(t, "tokens", "read token-of-a-reader\nwrite token-of-a-writer\n")
			ours := embedded(t, map[string]string{"DOWNPOUR_TOKEN_FILE": tokens})
			exportOTLP(ctx, t, ours, waiting.Env["DOWNPOUR_LISTEN"], compression)
		})
	}
}

// exportOTLP has the SDK write to a gateway. Its first request meets one that waits.
func exportOTLP(ctx context.Context, t *testing.T, ours *e2e.Program, waiting, compression string) {
	var requests atomic.Int32
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(must[*url.URL](t)(url.Parse(ours.URL)))
			if requests.Add(1) == 1 {
				r.SetURL(must[*url.URL](t)(url.Parse("http://" + waiting)))
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if first := requests.Load() == 1; first != (r.StatusCode == http.StatusServiceUnavailable) {
				t.Errorf("request %d: %s, want 503 to the first alone", requests.Load(), r.Status)
			}
			return nil
		},
	})
	defer front.Close()
	out, err := e2e.PythonIn(ctx, "clients-venv", []string{
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=" + front.URL + "/v1/metrics",
		"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/protobuf",
		"OTEL_EXPORTER_OTLP_METRICS_COMPRESSION=" + compression,
		"OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20token-of-a-writer",
		"OTEL_EXPORTER_OTLP_TIMEOUT=60",
		"OTEL_RESOURCE_ATTRIBUTES=service.name=shop,host.name=web01,service.instance.id=i:1,other=left out",
	}, must[string](t)(e2e.Root())+"/integration/clients/otlp.py")
	if err != nil {
		t.Fatal(err)
	}
	if requests.Load() < 3 {
		t.Errorf("%d requests, want one that is sent again, and another", requests.Load())
	}

	const from = `"host.name":"web01","service.instance.id":"i:1","service.name":"shop"`
	want := []string{
		`{"__name__":"orders","express":"true",` + from + `,"status":"paid"} 2 3`,
		`{"__name__":"orders",` + from + `,"shop":"7","status":"returned"} 0.5`,
		`{"__name__":"queue.size",` + from + `} 5 2`,
		`{"__name__":"request.duration_bucket",` + from[:19] + `,"le":"+Inf",` + from[20:] + `} 1 3`,
		`{"__name__":"request.duration_bucket",` + from[:19] + `,"le":"0.1",` + from[20:] + `} 1 1`,
		`{"__name__":"request.duration_bucket",` + from[:19] + `,"le":"1",` + from[20:] + `} 1 1`,
		`{"__name__":"request.duration_bucket",` + from[:19] + `,"le":"10",` + from[20:] + `} 1 2`,
		`{"__name__":"request.duration_count",` + from + `} 1 3`,
		`{"__name__":"request.duration_max",` + from + `} 0.05 30`,
		`{"__name__":"request.duration_min",` + from + `} 0.05 0.05`,
		`{"__name__":"request.duration_sum",` + from + `} 0.05 33.05`,
		`{"__name__":"room/heat",` + from[:19] + `,"room":"a b",` + from[20:] + `} 21.25 21.25`,
	}
	var data struct {
		Result []struct {
			Metric json.RawMessage
			Values [][2]any
		}
	}
	if err := prometheusAPI(ctx, ours.URL+"/prometheus", "query", url.Values{"query": {`{__name__=~".+"}[1h]`}},
		&data); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range data.Result {
		line := string(s.Metric)
		for _, v := range s.Values {
			line += " " + v[1].(string)
		}
		got = append(got, line)
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s\n%s", d, out)
	}
}
