// Package sdnotifytest is a service manager for tests.
package sdnotifytest

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"downpour/pushdown/process/sdnotify"
)

// Manager is what a process of the test notifies.
type Manager struct {
	Socket string
	t      *testing.T
	conn   *net.UnixConn
}

// Listen makes this process one that a service manager has started, until the test ends.
func Listen(t *testing.T) *Manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // t.TempDir may be too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	name := filepath.Join(dir, "socket")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv(sdnotify.Variable, name)
	return &Manager{name, t, conn}
}

// Next waits for the next state, for a minute at most.
func (m *Manager) Next() string {
	m.t.Helper()
	state, err := m.read(time.Now().Add(time.Minute))
	if err != nil {
		m.t.Fatalf("no state: %v", err)
	}
	return state
}

// None checks that no state has come that was not read.
func (m *Manager) None() {
	m.t.Helper()
	if state, err := m.read(time.Now().Add(time.Millisecond)); !errors.Is(err, os.ErrDeadlineExceeded) {
		m.t.Fatalf("got the state %q, %v, want none", state, err)
	}
}

func (m *Manager) read(until time.Time) (string, error) {
	if err := m.conn.SetReadDeadline(until); err != nil {
		return "", err
	}
	buffer := make([]byte, 100)
	n, err := m.conn.Read(buffer)
	return string(buffer[:n]), err
}
