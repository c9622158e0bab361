package sim

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/process/network/networktest"
	"downpour/pushdown/rpc/proof"
	"downpour/pushdown/rpc/server"
)

// stranger listens at an address, knows no token, and writes down all that it hears. It is a pushdown server that
// takes any caller and has no rows: a gateway that believes it has short answers.
type stranger struct {
	*process
	f       *finding
	address string

	mu    sync.Mutex
	heard []*call
}

// call is a connection to a stranger.
type call struct {
	net.Conn
	mu   sync.Mutex
	said bytes.Buffer
}

func (c *call) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said.Write(b[:n])
	return n, err
}

// ear is a listener that keeps the connections.
type ear struct {
	net.Listener
	s *stranger
}

func (e ear) Accept() (net.Conn, error) {
	conn, err := e.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &call{Conn: conn}
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	e.s.heard = append(e.s.heard, c)
	return c, nil
}

// calls returns what each connection has said.
func (s *stranger) calls() (said [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.heard {
		c.mu.Lock()
		said = append(said, bytes.Clone(c.said.Bytes()))
		c.mu.Unlock()
	}
	return said
}

func newStranger(f *finding, address string) *stranger {
	s := &stranger{f: f, address: address}
	const kind = "stranger"
	s.process = &process{w: f.k.w, kind: kind, name: kind + " at " + address,
		run: func(ctx context.Context, host *networktest.Host) error {
			l, err := host.Listen("tcp", address)
			if err != nil {
				return err
			}
			defer l.Close()
			serving, err := server.NewServer(server.Config{Program: kind, Beside: f.k.hbase.Nodes()[1], Table: "tsdb",
				Schema: encoding.DefaultSchema(), Memory: memory.New(1 << 30), Log: f.k.w.log(s.name),
				Prove: func(c io.ReadWriter) error { return s.cheat(ctx, host, c) },
			}, f.empty)
			if err != nil {
				return err
			}
			return serving.Serve(ctx, ear{l, s})
		}}
	return s
}

// madeUp is the signature of a stranger that has none to show.
var madeUp = strings.Repeat("0", 64)

// message is one of a proof: its length, and JSON.
func message(text []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(text))), text...)
}

func readMessage(from io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return nil, err
	}
	text := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(from, text)
	return text, err
}

// cheat answers a demand for a proof in one of the ways of who cannot give it. Without an error the stranger goes on.
func (s *stranger) cheat(ctx context.Context, host *networktest.Host, c io.ReadWriter) error {
	question, err := readMessage(c)
	if err != nil {
		return err
	}
	s.mu.Lock()
	n := len(s.heard)
	s.mu.Unlock()
	w := s.f.k.w
	r := w.rand(fmt.Sprint("call ", n, " of ", s.name))
	var asked struct{ Signatures []string }
	switch r.IntN(5) {
	case 0:
		w.broke("stranger hangs up", "%s hangs up", s.name)
		return errors.New("hangs up")
	case 1:
		w.broke("stranger says nothing", "%s says nothing", s.name)
		_, err = io.Copy(io.Discard, c)
		return err
	case 2:
		w.broke("stranger passes the question on", "%s passes the question on", s.name)
		answer, err := s.passOn(ctx, host, question, s.f.at()[r.IntN(servers)])
		if err != nil {
			return err
		}
		_, err = c.Write(message(answer))
		return err
	case 3:
		w.broke("stranger shows the signature of the question", "%s shows the signature of the question", s.name)
		if err := json.Unmarshal(question, &asked); err != nil {
			return err
		}
	case 4:
		w.broke("stranger makes up a signature", "%s makes up a signature", s.name)
		asked.Signatures = []string{madeUp}
	}
	_, err = c.Write(message(fmt.Appendf(nil, `{"signature":%q}`, asked.Signatures[0])))
	return err
}

// passOn returns a pushdown server's answer to a question. One that has come to this very address would give the proof:
// against who is in between there is TLS.
func (s *stranger) passOn(ctx context.Context, host *networktest.Host, question []byte, to string) ([]byte, error) {
	if to == s.address {
		return nil, errors.New("nobody to pass the question on to")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, err := host.DialContext(ctx, "tcp", to)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	s.f.rumors.passOn(question)
	if _, err := c.Write(append([]byte(proof.Magic), message(question)...)); err != nil {
		return nil, err
	}
	return readMessage(c)
}

// ask has a stranger demand a proof from a pushdown server, which gives a signature to no stranger. If another stranger
// listens there, it has only made-up signatures: its own, and that of the question.
func (m *rumors) ask(address string) {
	w := m.f.k.w
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := w.network.DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	question := fmt.Appendf(nil, `{"nonce":"0","address":%q,"signatures":[%q]}`, address, madeUp)
	if _, err := c.Write(append([]byte(proof.Magic), message(question)...)); err != nil {
		return
	}
	answer, err := readMessage(c)
	if err == nil && bytes.Contains(answer, []byte(`"signature"`)) && !bytes.Contains(answer, []byte(madeUp)) {
		w.t.Errorf("seed %d: the pushdown server at %s answers a stranger: %s", w.seed, address, answer)
	}
	w.checked("answer to a stranger")
}

// check checks that nothing but questions was heard.
func (s *stranger) check() {
	w := s.f.k.w
	for _, said := range s.calls() {
		if err := s.onlyQuestion(said); err != nil {
			w.t.Errorf("seed %d: %s has heard %q: %v", w.seed, s.name, said, err)
		}
		w.checked("what a stranger has heard")
	}
}

// onlyQuestion returns an error unless this is a question, or how one begins.
func (s *stranger) onlyQuestion(said []byte) error {
	for _, token := range tokens {
		if bytes.Contains(said, []byte(token)) {
			return errors.New("a token")
		}
	}
	whole := len(proof.Magic) + 2
	if len(said) < whole {
		if !strings.HasPrefix(proof.Magic, string(said[:min(len(said), len(proof.Magic))])) {
			return errors.New("no question")
		}
		return nil
	}
	text := said[whole:]
	whole += int(binary.BigEndian.Uint16(said[len(proof.Magic):]))
	if !bytes.HasPrefix(said, []byte(proof.Magic)) || len(said) > whole {
		return fmt.Errorf("%d bytes, want a question of %d and nothing behind it", len(said), whole)
	}
	if len(said) < whole {
		return nil
	}
	var asked struct {
		Nonce, Address string
		Signatures     []string
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&asked); err != nil {
		return err
	}
	if asked.Address != s.address && !s.f.rumors.hasPassedOn(text) {
		return fmt.Errorf("a question for %s, want %s", asked.Address, s.address)
	}
	return nil
}
