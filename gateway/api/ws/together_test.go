package ws

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// writes keeps what is written to it, one element for each write.
type writes struct {
	net.Conn
	all []string
	err error
}

func (w *writes) Write(b []byte) (int, error) {
	w.all = append(w.all, string(b))
	return len(b), w.err
}

// What is written while hold is set leaves with the next write, in order. Control frames and long
// messages do not wait.
func TestTogether(t *testing.T) {
	long := strings.Repeat("l", keptBytes+1)
	half := strings.Repeat("p", keptBytes/2+1)
	const ping = "\x89ping"
	for name, c := range map[string]struct {
		write []string // "+" and "-" set and end hold
		want  []string
	}{
		"none":            {[]string{"a", "b"}, []string{"a", "b"}},
		"three":           {[]string{"+", "a", "b", "-", "c", "d"}, []string{"abc", "d"}},
		"held":            {[]string{"+", "a", "b"}, nil},
		"control":         {[]string{"+", "a", ping, "b", "-", "c"}, []string{"a" + ping, "bc"}},
		"control alone":   {[]string{"+", ping}, []string{ping}},
		"long":            {[]string{"+", "a", long, "b", "-", "c"}, []string{"a", long, "bc"}},
		"long alone":      {[]string{"+", long}, []string{long}},
		"more than fits":  {[]string{"+", half, half, "-", "c"}, []string{half, half, "c"}},
		"long at the end": {[]string{"+", "a", "-", long, "b"}, []string{"a", long, "b"}},
	} {
		under := &writes{}
		k := &together{Conn: under}
		for _, text := range c.write {
			switch text {
			case "+", "-":
				k.hold.Store(text == "+")
			default:
				if n, err := k.Write([]byte(text)); n != len(text) || err != nil {
					t.Errorf("%s: Write returned %d, %v, want %d bytes", name, n, err, len(text))
				}
			}
		}
		if diff := cmp.Diff(c.want, under.all); diff != "" {
			t.Errorf("%s, want - got +:\n%s", name, diff)
		}
	}
}

// An error of what was kept is one of the write that takes it along.
func TestTogether_error(t *testing.T) {
	under := &writes{err: errors.New("broken")}
	k := &together{Conn: under}
	k.hold.Store(true)
	if _, err := k.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	k.hold.Store(false)
	if _, err := k.Write([]byte("b")); err == nil {
		t.Error("no error of the write")
	}
	if _, err := k.Write(bytes.Repeat([]byte("c"), keptBytes)); err == nil || len(under.all) != 2 {
		t.Errorf("error %v after %d writes, want one of the second", err, len(under.all))
	}
}

// counted counts the reads that bring something; of a connection in memory each is one write of the
// other end, or a part of it.
type counted struct {
	net.Conn
	reads atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.reads.Add(1)
	}
	return n, err
}

// What a tick brings to the subscriptions of a socket leaves in one write, each in its order, and
// within a few milliseconds. A socket with one subscription does not wait for others.
func TestTickInOneWrite(t *testing.T) {
	const interval = 100 * time.Millisecond
	for subscriptions, most := range map[int]time.Duration{1: 0, 20: 2 * gatherPause} {
		synctest.Test(t, func(t *testing.T) {
			b, dial, end := inMemory(t, interval)
			defer end()
			conn := &counted{}
			c := dial(&slow{}, func(under net.Conn) net.Conn { conn.Conn = under; return conn })
			for i := range subscriptions {
				c.send(fmt.Sprintf(`{"type":"subscribe","id":"%d","query":{"start":"%dh-ago"}}`, i, i+1))
			}
			last := map[string]message{}
			for range subscriptions {
				m := c.read()
				last[*m.ID] = m
			}

			for tick := range 5 {
				due := time.Now().Truncate(interval).Add(interval) // all began to ask at the beginning of the bubble
				before := conn.reads.Load()
				b.n.Add(1)
				for range subscriptions {
					m := c.read()
					if l := last[*m.ID]; m.Type != "delta" || m.Epoch != l.Epoch || m.Seq != l.Seq+1 {
						t.Errorf("tick %d: got %s after seq %d, want the next delta", tick, m.raw, l.Seq)
					}
					last[*m.ID] = m
				}
				if late := time.Since(due); late > most {
					t.Errorf("%d subscriptions, tick %d: the last delta came %s after the tick, want %s at most",
						subscriptions, tick, late, most)
				}
				if got := conn.reads.Load() - before; got != 1 {
					t.Errorf("%d subscriptions, tick %d: %d writes, want 1", subscriptions, tick, got)
				}
			}
		})
	}
}
