package meta

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"downpour/encoding"
)

// TrackerConfig says what a tracker records and how.
type TrackerConfig struct {
	Config
	Flags Flags
	// Every is how long counts are collected. Default 5 s.
	Every time.Duration
	// Timeout bounds one recording. Default 30 s.
	Timeout time.Duration
	// Pending bounds the series and UIDs that wait. Default 262,144 each.
	Pending int
	// Bytes bounds the memory of the series that wait, and that of those which
	// are known to be recorded. Default 32 MiB each.
	Bytes int
	// Log gets failures. Default slog.Default().
	Log *slog.Logger
}

func (c TrackerConfig) withDefaults() TrackerConfig {
	c.Config = c.Config.withDefaults()
	if c.Every <= 0 {
		c.Every = 5 * time.Second
	}
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
	}
	if c.Pending <= 0 {
		c.Pending = 1 << 18
	}
	if c.Bytes <= 0 {
		c.Bytes = 32 << 20
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// Tracker records what puts store: which series there are and how many points
// they got, and which UIDs were given. It collects and writes later, so that no
// put waits for it or fails by it. What is collected when the process dies is
// lost: a count is then too low, and a series is recorded with its next point.
// Its methods may be called from many goroutines. Source: TSDB.storeIntoDB,
// TSMeta.incrementAndGetCounter, UniqueId.UniqueIdAllocator.
type Tracker struct {
	cfg   TrackerConfig
	known *known

	mu      sync.Mutex
	pending *collected
	closed  bool
	dropped int64

	life context.Context // of writes
	end  context.CancelFunc

	turn chan struct{} // holds one token: whoever writes takes it
	wake chan struct{}
	stop chan struct{}
	done sync.WaitGroup
}

// collected waits to be written.
type collected struct {
	index  map[string]int // TSUID to series
	series []seen
	bytes  int // of the series
	uids   []givenUID
}

// seenBytes is what a series takes beside its TSUID, about.
const seenBytes = 128

// seen is a series and what it got since the last writing.
type seen struct {
	tsuid  string
	points int64
	// again tells that an earlier attempt failed, and how far it came is not
	// known.
	again bool
}

type givenUID struct {
	kind    encoding.UIDKind
	uid     encoding.UID
	created int64 // seconds
}

func newCollected() *collected { return &collected{index: map[string]int{}} }

// NewTracker starts a tracker. Close it to write what is left.
func NewTracker(cfg TrackerConfig) *Tracker {
	t := &Tracker{cfg: cfg.withDefaults(), pending: newCollected(), turn: make(chan struct{}, 1), wake: make(chan struct{}, 1), stop: make(chan struct{})}
	t.life, t.end = context.WithCancel(context.Background())
	t.known = newKnown(t.cfg.Bytes)
	t.turn <- struct{}{}
	t.done.Go(t.run)
	return t
}

// Stored counts points of a row of the data table. It implements put.Observer.
func (t *Tracker) Stored(key []byte, points int) {
	if !t.cfg.Flags.Tracking {
		return
	}
	var buf [96]byte
	tsuid := t.cfg.Schema.AppendTSUID(buf[:0], key)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if i, ok := t.pending.index[string(tsuid)]; ok {
		t.pending.series[i].points += int64(points)
		return
	}
	t.add(seen{tsuid: string(tsuid), points: int64(points)})
}

// add lets a series wait; the lock is held.
func (t *Tracker) add(s seen) {
	n, bytes := len(t.pending.series), t.pending.bytes+seenBytes+len(s.tsuid)
	if n >= t.cfg.Pending || bytes > t.cfg.Bytes {
		t.dropped++
		return
	}
	t.pending.index[s.tsuid] = n
	t.pending.series = append(t.pending.series, s)
	if n == t.cfg.Pending/2 || t.pending.bytes <= t.cfg.Bytes/2 && bytes > t.cfg.Bytes/2 {
		t.hurry()
	}
	t.pending.bytes = bytes
}

// hurry writes before the interval is over.
func (t *Tracker) hurry() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Assigned notes a UID that was given. It fits uid.Config.Assigned.
func (t *Tracker) Assigned(kind encoding.UIDKind, _ string, u encoding.UID) {
	if !t.cfg.Flags.RealtimeUID {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch n := len(t.pending.uids); {
	case t.closed:
	case n >= t.cfg.Pending:
		t.dropped++
	default:
		t.pending.uids = append(t.pending.uids, givenUID{kind, append(encoding.UID{}, u...), t.cfg.Now().Unix()})
		if n == t.cfg.Pending/2 {
			t.hurry()
		}
	}
}

func (t *Tracker) run() {
	ticker := time.NewTicker(t.cfg.Every)
	defer ticker.Stop()
	failed := false
	for {
		select {
		case <-t.stop:
			return
		case <-t.wake:
		case <-ticker.C:
		}
		err := t.Flush(context.Background())
		if err != nil && !failed {
			t.cfg.Log.Warn("series and UIDs are not recorded in the meta data", "err", err)
		}
		failed = err != nil
	}
}

// Flush writes what was collected before the call, and waits for a writing that
// has begun. What could not be written waits on.
func (t *Tracker) Flush(ctx context.Context) error {
	select {
	case <-t.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { t.turn <- struct{}{} }()
	t.mu.Lock()
	work, dropped := t.pending, t.dropped
	empty := len(work.series)+len(work.uids) == 0 // then it stays the one that fills
	if !empty {
		t.pending = newCollected()
	}
	t.dropped = 0
	t.mu.Unlock()
	if dropped > 0 {
		t.cfg.Log.Warn("more series at once than are recorded in the meta data; they come with their next point", "dropped", dropped)
	}
	if empty {
		return nil
	}
	// Whoever asked may leave; the work goes on for all.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.cfg.Timeout)
	defer cancel()
	defer context.AfterFunc(t.life, cancel)()
	rest, err := t.write(ctx, work)
	t.back(rest)
	return err
}

// back lets work that failed wait again.
func (t *Tracker) back(rest *collected) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range rest.series {
		s.again = true
		if i, ok := t.pending.index[s.tsuid]; ok {
			t.pending.series[i].points += s.points
			t.pending.series[i].again = true
			continue
		}
		t.add(s)
	}
	room := max(0, t.cfg.Pending-len(t.pending.uids))
	t.pending.uids = append(t.pending.uids, rest.uids[:min(room, len(rest.uids))]...)
}

// Close writes what is left and ends the tracker; what comes later is not
// recorded.
func (t *Tracker) Close() error {
	t.mu.Lock()
	first := !t.closed
	t.closed = true
	t.mu.Unlock()
	if !first {
		return nil
	}
	close(t.stop)
	t.done.Wait()
	return t.Flush(t.life)
}

// Abandon ends the wait for a store that does not answer, and that of Close.
func (t *Tracker) Abandon() { t.end() }
