package gateway_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"downpour/gateway/gatewaytest"
	"downpour/pushdown/rpc/auth"
	"downpour/pushdown/rpc/server"
)

// A token file that is replaced on both sides under running queries: pushdown servers execute parts
// again within seconds, with the new token, and every answer until then is right. The admin's
// token, which stands first, is never sent.
func TestPushdown_tokens(t *testing.T) {
	const admin, client = "operator-0123456789", "client-0123456789"
	const before, after = "before-0123456789", "after-0123456789"
	path := filepath.Join(t.TempDir(), "tokens")
	replace := func(sent string) {
		t.Helper()
		next := path + ".new"
		text := "admin " + admin + " operator\nread " + sent + "\nread " + client + "\n"
		if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, path); err != nil {
			t.Fatal(err)
		}
	}
	replace(before)

	cfg := config(0)
	st := memoryStore(t, cfg)
	serve(t, cfg, st).Put("m 1356998400 1 host=a")
	tokens, err := auth.Load(path, auth.Read, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[string]auth.Scope{} // what a token allowed when it came last
	allow := func(token string) bool {
		mu.Lock()
		defer mu.Unlock()
		seen[token] = tokens.Check(token)
		return seen[token]&auth.Read != 0
	}
	srv, err := server.NewServer(
		server.Config{Program: "test", Table: cfg.TableData, Schema: cfg.Schema(), Allow: allow}, st,
	)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { srv.Serve(ctx, l) })
	t.Cleanup(func() { cancel(); serving.Wait() })

	remote := *cfg
	remote.Pushdown, remote.TokenFile, remote.ResultCache = []string{l.Addr().String()}, path, "off"
	b := serve(t, &remote, st)
	bearer := []string{"Authorization", "Bearer " + client}
	// pushed asks, checks the answer, and reports whether the server executes parts and knows a token.
	pushed := func(token string) bool {
		t.Helper()
		if a := b.Get(gatewaytest.SomeQuery, bearer...); a.Status != 200 ||
			!strings.Contains(a.Body, `{"1356998400":1}`) {
			t.Fatalf("an answer of that time: %d %s", a.Status, a.Body)
		}
		var explained struct{ Parts []struct{ Server string } }
		a := b.Get(gatewaytest.SomeQuery+"&explain=true", bearer...)
		if json.Unmarshal([]byte(a.Body), &explained) != nil || len(explained.Parts) == 0 {
			t.Fatalf("explain: %d %s", a.Status, a.Body)
		}
		mu.Lock()
		defer mu.Unlock()
		return explained.Parts[0].Server == l.Addr().String() && seen[token]&auth.Read != 0
	}
	eventually(t, "parts are pushed down", func() bool { return pushed(before) })
	replace(after)
	eventually(t, "parts are pushed down with the new token", func() bool { return pushed(after) })
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 2 {
		t.Errorf("the server was shown %v, want the two tokens that only read", seen)
	}
	if tokens.Check(before) != 0 {
		t.Error("the old token still counts")
	}
}
