package telnet

import (
	"bytes"
	"context"
	"io"
	"net"
	"slices"
	"testing"
	"time"
)

// wire is a connection whose input comes in pieces and then ends.
type wire struct {
	pieces [][]byte
	out    bytes.Buffer
}

func (w *wire) Read(p []byte) (int, error) {
	for len(w.pieces) > 0 && len(w.pieces[0]) == 0 {
		w.pieces = w.pieces[1:]
	}
	if len(w.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, w.pieces[0])
	w.pieces[0] = w.pieces[0][n:]
	return n, nil
}

func (w *wire) Write(p []byte) (int, error)      { return w.out.Write(p) }
func (w *wire) Close() error                     { return nil }
func (w *wire) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (w *wire) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// A stream has the same effect however it is cut into packets. Every line that is not stored has an
// answer, and an unfinished line stores nothing.
func FuzzServe(f *testing.F) {
	f.Add([]byte("put m 1356998400 1 a=b\nput m 1356998401 1.5 a=b\r\nversion\n"), uint(5))
	f.Add([]byte("put m 1356998400 150 host=web01"), uint(20))
	f.Add([]byte("auth x\n\x00\xff\nput  a 1 2 b=c\nexit\nput m 1 1 a=b\n"), uint(9))
	f.Add(bytes.Repeat([]byte("x"), 3000), uint(1024))
	f.Add(append(bytes.Repeat([]byte("y"), 70<<10), '\n'), uint(1))
	f.Fuzz(func(t *testing.T, stream []byte, cut uint) {
		answer, points, stored := serve(t, [][]byte{stream})
		at := int(cut % uint(len(stream)+1))
		answerCut, pointsCut, _ := serve(t, [][]byte{slices.Clone(stream[:at]), slices.Clone(stream[at:])})
		if answer != answerCut || !slices.Equal(points, pointsCut) {
			t.Fatalf("cut at %d: %q and %q, stored %q and %q", at, answer, answerCut, points, pointsCut)
		}
		if puts := putLines(stream); stored > puts {
			t.Fatalf("%d points stored of %d put lines", stored, puts)
		}
	})
}

// putLines returns the number of finished lines that begin with put.
func putLines(stream []byte) (n int) {
	lines := bytes.Split(stream, []byte("\n"))
	for _, l := range lines[:len(lines)-1] {
		if bytes.HasPrefix(l, []byte("put ")) {
			n++
		}
	}
	return n
}

func serve(t *testing.T, pieces [][]byte) (answer string, points []string, stored int) {
	t.Helper()
	m, w, _ := newStore(nil)
	defer w.Close()
	taken, refused := 0, 0
	s := NewServer(Config{Writer: w, Commands: commands, CountPuts: func(ok, bad int) { taken += ok; refused += bad }})
	c := &wire{pieces: pieces}
	s.Serve(context.Background(), c)
	points = m.points(t)
	slices.Sort(points)
	if taken != len(points) {
		t.Fatalf("%d lines taken, %d points stored", taken, len(points))
	}
	if lines := bytes.Count(c.out.Bytes(), []byte("\n")); lines < refused {
		t.Fatalf("%d lines refused, %d answers: %q", refused, lines, c.out.String())
	}
	return c.out.String(), points, len(points)
}
