package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/process/logtest"
	"downpour/pushdown/store"
)

// stalled is a store whose writes block while still is set, whatever their context says, as on a
// disk that hangs.
type stalled struct {
	gateway.Store
	data  string                        // the data table
	still atomic.Pointer[chan struct{}] // writes wait until it is closed
	calls atomic.Int32                  // of points that wait for still
}

func (*stalled) Features() store.Features { return store.Features{} }

func (s *stalled) Apply(ctx context.Context, table string, m []store.Mutation) error {
	if still := s.still.Load(); still != nil {
		if table == s.data {
			s.calls.Add(1)
		}
		<-*still
	}
	return s.Store.Apply(ctx, table, m)
}

// Close ends although the store hangs. The log says how many points are lost, and no client takes
// one of them for stored: telnet gets its error lines before the connection ends, HTTP gets no
// answer of success.
func TestClose_stalledStore(t *testing.T) {
	cfg := config(0)
	st := &stalled{Store: memoryStore(t, cfg), data: cfg.TableData}
	log := new(logtest.Log)
	g, err := gateway.Start(t.Context(), cfg, st, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, Config: cfg, Gateway: g}
	b.Put("m 1356998400 1 host=a") // acknowledged
	still := make(chan struct{})
	st.still.Store(&still)
	release := sync.OnceFunc(func() { close(still) })
	defer release()

	c, err := net.Dial("tcp", gatewaytest.Address(g))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "put m 1356998401 1 host=a\nput m 1356998402 1 host=a\n")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the points of telnet are at the store", func() bool { return st.calls.Load() == 1 })
	body := &strings.Builder{}
	for i := range 600 {
		fmt.Fprintf(body, `,{"metric":"m","timestamp":%d,"value":1,"tags":{"host":"b"}}`, 1356998400+i)
	}
	said := make(chan string, 1)
	go func() {
		a, err := b.Try(context.Background(), http.MethodPost, "/api/put", strings.NewReader("["+body.String()[1:]+"]"))
		said <- fmt.Sprint(a.Status, err)
	}()
	eventually(t, "those of HTTP too", func() bool { return st.calls.Load() == 2 })

	g.EndWithin(300 * time.Millisecond)
	err = g.Close()
	if err == nil || !strings.Contains(err.Error(), "unfinished at shutdown") {
		t.Errorf("close: got %v, want an error that something is unfinished", err)
	}
	if got := log.String(); !strings.Contains(got, "points=602") {
		t.Errorf("want a log that counts 602 points, 2 of telnet and 600 of HTTP; got:\n%s", got)
	}
	lines, err := io.ReadAll(c)
	if n := strings.Count(string(lines), "put: "); n != 2 || err != nil {
		t.Errorf("telnet got %q, %v, want two error lines and the end", lines, err)
	}
	if got := <-said; strings.HasPrefix(got, "204") || strings.HasPrefix(got, "200") {
		t.Errorf("HTTP got %s, want no answer of success", got)
	}
	release()
	rows, err := st.Get(t.Context(), cfg.TableData, "t", firstKeys(t, st, cfg))
	if err != nil || len(rows) == 0 {
		t.Errorf("%d rows, %v, want the point that was acknowledged", len(rows), err)
	}
}

// firstKeys is the key of the first row.
func firstKeys(t *testing.T, st store.Store, cfg *gateway.Config) [][]byte {
	t.Helper()
	sc, err := st.Scan(t.Context(), store.Scan{Table: cfg.TableData, MaxRows: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	rows, err := sc.Next()
	if err != nil {
		t.Fatal(err)
	}
	return [][]byte{bytes.Clone(rows[0].Key)}
}
