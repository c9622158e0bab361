package compare

import "testing"

// A metric is needed by an output, or by what an output needs, directly or not.
func TestHasUnused(t *testing.T) {
	f := func(expressions, outputs string, want bool) {
		t.Helper()
		body := `{"metrics":[{"id":"a"},{"id":"b"}],"expressions":[` + expressions + `],"outputs":[` + outputs + `]}`
		if got := hasUnused(body); got != want {
			t.Errorf("%s: %t, want %t", body, got, want)
		}
	}
	f(``, ``, false) // all are outputs
	f(``, `{"id":"a"}`, true)
	f(``, `{"id":"a"},{"id":"b"}`, false)
	f(`{"id":"e","expr":"a + 1"}`, ``, true)
	f(`{"id":"e","expr":"a + b"}`, ``, false)
	f(`{"id":"e","expr":"a + b"}`, `{"id":"a"}`, true)
	f(`{"id":"e","expr":"d * b"},{"id":"d","expr":"a"}`, `{"id":"e"}`, false)
	f(`{"id":"e","expr":"d * a"},{"id":"d","expr":"e"}`, `{"id":"e"}`, true) // a circle
	f(`{"id":"e","expr":"e + a + b"}`, ``, false)
}
