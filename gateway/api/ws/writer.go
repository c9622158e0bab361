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
			closeWith(k.conn, cfg.CloseWait, websocket.CloseGoingAway, "the server stops; come back after a pause of random length")
			return
		case reply := <-k.replies:
			alive = k.send(websocket.TextMessage, reply)
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

// ping sends a ping, which asks for a sign of life, and a heartbeat, which scripts in
// browsers can see. It checks the token again. It returns false when the socket is
// over.
func (k *socket) ping() bool {
	cfg := &k.server.cfg
	if cfg.Authorize != nil && !cfg.Authorize(k.token) {
		closeWith(k.conn, cfg.CloseWait, websocket.ClosePolicyViolation, "the token is no longer valid")
		return false
	}
	// Without a deadline: package pace bounds the write, as that of a message.
	if k.conn.WriteControl(websocket.PingMessage, k.liveness.pingPayload(), time.Time{}) != nil {
		return false
	}
	return k.send(websocket.TextMessage, heartbeat)
}

// sendUpdates sends one update of each subscription. If there were any it wakes the
// writer again instead of going on, so that replies, pings and the other
// subscriptions of the socket are not held up. It returns false when the socket is
// over.
func (k *socket) sendUpdates(stopping context.Context) bool {
	subs, closed := k.subscribers()
	if closed {
		return false
	}

	for _, s := range subs {
		u := s.sub.Next()
		if u == nil {
			continue
		}
		// While the server stops the socket is not over: write has its close frame to send.
		if stopping.Err() != nil || !k.sendUpdate(s, u) {
			return stopping.Err() != nil
		}
		if u.Ends() {
			k.drop(s)
		}
		k.wakeUp()
	}
	return true
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

// sendUpdate sends one update in the format that the subscription asked for.
func (k *socket) sendUpdate(s *subscriber, u *live.Update) bool {
	head := appendHead(nil, u.Kind, &s.id)
	// Errors, and the end, have no points: they are JSON in either format.
	if !s.arrow || u.Kind != live.KindSnapshot && u.Kind != live.KindDelta {
		text, err := u.JSON()
		if err != nil {
			return k.cannotEncode(err)
		}
		return k.send(websocket.TextMessage, head, text)
	}

	header, frame, err := u.Arrow()
	if err != nil {
		return k.cannotEncode(err)
	}
	return k.send(websocket.TextMessage, head, header) && k.send(websocket.BinaryMessage, frame)
}

// cannotEncode ends a socket for which an update cannot be encoded. It returns false.
func (k *socket) cannotEncode(err error) bool {
	k.server.cfg.Log.Warn("stream: an update could not be written", "error", err)
	if errors.Is(err, live.ErrNoMemory) {
		closeWith(k.conn, k.server.cfg.CloseWait, websocket.CloseTryAgainLater, "there is no memory for the message; try again later")
	}
	return false
}

// send sends one message made of several parts, which may be shared with other
// sockets. It returns false if the client does not take it: after half a message
// nothing else can be sent on a socket.
func (k *socket) send(kind int, parts ...[]byte) bool {
	w, err := k.conn.NextWriter(kind)
	if err == nil {
		err = k.writeAll(w, parts)
	}
	if err != nil {
		k.server.cfg.Log.Info("stream: socket cut off", "error", err, "remote", k.conn.RemoteAddr())
	}
	return err == nil
}

// frameBytes bounds the bytes of one frame of a large message.
const frameBytes = 64 << 10

// writeAll writes a message frame by frame, so that the bytes that a slow client has
// received count before the message is complete.
func (k *socket) writeAll(w io.WriteCloser, parts [][]byte) error {
	for _, p := range parts {
		for frame := range slices.Chunk(p, frameBytes) {
			if _, err := w.Write(frame); err != nil {
				return err
			}
			k.liveness.addSent(len(frame))
		}
	}
	return w.Close()
}
