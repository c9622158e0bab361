package ws

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gorilla/websocket"

	"downpour/gateway/live"
)

// socket is one connection.
type socket struct {
	server  *Server
	conn    *websocket.Conn
	writes  *together // below conn
	token   string
	wake    chan struct{} // a subscription may have an update; holds one value
	replies chan []byte   // from the reader to the writer; when it is full the reader waits
	done    chan struct{} // closed when the writer ends

	liveness *liveness
	waiting  atomic.Bool // see gathering
	many     atomic.Bool // it has more than one subscription
	unsaid   int         // bytes sent that liveness does not know yet; of the writer
	head     []byte      // of the message that is sent; of the writer

	mu struct {
		sync.Mutex
		subs   map[string]*subscriber
		order  []*subscriber // in order of subscription
		closed bool
	}
}

// subscriber is one subscription of a socket.
type subscriber struct {
	id     string
	quoted []byte // the id as JSON
	arrow  bool
	sub    source
}

// newSocket returns the socket of a connection; serve starts its goroutines.
func newSocket(s *Server, conn *websocket.Conn, writes *together, token string) *socket {
	k := &socket{server: s, conn: conn, writes: writes, token: token}
	k.wake = make(chan struct{}, 1)
	k.replies = make(chan []byte, 16)
	k.done = make(chan struct{})
	k.liveness = &liveness{conn: conn, wait: s.cfg.PongWait, pace: s.cfg.Pace}
	k.mu.subs = map[string]*subscriber{}
	return k
}

// serve runs the writer and the reader and returns when both have ended and all
// subscriptions are closed.
func (k *socket) serve(stopping context.Context) {
	var writer sync.WaitGroup
	writer.Go(func() {
		defer close(k.done)
		defer k.conn.Close() // ends the reader
		k.write(stopping)
	})
	k.read()
	k.conn.Close() // ends the writer, if it is in a write
	k.closeAll()
	k.wakeNow() // lets the writer find the socket closed, if it waits
	writer.Wait()
}

// cut ends the socket without a close frame, because it is in the middle of a
// message. The hub calls it under its locks, so it must not block.
func (k *socket) cut() {
	k.server.cfg.Log.Info("stream: socket cut off", "error",
		"what is on its way to slow clients takes too much memory", "remote", k.conn.RemoteAddr())
	go k.conn.Close() // Close of a TLS connection may wait to send its alert
}

// wakeUp makes the writer look for updates, together with those of the other
// subscriptions if there are any. It never blocks.
func (k *socket) wakeUp() {
	if k.many.Load() {
		k.server.gathering.add(k)
		return
	}
	k.wakeNow()
}

// wakeNow makes the writer check for updates immediately. It never blocks.
func (k *socket) wakeNow() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// read handles messages until the connection ends.
func (k *socket) read() {
	cfg := &k.server.cfg
	k.conn.SetReadLimit(cfg.ReadLimit) // above it, gorilla closes with 1009
	k.conn.SetPongHandler(k.liveness.gotPong)
	k.liveness.start()

	for {
		kind, data, err := k.conn.ReadMessage()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			cfg.Log.Info("stream: socket cut off", "error", "no answer to a ping in time", "remote",
				k.conn.RemoteAddr())
		}
		if err != nil {
			return
		}
		if kind != websocket.TextMessage {
			closeWith(k.conn, cfg.CloseWait, websocket.CloseUnsupportedData, "want JSON text messages")
			return
		}
		if !k.handle(data) {
			return
		}
	}
}

// handle handles one client message. It returns false when the writer has ended.
func (k *socket) handle(data []byte) bool {
	m, refusal := readMessage(data)
	if refusal == nil && m.Type == "unsubscribe" {
		k.unsubscribe(*m.ID)
		return true
	}
	if refusal == nil {
		refusal = k.subscribe(m)
	}
	if refusal == nil {
		return true
	}

	select {
	case k.replies <- errorMessage(m.ID, refusal):
		return true
	case <-k.done:
		return false
	}
}

// subscribe begins a subscription. The error is for the client.
func (k *socket) subscribe(m *clientMessage) *live.Error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.subs[*m.ID] != nil {
		// Temporary, because the subscription of that id continues.
		return &live.Error{
			Code:      409,
			Message:   fmt.Sprintf("The id %q is in use on this socket: unsubscribe it first", *m.ID),
			Temporary: true,
		}
	}
	if n := len(k.mu.subs); n >= k.server.cfg.Subscriptions {
		return &live.Error{
			Code:    429,
			Message: fmt.Sprintf("Too many subscriptions on this socket: %d, the most allowed", n),
		}
	}

	s := &subscriber{id: *m.ID, quoted: quote(*m.ID), arrow: m.Format == formatArrow}
	sub, refusal := k.open(m)
	if refusal != nil {
		return refusal
	}
	s.sub = sub
	k.mu.subs[s.id] = s
	k.mu.order = append(k.mu.order, s)
	k.many.Store(len(k.mu.subs) > 1)
	return nil
}

// open opens what a message subscribes to. The error is for the client.
func (k *socket) open(m *clientMessage) (source, *live.Error) {
	if m.Ops {
		s, refusal := k.server.ops.subscribe(k.token, k.wakeUp)
		if refusal != nil {
			return nil, refusal
		}
		return s, nil
	}

	sub, err := k.server.cfg.Hub.Subscribe(m.request(k.cut), k.wakeUp)
	if refusal := new(live.Error); errors.As(err, &refusal) { // Subscribe has no other errors
		return nil, refusal
	}
	return sub, nil
}

// unsubscribe ends a subscription. It ignores one that does not exist, because the message of its
// end may be on its way.
func (k *socket) unsubscribe(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.mu.subs[id]; s != nil {
		k.dropLocked(s)
	}
}

// dropLocked closes a subscription and removes it. REQUIRES: k.mu is held.
func (k *socket) dropLocked(s *subscriber) {
	s.sub.Close()
	if k.mu.subs[s.id] != s { // the id may be in use again
		return
	}
	delete(k.mu.subs, s.id)
	if i := slices.Index(k.mu.order, s); i >= 0 {
		k.mu.order = slices.Delete(k.mu.order, i, i+1)
	}
	k.many.Store(len(k.mu.subs) > 1)
}

// closeAll closes all subscriptions.
func (k *socket) closeAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.closed = true
	for _, s := range k.mu.order {
		s.sub.Close()
	}
	k.mu.subs, k.mu.order = nil, nil
}
