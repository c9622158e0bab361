package httpio

import (
	"net/http/httptest"
	"testing"
)

// Contains takes HEAD for GET, and the verb of method_override for the request's. An unknown
// override is in no set.
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
