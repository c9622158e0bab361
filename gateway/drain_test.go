package gateway_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
)

// closing starts a gateway that says for a while, before it ends, that it does. end begins the
// end; over makes the while be over, and returns what Close did.
func closing(t *testing.T, cfg *gateway.Config) (b *bench, end func(), over func() error) {
	t.Helper()
	st := gatewaytest.NewFaulty(memoryStore(t, cfg))
	g, err := gateway.Start(t.Context(), cfg, st, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	noticed, closed := make(chan struct{}), make(chan error, 1)
	g.DrainUntil(noticed)
	end = func() { go func() { closed <- g.Close() }() }
	return &bench{T: t, Config: cfg, Store: st, Gateway: g}, end, func() error { close(noticed); return <-closed }
}

// A gateway that is asked to end says so at /readyz while it still takes connections, puts,
// queries and live queries. Each answer ends its connection, so that the next request goes
// elsewhere. Once balancers have noticed, sockets are asked to reconnect, and the port is closed.
func TestDrain(t *testing.T) {
	cfg := config(0)
	cfg.Drain = time.Hour // only the test ends it
	b, end, over := closing(t, cfg)
	b.Put("m 1356998400 1 host=a")
	if a := b.Get("/readyz"); a.Status != http.StatusOK || a.Header.Get("Connection") != "" {
		t.Errorf("before: %d %s, Connection %q", a.Status, a.Body, a.Header.Get("Connection"))
	}
	socket := func() *websocket.Conn {
		t.Helper()
		c, _, err := (&websocket.Dialer{Subprotocols: []string{"downpour.v1"}}).Dial("ws://"+b.Address()+"/api/ws", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetReadDeadline(time.Now().Add(gatewaytest.Patience))
		return c
	}
	early := socket()
	line := b.Dial()
	fmt.Fprint(line, "put m 1356998401 2 host=a\nversion\n")
	line.Next()

	end()
	eventually(t, "/readyz reports the end", func() bool {
		return b.Get("/readyz").Status == http.StatusServiceUnavailable
	})
	b.Refused(b.Get("/readyz"), http.StatusServiceUnavailable, "not ready: the gateway is stopping")
	if a := b.Get("/healthz"); a.Status != http.StatusOK {
		t.Errorf("/healthz: %d, want 200: the process lives", a.Status)
	}
	late := socket()
	if a := b.Post("/api/put",
		`{"metric":"m","timestamp":1356998402,"value":3,"tags":{"host":"a"}}`); a.Status != http.StatusNoContent {
		t.Errorf("put: %d %s", a.Status, a.Body)
	}
	fmt.Fprint(line, "put m 1356998403 4 host=a\nversion\n")
	if got := line.Next() + line.Next(); !strings.Contains(got, "downpour 2.4.1") {
		t.Errorf("telnet: %q", got)
	}
	b.Put("m 1356998404 5 host=a") // on a new connection
	a := b.Get(gatewaytest.SomeQuery)
	want := `{"1356998400":1,"1356998401":2,"1356998402":3,"1356998403":4,"1356998404":5}`
	if !strings.Contains(a.Body, want) {
		t.Errorf("query: %d %s, want %s", a.Status, a.Body, want)
	}

	// On one connection, whose end makes the client go elsewhere.
	c := b.Dial()
	fmt.Fprint(c,
		"GET /api/version HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api/version HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if got := c.Rest(); strings.Count(got, "HTTP/1.1 200 OK") != 1 || !strings.Contains(got, "Connection: close") {
		t.Errorf("two requests on one connection: %q, want one answer, and the end of the connection", got)
	}

	if err := over(); err != nil {
		t.Errorf("close: %v", err)
	}
	for _, c := range []*websocket.Conn{early, late} {
		var closed *websocket.CloseError
		if _, _, err := c.ReadMessage(); !errors.As(err, &closed) || closed.Code != websocket.CloseGoingAway ||
			!strings.Contains(closed.Text, "come back") {
			t.Errorf("a socket ends with %v, want 1001 and a word to come back", err)
		}
	}
	if c, err := net.Dial("tcp", b.Address()); err == nil {
		c.Close()
		t.Error("the port is still open")
	}
}

// At the end running requests have as long as a query may take, and the process as long as all of its
// steps may take. How Close waits is in TestClose_drains.
func TestDrain_times(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		time.Second:      10 * time.Second,
		30 * time.Second: 35 * time.Second,
		5 * time.Minute:  5*time.Minute + 5*time.Second,
	} {
		cfg := config(0)
		cfg.QueryTimeout, cfg.Drain = timeout, 20*time.Second
		if got := gateway.RequestsTimeout(cfg); got != want {
			t.Errorf("DOWNPOUR_QUERY_TIMEOUT=%s: running requests have %s, want %s", timeout, got, want)
		}
		if got, least := cfg.EndWithin(), cfg.Drain+want+gateway.StoreCloseTimeout+10*time.Second; got <= least {
			t.Errorf("DOWNPOUR_QUERY_TIMEOUT=%s: the process has %s, want more than %s", timeout, got, least)
		}
	}
}
