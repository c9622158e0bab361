package gateway_test

import (
	"regexp"
	"strings"
	"testing"

	"downpour/gateway"
)

// A query that is asked again is answered from the result cache until a point is put into its hours
// or the caches are dropped. trace, explain and metrics say so.
func TestQuery_remembered(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.ResultCache = "1048576" })
	b.put("m 1356998400 1 host=a", "m 1356998460 2 host=a")
	const query = "/api/query?start=1356998400&end=1357000000&m=sum:5m-sum:m"
	ask := func(value, summary string) {
		t.Helper()
		a := b.get(query + "&trace=true")
		if !strings.Contains(a.body, `"1356998400":`+value) {
			t.Errorf("%d %s, want the value %s", a.status, a.body, value)
		}
		said := regexp.MustCompile(`"resultCache":"([^"]*)"`).FindStringSubmatch(a.body)
		if summary == "" && said != nil || summary != "" && (said == nil || !strings.HasPrefix(said[1], summary)) {
			t.Errorf("the trace says %q of the parts, want %q", said, summary)
		}
	}
	ask("3", "")
	ask("3", "kept")
	ask("3", "answered from memory")
	if a := b.get(query + "&explain=true"); strings.Count(a.body, `"resultCache":"kept"`) != 2 {
		t.Errorf("explain does not say that the part and the whole are kept: %s", a.body)
	}
	// A later start in the same hour is answered whole from memory.
	a := b.get(strings.Replace(query, "1356998400", "1356998460", 1) + "&trace=true")
	if !strings.Contains(a.body, `"dps":{}`) || !strings.Contains(a.body, `"resultCache":"answered from memory whole`) {
		t.Errorf("a start after all points: got %s, want an empty answer from memory", a.body)
	}
	b.put("m 1356998461 4 host=a")
	ask("7", "read: rows may have changed")
	ask("7", "kept")
	ask("7", "answered from memory")
	for _, drop := range []func(){
		func() { b.get("/api/dropcaches") },
		func() {
			l := b.dial()
			if _, err := l.Write([]byte("dropcaches\n")); err != nil {
				t.Fatal(err)
			}
			if said := l.rest(); said != "Caches dropped.\n" {
				t.Errorf("telnet: %q", said)
			}
		},
	} {
		drop()
		if a := b.get("/metrics"); !strings.Contains(a.body, "\ndownpour_result_cache_entries 0\n") {
			t.Error("the result cache has entries after dropcaches, want none")
		}
		ask("7", "")
		ask("7", "kept")
		ask("7", "answered from memory")
	}
	for _, name := range []string{"hits_total", "plan_hits_total"} {
		if a := b.get("/metrics"); !regexp.MustCompile(`(?m)^downpour_result_cache_` + name + ` [1-9]`).MatchString(a.body) {
			t.Errorf("metrics: %s counts nothing", name)
		}
	}
}

// With ResultCache off no answer comes from the result cache.
func TestQuery_notRemembered(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.ResultCache = "off" })
	b.put("m 1356998400 1 host=a")
	for range 4 {
		if a := b.get("/api/query?start=1356998400&end=1357000000&m=sum:5m-sum:m&trace=true"); strings.Contains(a.body, `"resultCache":`) || a.status != 200 {
			t.Errorf("got %d %s, want 200 without a word on the result cache", a.status, a.body)
		}
	}
}
