package httpio

import (
	"net/http/httptest"
	"testing"
)

// A verb counts after method_override, HEAD as GET, and an override that is no verb as
// none that reads.
func TestVerbs_Contains(t *testing.T) {
	f := func(verbs Verbs, method, target string, want bool) {
		t.Helper()
		if got := verbs.Contains(httptest.NewRequest(method, target, nil)); got != want {
			t.Errorf("%v contains %s %s: %t, want %t", verbs, method, target, got, want)
		}
	}
	f(Get, "GET", "/x", true)
	f(Get, "HEAD", "/x", true)
	f(Get, "POST", "/x", false)
	f(NoVerb, "GET", "/x", false)
	f(Get, "GET", "/x?method_override=delete", false)
	f(GetOrPost, "GET", "/x?method_override=post", true)
	f(Get, "GET", "/x?method_override=get", true)
	f(Get, "GET", "/x?method_override=nosuch", false)
}
