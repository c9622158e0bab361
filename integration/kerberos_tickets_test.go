//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/integration/e2e"
	"downpour/pushdown/process/wait"
	store "downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/kerberos"
)

// relay passes the connections of clients on to a region server, and can cut them: each client must
// make a new one then, and show a ticket.
type relay struct {
	behind string
	passed atomic.Int64 // connections so far
	work   sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]bool
}

// listen passes connections from front to behind on until the test ends.
func (r *relay) listen(t *testing.T, front, behind string) error {
	l, err := net.Listen("tcp", front)
	if err != nil {
		return err
	}
	r.behind, r.open = behind, map[net.Conn]bool{}
	r.work.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			r.work.Go(func() { r.pass(client) })
		}
	})
	t.Cleanup(func() { l.Close(); r.cut(); r.work.Wait() })
	return nil
}

// pass passes one connection on until one of its ends is closed.
func (r *relay) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.behind)
	if err != nil {
		return
	}
	r.passed.Add(1)
	r.mu.Lock()
	r.open[client] = true
	r.mu.Unlock()

	var back sync.WaitGroup
	back.Go(func() { io.Copy(client, server); client.Close() })
	io.Copy(server, client)
	server.Close()
	back.Wait()
	r.mu.Lock()
	delete(r.open, client)
	r.mu.Unlock()
}

// cut closes all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		c.Close()
	}
}

// ticketLoad is what clients of two gateways do. A request that is refused, or answered wrong, fails the
// test and ends the load: none is sent again.
type ticketLoad struct {
	t        *testing.T
	ctx      context.Context // of requests: one that is cut off at the end would look like one that was refused
	gateways []string
	stop     context.CancelFunc

	puts, queries, shown, stores atomic.Int64
}

const (
	ticketBatch  = 20  // points of a request
	ticketWindow = 500 // seconds of a query
	ticketPause  = 50 * time.Millisecond
)

func (l *ticketLoad) wrong(what string, err error) {
	l.t.Errorf("%s: %v", what, err)
	l.stop()
}

// written is a series that is being written: at second i there is the value i.
type written struct {
	name               string
	acknowledged, sent atomic.Int64
}

// every does something again and again until it fails or ctx ends.
func (l *ticketLoad) every(ctx context.Context, pause time.Duration, what string, do func(i int) error) {
	for i := 0; ctx.Err() == nil; i++ {
		if err := do(i); err != nil {
			l.wrong(what, err)
			return
		}
		_ = wait.For(ctx, pause)
	}
}

// put puts the next points of a series.
func (l *ticketLoad) put(s *written, gateway string) error {
	from := s.acknowledged.Load()
	var points []e2e.Point
	for n := from; n < from+ticketBatch; n++ {
		points = append(points, robinPoint("tickets.points", s.name, n))
	}
	s.sent.Store(from + ticketBatch)
	a, err := e2e.Post(l.ctx, gateway+"/api/put", points)
	if err != nil || a.Status != http.StatusNoContent {
		return fmt.Errorf("%v: status %d %.500s", err, a.Status, a.Body)
	}
	s.acknowledged.Add(ticketBatch)
	l.puts.Add(1)
	return nil
}

// query asks for a stretch of a series, the newest or another: what was acknowledged before the question
// is in the answer, and nothing that was not sent.
func (l *ticketLoad) query(s *written, gateway string, newest bool) error {
	had := s.acknowledged.Load()
	from := max(0, had-ticketWindow/2)
	if !newest {
		from = rand.Int64N(from + 1)
	}
	a, err := e2e.Get(l.ctx,
		fmt.Sprintf("%s/api/query?start=%d&end=%d&arrays=true&m=none:tickets.points%%7Bseries=%s%%7D",
			gateway, dataStart+from, dataStart+from+ticketWindow-1, s.name))
	if err != nil {
		return err
	}
	l.queries.Add(1)
	return stretchOf(a, from, min(had-from, ticketWindow), min(s.sent.Load()-from, ticketWindow))
}

// stretchOf returns an error unless an answer has the points of one series from a number on, least to
// most of them.
func stretchOf(a e2e.Answer, from, least, most int64) error {
	var results []struct{ Dps [][2]int64 }
	if err := json.Unmarshal(a.Body, &results); err != nil || a.Status != http.StatusOK || len(results) != 1 {
		return fmt.Errorf("got %d results, want 1: %v: status %d, %.500s", len(results), err, a.Status, a.Body)
	}
	points := results[0].Dps
	for i, p := range points {
		if want := from + int64(i); p != [2]int64{dataStart + want, want} {
			return fmt.Errorf("point %d: got %v, want %d", i, p, want)
		}
	}
	if n := int64(len(points)); n < least || n > most {
		return fmt.Errorf("from %d on: got %d points, want %d to %d", from, n, least, most)
	}
	return nil
}

// live has a live query follow points that are put one by one, behind the first.
func (l *ticketLoad) live(ctx context.Context, g *e2e.Program, first int64) {
	socket := subscribeLive(l.t, g,
		`{"start":"1h-ago","queries":[{"metric":"tickets.live","aggregator":"sum"}]}`, l.gateways...)
	line := func(at int64, n int) string {
		return fmt.Sprint("tickets.live", " ", map[string]string{"host": "a"}, " ", []string{}, " ", at, " ", n)
	}
	want := []string{line(first, 0)}
	for n := 1; ctx.Err() == nil; n++ {
		at := first + int64(n)
		put(l.ctx, l.t, l.gateways[n%len(l.gateways)], livePoint(at, n))
		socket.settle(l.ctx, fmt.Sprintf("live, point %d", n))
		want = append(want, line(at, n))
		if diff := cmp.Diff(slices.Sorted(slices.Values(want)), socket.lines()); diff != "" {
			l.t.Fatalf("live (-want +got):\n%s", diff)
		}
		l.shown.Add(1)
		_ = wait.For(ctx, time.Second)
	}
}

func livePoint(at int64, n int) []e2e.Point {
	return []e2e.Point{
		{Metric: "tickets.live", Timestamp: at, Value: fmt.Append(nil, n), Tags: map[string]string{"host": "a"}},
	}
}

// readAnew reads a row with a store of its own, on new connections.
func (c *securedCluster) readAnew(ctx context.Context, client *kerberos.Client) error {
	st, err := store.Open(store.Config{Quorum: c.hbase.Quorum(), Security: &store.Security{Client: client}})
	if err != nil {
		return err
	}
	defer st.Close()
	_, err = st.Get(ctx, c.tables.UID, "id", [][]byte{[]byte("tickets.live")})
	return err
}

// While the tickets of our programs end after a short time, and connections are cut again and again so
// that new ones need tickets, no put, no query and no live query is refused or answered wrong. One
// gateway has a keytab; another a ticket cache that is filled once, whose ticket it renews; the pushdown
// server one that kinit fills again. The long form goes on for ten minutes, with tickets of one.
func TestKerberos_tickets(t *testing.T) {
	life, during, cutEvery := 40*time.Second, 100*time.Second, time.Second
	if *soak {
		life, during, cutEvery = time.Minute, 10*time.Minute, 3*time.Second
	}
	r := &relay{}
	c := startSecured(t, e2e.HBaseOptions{Front: func(front, behind string) error {
		return r.listen(t, front, behind)
	}})
	whole := within(t, during+2*time.Minute)
	brief := c.brief(whole, t, life)
	l := &ticketLoad{t: t, ctx: whole, gateways: []string{brief.withKeytab.URL, brief.renewing.URL}}

	// Names get their UIDs before: a connection that is cut in the meantime leaves open whether one was given.
	all := []*written{{name: "a"}, {name: "b"}}
	for i, s := range all {
		if err := l.put(s, l.gateways[i]); err != nil {
			t.Fatal(err)
		}
	}
	// In the past, so that what is asked up to now has all points, and less than an hour ago at the end.
	first := time.Now().Add(-30 * time.Minute).Unix()
	put(whole, t, l.gateways[0], livePoint(first, 0))

	ctx, stop := context.WithTimeout(whole, during)
	l.stop = stop
	passed := r.passed.Load()
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop()
	for _, s := range all {
		clients.Go(func() {
			l.every(ctx, ticketPause, "put", func(i int) error { return l.put(s, l.gateways[i%2]) })
		})
		clients.Go(func() {
			l.every(ctx, ticketPause, "query", func(i int) error { return l.query(s, l.gateways[i%2], i%4 < 2) })
		})
	}
	clients.Go(func() { l.every(ctx, cutEvery, "cut", func(int) error { r.cut(); return nil }) })
	clients.Go(func() { l.every(ctx, life/4, "fill a ticket cache", func(int) error { return brief.fill(whole) }) })
	clients.Go(func() {
		l.every(ctx, 4*ticketPause, "a store of its own", func(int) error {
			l.stores.Add(1)
			return c.readAnew(whole, brief.client)
		})
	})
	l.live(ctx, brief.withKeytab, first)
	clients.Wait()

	t.Logf("%v with tickets of %v: %d puts of %d points, %d queries, %d points of a live query and %d stores of "+
		"their own, none refused; %d connections to the region server", during,
		life, l.puts.Load(), ticketBatch, l.queries.Load(), l.shown.Load(), l.stores.Load(), r.passed.Load()-passed)
	for _, name := range briefPrincipals {
		own, services, err := c.kdc.Issued(name)
		t.Logf("%s: %d tickets of its own, %d for HBase", name, own, services)
		if want := int(during / life); err != nil || own <= want || services <= want {
			t.Errorf("%s: %v, want more than %d of each", name, err, want)
		}
	}
}

// briefPrincipals are those whose tickets are short.
var briefPrincipals = []string{"keytab", "renewing", "filled"}

// brief are programs whose principals have short tickets.
type brief struct {
	withKeytab, renewing *e2e.Program
	client               *kerberos.Client // as the gateway that has a keytab
	fill                 func(context.Context) error
}

// brief starts them. The gateway with a keytab asks the pushdown server.
func (c *securedCluster) brief(ctx context.Context, t *testing.T, life time.Duration) *brief {
	t.Helper()
	// So that a ticket cache is not filled long before its program starts.
	for _, program := range []string{"./gateway/cmd/gateway", "./pushdown/cmd/pushdown"} {
		must[string](t)(e2e.Build(ctx, program))
	}
	keytabs := map[string]string{}
	for _, name := range briefPrincipals {
		keytabs[name] = must[string](t)(c.kdc.Keytab(ctx, name))
		if err := c.kdc.LimitTickets(ctx, name, life); err != nil {
			t.Fatal(err)
		}
	}
	cached := func(name string, kinit ...string) map[string]string {
		cache := must[string](t)(c.kdc.Kinit(ctx, keytabs[name], name, kinit...))
		return c.env(map[string]string{"DOWNPOUR_HBASE_KERBEROS": "cache:" + cache})
	}

	b := &brief{renewing: startGateway(t, e2e.ProgramOptions{Env: cached("renewing", "-r", "1h")})}
	ofPushdown := cached("filled")
	delete(ofPushdown, "DOWNPOUR_AUTO_METRICS")
	p := must[*e2e.Program](t)(e2e.StartPushdown(ctx, e2e.ProgramOptions{Env: ofPushdown}))
	closeAtEnd(t, p)
	b.withKeytab = startGateway(t, e2e.ProgramOptions{Env: c.env(map[string]string{
		"DOWNPOUR_HBASE_KERBEROS": "keytab:" + keytabs["keytab"] + ":keytab@" + e2e.Realm, "DOWNPOUR_PUSHDOWN": p.Addr,
	})})
	b.client = must[*kerberos.Client](t)(
		kerberos.Open(kerberos.Config{Keytab: keytabs["keytab"], Principal: "keytab", Krb5Conf: c.kdc.Krb5Conf()}, nil),
	)
	b.fill = func(ctx context.Context) error {
		_, err := c.kdc.Kinit(ctx, keytabs["filled"], "filled")
		return err
	}
	return b
}
