package pace

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// take reads a piece of n bytes every so often, until the other end is closed or count are read.
func take(c net.Conn, n int, every time.Duration, count int) {
	b := make([]byte, n)
	for ; count != 0; count-- {
		<-time.After(every)
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
	}
}

// A write goes on while the peer takes enough bytes. It ends with a timeout after ten seconds
// without a byte, or when the peer is a minute behind the rate.
func TestConn(t *testing.T) {
	f := func(name string, size, piece int, every time.Duration, count int, whole bool, least, most time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			defer there.Close()
			var reader sync.WaitGroup
			reader.Go(func() { take(there, piece, every, count) })
			c := NewConn(here, Limits{})
			began := time.Now()
			n, err := c.Write(make([]byte, size))
			took := time.Since(began)
			c.Close()
			reader.Wait()

			var slow *Error
			if whole != (err == nil) || whole != (n == size) || took < least || took > most {
				t.Errorf("%s: %d of %d bytes, %v after %s; want whole: %t, %s to %s", name, n, size, err, took, whole,
					least, most)
			}
			if err != nil && (!errors.As(err, &slow) || !errors.Is(err, os.ErrDeadlineExceeded) || !slow.Timeout() ||
				slow.Temporary()) {
				t.Errorf("%s: error %#v, want an *Error that is a timeout", name, err)
			}
		})
	}
	const forever = -1
	f("at once", 1<<20, 1<<20, 0, forever, true, 0, 0)
	f("a MiB at 100 KiB/s", 1<<20, 10<<10, 100*time.Millisecond, forever, true, 10*time.Second, 12*time.Second)
	f("pieces of 9 s, as many bytes as the rate wants", 1<<20, 160<<10, 9*time.Second, forever, true, 54*time.Second,
		63*time.Second)
	f("nothing", 1, 1, 0, 0, false, 10*time.Second, 10*time.Second)
	f("nothing behind the first piece", 1<<20, 100_000, time.Second, 1, false, 11*time.Second, 14*time.Second)
	f("a byte a second", 1<<10, 1, time.Second, forever, false, time.Minute, 65*time.Second)
	f("half the rate", 8<<20, 8<<10, time.Second, forever, false, 119*time.Second, 2*time.Minute)
	f("a little over the rate, for an hour", 64<<20, 17<<10, time.Second, forever, true, time.Hour, 70*time.Minute)
	f("few bytes, slowly", 100, 10, 5*time.Second, forever, true, 45*time.Second, 50*time.Second)
}

// What a peer is behind after one message is made up for by a pause before the next; without pauses
// it adds up until the connection ends.
func TestConn_manyMessages(t *testing.T) {
	f := func(pause time.Duration, want int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			defer there.Close()
			c := NewConn(here, Limits{})
			var reader sync.WaitGroup
			reader.Go(func() { // 6 s for 16 KiB, which may take 1 s: 5 s behind each time
				for message := make([]byte, 16<<10); ; {
					_, err := io.ReadFull(there, message[:1])
					<-time.After(6 * time.Second)
					if err == nil {
						_, err = io.ReadFull(there, message[1:])
					}
					if err != nil {
						return
					}
				}
			})
			sent := 0
			for ; sent < 100; sent++ {
				<-time.After(pause)
				if _, err := c.Write(make([]byte, 16<<10)); err != nil {
					break
				}
			}
			c.Close()
			reader.Wait()
			if sent != want {
				t.Errorf("pauses of %s: %d messages, want %d", pause, sent, want)
			}
		})
	}
	f(10*time.Second, 100)
	f(0, 11) // 55 s behind after 11 messages, more than a minute during the next
}

// Deadlines that are set from outside hold in addition to the limits, also those set
// during a write, and end when they are removed.
func TestConn_deadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		c := NewConn(here, Limits{})
		defer c.Close()
		f := func(name string, want time.Duration, set func()) {
			t.Helper()
			began := time.Now()
			set()
			_, err := c.Write([]byte("x"))
			if took := time.Since(began); took != want || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: %v after %s, want a timeout after %s", name, err, took, want)
			}
			<-time.After(time.Hour) // so that the connection is behind no more
			c.meter = Meter{Limits: c.meter.Limits}
		}
		f("before", 3*time.Second, func() { c.SetWriteDeadline(time.Now().Add(3 * time.Second)) })
		f("removed", 10*time.Second, func() { c.SetWriteDeadline(time.Time{}) })
		f("later than the limit", 10*time.Second, func() { c.SetDeadline(time.Now().Add(time.Minute)) })
		f("passed", 0, func() { c.SetDeadline(time.Unix(1, 0)) })
		f("during the write", 4*time.Second, func() {
			c.SetDeadline(time.Time{})
			time.AfterFunc(4*time.Second, func() { c.SetWriteDeadline(time.Unix(1, 0)) })
		})
		f("put off during the write", 10*time.Second, func() {
			c.SetDeadline(time.Now().Add(5 * time.Second))
			time.AfterFunc(4*time.Second, func() { c.SetWriteDeadline(time.Now().Add(time.Hour)) })
		})
	})
}

// A write ends at once when the peer closes.
func TestConn_closed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		c := NewConn(here, Limits{})
		time.AfterFunc(time.Second, func() { there.Close() })
		began := time.Now()
		n, err := c.Write(make([]byte, 10))
		if n != 0 || !errors.Is(err, io.ErrClosedPipe) || time.Since(began) != time.Second {
			t.Errorf("got %d, %v after %s, want 0, io.ErrClosedPipe after 1 s", n, err, time.Since(began))
		}
	})
}

// Connections of the listener have the limits, over TCP, and their side can be closed for writing.
func TestListen(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Listen(inner, Limits{Still: time.Millisecond}) // short, so that the test need not wait
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, ok := c.(interface{ NetConn() net.Conn }).NetConn().(*net.TCPConn); !ok {
		t.Errorf("a %T is not over a TCP connection", c)
	}
	for sent := 0; ; { // until the buffers of both ends are full
		n, err := c.Write(make([]byte, 1<<20))
		if sent += n; err != nil {
			var slow *Error
			if !errors.As(err, &slow) {
				t.Errorf("after %d bytes: %v, want an *Error", sent, err)
			}
			break
		}
	}
	if err := c.(*Conn).CloseWrite(); err != nil {
		t.Error(err)
	}
	here, there := net.Pipe()
	defer there.Close()
	defer here.Close()
	if err := NewConn(here, Limits{}).CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("CloseWrite of a pipe: %v", err)
	}
}

// Left is how long a peer may still take, and Waited refuses a peer that has taken longer: here 4 s
// without a byte, or 10 s behind 100 bytes a second.
func TestMeter(t *testing.T) {
	m := Meter{Limits: Limits{Still: 4 * time.Second, Behind: 10 * time.Second, Rate: 100}}
	now := time.Unix(1000, 0)
	f := func(idle, waited time.Duration, n int, left time.Duration, slow bool) {
		t.Helper()
		from := now.Add(idle)
		now = from.Add(waited)
		if err := m.Waited(from, now, n); (err != nil) != slow {
			t.Errorf("after %s: %v, want too slow: %t", waited, err, slow)
		}
		if got := m.Left(now).Round(time.Millisecond); got != left {
			t.Errorf("left %s, want %s", got, left)
		}
	}
	f(0, time.Second, 1000, 4*time.Second, false)
	f(0, 3*time.Second, 0, time.Second, false)
	f(0, 3*time.Second, 100, 4*time.Second, false) // 5 s behind
	f(0, 3*time.Second, 100, 3*time.Second, false) // 7 s
	f(2*time.Second, 3*time.Second, 0, time.Second, false)
	f(0, 2*time.Second, 0, 0, true)
	m = Meter{Limits: m.Limits}
	f(0, 11*time.Second, 1, 0, true)
	if got := m.Left(
		now.Add(3 * time.Second)); got.Round(
		time.Millisecond) != 2010*time.Millisecond { // 10.99 s behind, by 11 s for one byte, less a pause of 3 s
		t.Errorf("left %s after a pause, want 2.01 s", got)
	}
	f(time.Hour, 0, 0, 4*time.Second, false)
}
