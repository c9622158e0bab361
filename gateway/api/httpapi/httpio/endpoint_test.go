package httpio

import "testing"

// The API version is the element behind api/, where it is one.
func TestRouteOf(t *testing.T) {
	f := func(spelling, route string, status int) {
		t.Helper()
		got, err := RouteOf(spelling)
		code := 0
		if err != nil {
			code = Classify(err).Code
		}
		if got != route || code != status {
			t.Errorf("%s: route %q, status %d, want %q, %d", spelling, got, code, route, status)
		}
	}
	f("/api/put", "api/put", 0)
	f("/API/Put/", "api/put", 0)
	f("/api/v1/put", "api/put", 0)
	f("//api/V1/put", "api/put", 0)
	f("/api/v1", "api/", 0)
	f("/api/v2/put", "api/put", 501)
	f("/api/v1x/put", "api/put", 400)
	f("/api/v99999999999999999999/put", "api/put", 400)
	f("/api/version", "api/version", 0)
	f("/api/v", "api/v", 0)
	f("/api/v-1/put", "api/v-1/put", 0)
	f("/api//put", "api//put", 0)
	f("/", "", 0)
}
