package ws

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/gorilla/websocket"

	"downpour/gateway/api/origin"
)

func TestSnapshotThenDelta(t *testing.T) {
	b := start(t, nil)
	c := b.dial()
	if c.conn.Subprotocol() != Subprotocol {
		t.Errorf("subprotocol %q, want %q", c.conn.Subprotocol(), Subprotocol)
	}
	c.send(`{"type":"subscribe","id":"a","query":{"start":"1h-ago"}}`)
	m := c.read()
	want := fmt.Sprintf(
		`{"type":"snapshot","id":"a","epoch":%q,"seq":1,"results":[{"queryIndex":0,"metric":"m",`+
			`"tags":{"host":"a"},"aggregateTags":[],"dps":[[1,1.0]]}]}`, m.Epoch)
	if m.raw != want {
		t.Errorf("first message\n%s, want\n%s", m.raw, want)
	}
	b.n.Store(2)
	m = c.read()
	want = fmt.Sprintf(
		`{"type":"delta","id":"a","epoch":%q,"seq":2,"groups":[],"removed":[],`+
			`"upserts":[{"group":0,"dps":[[1,2.0]]}],"deletes":[],"finalBefore":0}`, m.Epoch)
	if m.raw != want {
		t.Errorf("second message\n%s, want\n%s", m.raw, want)
	}
}

func TestManySubscriptions(t *testing.T) {
	b := start(t, func(c *Config) { c.Subscriptions = 3 })
	c := b.dial()
	c.send(`{"type":"subscribe","id":"a","query":{"start":"1h-ago"}}`)
	c.send(`{"type":"subscribe","id":"end","query":{"start":1,"end":2}}`)
	c.until("complete", "end") // which makes room
	c.send(`{"type":"subscribe","id":"bad","query":{"fail":true}}`)
	if m := c.until("error", "bad"); m.Error.Code != 413 || m.Error.Temporary {
		t.Errorf("got %s, want a final 413", m.raw)
	}
	c.send(`{"type":"subscribe","id":"b","query":{"start":"1h-ago"}}`)
	c.until("snapshot", "b")
	c.send(`{"type":"subscribe","id":"b","query":{"start":"2h-ago"}}`)
	if m := c.until("error", "b"); m.Error.Code != 409 || !m.Error.Temporary {
		t.Errorf("an id in use gets %s, want a temporary 409", m.raw)
	}
	c.send(`{"type":"subscribe","id":"c","query":{"start":"3h-ago"}}`)
	c.until("snapshot", "c")
	c.send(`{"type":"subscribe","id":"d","query":{"start":"4h-ago"}}`)
	if m := c.until("error", "d"); m.Error.Code != 429 {
		t.Errorf("one too many gets %s, want 429", m.raw)
	}
	b.n.Add(1)
	c.until("delta", "a") // the other subscriptions go on
	c.until("delta", "b")
}

// TestSameIDAgain: who has read that a subscription is over may use its id at once.
func TestSameIDAgain(t *testing.T) {
	c := start(t, nil).dial()
	for range 200 {
		c.send(`{"type":"subscribe","id":"a","query":{"start":1,"end":2}}`)
		if m := c.read(); m.Type != "snapshot" {
			t.Fatalf("got %s, want a snapshot", m.raw)
		}
		c.until("complete", "a")
	}
}

func TestUnsubscribe(t *testing.T) {
	b := start(t, nil)
	c := b.dial()
	c.send(`{"type":"subscribe","id":"a","query":{"start":"1h-ago"}}`)
	c.until("snapshot", "a")
	c.send(`{"type":"unsubscribe","id":"a"}`)
	c.send(`{"type":"unsubscribe","id":"never"}`)
	c.send(`{"type":"subscribe","id":"a","query":{"start":"1h-ago"},"format":"json"}`)
	c.until("snapshot", "a")
	c.send(`{"type":"unsubscribe","id":"a"}`)
	c.send(`marker`)
	c.until("error", "")
	b.n.Add(1)
	c.send(`marker`)
	if m := c.read(); m.Type != "error" || m.ID != nil {
		t.Errorf("after unsubscribe: %s", m.raw)
	}
}

// The subscriptions of a client that leaves without a close frame end.
func TestSocketsEndTheirSubscriptions(t *testing.T) {
	b := start(t, nil)
	c := b.dial()
	c.send(`{"type":"subscribe","id":"a","query":{"start":"1h-ago"}}`)
	c.until("snapshot", "a")
	if n := b.hub.Stats().Subscribers; n != 1 {
		t.Fatalf("%d subscribers, want 1", n)
	}
	c.conn.NetConn().Close()
	for end := time.Now().Add(patience); b.hub.Stats().Subscribers > 0; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("the subscription outlives its socket")
		}
	}
}

func TestBadMessages(t *testing.T) {
	b := start(t, nil)
	c := b.dial()
	for _, tc := range []struct{ send, id, message string }{
		{`{`, "", "Unable to parse the message"},
		{`[]`, "", "Unable to parse the message"},
		{`{"type":"shout","id":"x"}`, "x", `Message type "shout" is not known`},
		{`{"type":"subscribe"}`, "", "has no id"},
		{`{"type":"subscribe","id":7}`, "", "Unable to parse the message"},
		{`{"type":"subscribe","id":"` + strings.Repeat("i", 300) + `"}`, "", "too long"},
		{`{"type":"subscribe","id":"x","format":"xml","query":{}}`, "x", "want json or arrow"},
		{`{"type":"subscribe","id":"x"}`, "x", "want a JSON object as for POST /api/query"},
	} {
		c.send(tc.send)
		if m := c.until("error", tc.id); !strings.Contains(m.Error.Message, tc.message) || m.Error.Code != 400 {
			t.Errorf("%.60s gets %s, want 400 and %q", tc.send, m.raw, tc.message)
		}
	}
	c.send(`{"type":"subscribe","id":"a","query":{"start":"1h-ago"}}`)
	c.until("snapshot", "a") // the socket still works
}

func TestResumeOverANewSocket(t *testing.T) {
	b := start(t, nil)
	c := b.dial()
	c.send(`{"type":"subscribe","id":"a","query":{"start":"1h-ago"}}`)
	m := c.until("snapshot", "a")
	c.conn.Close()
	b.n.Add(1)
	c = b.dial()
	c.send(fmt.Sprintf(`{"type":"subscribe","id":"z","query":{"start":"1h-ago"},"resume":{"epoch":%q,"seq":%d}}`,
		m.Epoch, m.Seq))
	answer := c.read()
	if strings.Contains(answer.raw, `"upserts":[]`) { // nothing had changed yet
		answer = c.read()
	}
	if answer.Type != "delta" || !strings.Contains(answer.raw, `[[1,2.0]]`) {
		t.Errorf("resumed with %s, want the delta", answer.raw)
	}
	c.send(`{"type":"subscribe","id":"y","query":{"start":"1h-ago"},"resume":{"epoch":"of another server","seq":9}}`)
	c.until("snapshot", "y")
}

func TestArrow(t *testing.T) {
	b := start(t, nil)
	c := b.dial()
	c.send(`{"type":"subscribe","id":"a","format":"arrow","query":{"start":"1h-ago"}}`)
	for _, typ := range []string{"snapshot", "delta"} {
		if m := c.read(); m.Type != typ || !m.Binary || *m.ID != "a" {
			t.Fatalf("got %s, want the header of a %s", m.raw, typ)
		}
		m := c.read()
		r, err := ipc.NewReader(bytes.NewReader([]byte(m.raw)))
		if err != nil || !r.Next() || r.Record().NumRows() != 1 || r.Record().NumCols() != 4 {
			t.Fatalf("%s: %s of %d bytes is no stream of one row: %v", typ, m.Type, len(m.raw), err)
		}
		r.Release()
		b.n.Add(1)
	}
}

func TestRefusals(t *testing.T) {
	b := start(t, func(c *Config) {
		c.AllowOrigins, _, _ = origin.Parse([]string{"https://grafana.example"})
		c.Authorize = func(token string) bool { return token == "sesame" }
	})
	host := strings.TrimPrefix(b.http.URL, "http://")
	ok := []string{Subprotocol, "bearer.sesame"}
	for _, tc := range []struct {
		name      string
		protocols []string
		header    http.Header
		status    int
		says      string
	}{
		{"own origin", ok, header("Origin", "http://"+host), 101, ""},
		{"listed origin", ok, header("Origin", "https://grafana.example"), 101, ""},
		{"no origin", ok, nil, 101, ""},
		{"token in header", ok[:1], header("Authorization", "Bearer sesame"), 101, ""},
		{"foreign origin", ok, header("Origin", "http://evil.example"), 403,
			`Origin "http://evil.example" is not allowed`},
		{"other port", ok, header("Origin", "http://127.0.0.1:1"), 403, "DOWNPOUR_ALLOW_ORIGINS"},
		{"null origin", ok, header("Origin", "null"), 403, "not allowed"},
		{"other subprotocol", []string{"graphql-transport-ws"}, nil, 400, `want "downpour.v1"`},
		{"no subprotocol", nil, nil, 400, `want "downpour.v1"`},
		{"no token", ok[:1], nil, 401, "token"},
		{"wrong token", []string{Subprotocol, "bearer.x"}, nil, 401, "token"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn, resp, err := (&websocket.Dialer{Subprotocols: tc.protocols}).Dial(b.url(), tc.header)
			if resp == nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != tc.status || !strings.Contains(string(text), tc.says) {
				t.Errorf("status %d, %q; want %d, %q", resp.StatusCode, text, tc.status, tc.says)
			}
			if conn != nil {
				conn.Close()
			}
		})
	}
	resp, err := http.Get(b.http.URL + "/api/ws")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("plain GET: %d, want 426", resp.StatusCode)
	}
}

func TestCloseCodes(t *testing.T) {
	t.Run("too big", func(t *testing.T) {
		c := start(t, nil).dial()
		c.send(`{"type":"subscribe","id":"a","query":"` + strings.Repeat("x", 64<<10) + `"}`)
		if code := c.closed(); code != websocket.CloseMessageTooBig {
			t.Errorf("code %d, want 1009", code)
		}
	})
	t.Run("too big in fragments", func(t *testing.T) {
		c := start(t, nil).dial()
		w, err := c.conn.NextWriter(websocket.TextMessage)
		if err != nil {
			t.Fatal(err)
		}
		for range 40 { // the client's buffer is 4 KiB: a frame each
			w.Write(bytes.Repeat([]byte(" "), 4<<10)) // the server may have closed already
		}
		w.Close()
		if code := c.closed(); code != websocket.CloseMessageTooBig {
			t.Errorf("code %d, want 1009", code)
		}
	})
	t.Run("binary", func(t *testing.T) {
		c := start(t, nil).dial()
		c.conn.WriteMessage(websocket.BinaryMessage, []byte(`{}`))
		if code := c.closed(); code != websocket.CloseUnsupportedData {
			t.Errorf("code %d, want 1003", code)
		}
	})
	t.Run("no mask", func(t *testing.T) {
		c := start(t, nil).dial()
		c.conn.NetConn().Write([]byte{0x81, 2, '{', '}'}) // a text frame as only servers may send it
		if code := c.closed(); code != websocket.CloseProtocolError {
			t.Errorf("code %d, want 1002", code)
		}
	})
	t.Run("too many sockets", func(t *testing.T) {
		b := start(t, func(c *Config) { c.Sockets = 1 })
		first := b.dial()
		first.send(`{"type":"subscribe","id":"a","query":{"start":"1h-ago"}}`)
		first.until("snapshot", "a") // only now is it sure to be counted before the next
		if code := b.dial().closed(); code != websocket.CloseTryAgainLater {
			t.Errorf("code %d, want 1013", code)
		}
	})
	t.Run("going away", func(t *testing.T) {
		b := start(t, nil)
		c := b.dial()
		c.send(`{"type":"subscribe","id":"a","query":{"start":"1h-ago"}}`)
		c.until("snapshot", "a")
		go b.ws.Close(t.Context())
		if code := c.closed(); code != websocket.CloseGoingAway {
			t.Errorf("code %d, want 1001", code)
		}
	})
	t.Run("after the server has stopped", func(t *testing.T) {
		b := start(t, nil)
		if err := b.ws.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if code := b.dial().closed(); code != websocket.CloseGoingAway {
			t.Errorf("code %d, want 1001", code)
		}
	})
	t.Run("token withdrawn", func(t *testing.T) {
		var gone atomic.Bool
		b := start(t, func(c *Config) {
			c.PingEvery = 5 * time.Millisecond
			c.Authorize = func(string) bool { return !gone.Load() }
		})
		c := b.dial()
		gone.Store(true)
		if code := c.closed(); code != websocket.ClosePolicyViolation {
			t.Errorf("code %d, want 1008", code)
		}
	})
}

func TestHeartbeatAndPing(t *testing.T) {
	b := start(t, func(c *Config) { c.PingEvery = 5 * time.Millisecond })
	c := b.dial()
	pinged := false
	c.conn.SetPingHandler(func(string) error { pinged = true; return nil })
	c.until("heartbeat", "")
	c.until("heartbeat", "")
	if !pinged {
		t.Error("no ping came")
	}
}

// A client that answers no ping is disconnected.
func TestSilentClientIsClosed(t *testing.T) {
	b := start(t, func(c *Config) { c.PingEvery, c.PongWait = 5*time.Millisecond, 30*time.Millisecond })
	c := b.dial()
	c.conn.SetPingHandler(func(string) error { return nil })
	c.conn.SetReadDeadline(time.Now().Add(patience))
	for {
		if _, _, err := c.conn.ReadMessage(); err != nil {
			if strings.Contains(err.Error(), "timeout") {
				t.Error("the server kept the socket")
			}
			return
		}
	}
}
