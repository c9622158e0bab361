package compare

import (
	"slices"
	"testing"
)

// A rule lets its own difference through and no other.
func TestWithReference(t *testing.T) {
	f := func(want, got string, equal bool, rules ...string) {
		t.Helper()
		theirs, ours := Answer{Status: 400, Body: []byte(want)}, Answer{Status: 400, Body: []byte(got)}
		r, applied, err := WithReference(theirs, ours)
		if err != nil || r.Equal() != equal || !slices.Equal(applied, rules) {
			t.Errorf("%s, %s: error %v, %v, rules %q; want equal %t by %q", want, got, err, r, applied, equal, rules)
		}
	}
	message := func(text string) string { return `{"error":{"code":400,"message":"` + text + `"}}` }
	f(message("Got Infinity: -Infinity in this SpanGroup.Iterator(x)"),
		message("Got Infinity: -Infinity in this SpanGroup.Iterator"), true, "quoted Java objects")
	f(message("Got Infinity: -Infinity in this SpanGroup.Iterator(x)"),
		message("Got Infinity: Infinity in this SpanGroup.Iterator"), false, "quoted Java objects")
	f(message("Got Infinity: -Infinity in this SpanGroup.Iterator(x)"), message("Got Infinity: -Infinity"), false)
	f(message("Duplicate timestamp for key=[1], ms_offset=0"), message("Duplicate timestamp for key=[2], ms_offset=0"),
		true, "one of several duplicates")
	f(message("Duplicate timestamp for key=[1], ms_offset=0"), message("Double timestamp for key=[2]"), false,
		"one of several duplicates")
	f(message("No such name"), message("No such metric"), false)
	for _, rule := range Rules {
		if rule.Name == "" || rule.Reason == "" {
			t.Errorf("%+v: every rule needs a name and a reason", rule)
		}
	}
}
