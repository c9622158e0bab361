//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/integration/e2e"
	"downpour/pushdown/rpc/auth/authtest"
)

// The frames that the package makes of a live query are those of the same query asked afresh, after
// late points, corrections and new series. All goes over TLS with tokens; requests without the
// right one are refused.
func TestPython_follow(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	made := authtest.NewCertificate(t)
	const read, write = "a-token-for-reading", "a-token-for-writing"
	ours := embedded(t, map[string]string{
		"DOWNPOUR_TLS_CERT": made.CertFile, "DOWNPOUR_TLS_KEY": made.KeyFile,
		"DOWNPOUR_TOKEN_FILE": writeFile(t, "tokens", "read "+read+"\nwrite "+write+"\n"),
	})
	out := must[[]byte](t)(e2e.Python(ctx, "integration/readers/follow.py", ours.URL, made.CertFile, read, write))
	t.Logf("%s", out)
}

// An expression that the package turns into JSON, as the WebSocket wants it, has
// the answer that the gateway gives to the expression itself.
func TestPython_expressions(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	ours := embedded(t, nil)
	put(ctx, t, ours.URL, introduce())
	put(ctx, t, ours.URL, dataset(7))
	expressions := []string{
		"sum:load.int", "none:load.int{host=web01}", "avg:5m-avg:load.float{host=*,dc=lga}",
		"max:load.int{host=web*}", "sum:load.int{host=web01|db02}{dc=lga}", "sum:load.int{}{dc=*}",
		"min:10m-max-nan:load.mixed{host=*}{dc=literal_or(lga|sjc)}", "sum:rate:load.counter{host=*}",
		"sum:rate{counter}:load.counter", "sum:rate{counter,65535,10}:load.counter{host=*}",
		"sum:rate{dropcounter}:1m-max:load.counter{host=*}", "sum:load.int{host=regexp(web0[12])}",
		"sum:load.int{host=not_literal_or(web01)}", "sum:load.int{host=iwildcard(WEB*)}{dc=wildcard(*)}",
		"sum:explicit_tags:load.int{host=*,dc=*}", "sum:1h-sum-zero:load.ms{host=*}",
	}
	lines := bytes.Split(
		bytes.TrimSpace(must[[]byte](t)(e2e.Python(ctx, "integration/readers/expressions.py", expressions...))),
		[]byte("\n"),
	)
	for i, expression := range expressions {
		times := fmt.Sprintf("start=%d&end=%d", dataStart, dataStart+7200)
		want := must[e2e.Answer](t)(e2e.Get(ctx, ours.URL+"/api/query?"+times+"&m="+url.QueryEscape(expression)))
		body := fmt.Sprintf(`{"start":%d,"end":%d,"queries":[%s]}`, dataStart, dataStart+7200, lines[i])
		got := must[e2e.Answer](t)(e2e.Post(ctx, ours.URL+"/api/query", body))
		if want.Status != 200 || got.Status != want.Status || string(got.Body) != string(want.Body) ||
			!strings.Contains(string(got.Body), "dps") {
			t.Errorf("%s as %s: %d %.300s\nwant %d %.300s",
				expression, lines[i], got.Status, got.Body, want.Status, want.Body)
		}
	}
}

// The package lists names by any part, tag keys and values as a gateway has them, asks for the last hour where no start
// is given, and repeats all words of an error.
func TestPython_names(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	ours := embedded(t, nil)
	now := time.Now().Unix()
	point := func(metric string, at int64, tags ...string) e2e.Point {
		p := e2e.Point{Metric: metric, Timestamp: at, Value: json.RawMessage("1"), Tags: map[string]string{}}
		for i := 0; i < len(tags); i += 2 {
			p.Tags[tags[i]] = tags[i+1]
		}
		return p
	}
	put(ctx, t, ours.URL, []e2e.Point{
		point("sys.cpu.user", now-60, "host", "b"), point("sys.cpu.user", now-60, "host", "a", "dc", "lga"),
		point("sys.cpu.user", now-30, "host", "a", "dc", "lga"), point("sys.cpu.user", now-7200, "host", "b"),
		point("cpu.idle", now, "rack", "1"), point("load", now, "host", "c"),
	})
	var got map[string]any
	out := must[[]byte](t)(e2e.Python(ctx, "integration/readers/names.py", ours.URL))
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if diff := cmp.Diff(map[string]any{
		"metrics":   []any{"cpu.idle", "sys.cpu.user"},
		"all":       []any{"cpu.idle", "load", "sys.cpu.user"},
		"tags":      []any{"dc", "host"},
		"values":    []any{"a", "b"},
		"points":    2.0,
		"near":      "400 No such name for 'metrics': 'sys.cpu.usr', did you mean sys.cpu.user?",
		"no metric": "404 Unable to resolve one or more UIDs: No such name for 'metrics': 'sys.cpu.usr'",
		"no tag":    []any{},
	}, got); diff != "" {
		t.Errorf("(-want +got) %s", diff)
	}
}
