package ws

import (
	"strconv"
	"sync"
	"time"

	"downpour/gateway/api/pace"
)

// liveness decides how long a silent client counts as connected. A ping arrives after
// everything that was sent before it, which may be megabytes in buffers on the way.
// Before a slow client can answer, it must read that, and it may do so at the lowest
// permitted rate. So each ping carries the number of bytes sent before it, and its pong
// shows how many of them have arrived.
//
//	sent     9 MB, the snapshot                 waiting until 60 s + 9 MB at 16 KiB/s
//	ping     "9000000"
//	pong     "9000000": all of it was read      waiting until 60 s
type liveness struct {
	conn interface{ SetReadDeadline(time.Time) error }
	wait time.Duration // for a pong
	pace pace.Limits   // the lowest permitted rate

	mu       sync.Mutex
	sent     int64     // bytes of messages
	received int64     // of them, those that a pong has confirmed
	lastSign time.Time // when the last sign of life came
}

// start counts the upgrade as a sign of life.
func (l *liveness) start() {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.lastSign = time.Now()
	l.setDeadlineLocked()
}

// addSent counts bytes that were sent.
func (l *liveness) addSent(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.sent += int64(n)
	l.setDeadlineLocked()
}

// pingPayload returns what the next ping carries: the number of bytes sent before
// it, in decimal.
func (l *liveness) pingPayload() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()

	return strconv.AppendInt(nil, l.sent, 10)
}

// gotPong handles a pong. One with an unknown payload is a sign of life, but does not show what was
// received.
func (l *liveness) gotPong(payload string) error {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.lastSign = time.Now()
	if n, err := strconv.ParseInt(payload, 10, 64); err == nil && n <= l.sent {
		l.received = max(l.received, n)
	}
	return l.setDeadlineLocked()
}

// setDeadlineLocked sets the time at which reading ends because a client at the
// lowest permitted rate would have answered. REQUIRES: mu is held.
func (l *liveness) setDeadlineLocked() error {
	return l.conn.SetReadDeadline(l.lastSign.Add(l.wait + l.pace.Least(l.sent-l.received)))
}
