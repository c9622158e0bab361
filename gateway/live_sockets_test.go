package gateway_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/gorilla/websocket"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/gateway/metadata/tables"
	"downpour/pushdown/store/pebble"
)

// crowd is a gateway with many sockets on some plans, a tenth of them stalled.
type crowd struct {
	testing.TB
	url   string
	start int64
	plans int
	seen  []chan seen // by plan
	conns []*websocket.Conn
	read  sync.WaitGroup
}

// seen says when a reader has got a value of its plan.
type seen struct {
	value int
	at    time.Time
}

func newCrowd(tb testing.TB, sockets, plans int) *crowd {
	tb.Helper()
	cfg := config(0)
	st, err := pebble.Open("db", pebble.Options{
		FS:       vfs.NewMem(),
		Grouping: encoding.DefaultSchema().RowHours(),
		Logger:   slog.New(slog.DiscardHandler),
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := tables.Create(tb.Context(), st, tables.Specs(cfg.TableNames(), cfg.Schema(), "NONE")); err != nil {
		tb.Fatal(err)
	}
	g, err := gateway.Start(tb.Context(), cfg, st, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	c := &crowd{TB: tb, url: g.URL(), start: time.Now().Unix() - 3000, plans: plans}
	tb.Cleanup(func() {
		for _, conn := range c.conns {
			conn.Close()
		}
		c.read.Wait()
		g.Close()
		st.Close()
	})
	c.fill()
	for range plans {
		c.seen = append(c.seen, make(chan seen, 10*sockets))
	}
	for i := range sockets {
		c.join(i)
	}
	for plan := range plans {
		c.await(plan, c.readers(sockets, plan), 0)
	}
	return c
}

// readers returns how many sockets of a plan read: all but every tenth.
func (c *crowd) readers(sockets, plan int) (n int) {
	for i := range sockets {
		if i%10 != 0 && i%c.plans == plan {
			n++
		}
	}
	return n
}

// fill puts a long series, which the stalled sockets subscribe to, and the first point of each
// plan.
func (c *crowd) fill() {
	var points []string
	for i := range 20_000 {
		points = append(points, fmt.Sprintf(`{"metric":"long","timestamp":%d,"value":%d,"tags":{"host":"a"}}`,
			(c.start-20)*1000+int64(i), i))
		if len(points) == 2000 {
			c.put(points)
			points = nil
		}
	}
	c.round(0)
}

func (c *crowd) put(points []string) {
	c.Helper()
	resp, err := http.Post(c.url+"api/put", "application/json", strings.NewReader("["+strings.Join(points, ",")+"]"))
	if err != nil {
		c.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		c.Fatalf("put: %s", resp.Status)
	}
}

// round puts a point for each plan, whose value is the round's number, and
// returns when it began.
func (c *crowd) round(n int) time.Time {
	c.Helper()
	var points []string
	for p := range c.plans {
		points = append(points, fmt.Sprintf(`{"metric":"plan%d","timestamp":%d,"value":%d,"tags":{"host":"a"}}`,
			p, c.start+int64(n), n))
	}
	began := time.Now()
	c.put(points)
	return began
}

// join opens a socket: every tenth subscribes to much and reads nothing.
func (c *crowd) join(i int) {
	c.Helper()
	stalled := i%10 == 0
	dialer := websocket.Dialer{Subprotocols: []string{"downpour.v1"}}
	if stalled {
		dialer.NetDial = func(network, address string) (net.Conn, error) {
			conn, err := net.Dial(network, address)
			if tcp, ok := conn.(*net.TCPConn); ok {
				tcp.SetReadBuffer(4 << 10)
			}
			return conn, err
		}
	}
	conn, _, err := dialer.Dial("ws"+strings.TrimPrefix(c.url, "http")+"api/ws", nil)
	if err != nil {
		c.Fatal(err)
	}
	c.conns = append(c.conns, conn)
	if stalled {
		for id := range 8 {
			c.subscribe(conn, id,
				`"start":"2h-ago","msResolution":true,"queries":[{"aggregator":"sum","metric":"long"}]`)
		}
		c.subscribe(conn, 9, c.plan(i%c.plans))
		return
	}
	c.subscribe(conn, 0, c.plan(i%c.plans))
	c.read.Go(func() { c.follow(conn, i%c.plans) })
}

func (c *crowd) plan(p int) string {
	return fmt.Sprintf(`"start":"1h-ago","queries":[{"aggregator":"sum","metric":"plan%d"}]`, p)
}

func (c *crowd) subscribe(conn *websocket.Conn, id int, query string) {
	c.Helper()
	err := conn.WriteMessage(websocket.TextMessage,
		fmt.Appendf(nil, `{"type":"subscribe","id":"%d","query":{%s}}`, id, query))
	if err != nil {
		c.Fatal(err)
	}
}

// follow reads messages and reports the last value of each.
func (c *crowd) follow(conn *websocket.Conn, plan int) {
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			return
		}
		end := bytes.LastIndex(data, []byte("]]}"))
		if end < 0 {
			continue
		}
		value := 0
		fmt.Sscan(string(data[bytes.LastIndexByte(data[:end], ',')+1:end]), &value)
		c.seen[plan] <- seen{value, time.Now()}
	}
}

// await waits until so many readers of a plan have got a value, and returns when each got it.
func (c *crowd) await(plan, readers, value int) (at []time.Time) {
	c.Helper()
	deadline := time.After(gatewaytest.Patience)
	for len(at) < readers {
		select {
		case s := <-c.seen[plan]:
			if s.value == value {
				at = append(at, s.at)
			}
		case <-deadline:
			c.Fatalf("plan %d: only %d of %d readers have got the value %d", plan, len(at), readers, value)
		}
	}
	return at
}

// Sockets that read get the value of every round, although a tenth of the sockets is stalled.
func TestLive_manySockets(t *testing.T) {
	const sockets, plans = 60, 6
	c := newCrowd(t, sockets, plans)
	for n := 1; n <= 5; n++ {
		c.round(n)
		for p := range plans {
			c.await(p, c.readers(sockets, p), n)
		}
	}
}

// BenchmarkLive_sockets measures a round of puts, a point for each of 50 plans, until those 1,800
// of 2,000 sockets that read have a frame with it.
func BenchmarkLive_sockets(b *testing.B) {
	const sockets, plans = 2000, 50
	c := newCrowd(b, sockets, plans)
	var took []time.Duration
	n := 0
	b.ResetTimer()
	for range b.N {
		n++
		began := c.round(n)
		for p := range plans {
			for _, at := range c.await(p, c.readers(sockets, p), n) {
				took = append(took, at.Sub(began))
			}
		}
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "frames/s")
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapInuse>>20), "heap-MiB")
}
