package origin

import (
	"strings"
	"testing"
)

// Parse refuses an origin that no browser would send, and names the one that it would send if that
// is known. If there is another origin, it only leaves this one out.
func TestParse(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, _, err := Parse([]string{text})
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("%q: %v, want an error that ends in %q", text, err, want)
		}
	}
	f("*", "")
	f("http://localhost:8000", "")
	f("HTTPS://Grafana.Example", "")
	f("http://[::1]:3000", "")
	f("app://desktop", "")
	const such = "want * or an origin as browsers send it, such as http://localhost:8000"
	f("localhost", such)
	f("localhost:8000", such)
	f("grafana.example", such)
	f("//grafana.example", such)
	f("http:grafana.example", such)
	f("http://", such)
	f("http://:8000", such)
	f("null", such)
	f("http://a b", such)
	for _, text := range []string{"http://*.example.com", "https://münchen.example", "http://a:99999", "http://a:0",
		"http://a:"} {
		f(text, such)
	}
	f("", "")
	f("http://grafana.example/", "want the origin alone: http://grafana.example")
	f("http://grafana.example/d/abc?x=1", "want the origin alone: http://grafana.example")
	f("http://me@grafana.example", "want the origin alone: http://grafana.example")
	f("https://grafana.example:80", "")

	l, unusable, err := Parse([]string{" http://ok.example", "localhost", ""})
	if err != nil || len(unusable) != 1 || !strings.Contains(unusable[0].Error(), `got "localhost"`) ||
		!l.Contains("http://ok.example") || l.Contains("localhost") {
		t.Errorf("got %v without %v, %v, want one of two", l, unusable, err)
	}
	if l, _, err := Parse([]string{"localhost", "*"}); err != nil || !l.Contains("http://any.example") {
		t.Errorf("got %v, %v, want all", l, err)
	}
}

//fault:origin-by-its-beginning strings.EqualFold(u.Scheme+"://"+u.Host, origin) => strings.HasPrefix(origin, u.Scheme+"://"+u.Host)
func TestList(t *testing.T) {
	l, _, err := Parse([]string{"http://ok.example:3000", "https://OTHER.example", "http://a:80", "https://b:443",
		"https://c:80"})
	if err != nil {
		t.Fatal(err)
	}
	f := func(l List, origin, host string, has, allows bool) {
		t.Helper()
		if l.Contains(origin) != has || l.Allows(origin, host) != allows {
			t.Errorf("%q at %s: listed %t, allowed %t; want %t, %t", origin, host, l.Contains(origin),
				l.Allows(origin, host), has, allows)
		}
	}
	f(l, "http://ok.example:3000", "gateway:4242", true, true)
	f(l, "HTTP://OK.example:3000", "gateway:4242", true, true)
	f(l, "https://other.example", "gateway:4242", true, true)
	f(l, "http://other.example", "gateway:4242", false, false)
	f(l, "http://a", "gateway:4242", true, true)
	f(l, "https://b", "gateway:4242", true, true)
	f(l, "https://c:80", "gateway:4242", true, true)
	f(l, "https://c", "gateway:4242", false, false)
	f(l, "http://ok.example", "gateway:4242", false, false)
	f(l, "http://ok.example:3000.evil.example", "gateway:4242", false, false)
	f(l, "http://Gateway:4242", "gateway:4242", false, true)
	f(l, "http://gateway", "gateway:4242", false, false)
	f(l, "null", "gateway:4242", false, false)
	f(l, "", "", false, false)
	all, _, err := Parse([]string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	f(all, "http://evil.example", "gateway:4242", true, true)
	f(all, "null", "gateway:4242", true, true)
	f(List{}, "http://ok.example:3000", "gateway:4242", false, false)
	if !(List{}).Empty() || l.Empty() || all.Empty() {
		t.Error("Empty: want true of the list without origins alone")
	}
	if !l.names("ok.example:3000") || !l.names("OK.example:1") || l.names("evil.example") {
		t.Error("names: want true of the listed hosts alone")
	}
}
