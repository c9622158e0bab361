package ws

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"downpour/encoding"
	"downpour/gateway/live"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

const patience = 5 * time.Minute // how long a test waits for what must come

// bench is a server on loopback over a hub that answers with a counter.
type bench struct {
	t    *testing.T
	hub  *live.Hub
	ws   *Server
	http *httptest.Server
	n    atomic.Int64 // value of the one point
	size atomic.Int64 // further points in the answer
}

func start(t *testing.T, change func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t}
	b.n.Store(1)
	b.hub = live.New(live.Config{Ask: b.ask, Interval: 5 * time.Millisecond, Log: quiet})
	cfg := Config{Hub: b.hub, Log: quiet}
	if change != nil {
		change(&cfg)
	}
	b.ws = New(cfg)
	b.http = httptest.NewServer(b.ws)
	t.Cleanup(b.stop)
	return b
}

func (b *bench) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.ws.Close(ctx); err != nil {
		b.t.Error(err)
	}
	b.http.Close()
	b.hub.Close()
	if n := b.ws.Open(); n != 0 {
		b.t.Errorf("%d sockets open after Close", n)
	}
}

// ask knows the queries {"start":…} and {"fail":true}.
func (b *bench) ask(_ context.Context, q live.Question, _ time.Time) (live.Answer, error) {
	if strings.Contains(string(q.Body), "fail") {
		return live.Answer{}, &live.Error{Code: 413, Message: "too much"}
	}
	r := live.Result{Metric: "m", Tags: map[string]string{"host": "a"}}
	v := encoding.FloatValue(float64(b.n.Load()))
	for i := range b.size.Load() + 1 {
		r.Points.Append(1000*(i+1), v)
	}
	return live.Answer{Results: []live.Result{r}}, nil
}

type client struct {
	t    *testing.T
	conn *websocket.Conn
}

func (b *bench) url() string { return "ws" + strings.TrimPrefix(b.http.URL, "http") + "/api/ws" }

func (b *bench) dial() *client {
	b.t.Helper()
	conn, _, err := (&websocket.Dialer{Subprotocols: []string{Subprotocol}}).Dial(b.url(), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { conn.Close() })
	return &client{b.t, conn}
}

func (c *client) send(text string) {
	c.t.Helper()
	if err := c.conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

type message struct {
	Type    string
	ID      *string
	Epoch   string
	Seq     uint64
	Binary  bool
	Error   *live.Error
	Results []json.RawMessage
	raw     string
}

func (c *client) read() message {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(patience))
	kind, data, err := c.conn.ReadMessage()
	if err != nil {
		c.t.Fatal(err)
	}
	m := message{raw: string(data)}
	if kind == websocket.BinaryMessage {
		m.Type = "binary"
		return m
	}
	if err := json.Unmarshal(data, &m); err != nil {
		c.t.Fatalf("%s: %v", data, err)
	}
	return m
}

// until reads to the next message of a type for an id.
func (c *client) until(typ, id string) message {
	c.t.Helper()
	for {
		m := c.read()
		if m.Type == typ && (id == "" && m.ID == nil || m.ID != nil && *m.ID == id) {
			return m
		}
	}
}

// closed reads until the server closes and returns the code.
func (c *client) closed() int {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(patience))
	for {
		if _, _, err := c.conn.ReadMessage(); err != nil {
			if e, ok := err.(*websocket.CloseError); ok {
				return e.Code
			}
			c.t.Fatalf("closed with %v, want a close frame", err)
		}
	}
}

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}
