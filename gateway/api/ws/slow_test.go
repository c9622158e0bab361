package ws

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"downpour/gateway/api/listener/listenertest"
	"downpour/gateway/api/pace"
	"downpour/gateway/live"
)

// slow is a client's connection that reads atOnce bytes at a time and, once perSec is set, so many
// a second.
type slow struct {
	net.Conn
	atOnce int
	perSec int // 0 is no limit
}

func (s *slow) Read(b []byte) (int, error) {
	if s.perSec == 0 {
		return s.Conn.Read(b)
	}
	n, err := s.Conn.Read(b[:min(s.atOnce, len(b))])
	<-time.After(time.Duration(n) * time.Second / time.Duration(s.perSec))
	return n, err
}

// inMemory serves on connections in memory; end stops it. What is around a connection sees what the
// client reads.
func inMemory(t *testing.T, interval time.Duration) (b *bench, dial func(conn *slow,
	around ...func(net.Conn) net.Conn) *client, end func()) {
	t.Helper()
	b = &bench{t: t}
	b.hub = live.New(live.Config{Ask: b.ask, Interval: interval, Log: quiet})
	b.ws = New(Config{Hub: b.hub, Log: quiet})
	l := listenertest.NewPipes()
	server := &http.Server{Handler: b.ws}
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(pace.Listen(l, pace.Limits{})) })

	var clients []*client
	dial = func(conn *slow, around ...func(net.Conn) net.Conn) *client {
		conn.Conn = l.Dial()
		for _, f := range around {
			conn.Conn = f(conn.Conn)
		}
		d := websocket.Dialer{
			Subprotocols: []string{Subprotocol},
			NetDial:      func(string, string) (net.Conn, error) { return conn, nil },
		}
		ws, _, err := d.Dial("ws://gateway/api/ws", nil)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, &client{t, ws})
		return clients[len(clients)-1]
	}
	end = func() {
		for _, c := range clients {
			c.conn.Close()
		}
		if err := b.ws.Close(context.Background()); err != nil {
			t.Error(err)
		}
		server.Close()
		serving.Wait()
		b.hub.Close()
	}
	return b, dial, end
}

const subscribeA = `{"type":"subscribe","id":"a","query":{"start":"1h-ago"}}`

// A client that takes bytes gets its snapshot, however long that takes. One that takes none for ten
// seconds, or too few for long, is disconnected.
func TestSlowReader(t *testing.T) {
	f := func(name string, perSec, atOnce int, whole bool, least, most time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			b, dial, end := inMemory(t, time.Hour)
			defer end()
			b.size.Store(300_000) // some 4 MB
			conn := &slow{atOnce: atOnce}
			c := dial(conn)
			conn.perSec = perSec
			c.send(subscribeA)

			began := time.Now()
			_, data, err := c.conn.ReadMessage()
			took := time.Since(began)
			if (err == nil) != whole || took < least || took > most {
				t.Errorf("%s: %v after %s, want whole: %t after %s to %s", name, err, took, whole, least, most)
			}
			if err == nil && len(data) < 3e6 {
				t.Errorf("%s: a message of %d bytes, want the snapshot of some MB", name, len(data))
			}
			if err != nil && !websocket.IsCloseError(err, websocket.CloseAbnormalClosure) {
				t.Errorf("%s: ended by %v, want the connection closed", name, err)
			}

			// A client that has the whole snapshot gets deltas as any other.
			for range 10 {
				if !whole {
					break
				}
				c.until("heartbeat", "")
			}
		})
	}
	f("100 KB/s", 100_000, 4<<10, true, 30*time.Second, 2*time.Minute)
	f("17 KiB/s", 17<<10, 4<<10, true, 3*time.Minute, 10*time.Minute)
	f("8 KiB/s", 8<<10, 4<<10, false, time.Minute, 3*time.Minute)
	f("a byte a second", 1, 1, false, 30*time.Second, 2*time.Minute)
	f("12 kB every 12 s", 1000, 12_000, false, 10*time.Second, time.Minute)
}

// A client that reads nothing does not delay others, and is disconnected after ten seconds.
func TestStalledReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dial, end := inMemory(t, 100*time.Millisecond)
		defer end()
		stalled, reader := dial(&slow{}), dial(&slow{})
		began := time.Now()
		for _, c := range []*client{stalled, reader} {
			c.send(subscribeA)
		}
		reader.until("snapshot", "a")
		deltas := 0
		for ; b.ws.Open() == 2; deltas++ { // until the stalled one is gone
			b.n.Add(1)
			reader.until("delta", "a")
		}
		if took := time.Since(began); deltas < 50 || took < 10*time.Second || took > 11*time.Second {
			t.Errorf("disconnected after %s, in which the other had %d deltas; want 10 to 11 s and 50 deltas or more",
				took, deltas)
		}
	})
}

// clock keeps the last read deadline, as the time since the beginning.
type clock struct {
	began time.Time
	left  time.Duration
}

func (c *clock) SetReadDeadline(t time.Time) error { c.left = t.Sub(c.began); return nil }

// A client that answers no ping is kept for a minute, and for the time that the bytes sent to it
// may take at 16 KiB a second, without those that a pong has confirmed.
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clock{began: time.Now()}
		l := &liveness{conn: c, wait: time.Minute}
		f := func(seconds float64) {
			t.Helper()
			if want := time.Duration(seconds * float64(time.Second)); c.left != want {
				t.Errorf("until %s, want %s", c.left, want)
			}
		}
		l.start()
		f(60)
		<-time.After(20 * time.Second)
		first := string(l.pingPayload())
		l.addSent(100 * 16 << 10)
		f(160) // 60 s, and 100 s for 1,600 KiB; nothing came in that time
		second := string(l.pingPayload())
		l.gotPong(first)
		f(20 + 60 + 100)
		<-time.After(30 * time.Second)
		l.gotPong(second)
		f(50 + 60)
		l.addSent(16 << 10)
		l.gotPong(first) // an old pong confirms nothing new
		f(50 + 60 + 1)
		l.gotPong("9999999999") // more than was sent
		l.gotPong("")
		l.gotPong("x")
		f(50 + 60 + 1)
	})
}
