package telnet

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"downpour/gateway/api/pace"
)

// held is a gate of a store: writes wait until it is opened.
type held struct{ entered, open chan struct{} }

func newHeld() *held {
	return &held{entered: make(chan struct{}, 100), open: make(chan struct{})}
}

func (h *held) pass() error {
	h.entered <- struct{}{}
	<-h.open
	return nil
}

// The answer to version, and the close after a half-close or exit, come only
// once every earlier line is durable.
//
//fault:version-before-the-points everyBatch => doneBatches
func TestAcknowledgement_waits(t *testing.T) {
	f := func(text, answer string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			h := newHeld()
			m, w, _ := newStore(h.pass)
			c := &watched{wire: wire{pieces: [][]byte{[]byte("put m 1356998400 1 a=b\n"), []byte(text)}}}
			go NewServer(Config{Writer: w, Commands: commands}).Serve(t.Context(), c)
			<-h.entered // the store has the line and has not answered
			synctest.Wait()
			if c.out.Len() > 0 || c.closed {
				t.Errorf("%q: while the store stands still: %q, closed %v", text, c.out.String(), c.closed)
			}
			close(h.open)
			synctest.Wait()
			if c.out.String() != answer || !c.closed || len(m.points(t)) != 1 {
				t.Errorf("%q: got %q, closed %v, %d points stored", text, c.out.String(), c.closed, len(m.points(t)))
			}
			w.Close()
		})
	}
	f("version\n", "downpour 2.4.1\nBuilt today\n")
	f("", "")
	f("exit\n", "")
}

// watched is a connection that records that it was closed.
type watched struct {
	wire
	closed bool
}

func (w *watched) Close() error { w.closed = true; return nil }

// If the store fails now and then, every line is either stored or gets an error line, never both,
// and is counted as such.
func TestAcknowledgement_countsLosses(t *testing.T) {
	var calls atomic.Int64
	b := startOn(t, func() error {
		if calls.Add(1)%3 == 0 {
			return errDisk
		}
		return nil
	}, nil)
	const lines = 3000
	c := b.dial()
	refused := make(chan int)
	go func() {
		text, err := io.ReadAll(c.in)
		if err != nil {
			t.Error(err)
		}
		n := strings.Count(string(text), "put: HBase error: disk on fire\n")
		if n != strings.Count(string(text), "\n") {
			t.Errorf("got other answers than the store's error: %.300s", text)
		}
		refused <- n
	}()
	for i := range lines {
		fmt.Fprintf(c, "put m %d %d host=h%d\n", 1356998400+i, i, i%7)
	}
	c.CloseWrite()
	lost := <-refused
	if stored := len(b.store.points(t)); stored+lost != lines || lost == 0 {
		t.Errorf("%d stored and %d refused of %d, want all, and some refused", stored, lost, lines)
	}
	b.counts.Lock()
	defer b.counts.Unlock()
	if b.counts.ok != lines-lost || b.counts.bad != lost {
		t.Errorf("counted %d and %d, want %d and %d", b.counts.ok, b.counts.bad, lines-lost, lost)
	}
}

// When the gateway stops, what it has read is executed or refused before the
// connection closes.
func TestAcknowledgement_stop(t *testing.T) {
	h := newHeld()
	b := startOn(t, h.pass, nil)
	c := b.dial()
	c.send("put m 1356998400 1 a=b\nput m 1356998401 1 a=b\nput m 135")
	<-h.entered
	b.cancel()
	close(h.open)
	text, err := io.ReadAll(c.in)
	if err != nil || string(text) != "error: line without end, 9 bytes, not executed\n" {
		t.Errorf("got %q, %v", text, err)
	}
	if n := len(b.store.points(t)); n != 2 {
		t.Errorf("%d points stored, want 2", n)
	}
}

// A line that waits for room in a full queue when the gateway stops is executed or refused, too.
func TestAcknowledgement_stopWhileFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lines = 150 // so few that they fit in the first buffer: lines that were not read get no answer
		var text strings.Builder
		for i := range lines {
			fmt.Fprintf(&text, "put m %d %d a=b\n", 1356998400+3600*i, i)
		}
		h := newHeld()
		m, w, _ := newStore(h.pass)
		c := &watched{wire: wire{pieces: [][]byte{[]byte(text.String())}}}
		ctx, cancel := context.WithCancel(t.Context())
		go NewServer(Config{Writer: w, Commands: commands}).Serve(ctx, c)
		<-h.entered
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(h.open)
		synctest.Wait()
		w.Close()
		refused := strings.Count(c.out.String(),
			"put: HBase error: the gateway is stopping, the point was not stored\n")
		if stored := len(m.points(t)); stored+refused != lines || refused == 0 || !c.closed {
			t.Errorf("%d stored and %d refused of %d, closed %v", stored, refused, lines, c.closed)
		}
	})
}

// Commands are answered while the connection is open; by then the puts before them are counted.
func TestAnswers_openConnection(t *testing.T) {
	var b *bench
	b = start(t, func(c *Config) {
		c.Commands = func(context.Context, []string) (string, bool) {
			b.counts.Lock()
			defer b.counts.Unlock()
			return fmt.Sprintf("%d taken, %d refused\n", b.counts.ok, b.counts.bad), true
		}
	})
	c := b.dial()
	c.send("put m 1356998400 1 a=b\nput m 0 1 a=b\nput m 1356998401 1 a=b\nstats\n")
	for _, want := range []string{"put: illegal argument: invalid timestamp: 0", "2 taken, 1 refused"} {
		if got := c.line(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	c.send("nonsense\n")
	if got, want := c.line(), "2 taken, 1 refused"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A client that has not read a byte of its error lines for ten seconds is cut off; one that reads
// slowly is not.
func TestClientThatNeverReads(t *testing.T) {
	f := func(reads time.Duration, lines int, kept bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			_, w, _ := newStore(nil)
			defer w.Close()
			ours, theirs := net.Pipe()
			var work sync.WaitGroup
			work.Go(func() {
				NewServer(Config{Writer: w, Commands: commands}).Serve(t.Context(), pace.NewConn(theirs, pace.Limits{}))
			})
			work.Go(func() {
				for reads > 0 {
					<-time.After(reads)
					if _, err := io.ReadFull(ours, make([]byte, 4<<10)); err != nil {
						return
					}
				}
			})
			began := time.Now()
			var err error
			for ; lines > 0 && err == nil; lines-- {
				_, err = io.WriteString(ours, "nonsense "+strings.Repeat("y", 900)+"\n")
			}
			took := time.Since(began)
			ours.Close()
			work.Wait()
			if kept != (err == nil) || !kept && took != 10*time.Second {
				t.Errorf("%d lines are left after %s: %v, want the connection kept: %t, or ended after 10 s", lines,
					took, err, kept)
			}
		})
	}
	f(0, 10_000, false)
	f(2*time.Second, 10, true)
	f(200*time.Millisecond, 1000, true)
}

// deaf is a connection to which no answer can be written.
type deaf struct {
	wire
	closed, aborted bool
}

func (d *deaf) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
func (d *deaf) Close() error              { d.closed = true; return nil }
func (d *deaf) Abort() error              { d.aborted = true; return nil }

// A connection on which an answer was lost is reset: its regular end would acknowledge lines whose
// errors the client has not seen.
func TestLostAnswer(t *testing.T) {
	b := start(t, nil)
	s := NewServer(Config{Writer: b.writer, Commands: commands})
	f := func(text string, aborted bool) {
		t.Helper()
		c := &deaf{wire: wire{pieces: [][]byte{[]byte(text)}}}
		s.Serve(t.Context(), c)
		if c.aborted != aborted || c.closed == aborted {
			t.Errorf("%.40q: aborted %v, closed %v; want aborted %v", text, c.aborted, c.closed, aborted)
		}
	}
	f("put m 1356998400 1 a=b\n", false)
	f("nonsense\n", true)
	f("version\nput m 1356998400 1 a=b\n", true)
	f("put m 1356998400 1 a=b", true)
	f(strings.Repeat("nonsense\n", 10000), true)
}

// A client that has not finished a line for five minutes is disconnected, even if it sends a byte
// now and then: 42 of them, one every 7 s.
func TestIdle(t *testing.T) {
	f := func(text, drip, want string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			got, took := overPipe(t, text, drip, 1000)
			if got != want || took != 5*time.Minute {
				t.Errorf("%q: got %q after %s, want %q after 5 min", text, got, took, want)
			}
		})
	}
	f("", "", "")
	f("put m 1", "", "error: line without end, 7 bytes, not executed\n")
	f("version\n", "", "downpour 2.4.1\nBuilt today\n")
	f("", "x", "error: line without end, 42 bytes, not executed\n")
}

// A client that finishes lines is not idle, although every read ends within a line.
func TestIdle_busy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, took := overPipe(t, "put m 13569", "98400 1 a=b\nput m 13569", 1000)
		if took != 1000*7*time.Second+5*time.Minute {
			t.Errorf("disconnected after %s, want 5 min after the last line", took)
		}
	})
}

// overPipe sends text, then drip every seven seconds, n times at most. It returns what the server
// sends until it closes, and how long that took.
func overPipe(t *testing.T, text, drip string, n int) (said string, took time.Duration) {
	t.Helper()
	_, w, _ := newStore(nil)
	defer w.Close()
	ours, theirs := net.Pipe()
	go NewServer(Config{Writer: w, Commands: commands}).Serve(t.Context(), theirs)
	began, done := time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		_, err := io.WriteString(ours, text)
		for ; n > 0 && drip != "" && err == nil; n-- {
			<-time.After(7 * time.Second)
			_, err = io.WriteString(ours, drip)
		}
	}()
	got, err := io.ReadAll(ours)
	if err != nil {
		t.Error(err)
	}
	took = time.Since(began)
	ours.Close()
	<-done
	return string(got), took
}

// A panic resets its own connection; the server goes on.
func TestPanic(t *testing.T) {
	b := start(t, nil)
	c := b.dial()
	c.send("put panic 1356998400 1 a=b\n")
	if _, err := io.ReadAll(c.in); err == nil {
		t.Error("the connection ended in good order, want a reset")
	}
	if got := b.say("put m 1356998400 1 a=b\n"); got != "" || len(b.store.points(t)) != 1 {
		t.Errorf("afterwards: got %q, want silence and a stored point", got)
	}
}

// Each command needs a token with its scope. A later auth replaces the token, an unknown token
// ends the connection. Without tokens auth is ignored; a read-only gateway takes no puts.
func TestAuth(t *testing.T) {
	tokens := map[string]Rights{"reader": {Read: true}, "writer": {Write: true},
		"admin": {Read: true, Write: true, Admin: true}}
	b := start(t, func(c *Config) {
		c.Authorize = func(token string) (Rights, bool) { r, ok := tokens[token]; return r, ok }
	})
	put := "put m 1356998400 1 a=b\n"
	noPut := "put: unauthorized: this needs a write token or a gateway that takes puts\n"
	no := func(command string) string {
		return "unauthorized: send 'auth TOKEN' first, with a token whose scope allows " + command + "\n"
	}
	version := "downpour 2.4.1\nBuilt today\n"
	f := func(text, want string, stored int) {
		t.Helper()
		before := len(b.store.points(t))
		if got := b.say(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if n := len(b.store.points(t)) - before; n != stored {
			t.Errorf("%q: %d points stored, want %d", text, n, stored)
		}
	}
	f(put, noPut, 0)
	f("version\nstats\nhelp\ndropcaches\n", no("version")+no("stats")+no("help")+no("dropcaches"), 0)
	f("auth nobody\n"+put, "auth: unknown token\n", 0)
	f("auth \n"+put, "auth: unknown token\n", 0)
	f("auth\n"+put, "auth: want 'auth TOKEN'\n", 0)
	f("auth writer extra\n"+put, "auth: want 'auth TOKEN'\n", 0)
	f("auth writer\r\n"+put+"version\nstats\ndropcaches\n", version+no("stats")+no("dropcaches"), 1)
	f("auth reader\n"+put+"version\nstats\ndropcaches\n", noPut+version+"stats done\n"+no("dropcaches"), 0)
	f("auth admin\n"+put+"version\nstats\ndropcaches\n", version+"stats done\ndropcaches done\n", 1)
	f("auth writer\n"+put+"auth reader\n"+put, noPut, 1)
	f("auth writer\n"+put+"auth nobody\n"+put, "auth: unknown token\n", 1)

	without := start(t, nil)
	if got := without.say("auth whatever\n" + put); got != "" || len(without.store.points(t)) != 1 {
		t.Errorf("a gateway without tokens answered %q, want silence and a stored point", got)
	}
	readOnly := start(t, func(c *Config) { c.ReadOnly = true })
	if got := readOnly.say(put + "version\n"); got != noPut+version || len(readOnly.store.points(t)) != 0 {
		t.Errorf("a gateway that takes no puts answered %q, want the put refused and nothing stored", got)
	}
}
