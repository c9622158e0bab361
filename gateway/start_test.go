package gateway_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
)

// A gateway listens before its store answers: it lives, and says why it is not ready. A telnet connection is not read,
// and what it has sent is stored once the store is there.
func TestStart_waits(t *testing.T) {
	cfg := config(0)
	st := gatewaytest.NewFaulty(memoryStore(t, cfg))
	st.Down.Store(true)
	g, err := gateway.Listen(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &bench{T: t, Config: cfg, Store: st, Gateway: g}
	f := func(path string, status int, words string) {
		t.Helper()
		a := b.Get(path)
		if a.Status != status || !strings.Contains(a.Body, words) ||
			status == 503 && a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s %v, want %d %s", path, a.Status, a.Body, a.Header, status, words)
		}
	}
	f("/healthz", 200, "ok")
	f("/readyz", 503, "it has not answered yet")
	line := b.Dial()
	fmt.Fprint(line, "put m 1356998400 7 host=a\nversion\n")

	started := make(chan error, 1)
	go func() { started <- g.Start(t.Context(), st) }()
	eventually(t, "the reason is reported", func() bool {
		return strings.Contains(b.Get("/readyz").Body, "table tsdb: store unavailable")
	})
	f("/healthz", 200, "ok")
	f(gatewaytest.SomeQuery, 503, "waits for")
	if a := b.Post("/api/put", gatewaytest.BadPoint); a.Status != 503 {
		t.Errorf("a put: %d %s, want 503", a.Status, a.Body)
	}

	st.Down.Store(false)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	f("/readyz", 200, "ready")
	if got := line.Next(); !strings.HasPrefix(got, "downpour ") {
		t.Errorf("the line that waited got %q", got)
	}
	f(gatewaytest.SomeQuery, 200, `{"1356998400":7}`)
}

// A gateway whose store never answers can be closed.
func TestStart_closedWhileWaiting(t *testing.T) {
	cfg := config(0)
	g, err := gateway.Listen(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, Config: cfg, Gateway: g}
	line := b.Dial()
	fmt.Fprint(line, "v")
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if b, err := line.In.ReadByte(); err == nil {
		t.Errorf("the connection got %q, want its end", b)
	}
	if _, err := b.Try(t.Context(), "GET", "/healthz", nil); err == nil {
		t.Error("it answers, and is closed")
	}
}

// A missing right ends the start, as it does later.
func TestStart_denied(t *testing.T) {
	cfg := config(0)
	st := gatewaytest.NewFaulty(memoryStore(t, cfg))
	denied := func(store.Scan) error { return fmt.Errorf("%w: READ", store.ErrDenied) }
	st.Judge.Store(&denied)
	_, err := gateway.Start(t.Context(), cfg, st, slog.New(slog.DiscardHandler))
	if !errors.Is(err, store.ErrDenied) {
		t.Errorf("got %v, want %v", err, store.ErrDenied)
	}
}
