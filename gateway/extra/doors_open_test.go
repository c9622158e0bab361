package extra_test

import (
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
)

// beyondLoopback is an address to listen at that counts as one beyond loopback, as every name but
// localhost does, and is none.
const beyondLoopback = "Localhost:0"

// exposed starts a gateway without tokens that may be reached from other machines.
func exposed(t *testing.T, change func(*gateway.Config)) *bench {
	t.Helper()
	return open(t, func(c *gateway.Config) {
		c.Listen, c.Insecure, c.AllowDelete, c.AllowHosts = beyondLoopback, true, true, []string{"metrics.example"}
		if change != nil {
			change(c)
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

// Over plain HTTP a browser does not say which page loads a script or an image. Without tokens such a request gets no
// jsonp and changes nothing, by any route; requests of programs, of our page and those that only read are answered.
func TestDoors_plain(t *testing.T) {
	t.Parallel()
	b := exposed(t, nil)
	b.Put("m 1356998400 1 host=a")
	browser := []string{
		"User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
		"Accept-Language", "en-US",
	}
	pages := map[string][]string{
		"an image": browser, "an image with a Referer": append(browser[:4:4], "Referer", "http://evil.example/page"),
	}
	let := map[string][]string{
		"curl": {"User-Agent", "curl/8.14"}, "our page": append(browser[:4:4], "Referer", "http://"+b.Address()+"/"),
	}
	refused := func(a answer) bool {
		return a.Status == http.StatusForbidden && strings.Contains(a.Body, "CORS domain not allowed")
	}
	changing, scripts := 0, 0
	for _, k := range knocks(t) {
		// A page's other verbs have an Origin, see TestDoors_pages.
		if k.route == "api/ws" || k.method != http.MethodGet {
			continue
		}
		path := "/" + k.path
		script := path + "?jsonp=steal"
		if strings.Contains(path, "?") {
			script = path + "&jsonp=steal"
		}
		changes := k.changes() || strings.Contains(k.path, "method_override") || k.more != 0
		for page, header := range pages {
			if a := b.Do(k.method, path, nil, header...); refused(a) != changes {
				t.Errorf("%s %s by %s: %d %.100s, want it refused: %t", k.verb, path, page, a.Status, a.Body, changes)
			}
			if a := b.Do(k.method, script, nil, header...); !refused(a) || strings.Contains(a.Body, "1356998400") {
				t.Errorf("%s %s by %s: %d %.100s, want it refused", k.verb, script, page, a.Status, a.Body)
			}
			scripts++
		}
		if changes {
			changing++
		}
		for page, header := range let {
			for _, path := range []string{path, script} {
				if a := b.Do(k.method, path, nil, header...); refused(a) {
					t.Errorf("%s %s by %s is refused: %d %.100s", k.verb, path, page, a.Status, a.Body)
				}
			}
		}
	}
	if changing < 10 || scripts < 60 {
		t.Errorf("%d routes that change by GET and %d scripts were tried, want 10 and 60 at least", changing, scripts)
	}
}

// Where no tokens are needed a browser must name the gateway as it is called: then no page whose name is made to lead
// here can put, read or open a socket. Programs may use any name, and so may browsers where tokens are needed.
func TestDoors_rebindingBeyondLoopback(t *testing.T) {
	b := exposed(t, func(c *gateway.Config) { c.AllowOrigins = []string{"http://ok.example:3000"} })
	tokens := exposed(t, func(c *gateway.Config) { c.TokenFile = gatewaytest.TokenFile(t) })
	_, port, _ := net.SplitHostPort(b.Address())
	browser := []string{"User-Agent", "Mozilla/5.0", "Accept-Language", "en-US"}
	f := func(b *bench, status int, method, path, host string, header ...string) {
		t.Helper()
		a := b.Do(method, path, strings.NewReader(gatewaytest.GoodPoint), append(slices.Clone(header), "Host", host)...)
		if a.Status != status ||
			status == http.StatusMisdirectedRequest && !strings.Contains(a.Body, "DOWNPOUR_ALLOW_HOSTS") {
			t.Errorf("%s %s of %q by %q: %d %.200s, want %d", method, path, host, header, a.Status, a.Body, status)
		}
	}
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{
		own, own + ":" + port, strings.ToUpper(own), "localhost", "10.1.2.3:4242", "[fe80::1]:" + port,
		"metrics.example", "metrics.example:80", "ok.example",
	} {
		f(b, 200, "GET", "/", host, browser...)
		f(b, 200, "GET", "/api/aggregators", host, browser...)
		f(b, 204, "POST", "/api/put", host, append(browser[:4:4], "Origin", "http://"+host)...)
	}
	for _, evil := range []string{
		"evil.example", "evil.example:" + port, own + ".evil.example", "metrics.example.evil.example",
	} {
		for _, path := range []string{
			"/", "/ui/js/main.js", "/healthz", "/metrics", "/api/aggregators", "/api/ws", "/none",
		} {
			f(b, 421, "GET", path, evil, browser...)
		}
		f(b, 421, "POST", "/api/put", evil, "Origin", "http://"+evil)
		f(b, 421, "POST", "/api/put", evil, append(browser[:4:4], "Origin", "http://"+evil)...)
		f(b, 421, "GET", "/api/suggest?type=metrics", evil, "User-Agent", "curl/8.14", "Accept-Language", "")
		f(b, 204, "POST", "/api/put", evil, "User-Agent", "curl/8.14")
		f(b, 204, "POST", "/api/put", evil)
		f(b, 200, "GET", "/api/suggest?type=metrics", evil, append(browser[:4:4], "Via", "1.1 grafana")...)
		f(tokens, 401, "GET", "/api/suggest?type=metrics", evil, browser...)
		d := websocket.Dialer{Subprotocols: []string{"downpour.v1"}}
		c, resp, err := d.Dial("ws://"+b.Address()+"/api/ws", http.Header{"Host": {evil}, "Origin": {"http://" + evil}})
		if resp == nil || resp.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("socket of %q: %v, %v, want 421", evil, resp, err)
		}
		if err == nil {
			c.Close()
		}
	}
}
