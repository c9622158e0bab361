package networktest

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// On a network in memory a listener is found by its address until it is closed, and a host that is
// cut off neither listens nor connects, and its connections end.
func TestMemory(t *testing.T) {
	var m Memory
	server, client := NewHost(&m), NewHost(&m)
	l, err := server.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if _, err := m.Listen("tcp", address); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second listener at %s: %v, want that the address is in use", address, err)
	}
	if _, err := m.DialContext(t.Context(), "tcp", "127.0.0.1:4242"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v, want that the connection is refused", err)
	}

	mine, err := client.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if mine.RemoteAddr().String() != address || theirs.RemoteAddr().String() != mine.LocalAddr().String() {
		t.Errorf("ends %v-%v and %v-%v, want each other's", mine.LocalAddr(), mine.RemoteAddr(), theirs.LocalAddr(),
			theirs.RemoteAddr())
	}
	go mine.Write([]byte("x"))
	b := make([]byte, 1)
	if _, err := io.ReadFull(theirs, b); err != nil || b[0] != 'x' {
		t.Errorf("read %q, %v, want x", b, err)
	}

	server.Cut()
	if _, err := mine.Read(b); err == nil {
		t.Error("the other end is cut off, and a read succeeds")
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after the cut: %v, want that it is closed", err)
	}
	if _, err := client.DialContext(t.Context(), "tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial after the cut: %v, want that the connection is refused", err)
	}
	if _, err := server.Listen("tcp", "127.0.0.1:0"); !errors.Is(err, errCut) {
		t.Errorf("a host that is cut off listens: %v", err)
	}
	if _, err = m.Listen("tcp", address); err != nil {
		t.Fatalf("a new host takes the address: %v", err)
	}
	if _, err := server.DialContext(t.Context(), "tcp", address); !errors.Is(err, errCut) {
		t.Errorf("a host that is cut off dials: %v", err)
	}
}

// A host that is stalled takes and sends nothing, and goes on where it was.
func TestHost_stall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Memory
		server := NewHost(&m)
		l, err := server.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.Copy(c, c)
			c.Close()
		}()
		c, err := m.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		echo := func() (time.Duration, error) {
			began, b := time.Now(), make([]byte, 1)
			go c.Write([]byte("x"))
			_, err := io.ReadFull(c, b)
			return time.Since(began), err
		}
		if d, err := echo(); d != 0 || err != nil {
			t.Errorf("running: an echo after %v, %v, want it at once", d, err)
		}
		server.Stall()
		time.AfterFunc(time.Minute, server.Resume)
		if d, err := echo(); d != time.Minute || err != nil {
			t.Errorf("stalled for a minute: an echo after %v, %v", d, err)
		}
		server.Stall()
		time.AfterFunc(time.Minute, server.Cut)
		if d, err := echo(); d != time.Minute || err == nil {
			t.Errorf("stalled for a minute, then cut off: an echo after %v, %v, want an error", d, err)
		}
	})
}
