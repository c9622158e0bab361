package gateway_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"downpour/pushdown/store/faultstore"
)

// A client that closes its side of the connection before the answer ends its
// request, as one that has left: the server cannot tell them apart. It may still
// read, and must not take what it gets for success.
func TestHalfClosed_noSuccess(t *testing.T) {
	f := func(table string, op faultstore.Op, request string) {
		t.Helper()
		b := open(t, nil)
		b.put("m 1356998400 1 host=a")
		b.get("/api/dropcaches")
		rules := b.store.set(faultstore.Rule{Op: op, Table: table, Delay: time.Hour})
		c := b.dial()
		fmt.Fprint(c, request)
		eventually(t, "the store is waited for", func() bool { return rules.Hits()[0] > 0 })
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return // a connection that is cut is no success
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%.20q: got %s, want 503", request, resp.Status)
		}
	}
	point := `{"metric":"m","timestamp":1356998400,"value":1,"tags":{"host":"a"}}`
	put := func(flags string) string {
		return fmt.Sprintf("POST /api/put%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", flags, len(point), point)
	}
	f("tsdb", faultstore.Next, "GET "+someQuery+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
	f("tsdb", faultstore.Next, "GET "+someQuery+" HTTP/1.1\r\nHost: localhost\r\nAccept: application/vnd.apache.arrow.stream\r\n\r\n")
	f("tsdb", faultstore.Next, "GET "+strings.Replace(someQuery, "start", "allowPartial=true&start", 1)+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
	f("tsdb-uid", faultstore.Get, put(""))
	f("tsdb-uid", faultstore.Get, put("?details"))
}
