package ws

import (
	"strconv"
	"sync"
	"time"

	"downpour/gateway/api/pace"
)

// life tells for how long a client that gives no sign of life is taken to be
// there. A ping lies behind all that was sent before it, of which the buffers on
// the way hold megabytes: before a slow client can answer, it may read that, at
// the least rate there is. So each ping says how many bytes were sent before it,
// and its answer how many of them have arrived.
//
//	sent     9 MB, the snapshot                 waiting until 60 s + 9 MB at 16 KiB/s
//	ping     "9000000"
//	pong     "9000000": all of it was read      waiting until 60 s
type life struct {
	conn interface{ SetReadDeadline(time.Time) error }
	wait time.Duration
	pace pace.Limits

	mu          sync.Mutex
	sent, taken int64     // bytes of messages; taken those that a pong has told of
	sign        time.Time // when the last sign came
}

// begin counts the upgrade as a sign.
func (l *life) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.sign = time.Now()
	l.setLocked()
}

// add counts bytes that were sent.
func (l *life) add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.sent += int64(n)
	l.setLocked()
}

// ping is what the next ping carries: the bytes sent before it, in decimal.
func (l *life) ping() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()

	return strconv.AppendInt(nil, l.sent, 10)
}

// ponged takes the answer to a ping. One with nonsense in it is a sign of life,
// and says nothing of what was read.
func (l *life) ponged(payload string) error {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.sign = time.Now()
	if n, err := strconv.ParseInt(payload, 10, 64); err == nil && n <= l.sent {
		l.taken = max(l.taken, n)
	}
	return l.setLocked()
}

// setLocked ends reading when no sign can be hoped for any more. REQUIRES: mu is
// held.
func (l *life) setLocked() error {
	return l.conn.SetReadDeadline(l.sign.Add(l.wait + l.pace.Least(l.sent-l.taken)))
}
