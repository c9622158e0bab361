package proof

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// keys returns the keys of tokens.
func keys(t *testing.T, tokens ...string) []Key {
	t.Helper()
	var hashes [][sha256.Size]byte
	for _, token := range tokens {
		hashes = append(hashes, sha256.Sum256([]byte(token)))
	}
	out, err := Keys(hashes)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	old, young = "admin-0123456789", "admin-9876543210"
	at         = "rs1:4280"
)

// handshake has ask and answer talk, and returns all that both have sent, and their errors.
func handshake(t *testing.T, ask, answer func(net.Conn) error) (sent string, asking, answering error) {
	t.Helper()
	a, b := net.Pipe()
	var said bytes.Buffer
	ended := make(chan error)
	go func() {
		c := recorder{b, io.TeeReader(b, &said), io.MultiWriter(b, &said)}
		head := make([]byte, len(Magic))
		_, err := io.ReadFull(c, head)
		if err == nil && string(head) != Magic {
			err = fmt.Errorf("begins with %q", head)
		}
		if err == nil {
			err = answer(c)
		}
		b.Close()
		ended <- err
	}()
	asking = ask(a)
	a.Close()
	answering = <-ended
	return said.String(), asking, answering
}

// recorder is a connection that records what is read and written.
type recorder struct {
	net.Conn
	r io.Reader
	w io.Writer
}

func (r recorder) Read(p []byte) (int, error)  { return r.r.Read(p) }
func (r recorder) Write(p []byte) (int, error) { return r.w.Write(p) }

// A server proves itself if it knows an admin token of the gateway's file and is announced at the address that was
// dialed. Nobody else can, or learns a token.
//
//fault:proof-for-any-address || q.Address != address =>
//fault:anybody-may-ask !ok => !ok && false
func TestHandshake(t *testing.T) {
	both := keys(t, old, young)
	for name, c := range map[string]struct {
		gateway, server []Key
		address         string // at which the server is announced
		asking          error
		answering       error
	}{
		"one token":                             {both[:1], both[:1], at, nil, nil},
		"the server has the new token already":  {both[:1], both, at, nil, nil},
		"the gateway has the new token already": {both, both[1:], at, nil, nil},
		"in another order":                      {both, []Key{both[1], both[0]}, at, nil, nil},
		"another token":                         {both[:1], both[1:], at, ErrUnproven, errStranger},
		"a server without tokens":               {both, nil, at, ErrUnproven, errStranger},
		"relayed to a server elsewhere":         {both, both, "rs2:4280", ErrUnproven, errAddress},
		"a server that is not announced":        {both, both, "", ErrUnproven, errAddress},
	} {
		t.Run(name, func(t *testing.T) {
			sent, asking, answering := handshake(t,
				func(conn net.Conn) error { return Ask(t.Context(), conn, at, c.gateway) },
				func(conn net.Conn) error { return Answer(conn, c.address, c.server) })
			if !errors.Is(asking, c.asking) || !errors.Is(answering, c.answering) {
				t.Errorf("got %v and %v, want %v and %v", asking, answering, c.asking, c.answering)
			}
			if strings.Contains(sent, old) || strings.Contains(sent, young) {
				t.Errorf("sent %q, with a token", sent)
			}
			if c.answering != nil && strings.Contains(sent, `"signature"`) {
				t.Errorf("sent %q, a signature for a stranger", sent)
			}
		})
	}
	if err := Ask(t.Context(), nil, at, nil); !errors.Is(err, ErrUnproven) {
		t.Errorf("without a token: %v, want %v, before anything is sent", err, ErrUnproven)
	}
}

// An answer counts for one connection: neither an earlier one nor what the gateway itself has signed is a proof.
//
//fault:any-signature-is-a-proof !proven => !proven && false
func TestHandshake_replayed(t *testing.T) {
	known := keys(t, old)
	var earlier answered
	var question asked
	said, _, _ := handshake(t, func(c net.Conn) error { return Ask(t.Context(), c, at, known) },
		func(c net.Conn) error { return Answer(c, at, known) })
	messages := bytes.NewReader([]byte(said)[len(Magic):])
	if err := errors.Join(read(messages, &question), read(messages, &earlier)); err != nil || earlier.Signature == "" {
		t.Fatal(err, said)
	}
	for name, lie := range map[string]func(asked) any{
		"an earlier answer":   func(asked) any { return earlier },
		"the question itself": func(q asked) any { return answered{Signature: q.Signatures[0]} },
		"nothing":             func(asked) any { return answered{} },
		"a long text":         func(asked) any { return answered{Refused: strings.Repeat("x", 3000)} },
		"no JSON object":      func(asked) any { return 7 },
	} {
		_, err, _ := handshake(t, func(c net.Conn) error { return Ask(t.Context(), c, at, known) },
			func(c net.Conn) error {
				var q asked
				if err := read(c, &q); err != nil {
					return err
				}
				return write(c, lie(q))
			})
		if !errors.Is(err, ErrUnproven) || len(err.Error()) > 300 {
			t.Errorf("%s: got %v, want %v", name, err, ErrUnproven)
		}
	}

	// A question that was recorded gives what was given before, for that number alone.
	b, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	replayed := &pipe{in: bytes.NewReader(append([]byte{byte(len(b) >> 8), byte(len(b))}, b...))}
	if err := Answer(replayed, at, known); err != nil || !strings.Contains(replayed.out.String(), earlier.Signature) {
		t.Errorf("%v, answered %q, want the answer of before", err, replayed.out.String())
	}
}

// pipe is what a server reads and writes.
type pipe struct {
	in  io.Reader
	out bytes.Buffer
}

func (p *pipe) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p *pipe) Write(b []byte) (int, error) { return p.out.Write(b) }

// A server that is silent ends with the context of the dial; a message that is cut or too long is refused.
func TestHandshake_broken(t *testing.T) {
	known := keys(t, old)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		a, b := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, b) }()
		began := time.Now()
		if err := Ask(ctx, a, at, known); !errors.Is(err, ErrUnproven) || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v, want %v after 2s", err, time.Since(began), ErrUnproven)
		}
		a.Close()
	})
	for _, message := range []string{"", "\x00", "\x00\x05{}", "HTTP/1.1 400 Bad Request", "\xff\xff{}", "\x00\x01x",
		"\x00\x04null", "\x00\x02[]"} {
		p := &pipe{in: strings.NewReader(message)}
		if err := Answer(p, at, known); err == nil || strings.Contains(p.out.String(), `"signature"`) {
			t.Errorf("%q: got %v and %q, want an error", message, err, p.out.String())
		}
	}
}

// Signatures differ by key, purpose and text, and where one text ends.
func TestSign(t *testing.T) {
	k := keys(t, old, young)
	all := []string{
		k[0].Sign(question, "a", "b"), k[1].Sign(question, "a", "b"), k[0].Sign(answer, "a", "b"),
		k[0].Sign(Announcement, "a", "b"), k[0].Sign(question, "ab"), k[0].Sign(question, "", "ab"),
		k[0].Sign(question), k[0].Sign(question, "a", "b", ""),
	}
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != 8 {
		t.Errorf("%d different signatures, want 8", n)
	}
	if k[0] == sha256.Sum256([]byte(old)) || keys(t, old)[0] != k[0] {
		t.Error("a key is the hash of its token, or not always the same")
	}
	many := make([]string, MaxKeys+1)
	for i := range many {
		many[i] = k[1].Sign(question)
	}
	many[MaxKeys] = k[0].Sign(question)
	if by, ok := Signer(k, many, question); !ok || by != k[1] {
		t.Errorf("got %v, %t, want the second key", by, ok)
	}
	if _, ok := Signer(k[:1], many, question); ok {
		t.Error("a signature behind the bound counts")
	}
}
