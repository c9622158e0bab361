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

// closeWith sends a close frame, if the client still takes one.
func closeWith(conn *websocket.Conn, wait time.Duration, code int, reason string) {
	conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(wait))
}

// write is the only one to send messages. It returns when the socket is over.
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

// ping asks for a sign of life, and gives one that scripts in browsers can see.
func (k *socket) ping() bool {
	cfg := &k.server.cfg
	if cfg.Authorize != nil && !cfg.Authorize(k.token) {
		closeWith(k.conn, cfg.CloseWait, websocket.ClosePolicyViolation, "the token is no longer valid")
		return false
	}
	// How long it may take is judged below, as for messages.
	if k.conn.WriteControl(websocket.PingMessage, k.life.ping(), time.Time{}) != nil {
		return false
	}
	return k.send(websocket.TextMessage, heartbeat)
}

// sendUpdates writes one update of each subscription, then wakes itself up as
// long as there were any, so that replies, pings and the other subscriptions of
// the socket have their turn.
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

func (k *socket) drop(s *subscriber) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropLocked(s)
}

func (k *socket) subscribers() (subs []*subscriber, closed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append(subs, k.mu.order...), k.mu.closed
}

func (k *socket) sendUpdate(s *subscriber, u *live.Update) bool {
	head := appendHead(nil, u.Kind, &s.id)
	if !s.arrow || u.Kind != live.KindSnapshot && u.Kind != live.KindDelta {
		text, err := u.JSON()
		if err != nil {
			return k.unwritten(err)
		}
		return k.send(websocket.TextMessage, head, text)
	}
	header, frame, err := u.Arrow()
	if err != nil {
		return k.unwritten(err)
	}
	return k.send(websocket.TextMessage, head, header) && k.send(websocket.BinaryMessage, frame)
}

// unwritten ends a socket whose client cannot be told what is new.
func (k *socket) unwritten(err error) bool {
	k.server.cfg.Log.Warn("stream: an update could not be written", "error", err)
	if errors.Is(err, live.ErrNoMemory) {
		closeWith(k.conn, k.server.cfg.CloseWait, websocket.CloseTryAgainLater, "there is no memory for the message; try again later")
	}
	return false
}

// send writes one message of several pieces, which may be shared with other
// sockets. A client that does not take it is cut off: after half a message
// nothing else can be said on a socket.
func (k *socket) send(kind int, pieces ...[]byte) bool {
	w, err := k.conn.NextWriter(kind)
	if err == nil {
		err = k.writeAll(w, pieces)
	}
	if err != nil {
		k.server.cfg.Log.Info("stream: socket cut off", "error", err, "remote", k.conn.RemoteAddr())
	}
	return err == nil
}

// frameBytes is the most that one frame of a large message holds.
const frameBytes = 64 << 10

// writeAll writes the pieces, frame by frame, so that what a slow client has
// taken of a large message counts before it is whole.
func (k *socket) writeAll(w io.WriteCloser, pieces [][]byte) error {
	for _, p := range pieces {
		for frame := range slices.Chunk(p, frameBytes) {
			if _, err := w.Write(frame); err != nil {
				return err
			}
			k.life.add(len(frame))
		}
	}
	return w.Close()
}
