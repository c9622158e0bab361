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

// Question is a subscriber's query: the body of a request over HTTP.
type Question struct {
	Exp  bool            // of POST /api/query/exp, otherwise of POST /api/query
	Body json.RawMessage // as the client wrote it
}

// Config is how live queries are answered. Zero values mean the defaults.
type Config struct {
	// Ask runs a query in full. If it names no end, the end is now. Errors other than
	// *Error count as temporary. Ask is called from many goroutines and must return
	// when ctx ends.
	Ask func(ctx context.Context, q Question, now time.Time) (Answer, error)

	// OpenSource returns the source of a live query's answers. If it is nil, each
	// live query is answered by Ask. A query with an end always is.
	OpenSource func(q Question) Source

	// Ignored, if set, returns what a query has that means nothing, for its snapshots.
	Ignored func(q Question) []string

	// Enter, if set, returns the context of each run, which carries its memory account. leave
	// releases that memory; it is called after the answer is applied.
	Enter func(context.Context) (_ context.Context, leave func())

	Interval time.Duration // between the starts of two runs of one query; 1 s
	Quick    time.Duration // the same, if the source has news; 200 ms
	Linger   time.Duration // how long an evaluator without subscribers is kept for resume; 15 s
	Queries  int           // distinct queries at a time; 1,000
	Asks     int           // concurrent runs; 8
	MaxBytes int64         // bound of all last answers and their sources together; 256 MiB

	// MaxSending bounds the messages that are on their way to subscribers and that no
	// others need; 256 MiB. Beyond it the slowest subscribers are cut off, see
	// Request.Cut.
	MaxSending int64

	// Memory is the pool that messages reserve their bytes from. Nil is no bound.
	Memory *memory.Pool

	Log *slog.Logger // slog.Default()
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
func SetDefault[T int | int64 | time.Duration](setting *T, value T) {
	if *setting <= 0 {
		*setting = value
	}
}

// Source answers one live query again and again, each time by what has changed
// where it can. It is for one goroutine.
type Source interface {
	// Next answers the query with its end at now, which never goes back. The first
	// answer, and the first after an error, must be complete: its Kept is nil.
	// Errors are as those of Config.Ask.
	Next(ctx context.Context, now time.Time) (Answer, error)

	// Changed returns a channel that gets a value when Next may have news. It is nil if the source
	// cannot know.
	Changed() <-chan struct{}

	// Close frees the source. It is called once, after the last Next.
	Close()
}

// fullSource is the source of a query that is run in full each time.
type fullSource struct {
	cfg      *Config
	question Question
}

func (s fullSource) Next(ctx context.Context, now time.Time) (Answer, error) {
	return s.cfg.Ask(ctx, s.question, now)
}
func (fullSource) Changed() <-chan struct{} { return nil }
func (fullSource) Close()                   {}

// openSource opens the source of a query.
func (h *Hub) openSource(q query) Source {
	if h.cfg.OpenSource != nil && q.live {
		return h.cfg.OpenSource(q.question)
	}
	return fullSource{&h.cfg, q.question}
}

// Hub holds one evaluator for each distinct query. Its methods may be called from
// any goroutine.
type Hub struct {
	cfg      Config
	instance string        // random: makes the epochs of this process unlike others'
	slots    chan struct{} // one for each concurrent run
	asks     atomic.Int64  // runs of queries since the start
	merged   atomic.Int64  // updates that stand for several ticks or a lost history, since the start
	work     sync.WaitGroup

	messages *memory.Account // of the memory of encoded messages

	// total may be locked while any other lock is held.
	total struct {
		sync.Mutex
		held Held
	}

	mu struct {
		sync.Mutex
		closed     bool
		made       int // evaluators made since the start
		evaluators map[string]*evaluator
	}
}

// New returns a hub. Close ends it.
func New(cfg Config) *Hub {
	cfg.setDefaults()
	h := &Hub{
		cfg:      cfg,
		messages: cfg.Memory.Open(memory.Live),
		instance: strconv.FormatUint(rand.Uint64(), 36),
		slots:    make(chan struct{}, cfg.Asks),
	}
	h.mu.evaluators = map[string]*evaluator{}
	return h
}

// Resume names the last message that a client got from an earlier subscription to
// the same query.
type Resume struct {
	Epoch string `json:"epoch"`
	Seq   uint64 `json:"seq"`
}

// Request is what a subscriber wants.
type Request struct {
	Query  json.RawMessage // the body of a POST /api/query
	Exp    bool            // Query is the body of a POST /api/query/exp instead
	Millis bool            // times in ms even without msResolution
	Resume *Resume         // nil for a fresh start

	// Cut drops the message that is on its way, and the subscriber with it. It is
	// called from any goroutine, under locks, and must not block. If it is nil the
	// subscriber is never cut off.
	Cut func()
}

// Subscribe joins the evaluator of the query, or starts one. wake is called when
// Subscription.Next may have something: from any goroutine, perhaps under locks, so
// it must not block. The error is an *Error.
func (h *Hub) Subscribe(r Request, wake func()) (*Subscription, error) {
	q, err := readQuery(r)
	if err != nil {
		return nil, err
	}
	if h.cfg.Ignored != nil {
		q.ignored = h.cfg.Ignored(q.question)
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	e, err := h.evaluatorLocked(q)
	if err != nil {
		return nil, err
	}
	return e.join(r, wake), nil
}

// evaluatorLocked returns the evaluator of a query, a new one if there is none.
// REQUIRES: h.mu is held.
func (h *Hub) evaluatorLocked(q query) (*evaluator, error) {
	if h.mu.closed {
		return nil, &Error{Code: 503, Message: "The server is stopping"}
	}
	if e := h.mu.evaluators[q.key]; e != nil {
		return e, nil
	}
	if len(h.mu.evaluators) >= h.cfg.Queries {
		return nil, &Error{
			Code:    429,
			Message: fmt.Sprintf("Too many different live queries: %d are running, the most allowed", h.cfg.Queries),
		}
	}

	h.mu.made++
	e := newEvaluator(h, q, h.instance+"-"+strconv.Itoa(h.mu.made))
	h.mu.evaluators[q.key] = e
	return e, nil
}

// removeLocked takes an evaluator out of the hub, so that it cannot be joined. REQUIRES: h.mu is
// held.
func (h *Hub) removeLocked(e *evaluator) {
	if h.mu.evaluators[e.query.key] == e {
		delete(h.mu.evaluators, e.query.key)
	}
}

// forgetLocked removes an evaluator and what it holds. REQUIRES: h.mu and e.mu are
// held.
func (h *Hub) forgetLocked(e *evaluator) {
	h.removeLocked(e)
	h.releaseHeld(e)
}

// Close ends all evaluators and waits for their runs to return.
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
	Queries     int   // evaluators now, those kept for resume included
	Subscribers int   // now
	Asks        int64 // since the start
	Merged      int64 // updates of several ticks, or for a lost history
	Bytes       int64 // held by all of them at their last ticks
}

// Stats returns the present counts.
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

// ask runs the query once it gets a slot. A panic of the source ends the query, not the
// process.
func (h *Hub) ask(ctx context.Context, q query, from Source) (a Answer, err error) {
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	defer func() {
		<-h.slots
		if p := recover(); p != nil {
			h.cfg.Log.Error("live: a query panicked", "panic", p, "query", string(q.question.Body), "stack",
				string(debug.Stack()))
			err = errInternal
		}
	}()

	h.asks.Add(1)
	return from.Next(ctx, time.Now())
}

// enter returns the context of a run, and of applying its answer.
func (h *Hub) enter(ctx context.Context) (_ context.Context, leave func()) {
	if h.cfg.Enter == nil {
		return ctx, func() {}
	}
	return h.cfg.Enter(ctx)
}
