package gateway_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

// A client that closes its side of the connection before it has its answer cancels the request:
// the server cannot distinguish it from one that has left. It may still read, and gets 503 or a cut
// connection.
func TestHalfClosed_noSuccess(t *testing.T) {
	// A name is resolved for all requests that wait for it, and outlives each of them.
	names := func(b *bench) (waits func() bool) {
		release := make(chan struct{})
		t.Cleanup(func() { close(release) }) // before the gateway ends
		var waiting atomic.Bool
		judge := func(s store.Scan) error {
			if s.Table == "tsdb-uid" {
				waiting.Store(true)
				<-release
			}
			return nil
		}
		b.Store.Judge.Store(&judge)
		return waiting.Load
	}
	rows := func(b *bench) (waits func() bool) {
		rules := b.Store.Set(faultstore.Rule{Op: faultstore.Next, Table: "tsdb", Delay: time.Hour})
		return func() bool { return rules.Hits()[0] > 0 }
	}
	f := func(slow func(*bench) func() bool, request string) {
		t.Helper()
		b := open(t, nil)
		b.Put("m 1356998400 1 host=a")
		b.Get("/api/dropcaches")
		waits := slow(b)
		c := b.Dial()
		fmt.Fprint(c, request)
		eventually(t, "the store is waited for", waits)
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(c.In, nil)
		if err != nil {
			return // a connection that is cut is no success
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%.20q: got %s, want 503", request, resp.Status)
		}
	}
	point := `{"metric":"m","timestamp":1356998400,"value":1,"tags":{"host":"a"}}`
	for _, flags := range []string{"", "?details"} {
		f(names, fmt.Sprintf("POST /api/put%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s",
			flags, len(point), point))
	}
	f(rows, "GET "+gatewaytest.SomeQuery+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
	f(rows, "GET "+gatewaytest.SomeQuery+
		" HTTP/1.1\r\nHost: localhost\r\nAccept: application/vnd.apache.arrow.stream\r\n\r\n")
}
