package origin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Browsers and programs, by the headers that they send of themselves.
var (
	chromium   = []string{"User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", "Accept-Language", "en"}
	disguised  = []string{"User-Agent", "curl/8", "Accept-Language", ""}
	curl       = []string{"User-Agent", "curl/8"}
	powershell = []string{"User-Agent", "Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1"}
	node       = []string{"User-Agent", "node", "Accept-Language", "*", "Sec-Fetch-Mode", "cors"}
	grafana    = append([]string{"Via", "1.1 grafana, 1.1 squid"}, chromium...)
	programs   = [][]string{nil, curl, powershell, node, grafana}
)

const (
	gatewayHost = "10.0.0.1:4242"
	ownPage     = "http://10.0.0.1:4242"
	listedPage  = "http://ok.example:3000"
	foreignPage = "http://evil.example"
)

// kinds of installations.
func installed() map[string]Rules {
	listed, _, err := Parse([]string{listedPage})
	if err != nil {
		panic(err)
	}
	hosts := Hosts{"gateway-1", "metrics.example"}
	return map[string]Rules{
		"loopback": {Allowed: listed, Hosts: hosts, Loopback: true},
		"tokens":   {Allowed: listed, Hosts: hosts},
		"open":     {Allowed: listed, Hosts: hosts, Open: true},
		"all":      {Allowed: List{all: true}, Hosts: hosts, Open: true},
	}
}

func asked(method, host string, headers ...[]string) Request {
	r := Request{Method: method, Host: host, Header: map[string][]string{}}
	for _, list := range headers {
		for i := 0; i < len(list); i += 2 {
			http.Header(r.Header).Set(list[i], list[i+1])
		}
	}
	return r
}

// uses are all uses with the verbs of their requests.
var uses = map[string]struct {
	use    Use
	method string
}{
	"read": {Read, "GET"}, "query by POST": {Read, "POST"}, "jsonp": {Script, "GET"}, "picture": {Picture, "GET"},
	"file": {File, "GET"}, "put": {Change, "POST"}, "change by GET": {Change, "GET"},
	"change by HEAD": {Change, "HEAD"}, "DELETE": {Change, "DELETE"},
}

// Each use of a gateway meets each kind of headers in each kind of installation. A case says what is refused; all
// else must be answered.
//
//fault:plain-browsers-trusted o.Open => false
func TestRules(t *testing.T) {
	fetch := func(site, mode, dest string) []string {
		return []string{"Sec-Fetch-Site", site, "Sec-Fetch-Mode", mode, "Sec-Fetch-Dest", dest}
	}
	const everything = "read, query by POST, jsonp, picture, put, change by GET, change by HEAD, DELETE"
	const changes = "put, change by GET, change by HEAD, DELETE"
	for _, c := range []struct {
		name    string
		header  []string
		refused string // in every installation
		open    string // where there are no tokens, beyond loopback
	}{
		{"nothing said", chromium, "", "jsonp, change by GET, change by HEAD"},
		{"nothing said, disguised", disguised, "", "jsonp, change by GET, change by HEAD"},
		{"our page", slices.Concat(chromium, []string{"Referer", ownPage + "/d/x"}), "", ""},
		{"our page's script", slices.Concat(chromium, []string{"Origin", ownPage}), "", ""},
		{"a listed page", slices.Concat(chromium, []string{"Referer", listedPage + "/"}), "", ""},
		{"a listed page's script", slices.Concat(chromium, []string{"Origin", listedPage}), "", ""},
		{"a foreign page", slices.Concat(chromium, []string{"Referer", foreignPage + "/"}), "", "jsonp, " + changes},
		{"a foreign page by curl", slices.Concat(curl, []string{"Referer", foreignPage + "/"}), "",
			"jsonp, " + changes},
		{"another port", slices.Concat(chromium, []string{"Referer", "http://10.0.0.1:3000/"}), "",
			"jsonp, " + changes},
		{"a Referer that is none", slices.Concat(chromium, []string{"Referer", "about:blank"}), "",
			"jsonp, " + changes},
		{"a foreign script", slices.Concat(chromium, []string{"Origin", foreignPage}), everything, ""},
		{"a file's script", slices.Concat(chromium, []string{"Origin", "null"}), everything, ""},
		{"told: a foreign script", slices.Concat(chromium, fetch("cross-site", "no-cors", "script")), everything, ""},
		{"told: a foreign image", slices.Concat(chromium, fetch("cross-site", "no-cors", "image")),
			strings.ReplaceAll(everything, "picture, ", ""), ""},
		{"told: a link", slices.Concat(chromium, fetch("cross-site", "navigate", "document")),
			"query by POST, " + changes, ""},
		{"told: another host of the site", slices.Concat(chromium, fetch("same-site", "no-cors", "empty")), everything,
			""},
		{"told: typed", slices.Concat(chromium, fetch("none", "navigate", "document")), "", ""},
		{"told: our page", slices.Concat(chromium, fetch("same-origin", "cors", "empty")), "", ""},
		{"told: a listed page",
			slices.Concat(chromium, fetch("cross-site", "no-cors", "script"), []string{"Referer", listedPage + "/"}),
			"", ""},
	} {
		for name, u := range uses {
			for kind, rules := range installed() {
				got := rules.Decide(asked(u.method, gatewayHost, c.header), u.use)
				refused := c.refused
				if kind == "open" {
					refused += ", " + c.open
				}
				want := slices.Contains(strings.Split(refused, ", "), name) && kind != "all"
				if (got == Foreign || got == Unsaid) != want || got == UnknownHost {
					t.Errorf("%s, %s of a gateway of the kind %s: verdict %d, want a refusal: %t", c.name, name, kind,
						got, want)
				}
				if nothing := strings.HasPrefix(c.name, "nothing"); got == Unsaid && !nothing ||
					got == Foreign && nothing {
					t.Errorf("%s, %s: verdict %d is not the one that tells why", c.name, name, got)
				}
			}
		}
	}
	for _, program := range programs {
		for name, u := range uses {
			for kind, rules := range installed() {
				if got := rules.Decide(asked(u.method, gatewayHost, program), u.use); got != Ours {
					t.Errorf("%q, %s of a gateway of the kind %s: verdict %d, want it answered", program, name, kind,
						got)
				}
			}
		}
	}
}

// A browser must name the gateway by what is known to be its name, where no tokens are needed; on loopback all must.
func TestRules_hosts(t *testing.T) {
	known := []string{"", gatewayHost, "10.0.0.1", "[::1]:4242", "[fe80::1]", "localhost:4242", "LOCALHOST",
		"localhost.", "gateway-1:4242", "Gateway-1",
		"metrics.example:80", "metrics.example.", "ok.example:3000", "ok.example"}
	unknown := []string{"evil.example", "evil.example:4242", "metrics.example.evil.example", "10.0.0.1.evil.example",
		"evil-metrics.example", "localhost.evil.example",
		"gateway-1.evil.example", "evil.example.", "[evil]"}
	browsers := [][]string{chromium, disguised, {"Origin", foreignPage}, {"Sec-Fetch-Site", "same-origin"},
		append([]string{"Via", "1.1 squid"}, chromium...), {"User-Agent", "Opera/9.80"},
		append([]string{"X-Forwarded-For", "10.0.0.9"}, chromium...)}
	for kind, rules := range installed() {
		f := func(host string, header []string, want bool) {
			t.Helper()
			for name, u := range uses {
				if got := rules.Decide(asked(u.method, host, header), u.use); (got == UnknownHost) != want {
					t.Errorf(
						"a gateway of the kind %s, Host %q, %q, %s: verdict %d, want that the host is unknown: %t",
						kind, host, header, name, got, want)
				}
			}
		}
		for _, header := range browsers {
			for _, host := range known {
				f(host, header, false)
			}
			for _, host := range unknown {
				f(host, header, kind == "loopback" || kind == "open")
			}
		}
		for _, header := range programs {
			for _, host := range known {
				f(host, header, false)
			}
			for _, host := range unknown {
				f(host, header, kind == "loopback")
			}
		}
	}
}

// ParseHosts takes names as browsers send them, and says what is wrong with others.
//
//fault:host-by-its-end name == known => strings.HasSuffix(name, known)
func TestHosts(t *testing.T) {
	h, unusable, err := ParseHosts([]string{"Metrics.Example", "gateway-1", "full.example.", "10.0.0.7", " ", "a/b"})
	if want := (Hosts{"metrics.example", "gateway-1", "full.example", "10.0.0.7"}); err != nil ||
		!slices.Equal(h, want) || len(unusable) != 1 {
		t.Errorf("got %q, unusable %v, %v, want %q", h, unusable, err, want)
	}
	if h.has("evil-metrics.example") {
		t.Error("a name that only ends as one of ours is taken for it")
	}
	for _, bad := range []string{".", "http://metrics.example", "metrics.example:4242", "metrics example", "*",
		"*.example", "größe.example", "a/b"} {
		if _, _, err := ParseHosts([]string{bad}); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("got %q, want", bad)) {
			t.Errorf("%q: %v, want an error that names it", bad, err)
		}
	}
}
