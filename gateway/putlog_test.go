package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

// A client that is referred to the log finds there why points were refused, by every way, with one
// of them.
func TestPutLog(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.AutoMetrics = "false" })
	logged := func(via, reason string, points int, rest ...string) {
		t.Helper()
		want := fmt.Sprintf("points were refused client=127.0.0.1 via=%s reason=%s points=%d err=", via, reason, points)
		if points == 0 {
			want = fmt.Sprintf("a request to put points was refused client=127.0.0.1 via=%s reason=%s err=",
				via, reason)
		}
		log := b.Get("/logs").Body
		for l := range strings.Lines(log) {
			if _, l, ok := strings.Cut(l, want); ok {
				for _, r := range rest {
					if !strings.Contains(l, r) {
						t.Errorf("%s: got the line %s, want %q in it", via, l, r)
					}
				}
				return
			}
		}
		t.Errorf("no line %q in the log:\n%s", want, log)
	}

	c := b.Dial()
	for range 3 { // the second and third come with the next line of their kind, or at the end
		fmt.Fprint(c, "put nobody 1356998400 1 host=a\n")
	}
	fmt.Fprint(c, "put m 1356998400 x host=a\nput m 1356998400 1\nput m 1356998400 1 host=a\x1b[2J\n"+
		"rollup 1h-sum m 1 1 host=a\nhistogram m 1 1 host=a\nput m 1356998400 1 host="+
		strings.Repeat("a", 65<<10)+"\nput m 13")
	c.Rest()
	logged("telnet put", "unknown name", 1, "No such name for 'metrics': 'nobody'",
		"example=put nobody 1356998400 1 host=a")
	logged("telnet put", "value", 1, "example=put m 1356998400 x host=a")
	logged("telnet put", "illegal argument", 1)
	logged("telnet put", "long line", 1, "example=put m")
	logged("telnet put", "line without end", 1, "example=put m 13")
	logged("telnet rollup", "illegal argument", 1, "example=rollup 1h-sum m 1 1 host=a")
	logged("telnet histogram", "illegal argument", 1)
	if log := b.Get("/logs").Body; strings.Contains(log, "\x1b") {
		t.Errorf("a terminal code of a client is in the log: %q", log)
	}

	a := b.Post("/api/put", "["+gatewaytest.GoodPoint+","+gatewaytest.BadPoint+","+gatewaytest.GoodPoint+"]")
	if !strings.Contains(a.Body, "Please see the TSD logs") {
		t.Errorf("got %d %s, want an answer that names the log", a.Status, a.Body)
	}
	logged("/api/put", "unknown name", 2, "No such name for 'metrics': 'm'",
		`example={"metric":"m","timestamp":1356998400,"value":"1","tags":{"host":"a"}}`)
	logged("/api/put", "value", 1, `example={"metric":"m","timestamp":1356998401,"value":"x","tags":{"host":"a"}}`)
	b.Post("/api/put", `[{"metric":`)
	logged("/api/put", "body", 0, "Unable to parse the given JSON")
	b.Post("/api/rollup", gatewaytest.GoodPoint)
	logged("/api/rollup", "illegal argument", 1)

	b.Get("/api/uid/assign?metric=m")
	b.Store.Set(faultstore.Rule{Op: faultstore.Apply, Table: "tsdb", Err: store.ErrUnavailable})
	b.Post("/api/put", gatewaytest.GoodPoint)
	logged("/api/put", "storage", 1)
	c = b.Dial()
	fmt.Fprint(c, "put m 1356998400 1 host=a\n")
	c.Rest()
	logged("telnet put", "storage", 1)
}

// A collector whose token does not do is in the log.
func TestPutLog_unauthorized(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.TokenFile = gatewaytest.TokenFile(t) })
	b.Post("/api/put", gatewaytest.GoodPoint, "Authorization", "Bearer "+gatewaytest.ReadToken)
	c := b.Dial()
	fmt.Fprint(c, "auth "+gatewaytest.ReadToken+"\nput m 1356998400 1 host=a\n")
	c.Rest()

	log := b.Get("/logs", "Authorization", "Bearer "+gatewaytest.AdminToken).Body
	for _, want := range []string{
		"a request to put points was refused client=127.0.0.1 via=/api/put reason=unauthorized err=Forbidden",
		"points were refused client=127.0.0.1 via=telnet put reason=unauthorized points=1 err=",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in the log:\n%s", want, log)
		}
	}
	if strings.Contains(log, gatewaytest.ReadToken) {
		t.Errorf("a token is in the log:\n%s", log)
	}
}
