// Package standby is what a gateway does from the moment it opens its port until its store answers.
// It waits, and reports the reason: in its log every ten seconds, and to every HTTP client.
//
//	GET /healthz     200 ok
//	anything else    503 {"error":{"code":503,"message":"waits for hbase:zk1:2181: …"}}
//	                 Retry-After: 1
//	                 Downpour-Waits-For: hbase:zk1:2181
//
// A page that may not see answers of the gateway, by package origin, gets no reason. Telnet
// connections are accepted, and not read; if there are more than MaxTelnet the oldest are reset.
package standby

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/origin"
	"downpour/gateway/api/pace"
	"downpour/pushdown/process/wait"
	"downpour/pushdown/store"
)

// Header has the store that a gateway waits for, in its answers while it does. Tools that see it do
// not open the embedded store of that gateway.
const Header = "Downpour-Waits-For"

const (
	// firstLine and nextLines are the times after which the log has that the store has not
	// answered.
	firstLine = 3 * time.Second
	nextLines = 10 * time.Second
	// pause is the time between two attempts.
	pause = time.Second
	// LockPatience is how long a start waits while another process has the embedded store. Most tools end
	// sooner; a second gateway fails after this time.
	LockPatience = 5 * time.Minute
	// MaxTelnet is how many telnet connections wait. A connection that is not read does not show that its client
	// has gone, so without a bound clients that reconnect would use up the port's connections.
	MaxTelnet = 256
)

// errNoAnswer is the reason as long as no other is known.
var errNoAnswer = errors.New("it has not answered yet")

// Standby waits for a store, and answers clients while it waits. Its methods may be called at the same time.
type Standby struct {
	address string
	rules   origin.Rules
	log     *slog.Logger
	end     context.CancelFunc // of the lines in the log
	logging sync.WaitGroup

	mu      sync.Mutex
	reason  error
	waiting []func() // each gives up a telnet connection, the oldest first

	ready  chan struct{} // closed once handler and telnet are set
	http   http.Handler
	telnet func(context.Context, net.Conn)
}

// New begins to wait for the store at an address. The rules decide who may see the reason. The
// caller calls Close.
func New(address string, rules origin.Rules, log *slog.Logger) *Standby {
	s := &Standby{address: address, rules: rules, log: log, reason: errNoAnswer, ready: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	s.end = cancel
	s.logging.Go(func() { s.logReasons(ctx) })
	return s
}

// Await calls try until it succeeds, fails for a reason that waiting does not mend, or ctx ends. While try runs,
// store.OnRetry reports the faults after which it retries.
func (s *Standby) Await(ctx context.Context, try func(context.Context) error) error {
	heard := store.OnRetry(ctx, s.Note)
	var lockedSince time.Time
	for {
		err := try(heard)
		mends := errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, store.ErrLocked):
			if lockedSince.IsZero() {
				lockedSince = time.Now()
			}
			if time.Since(lockedSince) >= LockPatience {
				return err
			}
		case !mends: //fault:waits-for-any-fault TestAwait
			return err
		}
		s.Note(err)
		if wait.For(ctx, pause) != nil {
			return err
		}
		if !lockedSince.IsZero() {
			s.Note(errNoAnswer) // the process that is named may have given the lock up
		}
	}
}

// Open ends the waiting: from now on HTTP requests go to handler, and telnet connections, those that wait as
// well, to telnet.
func (s *Standby) Open(handler http.Handler, telnet func(context.Context, net.Conn)) {
	s.http, s.telnet = handler, telnet
	close(s.ready)
	s.mu.Lock()
	s.waiting = nil
	s.mu.Unlock()
	s.Close()
}

// Close ends the lines in the log. It may be called more than once.
func (s *Standby) Close() {
	s.end()
	s.logging.Wait()
}

// Note keeps why the store has not answered.
func (s *Standby) Note(fault error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reason = fault
}

func (s *Standby) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// logReasons logs the last reason now and then.
func (s *Standby) logReasons(ctx context.Context) {
	began := time.Now()
	for next := firstLine; wait.For(ctx, next) == nil; next = nextLines {
		s.log.Warn("waiting for the store", "store", s.address, "for", time.Since(began).Round(time.Second), "err",
			s.why())
	}
	if waited := time.Since(began); waited >= firstLine && s.isReady() {
		s.log.Info("the store answers", "store", s.address, "after", waited.Round(time.Second))
	}
}

func (s *Standby) isReady() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// ServeHTTP answers with what Open has set, and before with why the store has not answered.
func (s *Standby) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.isReady() {
		s.http.ServeHTTP(w, r)
		return
	}

	// The body is not read, so the connection cannot continue after it.
	w.Header().Set("Connection", "close")
	if httpio.Path(r) == "healthz" {
		w.Write([]byte("ok\n"))
		return
	}
	message := "waits for its store"
	if s.rules.Decide(origin.Of(r), origin.Read) == origin.Ours {
		w.Header().Set(Header, s.address)
		message = "waits for " + s.address + ": " + s.why().Error()
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	httpio.SetRetryAfter(w)
	body, _ := json.Marshal(map[string]httpio.Error{"error": {Code: http.StatusServiceUnavailable, Message: message}})
	w.WriteHeader(http.StatusServiceUnavailable)
	w.Write(body)
}

// Telnet serves a connection once the store has answered. The client's bytes stay in its socket
// until then.
func (s *Standby) Telnet(ctx context.Context, c net.Conn) {
	waits, giveUp := context.WithCancel(ctx)
	defer giveUp()
	s.queue(giveUp)
	select {
	case <-s.ready:
		s.telnet(ctx, c)
	case <-waits.Done():
		pace.ResetOnClose(c) // a close in good order would acknowledge what was not read
	}
}

// queue adds a telnet connection to those that wait, and gives up the oldest if they are too many.
func (s *Standby) queue(giveUp func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isReady() {
		return
	}
	s.waiting = append(s.waiting, giveUp)
	if len(s.waiting) > MaxTelnet { //fault:telnet-waits-without-bound TestTelnet_bound
		s.waiting[0]()
		s.waiting = s.waiting[1:]
	}
}
