package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
)

// A page of another site can neither write nor read nor open a WebSocket. The gateway's own pages,
// pages of listed origins and clients that are no browsers can.
func TestDoors_origins(t *testing.T) {
	b := open(t, nil)
	listed := open(t, func(c *gateway.Config) { c.AllowOrigins = []string{"http://ok.example"} })
	b.Put("m 1356998400 1 host=a")
	own := "http://" + b.Address()
	f := func(b *bench, method, path string, status int, header ...string) answer {
		t.Helper()
		a := b.Do(method, path, strings.NewReader(gatewaytest.GoodPoint), header...)
		if a.Status != status {
			t.Errorf("%s %s %v: %d %.200s, want %d", method, path, header, a.Status, a.Body, status)
		}
		return a
	}
	const put, suggest = "/api/put", "/api/suggest?type=metrics&jsonp=steal"
	f(b, "POST", put, 204)
	f(b, "POST", put, 204, "Origin", own)
	f(b, "POST", put, 204, "Sec-Fetch-Site", "same-origin")
	f(b, "POST", put, 403, "Origin", "http://evil.example")
	f(b, "POST", put, 403, "Origin", "null")
	f(b, "POST", put, 403, "Origin", "http://127.0.0.1:1")
	f(b, "POST", put, 403, "Origin", "http://evil.example", "Content-Type", "text/plain")
	f(b, "POST", put, 403, "Sec-Fetch-Site", "cross-site")
	f(b, "POST", put, 403, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate") // a form
	f(b, "POST", put, 403, "Origin", "http://ok.example")
	f(listed, "POST", put, 204, "Origin", "http://ok.example")
	f(listed, "POST", put, 403, "Origin", "http://evil.example")
	f(b, "DELETE", "/api/dropcaches", 403, "Origin", "http://evil.example")
	// A script of the page: no data, and it shows its user why requests fail.
	f(b, "GET", "/ui/js/main.js", 200, "Origin", "http://evil.example")
	f(b, "GET", "/ui/../api/dropcaches", 404, "Origin", "http://evil.example")
	f(b, "GET", "/api/dropcaches", 403, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors") // an image
	f(b, "GET", suggest, 403, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors")           // a script
	f(b, "GET", suggest, 403, "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors",
		"Referer", "http://evil.example/x")
	f(b, "GET", suggest, 200, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate") // a link
	f(b, "GET", suggest, 200, "Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate")
	f(listed, "GET", suggest, 200, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors",
		"Referer", "http://ok.example/page")
	f(listed, "GET", suggest, 403, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors",
		"Referer", "http://evil.example/page")
	for b, status := range map[*bench]int{b: 403, listed: 200} { // 200 with an error object, as OpenTSDB has it
		a := f(b, "GET", "/api/suggest?type=metrics", status, "Origin", "http://evil.example")
		if a.Header.Get("Access-Control-Allow-Origin") != "" ||
			!strings.Contains(a.Body, `"message":"CORS domain not allowed"`) {
			t.Errorf("a foreign page may read: %v %s", a.Header, a.Body)
		}
	}
	f(b, "OPTIONS", put, 405, "Origin", "http://evil.example")
	f(b, "OPTIONS", put, 200, "Origin", own)

	socket := func(b *bench, status int, header ...string) {
		t.Helper()
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		d := websocket.Dialer{Subprotocols: []string{"downpour.v1"}}
		c, resp, err := d.Dial("ws://"+b.Address()+"/api/ws", h)
		if resp == nil || resp.StatusCode != status {
			t.Errorf("socket %v: %v, %v, want %d", header, resp, err, status)
		}
		if err == nil {
			c.Close()
		}
	}
	socket(b, 101)
	socket(b, 101, "Origin", own)
	socket(b, 403, "Origin", "http://evil.example")
	socket(b, 403, "Origin", "null")
	socket(listed, 101, "Origin", "http://ok.example")
	socket(b, 421, "Host", "evil.example", "Origin", "http://evil.example")
}

// DNS rebinding: a request is answered only if its Host is an address of loopback, localhost or a
// listed origin's, and refused under a name that a foreign name server may point here.
func TestDoors_rebinding(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.AllowOrigins = []string{"http://metrics.example:4242"} })
	_, port, _ := net.SplitHostPort(b.Address())
	f := func(host string, status int) {
		t.Helper()
		for _, path := range []string{"/api/aggregators", "/", "/healthz", "/api/ws", "/metrics"} {
			want := status
			if path == "/api/ws" && status == 200 {
				want = http.StatusUpgradeRequired
			}
			if a := b.Get(path, "Host", host); a.Status != want {
				t.Errorf("%s of %q: %d, want %d", path, host, a.Status, want)
			}
		}
	}
	f("127.0.0.1:"+port, 200)
	f("localhost:"+port, 200)
	f("LOCALHOST", 200)
	f("[::1]:"+port, 200)
	f("metrics.example:4242", 200)
	f("evil.example", 421)
	f("evil.example:"+port, 421)
	f("127.0.0.1.evil.example:"+port, 421)
	f("localhost.evil.example", 421)
}

// A broken HTTP request gets an error or loses its connection, and the gateway goes on.
func TestDoors_brokenHTTP(t *testing.T) {
	b := open(t, nil)
	for _, text := range []string{
		"GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "G\x00T / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", // no Host
		"POST /api/put HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST /api/put HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
		"POST /api/put HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
		"POST /api/put HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n",
		"GET /" + strings.Repeat("x", 100<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		c := b.Dial()
		io.WriteString(c, text)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil && resp.StatusCode < 400 {
			t.Errorf("%.60q: got %d, want an error", text, resp.StatusCode)
		}
		if err == nil {
			resp.Body.Close()
		}
		c.Close()
	}
	if a := b.Get("/healthz"); a.Status != 200 {
		t.Errorf("afterwards: %d", a.Status)
	}
}

// What net/http decides of requests that OpenTSDB answers: without Host, or with two of it, they are
// refused; of two lengths of a body that of its chunks counts.
func TestDoors_ambiguousHTTP(t *testing.T) {
	b := open(t, nil)
	f := func(text, want string) {
		t.Helper()
		c := b.Dial()
		io.WriteString(c, text)
		if got := c.Next(); !strings.Contains(got, " "+want+" ") {
			t.Errorf("%q: got %q, want %s", text, got, want)
		}
	}
	f("GET /api/version HTTP/1.1\r\n\r\n", "400")
	f("GET /api/version HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", "400")
	f("GET /api/version HTTP/1.1\r\nHost: localhost\r\n\r\n", "200")
	f("GET /api/version HTTP/1.0\r\n\r\n", "200")
	point := `{"metric":"m","timestamp":1356998400,"value":1,"tags":{"host":"a"}}`
	f(fmt.Sprintf("POST /api/put HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"+
		"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(point), point), "204")
}

// A change of the token file takes effect while the gateway runs: the old token is refused, the new
// one taken.
func TestDoors_tokensChange(t *testing.T) {
	name := gatewaytest.TokenFile(t)
	b := open(t, func(c *gateway.Config) { c.TokenFile = name })
	let := func(token string) bool {
		return b.Get("/api/version", "Authorization", "Bearer "+token).Status == 200
	}
	if !let(gatewaytest.ReadToken) {
		t.Fatal("the token is not taken")
	}
	if err := os.WriteFile(name, []byte("read another-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(name, later, later); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the old token is refused", func() bool {
		return !let(gatewaytest.ReadToken)
	})
	if !let("another-0123456789") {
		t.Error("the new token is refused")
	}
}

// The list of annotations says in Allow whether its reader may make one: the page offers it then.
func TestDoors_annotationsAllow(t *testing.T) {
	name := gatewaytest.TokenFile(t)
	b := open(t, func(c *gateway.Config) { c.TokenFile = name })
	for token, want := range map[string]string{
		gatewaytest.ReadToken:  "GET",
		gatewaytest.BothToken:  "GET, POST, PUT, DELETE",
		gatewaytest.AdminToken: "GET, POST, PUT, DELETE",
	} {
		a := b.Get("/api/annotations?start_time=1356998400&end_time=1356999400", "Authorization", "Bearer "+token)
		post := b.Do("POST", "/api/annotation", strings.NewReader(`{"startTime":1356998400,"description":"x"}`),
			"Authorization", "Bearer "+token)
		if got := a.Header.Get("Allow"); a.Status != 200 || got != want ||
			(post.Status == 200 || post.Status == 304) != strings.Contains(want, "POST") {
			t.Errorf("%s: %d, Allow %q, a POST %d; want Allow %q", token, a.Status, got, post.Status, want)
		}
	}
}

// A gateway that listens beyond loopback without a token file is refused at start, and so is a
// token file that is absent.
func TestDoors_exposed(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		cfg := config(0)
		cfg.Listen = listen
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "DOWNPOUR_TOKEN_FILE") {
			t.Errorf("%s: got %v, want an error that names DOWNPOUR_TOKEN_FILE", listen, err)
		}
	}
	cfg := config(0)
	cfg.TokenFile = filepath.Join(t.TempDir(), "absent")
	if _, err := gateway.Start(t.Context(), cfg, memoryStore(t, cfg), slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "DOWNPOUR_TOKEN_FILE") {
		t.Errorf("an absent token file: got %v, want an error that names DOWNPOUR_TOKEN_FILE", err)
	}
}
