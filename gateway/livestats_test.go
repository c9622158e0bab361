package gateway_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"downpour/gateway/gatewaytest"
)

// The metrics of live queries are in /metrics and /api/stats, and live.md explains all of them.
func TestLive_counts(t *testing.T) {
	b := open(t, nil)
	b.Put("m 1356998500 1 host=a")
	s := subscribe(b, `{"start":1356998400,"queries":[{"metric":"m","aggregator":"sum"}]}`, "")
	s.next()
	for _, point := range []string{"m 1356998501 1 host=a", "m 1356998499 1 host=a"} { // in order, and late
		b.Put(point)
		s.next()
	}
	metrics := b.Get("/metrics").Body
	for _, want := range []string{
		"queries 1", "subscribers 1", "whole_total 0", "loads_total 1", "rows_changed_total 2",
		"rows_read_total 1", "merged_total 0",
	} {
		if !strings.Contains(metrics, "\ndownpour_live_"+want+"\n") {
			t.Errorf("/metrics lacks downpour_live_%s", want)
		}
	}
	if strings.Contains(metrics, "downpour_live_asks_total 0") || strings.Contains(metrics, "downpour_live_bytes 0") {
		t.Error("want ticks and held bytes in /metrics, got 0 for one of them")
	}
	page, err := os.ReadFile("docs/live.md")
	if err != nil {
		t.Fatal(err)
	}
	counted := gatewaytest.Names(regexp.MustCompile(`(?m)^(downpour_live_\w+) `), metrics)
	explained := gatewaytest.Names(regexp.MustCompile("(?m)^\\| `(downpour_live_\\w+)` "), string(page))
	if len(counted) == 0 || !slices.Equal(counted, explained) {
		t.Errorf("/metrics and live.md have other names\ncounted:   %v\nexplained: %v", counted, explained)
	}
	stats := b.Get("/api/stats").Body
	for _, name := range counted {
		if dotted := strings.ReplaceAll(name, "_", "."); !strings.Contains(stats, `"`+dotted+`"`) {
			t.Errorf("/api/stats lacks %s", dotted)
		}
	}
}
