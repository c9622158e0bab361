package compare

import (
	"slices"
	"strings"
	"testing"
)

// hasUnused reports whether a request has a metric that no output needs, directly or through
// expressions.
func TestHasUnused(t *testing.T) {
	f := func(expressions, outputs string, want bool) {
		t.Helper()
		body := `{"metrics":[{"id":"a"},{"id":"b"}],"expressions":[` + expressions + `],"outputs":[` + outputs + `]}`
		if got := hasUnused(body); got != want {
			t.Errorf("%s: %t, want %t", body, got, want)
		}
	}
	f(``, ``, false) // without a list of outputs all are outputs
	f(``, `{"id":"a"}`, true)
	f(``, `{"id":"a"},{"id":"b"}`, false)
	f(`{"id":"e","expr":"a + 1"}`, ``, true)
	f(`{"id":"e","expr":"a + b"}`, ``, false)
	f(`{"id":"e","expr":"a + b"}`, `{"id":"a"}`, true)
	f(`{"id":"e","expr":"d * b"},{"id":"d","expr":"a"}`, `{"id":"e"}`, false)
	// A circle of d and e, which does not use b.
	f(`{"id":"e","expr":"d * a"},{"id":"d","expr":"e"}`, `{"id":"e"}`, true)
	f(`{"id":"e","expr":"e + a + b"}`, ``, false)
}

// usersWithOtherTimes names the expressions with rows at times that an expression in them does not
// have, and all that use those.
func TestUsersWithOtherTimes(t *testing.T) {
	const body = `{"metrics":[{"id":"a"},{"id":"b"}],"outputs":[{"id":"f"}],"expressions":[` +
		`{"id":"h","expr":"g + a"},{"id":"d","expr":"a"},{"id":"e","expr":"a + d"},
		{"id":"f","expr":"e + b"},{"id":"g","expr":"f"}]}`
	answer := func(asked string) []byte {
		if !strings.Contains(asked, `"outputs":[]`) {
			t.Errorf("asked for %s, want all outputs", asked)
		}
		return []byte(`{"outputs":[{"id":"d","dps":[[1,1]]},{"id":"e","dps":[[1,2]]},{"id":"f","dps":[[1,2],` +
			`[2,2]]},{"id":"g","dps":[[1,2],[2,2]]},{"id":"h","dps":[[1,2]]}]}`)
	}
	got, err := usersWithOtherTimes(body, answer)
	slices.Sort(got)
	if err != nil || !slices.Equal(got, []string{"f", "g", "h"}) {
		t.Errorf("got %q, %v, want f, which has a time that e lacks, g and h", got, err)
	}
}

// OpenTSDB's null pointer is answered, also if the JVM gives it no message any more: then the body
// is a text. An infinite value fails a request here before an expression that cannot be evaluated.
func TestErrorRule_faultsOfOpenTSDB(t *testing.T) {
	const body = `{"expressions":[{"id":"e","expr":"!1 + a"}]}`
	object := func(message string) []byte { return []byte(`{"error":{"message":"` + message + `"}}`) }
	for _, c := range []struct {
		theirs, ours Answer
		rule         string
	}{
		{
			Answer{Status: 400, Body: object(`Cannot invoke \"byte[].length\" because \"uid\" is null`)},
			Answer{Status: 200},
			"a null pointer is answered",
		},
		{Answer{Status: 500, Body: []byte(noMessage)}, Answer{Status: 200}, "a null pointer is answered"},
		{Answer{Status: 500, Body: []byte("out of memory")}, Answer{Status: 200}, "400 for 500"},
		{
			Answer{Status: 400, Body: object("ExpressionIterator.<init>@148![0,6]: '!1 + a' +/- error")},
			Answer{Status: 400, Body: object("Got Infinity: Infinity in this")},
			"infinity fails a request first",
		},
		{
			Answer{Status: 400, Body: object("ExpressionIterator.<init>@148![0,6]: '!1 + a' +/- error")},
			Answer{Status: 400, Body: object("cannot evaluate 'e'")},
			"what cannot be computed is told in words",
		},
	} {
		if got, ok := errorRule(body, c.theirs, c.ours); got.rule != c.rule || !ok {
			t.Errorf("%s and %s: rule %q, want %q", c.theirs.Body, c.ours.Body, got.rule, c.rule)
		}
	}
}

// Of two expressions with faults of different kinds either may be reported; the fault of one alone
// must be OpenTSDB's.
func TestErrorRule_twoFaults(t *testing.T) {
	const one, two = `{"expressions":[{"id":"e"}]}`, `{"expressions":[{"id":"e"},{"id":"f"}]}`
	answer := func(message string) Answer {
		return Answer{Status: 400, Body: []byte(`{"error":{"message":"` + message + `"}}`)}
	}
	const (
		noKeys    = "No intersections found: x"
		noResults = "Missing results for variable X"
		jexl      = "ExpressionIterator.<init>@148![1,25]: '(!2) - a' +/- error"
	)
	for _, c := range []struct {
		body, theirs, ours string
		rule               string
	}{
		{two, noKeys, noResults, "of two faulty expressions either is told"},
		{two, noResults, "cannot evaluate 'a'", "of two faulty expressions either is told"},
		{two, jexl, noKeys, "of two faulty expressions either is told"},
		{two, jexl, "cannot evaluate 'a'", "what cannot be computed is told in words"},
		{one, noKeys, noResults, ""},
		{two, noKeys, noKeys, ""},
		{two, noKeys, "something else", ""},
	} {
		if got, ok := errorRule(c.body, answer(c.theirs), answer(c.ours)); got.rule != c.rule || ok != (c.rule != "") {
			t.Errorf("%q, %q: rule %q, want %q", c.theirs, c.ours, got.rule, c.rule)
		}
	}
}
