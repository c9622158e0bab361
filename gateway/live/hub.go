package live

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"downpour/pushdown/process/memory"
)

// Config says how live queries are answered. Zero values take the defaults.
type Config struct {
	// Ask answers a query, a body of POST /api/query, with its end at now where
	// the query names none. Errors other than *Error count as temporary. It is
	// called from many goroutines and must return when ctx ends.
	Ask func(ctx context.Context, query json.RawMessage, now time.Time) (Answer, error)

	// OpenSource returns the source of a live query's answers; nil asks each query
	// whole by Ask. What has an end is always asked by Ask.
	OpenSource func(query json.RawMessage) Source

	// Enter, if set, makes the context of each ask, with what it may hold of what
	// all share; leave gives that back, once the answer is taken in.
	Enter func(context.Context) (_ context.Context, leave func())

	Interval time.Duration // between the starts of two asks of a query; 1 s
	Quick    time.Duration // the same, where the source knows that there is news; 200 ms
	Linger   time.Duration // how long an evaluator without subscribers is kept for resume; 15 s
	Queries  int           // distinct queries at a time; 1,000
	Asks     int           // asks that run at a time; 8
	MaxBytes int64         // what all last answers and their sources together may hold; 256 MiB
	// MaxSending is what messages may hold that are on their way to subscribers
	// and that others do not need any more; 256 MiB. Beyond it the slowest are
	// cut, see Request.Cut.
	MaxSending int64
	// Memory is what messages on their way reserve their bytes from; nil is no
	// bound.
	Memory *memory.Pool
	Log    *slog.Logger // slog.Default
}

// DefaultMaxBytes is the default of Config.MaxBytes and of MaxSending.
const DefaultMaxBytes = 256 << 20

func (c *Config) setDefaults() {
	SetDefault(&c.Interval, time.Second)
	SetDefault(&c.Quick, 200*time.Millisecond)
	SetDefault(&c.Linger, 15*time.Second)
	SetDefault(&c.Queries, 1000)
	SetDefault(&c.Asks, 8)
	SetDefault(&c.MaxBytes, DefaultMaxBytes)
	SetDefault(&c.MaxSending, DefaultMaxBytes)
	if c.Log == nil {
		c.Log = slog.Default()
	}
}

// SetDefault sets a setting that is zero or negative to its default.
func SetDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Source answers one live query again and again, each time by what has changed
// if it can. It is for one goroutine; Close comes after the last Next.
type Source interface {
	// Next answers the query with its end at now, which never goes back. The
	// first answer, and the first after an error, must keep no sub-query. Errors
	// are as those of Config.Ask.
	Next(ctx context.Context, now time.Time) (Answer, error)
	// Changed gets a value when Next may have news; nil if nobody can tell.
	Changed() <-chan struct{}
	Close()
}

// asker is the source of queries that are asked whole.
type asker struct {
	cfg   *Config
	query json.RawMessage
}

func (a asker) Next(ctx context.Context, now time.Time) (Answer, error) {
	return a.cfg.Ask(ctx, a.query, now)
}
func (asker) Changed() <-chan struct{} { return nil }
func (asker) Close()                   {}

func (h *Hub) source(q query) Source {
	if h.cfg.OpenSource != nil && q.live {
		return h.cfg.OpenSource(q.body)
	}
	return asker{&h.cfg, q.body}
}

// Error is a refusal as a client gets it. While a query is live, a temporary
// error leaves the subscription open and the query is asked again.
type Error struct {
	Code      int // as the HTTP status of the same refusal
	Message   string
	Temporary bool
}

func (e *Error) Error() string { return fmt.Sprintf("live: %d %s", e.Code, e.Message) }

// Hub holds one evaluator for each distinct query.
type Hub struct {
	cfg      Config
	instance string // makes epochs of this process unlike those of any other
	slots    chan struct{}
	asks     atomic.Int64
	merged   atomic.Int64
	work     sync.WaitGroup

	messages *memory.Account // of messages, see Update.lend
	// total may be locked while any other lock is held.
	total struct {
		sync.Mutex
		held Held
	}

	mu struct {
		sync.Mutex
		closed     bool
		made       int // evaluators, ever
		evaluators map[string]*evaluator
	}
}

// New returns a hub. Close ends it.
func New(cfg Config) *Hub {
	cfg.setDefaults()
	h := &Hub{cfg: cfg, messages: cfg.Memory.Open(memory.Live), instance: strconv.FormatUint(rand.Uint64(), 36), slots: make(chan struct{}, cfg.Asks)}
	h.mu.evaluators = map[string]*evaluator{}
	return h
}

// Resume names the last message that a client had of an earlier subscription to
// the same query.
type Resume struct {
	Epoch string `json:"epoch"`
	Seq   uint64 `json:"seq"`
}

// Request is what a subscriber wants.
type Request struct {
	Query  json.RawMessage // a body of POST /api/query
	Millis bool            // times in ms even without msResolution
	Resume *Resume         // nil for a fresh start
	// Cut gives up the message that is on its way, and with it the subscriber. It
	// is called from any goroutine, under locks, and must not block; nil if that
	// cannot be.
	Cut func()
}

// Subscribe joins the evaluator of the query, or starts one. wake is called,
// from any goroutine and possibly under locks, when Next may have something; it
// must not block. The error is an *Error.
func (h *Hub) Subscribe(r Request, wake func()) (*Subscription, error) {
	q, err := readQuery(r)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e, err := h.evaluatorLocked(q)
	if err != nil {
		return nil, err
	}
	return e.join(r, wake), nil
}

func (h *Hub) evaluatorLocked(q query) (*evaluator, error) {
	if h.mu.closed {
		return nil, &Error{Code: 503, Message: "The server is stopping"}
	}
	if e := h.mu.evaluators[q.key]; e != nil {
		return e, nil
	}
	if len(h.mu.evaluators) >= h.cfg.Queries {
		return nil, &Error{Code: 429, Message: fmt.Sprintf("Too many different live queries: %d are running, the most allowed", h.cfg.Queries)}
	}
	h.mu.made++
	e := newEvaluator(h, q, h.instance+"-"+strconv.Itoa(h.mu.made))
	h.mu.evaluators[q.key] = e
	return e, nil
}

// removeLocked lets nobody join an evaluator any more. REQUIRES: h.mu is held.
func (h *Hub) removeLocked(e *evaluator) {
	if h.mu.evaluators[e.query.key] == e {
		delete(h.mu.evaluators, e.query.key)
	}
}

// forgetLocked drops an evaluator. REQUIRES: h.mu and e.mu are held.
func (h *Hub) forgetLocked(e *evaluator) {
	h.removeLocked(e)
	h.release(e)
}

// Close ends all evaluators and waits for their asks to return.
func (h *Hub) Close() {
	h.mu.Lock()
	h.mu.closed = true
	for _, e := range h.mu.evaluators {
		e.mu.Lock()
		e.stopLocked()
		h.forgetLocked(e)
		e.mu.Unlock()
	}
	h.mu.Unlock()
	h.work.Wait()
	h.messages.Close()
}

// Stats counts what a hub does.
type Stats struct {
	Queries     int // evaluators, lingering ones included
	Subscribers int
	Asks        int64 // since the start
	Merged      int64 // updates that stood for several ticks, or for a lost history
	Bytes       int64 // held, see Held
}

// Stats returns the counts of now.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := Stats{Queries: len(h.mu.evaluators), Asks: h.asks.Load(), Merged: h.merged.Load(), Bytes: h.Held().Total()}
	for _, e := range h.mu.evaluators {
		e.mu.Lock()
		st.Subscribers += len(e.mu.subs)
		e.mu.Unlock()
	}
	return st
}

// ask runs one ask within the limit of concurrent ones. A panic of Ask ends the
// query, not the process.
func (h *Hub) ask(ctx context.Context, q query, from Source) (a Answer, err error) {
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	defer func() {
		<-h.slots
		if p := recover(); p != nil {
			h.cfg.Log.Error("live: a query panicked", "panic", p, "query", string(q.body), "stack", string(debug.Stack()))
			err = &Error{Code: 500, Message: "Internal error"}
		}
	}()
	h.asks.Add(1)
	return from.Next(ctx, time.Now())
}

// enter makes the context of an ask and of what is done with its answer.
func (h *Hub) enter(ctx context.Context) (_ context.Context, leave func()) {
	if h.cfg.Enter == nil {
		return ctx, func() {}
	}
	return h.cfg.Enter(ctx)
}
