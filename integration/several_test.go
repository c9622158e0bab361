//go:build integration

package integration

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"downpour/integration/e2e"
)

// Two gateways on a real HBase. What one of them puts and deletes is in the other one's next answer,
// which comes from the result cache before. What it renames the other one finds out by itself, and what
// OpenTSDB renames once the caches of either gateway are dropped.
func TestSeveral_realHBase(t *testing.T) {
	t.Parallel()
	ctx := within(t, 10*time.Minute)
	tables := createTables(t)
	env := map[string]string{"DOWNPOUR_ALLOW_DELETE": "true"}
	a, b := layouts[0].gateway(t, tables, env), layouts[0].gateway(t, tables, env)
	tsd := layouts[0].openTSDB(t, tables)
	query := fmt.Sprintf("/api/query?start=%d&end=%d&m=none:several", dataStart, dataStart+3600)
	body := func(g *e2e.Program) string {
		t.Helper()
		answer := must[e2e.Answer](t)(e2e.Get(ctx, g.URL+query))
		if answer.Status != http.StatusOK {
			t.Errorf("%s: %d %s", g.URL, answer.Status, answer.Body)
		}
		return string(answer.Body)
	}
	until := func(what, want string) {
		t.Helper()
		began := time.Now()
		if err := e2e.Until(ctx, 20*time.Millisecond, func(context.Context) error {
			if got := body(b); !strings.Contains(got, want) {
				return fmt.Errorf("%s: got %s, want %s", what, got, want)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: after %.1f s", what, time.Since(began).Seconds())
	}
	call := func(what string, answer e2e.Answer, err error) {
		t.Helper()
		if err != nil || answer.Status/100 != 2 {
			t.Fatalf("%s: %d %s, %v", what, answer.Status, answer.Body, err)
		}
	}

	put(ctx, t, a.URL, []e2e.Point{
		{Metric: "several", Timestamp: dataStart, Value: []byte("1"), Tags: map[string]string{"host": "v"}},
	})
	for range 3 {
		if got := body(b); !strings.Contains(got, `"1356998400":1`) {
			t.Fatalf("the point of the other gateway: %s", got)
		}
	}
	put(ctx, t, a.URL, []e2e.Point{
		{Metric: "several", Timestamp: dataStart + 1, Value: []byte("2"), Tags: map[string]string{"host": "v"}},
	})
	if got := body(b); !strings.Contains(got, `"1356998400":1,"1356998401":2`) {
		t.Errorf("the next point: %s", got)
	}

	answer, err := e2e.Post(ctx, a.URL+"/api/uid/rename", `{"tagv":"v","name":"by-gateway"}`)
	call("rename by a gateway", answer, err)
	until("renamed by the other gateway", `"tags":{"host":"by-gateway"}`)
	answer, err = e2e.Post(ctx, tsd.URL+"/api/uid/rename", `{"tagv":"by-gateway","name":"by-tsd"}`)
	call("rename by OpenTSDB", answer, err)
	answer, err = e2e.Get(ctx, a.URL+"/api/dropcaches")
	call("dropcaches", answer, err)
	until("renamed by OpenTSDB, caches of the other gateway dropped", `"tags":{"host":"by-tsd"}`)

	request := must[*http.Request](t)(http.NewRequestWithContext(ctx, http.MethodDelete, a.URL+query, nil))
	response := must[*http.Response](t)(http.DefaultClient.Do(request))
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("deletion: %d", response.StatusCode)
	}
	for range 3 {
		if got := body(b); strings.Contains(got, "135699840") {
			t.Errorf("after the deletion by the other gateway: %s", got)
		}
	}
}
