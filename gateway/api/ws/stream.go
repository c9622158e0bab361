// Package ws serves live queries over WebSocket at /api/ws, subprotocol
// downpour.v1: many subscriptions a socket, each with a client-chosen id, JSON
// text messages, and Arrow IPC as binary messages where asked for.
//
// A socket has one reading and one writing goroutine and no queue of data. The
// writer is woken, takes one update after the other from its subscriptions in
// turn, and writes; what a slow client misses meanwhile is merged by package
// live. Whether a client takes too long is judged below, by package pace: the
// server's connections must be of pace.Listen.
//
//	close codes   1001 the server stops      1008 token, policy
//	              1003 binary from a client  1009 message over 64 KiB
//	              1013 too many sockets, no memory
//
// Compression is not offered, so what a client sends is never larger than its
// bytes on the wire.
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

// Subprotocol is the one that the server speaks.
const Subprotocol = "downpour.v1"

const bearerPrefix = "bearer."

// Config says how sockets are served. Zero values take the defaults.
type Config struct {
	Hub *live.Hub

	// AllowOrigins are browser origins beside the server's own.
	AllowOrigins origin.List

	// Authorize tells whether a token may read; nil lets everybody in. The token
	// is that of subprotocol bearer.TOKEN, or of the Authorization header, or
	// empty. It is asked again at every ping.
	Authorize func(token string) bool

	Subscriptions int           // a socket; 100
	Sockets       int           // at a time; 16,384
	ReadLimit     int64         // bytes a message; 64 KiB
	CloseWait     time.Duration // for a close frame; 10 s
	PingEvery     time.Duration // 20 s
	PongWait      time.Duration // 60 s, and the time that what was sent takes at Pace
	Pace          pace.Limits   // as the listener has them
	Log           *slog.Logger  // slog.Default
}

func (c *Config) setDefaults() {
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

// Server is the handler of /api/ws.
type Server struct {
	cfg      Config
	upgrader websocket.Upgrader
	stop     context.CancelFunc
	stopping context.Context
	sockets  sync.WaitGroup

	mu struct {
		sync.Mutex
		open int
	}
}

// New returns a handler. Close ends its sockets.
func New(cfg Config) *Server {
	cfg.setDefaults()
	s := &Server{cfg: cfg}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.upgrader = websocket.Upgrader{
		Subprotocols:    []string{Subprotocol},
		ReadBufferSize:  1 << 10,
		WriteBufferSize: 4 << 10,
		WriteBufferPool: &sync.Pool{},                             // idle sockets hold no buffer
		CheckOrigin:     func(*http.Request) bool { return true }, // ServeHTTP has checked it
	}
	return s
}

// Close tells every client that the server goes away and waits until their
// sockets are closed, or ctx ends. New ones are refused from now on.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.sockets.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stream: sockets still open: %w", ctx.Err())
	}
}

// Open is the number of sockets.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.open
}

// ServeHTTP upgrades the connection, which is served until it ends. Refusals are
// plain text: what a browser hides from scripts, its developer tools show.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, status, reason := s.check(r)
	if status != 0 {
		s.cfg.Log.Warn("stream: socket refused", "status", status, "reason", reason, "remote", r.RemoteAddr)
		http.Error(w, reason, status)
		return
	}
	conn, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	if !s.enter() {
		closeWith(conn, s.cfg.CloseWait, websocket.CloseTryAgainLater, "too many sockets; try again later")
		conn.Close()
		return
	}
	// The handler ends here, and with it what the HTTP server keeps for a request:
	// buffers and headers, more than the socket itself takes.
	go s.serve(conn, token)
}

// serve serves a socket until it ends. A panic ends the socket, not the process.
func (s *Server) serve(conn *websocket.Conn, token string) {
	defer s.leave()
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log.Error("stream: a socket panicked", "panic", p, "stack", string(debug.Stack()))
			conn.Close()
		}
	}()
	newSocket(s, conn, token).serve(s.stopping)
}

// check returns the token, or the status and reason of a refusal.
func (s *Server) check(r *http.Request) (token string, status int, reason string) {
	if !websocket.IsWebSocketUpgrade(r) {
		return "", http.StatusUpgradeRequired, "This address speaks WebSocket, subprotocol " + Subprotocol + "."
	}
	// No browser leaves the Origin of a socket out.
	if page := r.Header.Get("Origin"); page != "" && !s.cfg.AllowOrigins.Allows(page, r.Host) {
		return "", http.StatusForbidden, fmt.Sprintf("Origin %q is not allowed: the page must come from %q, or its origin must be listed in DOWNPOUR_ALLOW_ORIGINS.", page, r.Host)
	}
	protocols := websocket.Subprotocols(r)
	if !slices.Contains(protocols, Subprotocol) {
		return "", http.StatusBadRequest, fmt.Sprintf("Subprotocols %q are not spoken here: want %q.", protocols, Subprotocol)
	}
	token = tokenOf(r, protocols)
	if s.cfg.Authorize != nil && !s.cfg.Authorize(token) {
		return "", http.StatusUnauthorized, "A token with scope read is wanted, as second subprotocol bearer.TOKEN."
	}
	return token, 0, ""
}

func tokenOf(r *http.Request, protocols []string) string {
	for _, p := range protocols {
		if token, ok := strings.CutPrefix(p, bearerPrefix); ok {
			return token
		}
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.open >= s.cfg.Sockets || s.stopping.Err() != nil {
		return false
	}
	s.mu.open++
	s.sockets.Add(1)
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.open--
	s.sockets.Done()
}
