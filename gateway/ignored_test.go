package gateway_test

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
