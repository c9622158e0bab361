package server_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/pushdown/operator"
	"downpour/pushdown/process/logtest"
	"downpour/pushdown/rpc/auth/authtest"
	"downpour/pushdown/rpc/client"
	"downpour/pushdown/rpc/proof"
	"downpour/pushdown/rpc/server"
)

// A server that is to prove itself does so on each connection, then serves Flight and HTTP as always. One that is not
// announced, or knows no token of ours, gets no call.
func TestServe_proof(t *testing.T) {
	known, other := keysOf(t, "admin-0123456789"), keysOf(t, "other-0123456789")
	asking := func(keys []proof.Key) func(context.Context, net.Conn, string) error {
		return func(ctx context.Context, c net.Conn, address string) error { return proof.Ask(ctx, c, address, keys) }
	}
	var logged logtest.Log
	var address string
	p := start(t, points(100), func(c *server.Config, o *client.Options) {
		c.Prove = func(conn io.ReadWriter) error { return proof.Answer(conn, address, known) }
		c.Log = slog.New(slog.NewTextHandler(&logged, nil))
		o.Prove = asking(known)
	})
	address = p.addr
	if _, err := text(p.open(part())); err != nil {
		t.Error(err)
	}

	hello := func(who, at string, keys []proof.Key, want string) {
		t.Helper()
		c, err := client.New(at, client.Options{Prove: asking(keys)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err = c.Hello(ctx); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", who, err, want)
		}
	}
	hello("a gateway", p.addr, known, "")
	hello("a gateway with other tokens", p.addr, other, "no signature is by an admin token")
	// The client hears of the refusal before the server has logged it.
	const refusal = "refused a proof"
	for end := time.Now().Add(time.Minute); !strings.Contains(logged.String(), refusal) && time.Now().Before(end); {
		hello("a gateway with other tokens", p.addr, other, "no signature is by an admin token")
	}
	if !strings.Contains(logged.String(), refusal) {
		t.Errorf("logged %q, want the refusal", logged.String())
	}
	plain := start(t, points(100), nil)
	hello("a gateway that has found a server without a proof", plain.addr, known, "has not proven")
	if status, _ := p.get("http", "/healthz", "", nil); status != 200 {
		t.Errorf("/healthz: %d, want 200", status)
	}
}

// The proof is within TLS, where there is TLS: a server takes nothing before its handshake.
func TestServe_proofWithinTLS(t *testing.T) {
	known, other := keysOf(t, "admin-0123456789"), keysOf(t, "other-0123456789")
	made := authtest.NewCertificate(t)
	var address string
	trusting := func(keys []proof.Key) client.Options {
		return client.Options{
			TLS: func() *tls.Config { return &tls.Config{RootCAs: made.Roots, MinVersion: tls.VersionTLS12} },
			Prove: func(ctx context.Context, c net.Conn, address string) error {
				return proof.Ask(ctx, c, address, keys)
			},
		}
	}
	p := start(t, points(100), func(c *server.Config, o *client.Options) {
		c.TLS = &tls.Config{Certificates: []tls.Certificate{made.Server}, MinVersion: tls.VersionTLS12}
		c.Prove = func(conn io.ReadWriter) error { return proof.Answer(conn, address, known) }
		with := trusting(known)
		o.TLS, o.Prove = with.TLS, with.Prove
	})
	address = p.addr
	if _, err := text(p.open(part())); err != nil {
		t.Error(err)
	}
	c, err := client.New(p.addr, trusting(other))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const refusal = "no signature is by an admin token"
	if _, err := c.Hello(t.Context()); err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("a gateway with other tokens: %v, want it refused", err)
	}
}

// Who listens at an announced address and knows no admin token is sent neither a token nor a part, whatever it answers,
// even what a pushdown server answers it. No batch of it is taken.
//
//fault:token-for-a-stranger err != nil => false
func TestClient_stranger(t *testing.T) {
	known := keysOf(t, "admin-0123456789")
	var announced string
	honest := start(t, points(100), func(c *server.Config, _ *client.Options) {
		c.Prove = func(conn io.ReadWriter) error { return proof.Answer(conn, announced, known) }
	})
	announced = honest.addr
	for name, answer := range map[string]func(net.Conn){
		"silent": func(net.Conn) {},
		"speaks": func(c net.Conn) { io.WriteString(c, "\x00\x02{}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") },
		"accepts": func(c net.Conn) {
			c.Write([]byte("\x00\x13{\"signature\":\"00\"}\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
		},
		"passes on":  nil,
		"closes":     func(c net.Conn) { c.Close() },
		"talks HTTP": func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			at, end := hears(t, answer, honest.addr)
			stranger, err := client.New(at, client.Options{
				Token: func() string { return "read-0123456789" },
				Prove: func(ctx context.Context, c net.Conn, address string) error {
					return proof.Ask(ctx, c, address, known)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			if _, err := stranger.Hello(ctx); err == nil {
				t.Error("a stranger's hello is taken")
			}
			op, err := stranger.Open(part(), operator.NewBudget(0, 0))
			if err != nil {
				t.Fatal(err)
			}
			if rec, err := op.Next(ctx); err == nil || rec != nil {
				t.Errorf("got %v and %v, want no batch", rec, err)
			}
			op.Close()
			stranger.Close()
			got := end()
			if !strings.HasPrefix(got, proof.Magic) && got != "" || strings.Contains(got, "PRI *") ||
				strings.Contains(got, "0123456789") {
				t.Errorf("the stranger was sent %q, want a question, and nothing else", got)
			}
		})
	}
}

// hears listens for a stranger, which answers, or passes on what comes to a server if answer is nil. end returns what
// came.
func hears(t *testing.T, answer func(net.Conn), relayed string) (at string, end func() string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var heard logtest.Log
	var work sync.WaitGroup
	serve := func(c net.Conn) {
		defer c.Close()
		var to io.Writer = io.Discard
		if answer != nil {
			work.Go(func() { answer(c) })
		} else if relay, err := net.Dial("tcp", relayed); err == nil {
			defer relay.Close()
			to = relay
			work.Go(func() { io.Copy(c, relay) })
		}
		_, _ = io.Copy(io.MultiWriter(&heard, to), c)
	}
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { serve(c) })
		}
	})
	return l.Addr().String(), func() string {
		l.Close()
		work.Wait()
		return heard.String()
	}
}

// keysOf returns the key of a token.
func keysOf(t *testing.T, token string) []proof.Key {
	t.Helper()
	keys, err := proof.Keys([][sha256.Size]byte{sha256.Sum256([]byte(token))})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
