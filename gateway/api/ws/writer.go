package ws

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"downpour/gateway/live"
)

// closeWith sends a close frame if the client takes one within wait.
func closeWith(conn *websocket.Conn, wait time.Duration, code int, reason string) {
	conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(wait))
}

// write sends all messages of the socket. It returns when the socket is over.
func (k *socket) write(stopping context.Context) {
	cfg := &k.server.cfg
	ping := time.NewTicker(cfg.PingEvery)
	defer ping.Stop()
	for {
		alive := true
		select {
		case <-stopping.Done():
			closeWith(k.conn, cfg.CloseWait, websocket.CloseGoingAway, stopReason)
			return
		case reply := <-k.replies:
			alive = k.send(websocket.TextMessage, false, reply)
		case <-ping.C:
			alive = k.ping()
		case <-k.wake:
			alive = k.sendUpdates(stopping)
		}
		if !alive {
			return
		}
	}
}

// ping sends a heartbeat, which scripts in browsers can see, and a ping, which requires
// a pong. It checks the token again. It returns false when the socket is over.
func (k *socket) ping() bool {
	cfg := &k.server.cfg
	if cfg.Authorize != nil && !cfg.Authorize(k.token) {
		closeWith(k.conn, cfg.CloseWait, websocket.ClosePolicyViolation, "the token is no longer valid")
		return false
	}
	if !k.send(websocket.TextMessage, true, heartbeat) {
		return false
	}
	k.tellSent()
	// Without a deadline: package pace bounds the write, as that of a message.
	return k.conn.WriteControl(websocket.PingMessage, k.liveness.pingPayload(), time.Time{}) == nil
}

// update is one of a subscription that is still to be sent.
type update struct {
	of *subscriber
	*live.Update
}

// sendUpdates sends one update of each subscription. Those that had one may have another, as an
// error after an answer: they are checked once more, and then the writer is woken again instead of
// continuing, so that replies, pings and the other subscriptions of the socket are not delayed. It
// returns false when the socket is over.
func (k *socket) sendUpdates(stopping context.Context) bool {
	subs, closed := k.subscribers()
	if closed {
		return false
	}

	for range 2 {
		var sent bool
		if subs, sent = k.sendRound(stopping, subs); !sent {
			// While the server stops the socket is not over: write has its close frame to send.
			return stopping.Err() != nil
		}
		if len(subs) == 0 {
			return true
		}
	}
	k.wakeUp()
	return true
}

// sendRound sends one update of each of some subscriptions, together where they are
// short, and returns those that had one. It returns false when the socket is over, or the
// server stops.
func (k *socket) sendRound(stopping context.Context, subs []*subscriber) (had []*subscriber, sent bool) {
	// Each is sent once it is known whether another one follows, with which it leaves. At most one
	// is taken in advance, because waiting updates of a slow client grow old.
	var last update
	for _, s := range subs {
		u := s.sub.Next()
		if u == nil {
			continue
		}
		if last.Update != nil && !k.sendUpdate(stopping, last, true) {
			return nil, false
		}
		last = update{s, u}
		had = append(had, s)
	}
	return had, last.Update == nil || k.sendUpdate(stopping, last, false)
}

// drop closes a subscription and removes it.
func (k *socket) drop(s *subscriber) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropLocked(s)
}

// subscribers returns the subscriptions in their order, and whether the socket is
// closed.
func (k *socket) subscribers() (subs []*subscriber, closed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append(subs, k.mu.order...), k.mu.closed
}

// sendUpdate sends one update in the subscription's format, and removes the
// subscription if the update ends it. more is set if another message follows. It
// returns false when the socket is over, or the server stops.
func (k *socket) sendUpdate(stopping context.Context, u update, more bool) bool {
	if stopping.Err() != nil {
		return false
	}
	// Before it is sent: a client that has read it may immediately subscribe with the same id.
	if u.Ends() {
		k.drop(u.of)
	}
	return k.sendFormat(u, more)
}

// sendFormat sends one update in the subscription's format.
func (k *socket) sendFormat(u update, more bool) bool {
	k.head = appendHead(k.head[:0], u.Kind, u.of.quoted)
	head := k.head
	// Errors, and the end, have no points: they are JSON in either format.
	if !u.of.arrow || u.Kind != live.KindSnapshot && u.Kind != live.KindDelta {
		text, err := u.JSON()
		if err != nil {
			return k.cannotEncode(err)
		}
		return k.send(websocket.TextMessage, more, head, text)
	}

	header, frame, err := u.Arrow()
	if err != nil {
		return k.cannotEncode(err)
	}
	return k.send(websocket.TextMessage, true, head, header) && k.send(websocket.BinaryMessage, more, frame)
}

// cannotEncode ends a socket for which an update cannot be encoded. It returns false.
func (k *socket) cannotEncode(err error) bool {
	k.server.cfg.Log.Warn("stream: an update could not be written", "error", err)
	if errors.Is(err, live.ErrNoMemory) {
		closeWith(k.conn, k.server.cfg.CloseWait, websocket.CloseTryAgainLater,
			"there is no memory for the message; try again later")
	}
	return false
}

// send sends one message made of several parts, which may be shared with other sockets.
// With more, another message follows immediately, and a short one may leave together
// with it. It returns false if the client does not accept it: after half a message
// nothing else can be sent on a socket.
func (k *socket) send(kind int, more bool, parts ...[]byte) bool {
	k.writes.hold.Store(true)
	w, err := k.conn.NextWriter(kind)
	if err == nil {
		err = k.writeAll(w, parts)
	}
	k.writes.hold.Store(more)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		k.server.cfg.Log.Info("stream: socket cut off", "error", err, "remote", k.conn.RemoteAddr())
	}
	if !more {
		k.tellSent()
	}
	return err == nil
}

// frameBytes bounds the bytes of one frame of a large message.
const frameBytes = 64 << 10

// writeAll writes a message except its end, frame by frame, so that the bytes that a
// slow client has received count before the message is complete.
func (k *socket) writeAll(w io.Writer, parts [][]byte) error {
	for _, p := range parts {
		for frame := range slices.Chunk(p, frameBytes) {
			if _, err := w.Write(frame); err != nil {
				return err
			}
			if k.unsaid += len(frame); k.unsaid >= keptBytes {
				k.tellSent()
			}
		}
	}
	return nil
}

// tellSent counts what was sent.
func (k *socket) tellSent() {
	k.liveness.addSent(k.unsaid)
	k.unsaid = 0
}
