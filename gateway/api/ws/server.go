// Package ws serves live queries over WebSocket at /api/ws with the subprotocol
// downpour.v1. A socket has many subscriptions, each with an id that the client
// chooses. Messages are JSON text, and Arrow IPC as binary messages if the client
// requests that.
//
// A socket has one reading and one writing goroutine and no queue of data. The writer
// is woken, takes one update from each of its subscriptions in rotation, and writes it;
// short ones of one tick leave together, in one write. Package live merges the updates
// that a slow client misses. Package pace decides whether a client is too slow, so the
// server's connections must be those of pace.Listen.
//
//	close codes   1001 the server stops      1008 token, policy
//	              1003 binary from a client  1009 message over 64 KiB
//	              1013 too many sockets, no memory
//
// Compression is not offered, so a client's message is never larger than its bytes
// on the wire.
package ws

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"downpour/gateway/api/origin"
	"downpour/gateway/api/pace"
	"downpour/gateway/live"
)

// Subprotocol is the only subprotocol of WebSocket that the server accepts.
const Subprotocol = "downpour.v1"

// bearerPrefix begins the second subprotocol, which carries the token: browsers let
// scripts set no header of a WebSocket.
const bearerPrefix = "bearer."

// Config is how sockets are served. Zero values mean the defaults.
type Config struct {
	Hub *live.Hub

	// AllowOrigins are browser origins in addition to the server's own.
	AllowOrigins origin.List

	// Authorize reports whether a token may read; nil allows everybody. The token is
	// that of the subprotocol bearer.TOKEN, or of the Authorization header, or empty.
	// It is checked again at every ping.
	Authorize func(token string) bool

	// Ops returns what operators see, as a JSON object; nil if there is nothing to see. It is
	// called while one of them has subscribed to it, and must return when ctx ends.
	Ops func(ctx context.Context) ([]byte, error)
	// AuthorizeOps reports whether a token may see it; nil allows everybody.
	AuthorizeOps func(token string) bool
	OpsEvery     time.Duration // between two of them; 2 s

	Subscriptions int           // of one socket; 100
	Sockets       int           // at a time; 16,384
	ReadLimit     int64         // bytes of a client's message; 64 KiB
	CloseWait     time.Duration // to send a close frame; 10 s
	PingEvery     time.Duration // 20 s
	PongWait      time.Duration // for a pong; 60 s, plus the time of the sent bytes at Pace
	Pace          pace.Limits   // those of the listener
	Log           *slog.Logger  // slog.Default
}

func (c *Config) setDefaults() {
	live.SetDefault(&c.OpsEvery, 2*time.Second)
	live.SetDefault(&c.Subscriptions, 100)
	live.SetDefault(&c.Sockets, 16384)
	live.SetDefault(&c.ReadLimit, 64<<10)
	live.SetDefault(&c.CloseWait, 10*time.Second)
	live.SetDefault(&c.PingEvery, 20*time.Second)
	live.SetDefault(&c.PongWait, 60*time.Second)
	if c.Log == nil {
		c.Log = slog.Default()
	}
}

// Server is the HTTP handler of /api/ws.
type Server struct {
	cfg      Config
	upgrader websocket.Upgrader
	stop     context.CancelFunc
	stopping context.Context
	sockets  sync.WaitGroup
	ops      *opsFeed

	gathering gathering

	mu struct {
		sync.Mutex
		open int
	}
}

// New returns a handler. Close ends its sockets.
func New(cfg Config) *Server {
	cfg.setDefaults()
	s := &Server{cfg: cfg}
	s.ops = newOpsFeed(&s.cfg)
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.upgrader = websocket.Upgrader{
		Subprotocols:    []string{Subprotocol},
		ReadBufferSize:  1 << 10,
		WriteBufferSize: 4 << 10,
		WriteBufferPool: &sync.Pool{},                             // idle sockets hold no buffer
		CheckOrigin:     func(*http.Request) bool { return true }, // checkRequest has checked it
	}
	return s
}

// Close notifies every client that the server stops, and waits until their sockets are
// closed or ctx ends. New sockets are refused from then on.
func (s *Server) Close(ctx context.Context) error {
	// Under the lock, so that countSocket adds no socket once Wait has begun.
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()

	done := make(chan struct{})
	go func() {
		s.sockets.Wait()
		s.ops.work.Wait() // the last subscriber has ended it
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stream: cannot close all sockets in time: %w", ctx.Err())
	}
}

// Open returns the number of sockets.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.open
}

// ServeHTTP upgrades the connection and has it served until it ends. Refusals are
// plain text: a browser hides them from scripts, but its developer tools show them.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, status, reason := s.checkRequest(r)
	if status != 0 {
		s.cfg.Log.Warn("stream: socket refused", "status", status, "reason", reason, "remote", r.RemoteAddr)
		http.Error(w, reason, status)
		return
	}

	taken := &hijacker{ResponseWriter: w}
	conn, err := s.upgrader.Upgrade(taken, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	// Refused only now, because scripts in browsers see a close code but no HTTP status.
	if code, why := s.countSocket(); why != "" {
		closeWith(conn, s.cfg.CloseWait, code, why)
		conn.Close()
		return
	}

	// The handler returns, so that the HTTP server frees its memory of a request: buffers and
	// headers take more memory than the socket itself.
	go s.serve(conn, taken.conn, token)
}

// serve serves a socket until it ends. A panic ends the socket, not the process.
func (s *Server) serve(conn *websocket.Conn, writes *together, token string) {
	defer s.uncountSocket()
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log.Error("stream: a socket panicked", "panic", p, "stack", string(debug.Stack()))
			conn.Close()
		}
	}()
	newSocket(s, conn, writes, token).serve(s.stopping)
}

// checkRequest returns the token, or the status and the reason of a refusal.
func (s *Server) checkRequest(r *http.Request) (token string, status int, reason string) {
	if !websocket.IsWebSocketUpgrade(r) {
		return "", http.StatusUpgradeRequired, "This address speaks WebSocket, subprotocol " + Subprotocol + "."
	}

	// Every browser sends the Origin of a WebSocket. Clients without one are
	// programs, which no other site can misuse.
	if page := r.Header.Get("Origin"); page != "" && !s.cfg.AllowOrigins.Allows(page, r.Host) {
		return "", http.StatusForbidden,
			fmt.Sprintf(
				"Origin %q is not allowed: the page must come from %q, "+
					"or its origin must be listed in DOWNPOUR_ALLOW_ORIGINS.",
				page, r.Host)
	}

	protocols := websocket.Subprotocols(r)
	if !slices.Contains(protocols, Subprotocol) {
		return "", http.StatusBadRequest,
			fmt.Sprintf("Subprotocols %q are not spoken here: want %q.", protocols, Subprotocol)
	}

	token = tokenOf(r, protocols)
	if s.cfg.Authorize != nil && !s.cfg.Authorize(token) {
		return "", http.StatusUnauthorized, "A token with scope read is wanted, as second subprotocol bearer.TOKEN."
	}
	return token, 0, ""
}

// tokenOf returns the token of a request, "" if there is none.
func tokenOf(r *http.Request, protocols []string) string {
	for _, p := range protocols {
		if token, ok := strings.CutPrefix(p, bearerPrefix); ok {
			return token
		}
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// stopReason is why sockets are closed when the server stops.
const stopReason = "the server stops; come back after a pause of random length"

// countSocket counts a new socket. If there are too many, or the server stops, it returns with what the socket is to
// be closed.
func (s *Server) countSocket() (code int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopping.Err() != nil:
		return websocket.CloseGoingAway, stopReason
	case s.mu.open >= s.cfg.Sockets:
		return websocket.CloseTryAgainLater, "too many sockets; try again later"
	}
	s.mu.open++
	s.sockets.Add(1)
	return 0, ""
}

// uncountSocket counts a socket that has ended.
func (s *Server) uncountSocket() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.open--
	s.sockets.Done()
}
