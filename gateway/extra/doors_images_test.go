package extra_test

import (
	"testing"

	"downpour/gateway"
	"downpour/gateway/extra/graph/graphroutes"
	"downpour/gateway/gatewaytest"
)

// With AllowImages a page of another site can show a picture as an image. It gets none by a script
// or a POST, nor the points as text, nor from a gateway with tokens or without the setting.
func TestDoors_images(t *testing.T) {
	allowed := func(c *gateway.Config) { gateway.SettingsOf[graphroutes.Settings](c).AllowImages = true }
	b, forbidden := open(t, allowed), open(t, nil)
	tokens := open(t, func(c *gateway.Config) { allowed(c); c.TokenFile = gatewaytest.TokenFile(t) })
	for _, b := range []*bench{b, forbidden} {
		b.Put("m 1356998400 1 host=a")
	}
	image := []string{
		"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image",
		"Referer", "http://wiki.example/page",
	}
	with := func(name, value string) []string {
		out := append([]string{}, image...)
		for i := 0; i < len(out); i += 2 {
			if out[i] == name {
				out[i+1] = value
				return out
			}
		}
		return append(out, name, value)
	}
	f := func(b *bench, method, path string, status int, header ...string) {
		t.Helper()
		a := b.Do(method, path, nil, header...)
		if a.Status != status || a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s %v: %d %.200s, want %d", method, path, header, a.Status, a.Body, status)
		}
		if policy := a.Header.Get("Cross-Origin-Resource-Policy"); (policy == "cross-origin") != (status == 200) {
			t.Errorf("%s %s: Cross-Origin-Resource-Policy %q, want cross-origin of a picture alone",
				method, path, policy)
		}
	}
	const q = "/q?start=1356998400&end=1356998500&m=sum:m&wxh=100x100"
	for _, picture := range []string{"&png", "&svg"} {
		f(b, "GET", q+picture, 200, image...)
		f(b, "HEAD", q+picture, 200, image...)
		f(b, "GET", q+picture, 200, with("Sec-Fetch-Site", "same-site")...)
		f(b, "GET", q+picture, 403, with("Sec-Fetch-Dest", "script")...)
		f(b, "GET", q+picture, 403, with("Sec-Fetch-Dest", "empty")...)
		f(b, "GET", q+picture, 403, with("Sec-Fetch-Mode", "cors")...)
		f(b, "GET", q+picture, 403, with("Origin", "http://wiki.example")...)
		f(b, "GET", q+picture, 403, with("Origin", "null")...)
		f(b, "POST", q+picture, 403, image...)
		f(forbidden, "GET", q+picture, 403, image...)
		f(tokens, "GET", q+picture, 403, image...)
		f(tokens, "GET", q+picture, 403, with("Authorization", "Bearer "+gatewaytest.ReadToken)...)
	}
	for _, path := range []string{q + "&ascii", q + "&json", q, q + "&ascii&png", q + "&png&json",
		"/api/suggest?type=metrics&png", "/api/q?png", "/api/query?start=1356998400&m=sum:m&png",
		"/api/dropcaches?png", "/dropcaches?png"} {
		f(b, "GET", path, 403, image...)
	}
}
