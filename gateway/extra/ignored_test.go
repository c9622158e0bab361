package extra_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a query has that means nothing is in the header Warning of its answer, which is otherwise as it is without, and
// in its plan.
func TestQuery_ignored(t *testing.T) {
	b := open(t, nil)
	b.Put("m 1356998400 1 host=a", "m 1356998460 3 host=a")
	const q = "/api/query?start=1356998400&end=1356998700&m="
	plain, odd := b.Get(q+"sum:5n-avg:m"), b.Get(q+"sum:5min-avg:d%C3%A9riv:m")
	if plain.Status != http.StatusOK || odd.Status != plain.Status || odd.Body != plain.Body {
		t.Errorf("got %d %s, want %d %s", odd.Status, odd.Body, plain.Status, plain.Body)
	}
	want := []string{
		`299 - "the part \"d\u00e9riv\" of m=sum:5min-avg:d\u00e9riv:m means nothing"`,
		`299 - "the duration \"5min\" is read as 5n, n is for months"`,
	}
	if diff := cmp.Diff(want, odd.Header.Values("Warning")); diff != "" || len(plain.Header.Values("Warning")) > 0 {
		t.Errorf("Warning of %v: -want +got\n%s", plain.Header, diff)
	}
	plan := b.Get(q + "sum:5min-avg:deriv:m&explain")
	if plan.Status != http.StatusOK || !strings.Contains(plan.Body, `"ignored":["the part \"deriv\"`) {
		t.Errorf("plan: got %d %s, want what is ignored in it", plan.Status, plan.Body)
	}
}

// So it is for expressions and pictures. A picture's tz means something, its times are in it.
func TestIgnored_routes(t *testing.T) {
	b := open(t, nil)
	b.Put("m 1356998400 1 host=a", "m 1356998460 3 host=a")
	const months = `299 - "the duration \"5min\" is read as 5n, n is for months"`
	const times = "start=1356998400&end=1356998700"
	exp := func(interval string) string {
		return `{"time":{"start":1356998400,"end":1356998700,"aggregator":"sum",` +
			`"downsampler":{"interval":"` + interval +
			`","aggregator":"avg"}},"metrics":[{"id":"a","metric":"m"}],"expressions":[{"id":"e","expr":"a+1"}]}`
	}
	for what, answers := range map[string][2]answer{
		"gexp": {
			b.Get("/api/query/gexp?" + times + "&exp=scale(sum:5min-avg:m,2)"),
			b.Get("/api/query/gexp?" + times + "&exp=scale(sum:5n-avg:m,2)"),
		},
		"exp": {b.Post("/api/query/exp", exp("5min")), b.Post("/api/query/exp", exp("5n"))},
		"picture": {
			b.Get("/q?" + times + "&m=sum:5min-avg:m&tz=Europe/Berlin&ascii"),
			b.Get("/q?" + times + "&m=sum:5n-avg:m&tz=Europe/Berlin&ascii"),
		},
	} {
		odd, plain := answers[0], answers[1]
		if odd.Status != http.StatusOK || plain.Status != http.StatusOK {
			t.Errorf("%s: got %d %s and %d %s", what, odd.Status, odd.Body, plain.Status, plain.Body)
		}
		if diff := cmp.Diff([]string{months}, odd.Header.Values("Warning")); diff != "" {
			t.Errorf("%s: Warning: -want +got\n%s", what, diff)
		}
		if got := plain.Header.Values("Warning"); len(got) > 0 {
			t.Errorf("%s: Warning is %q, want none", what, got)
		}
	}
}
