package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/rpc/server"
	"downpour/pushdown/store"
)

// A file of overrides limits the metrics that it names. The story limits has all other limits.
func TestLimits_overrides(t *testing.T) {
	overrides := filepath.Join(t.TempDir(), "limits.json")
	if err := os.WriteFile(overrides, []byte(`[{"regex":"^sys","dataPointsLimit":2}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	b := open(t, func(c *gateway.Config) { c.LimitOverrides = overrides })
	b.PutHundred()
	if a := b.Get(gatewaytest.SomeQuery); a.Status != 200 {
		t.Errorf("a metric that it does not name: %d %s, want an answer", a.Status, a.Body)
	}
	b.Refused(b.Get(strings.Replace(gatewaytest.SomeQuery, "sum:m", "sum:sys.few", 1)), 413, "limit of 2 data points")
}

// These are the limits by default.
func TestLimits_defaults(t *testing.T) {
	cfg, err := gatewaytest.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := gateway.LimitConfig{
		LimitPoints:      1e9,
		LimitBytes:       16 << 30,
		LimitMemory:      1 << 30,
		LimitName:        1024,
		LimitQueries:     64,
		LimitJSON:        1e6,
		LimitArrow:       1e8,
		HeavyQueries:     -1,
		HeavyPoints:      1e7,
		LimitConnections: 4096,
	}
	if diff := cmp.Diff(want, cfg.LimitConfig); diff != "" || cfg.QueryTimeout != 30*time.Second {
		t.Errorf("timeout %s, want 30s; limits, want -, got +: %s", cfg.QueryTimeout, diff)
	}
}

// A query that is refused for a limit closes its scans.
func TestLimits_scanEnds(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.LimitPoints = 10 })
	b.PutHundred()
	b.Refused(b.Get(gatewaytest.SomeQuery), 413, "limit of 10 data points")
	eventually(t, "scans closed", func() bool { return b.Store.Scans.Load() == 0 })
}

// peer runs a pushdown server on a store, with so many slots for parts, and returns its address.
func peer(t *testing.T, st store.Reader, parts int) string {
	t.Helper()
	s, err := server.NewServer(
		server.Config{Program: "test", Table: "tsdb", Schema: encoding.DefaultSchema(), Parts: parts}, st,
	)
	if err != nil {
		t.Fatal(err)
	}
	return gatewaytest.ServeFlight(t, s)
}

// behind opens a gateway whose parts run on a pushdown server.
func behind(t *testing.T, parts int, change func(*gateway.Config)) *bench {
	t.Helper()
	cfg := config(0)
	st := gatewaytest.NewFaulty(memoryStore(t, cfg))
	cfg.Pushdown = []string{peer(t, st, parts)}
	if change != nil {
		change(cfg)
	}
	return serve(t, cfg, st)
}

// The limits of points hold for parts on a pushdown server, with the same message.
func TestLimits_pushdown(t *testing.T) {
	b := behind(t, 4, func(c *gateway.Config) { c.LimitPoints = 99 })
	b.PutHundred()
	b.Refused(b.Get("/api/query?start=1356998400&end=1356998500&m=none:m"), 413, "limit of 99 data points")
	if a := b.Get("/api/query?start=1356998400&end=1356998500&m=none:sys.few"); a.Status != 200 {
		t.Errorf("got %d %s, want 200", a.Status, a.Body)
	}
}

// A light query is answered while heavy ones are stuck at the store, in process
// and on a server all of whose slots they hold.
func TestFairness(t *testing.T) {
	for name, b := range map[string]*bench{"in process": open(t, nil), "pushdown": behind(t, 1, nil)} {
		b.PutHundred()
		stuck := make(chan struct{})
		heavy := encoding.UID{0, 0, 1} // m, the first name put
		judge := func(s store.Scan) error {
			if len(s.Start) > 3 && string(s.Start[:3]) == string(heavy) {
				<-stuck
			}
			return nil
		}
		b.Store.Judge.Store(&judge)
		done := make(chan answer, 8)
		for range cap(done) {
			go func() {
				a, err := b.Try(context.Background(), "GET", "/api/query?start=1356998400&end=1357084800&m=sum:m", nil)
				if err != nil {
					a.Body = err.Error()
				}
				done <- a
			}()
		}
		eventually(t, name+": heavy queries run", func() bool {
			return strings.Count(b.Get("/api/stats/query").Body, `"elapsed"`) == cap(done)
		})
		ctx, cancel := context.WithTimeout(t.Context(), gatewaytest.Patience)
		a, err := b.Try(ctx, "GET", "/api/query?start=1356998400&end=1357084800&m=sum:sys.few", nil)
		cancel()
		if err != nil || a.Status != 200 || !strings.Contains(a.Body, `"1356998402":1`) {
			t.Errorf("%s: a light query next to heavy ones: %d %s, %v", name, a.Status, a.Body, err)
		}
		if len(done) != 0 {
			t.Errorf("%s: %d heavy queries are not stuck", name, len(done))
		}
		close(stuck)
		for range cap(done) {
			if a := <-done; a.Status != 200 {
				t.Errorf("%s: a heavy query: %d %s", name, a.Status, a.Body)
			}
		}
	}
}

// With one slot a heavy query waits for another one, and goes on when that one ends because its
// client leaves. A light query waits for neither.
func TestFairness_heavyWait(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.HeavyQueries, c.HeavyPoints = 1, 50 })
	b.PutHundred()
	var stuck atomic.Int64
	after := func(ctx context.Context) error { // after the rows that have made the query heavy
		stuck.Add(1)
		<-ctx.Done()
		return ctx.Err()
	}
	b.Store.After.Store(&after)
	ask := func(ctx context.Context) chan answer {
		done := make(chan answer, 1)
		go func() {
			a, err := b.Try(ctx, "GET", gatewaytest.SomeQuery, nil)
			a.Err = errors.Join(a.Err, err)
			done <- a
		}()
		return done
	}
	ctx, leave := context.WithCancel(t.Context())
	first := ask(ctx)
	eventually(t, "the first heavy query is stuck", func() bool { return stuck.Load() == 1 })
	b.Store.After.Store(nil)
	second := ask(t.Context())
	eventually(t, "the second one runs", func() bool {
		return strings.Count(b.Get("/api/stats/query").Body, `"elapsed"`) == 2
	})
	if a := b.Get("/api/query?start=1356998400&end=1357084800&m=sum:sys.few"); a.Status != 200 {
		t.Errorf("a light query next to them: %d %s", a.Status, a.Body)
	}
	if len(second) != 0 {
		t.Fatalf("the second heavy query does not wait: %v", <-second)
	}
	leave()
	if a := <-first; !errors.Is(a.Err, context.Canceled) {
		t.Errorf("the first: %d, %v", a.Status, a.Err)
	}
	if a := <-second; a.Status != 200 || a.Err != nil {
		t.Errorf("the second: %d %s, %v", a.Status, a.Body, a.Err)
	}
}

// A heavy query holds its slot while it reads the store, not while its client reads the answer.
func TestFairness_slowReader(t *testing.T) {
	for name, accept := range map[string]string{
		"JSON":  "application/json",
		"Arrow": "application/vnd.apache.arrow.stream",
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, func(c *gateway.Config) { c.HeavyQueries, c.HeavyPoints = 1, 50 })
			b.PutHundred()
			c := b.Dial()
			fmt.Fprintf(c, "GET /api/query?start=1356998400&end=1358198399&ms&m=sum:1s-sum-zero:m HTTP/1.1\r\n"+
				"Host: localhost\r\nAccept: %s\r\n\r\n", accept)
			if head := c.Next(); !strings.Contains(head, "200 OK") { // the rest, 19 MB or more, is not read
				t.Fatal(head)
			}
			if a := b.Get(gatewaytest.SomeQuery); a.Status != 200 {
				t.Errorf("next to a client that does not read: %d %s", a.Status, a.Body)
			}
			if s := queriesOf(b); len(s.Running) != 1 {
				t.Errorf("%d queries run, want the one whose client does not read", len(s.Running))
			}
		})
	}
}

// A client's address gets at most as many connections as the limit says; 0 is no limit.
func TestLimits_connections(t *testing.T) {
	f := func(limit, tries int) {
		t.Helper()
		b := open(t, func(c *gateway.Config) { c.LimitConnections = limit })
		for i := range tries {
			c := b.Dial()
			io.WriteString(c, "version\n")
			_, err := c.In.ReadByte()
			if want := limit == 0 || i < limit; (err == nil) != want {
				t.Errorf("limit %d, connection %d: %v, want it answered: %t", limit, i+1, err, want)
			}
		}
	}
	f(3, 4)
	f(0, 20)
}
