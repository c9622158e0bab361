package meta

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"downpour/encoding"
)

// TrackerConfig says what a tracker records and how.
type TrackerConfig struct {
	Config
	Flags Flags
	// Every is how long counts are collected before they are written. Default 5 s.
	Every time.Duration
	// Timeout bounds one write of what is collected. Default 30 s; 10 minutes with Wait, as then puts slow down
	// to what the store takes.
	Timeout time.Duration
	// Bytes bounds the memory of the series and UIDs that are collected, and of the series that
	// are known to be recorded. Default DefaultBytes each.
	Bytes int
	// Wait makes Stored wait for room while earlier series are being written, so that none is missing. It is
	// for a store that takes the meta data wherever it takes points; else a slow table of meta data would
	// hold puts up. When a write has failed, Stored does not wait until one succeeds.
	Wait bool
	// Described gets the series that got a new TSMeta, after it is stored; nil if
	// nobody wants to know: then none is kept for it. It returns those that it has to get again.
	// OnDescribed sets it later.
	Described func(ctx context.Context, tsuids []string) (again []string, err error)
	// Log takes failures. Default slog.Default().
	Log *slog.Logger
}

// DefaultBytes are room for some 1.8 million series that are new at once: puts may bring them faster than
// they are recorded.
const DefaultBytes = 128 << 20

// withDefaults sets what is 0 or nil to the defaults that the fields name.
func (c TrackerConfig) withDefaults() TrackerConfig {
	c.Config = c.Config.withDefaults()
	if c.Every <= 0 {
		c.Every = 5 * time.Second
	}
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
		if c.Wait {
			c.Timeout = 10 * time.Minute
		}
	}
	if c.Bytes <= 0 {
		c.Bytes = DefaultBytes
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// Tracker records in the meta data what puts store: the series with their number of
// points, and the UIDs that were assigned. It collects these and writes them later, so
// that no put waits for it or fails because of it. What is not written yet is lost when
// the process dies: then the count of a series is too low, and a new series is recorded
// with its next point. Its methods may be called from several goroutines. Source:
// TSDB.storeIntoDB, TSMeta.incrementAndGetCounter, UniqueId.UniqueIdAllocator.
type Tracker struct {
	cfg TrackerConfig

	// What follows belongs to the holder of the turn.
	known     *known   // nil if points are counted
	described []string // series that Described has to get
	untold    int      // series that did not fit there

	mu      sync.Mutex
	pending *collected
	closed  bool
	dropped int64 // series and UIDs that did not fit since the last Flush
	failing bool  // the last write failed
	// emptied wakes those who wait for room.
	emptied *sync.Cond

	forget atomic.Bool // the next write has to forget known

	life context.Context // ends with Abandon, and with it all writes
	end  context.CancelFunc

	turn chan struct{} // holds one token, which Flush takes while it writes
	wake chan struct{} // asks run to write at once
	stop chan struct{} // ends run
	done sync.WaitGroup
}

// NewTracker starts a tracker. Close writes what is collected and ends it.
func NewTracker(cfg TrackerConfig) *Tracker {
	t := &Tracker{
		cfg:     cfg.withDefaults(),
		pending: &collected{},
		turn:    make(chan struct{}, 1),
		wake:    make(chan struct{}, 1),
		stop:    make(chan struct{}),
	}
	t.emptied = sync.NewCond(&t.mu)
	t.life, t.end = context.WithCancel(context.Background())
	t.forgetKnown()

	t.turn <- struct{}{} // the token: nobody writes yet
	t.done.Go(t.run)
	return t
}

// OnDescribed sets TrackerConfig.Described, for the series that get a TSMeta from now on.
func (t *Tracker) OnDescribed(f func(ctx context.Context, tsuids []string) (again []string, err error)) {
	<-t.turn
	t.cfg.Described = f
	t.turn <- struct{}{}
}

// Stored counts points of a row of the data table. It implements write.Observer.
func (t *Tracker) Stored(key []byte, points int) {
	if !t.cfg.Flags.Tracking {
		return
	}

	// Putting a series that is collected already allocates nothing.
	var buf [96]byte
	tsuid := t.cfg.Schema.AppendTSUID(buf[:0], key)

	t.mu.Lock()
	defer t.mu.Unlock()
	for !t.closed {
		if waits := t.pending.find(tsuid); waits != nil {
			waits.points += int64(points)
			return
		}
		s := seen{tsuid: string(tsuid), points: int64(points)}
		if !t.cfg.Wait || t.failing || t.pending.bytes == 0 || t.fits(s.bytes()) {
			t.add(s)
			return
		}
		t.hurry()
		t.emptied.Wait()
	}
}

// add collects a series that is not collected yet. The caller holds the lock.
func (t *Tracker) add(s seen) {
	if !t.room(s.bytes()) {
		return
	}
	t.pending.add(s)
}

// fits reports whether there is room. The caller holds the lock.
func (t *Tracker) fits(bytes int) bool { return t.pending.bytes+bytes <= t.cfg.Bytes }

// room takes memory for something to be collected. If there is none it counts that as dropped and
// returns false. The caller holds the lock.
func (t *Tracker) room(bytes int) bool {
	if !t.fits(bytes) {
		t.dropped++
		return false
	}
	before := t.pending.bytes
	t.pending.bytes += bytes
	// Half full: write before something has to be dropped.
	if before <= t.cfg.Bytes/2 && t.pending.bytes > t.cfg.Bytes/2 {
		t.hurry()
	}
	return true
}

// hurry makes run write before the interval is over.
func (t *Tracker) hurry() {
	select {
	case t.wake <- struct{}{}:
	default: // it is asked already
	}
}

// Assigned collects a UID that was assigned. It fits uid.Config.Assigned.
func (t *Tracker) Assigned(kind encoding.UIDKind, _ string, u encoding.UID) {
	if !t.cfg.Flags.RealtimeUID || t.cfg.MappingTimes {
		return
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	if !t.closed && t.room(givenBytes) { // nobody would write it after the last write
		t.pending.uids = append(t.pending.uids, givenUID{kind, append(encoding.UID{}, u...), t.cfg.Now().Unix()})
	}
}

// run writes what is collected, at each interval and when it is asked to. It logs the
// first of several failures in a row.
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

		err := t.Flush(context.Background()) // which bounds the write by itself
		if err != nil && !failed {
			t.cfg.Log.Warn("series and UIDs are not recorded in the meta data", "err", err)
		}
		failed = err != nil
	}
}

// Flush writes what was collected before the call. It waits for a write that has
// begun. What could not be written is collected again. If ctx ends first, Flush returns, and
// the write goes on, because it is the work of all puts. It ends with Abandon.
func (t *Tracker) Flush(ctx context.Context) error {
	select {
	case <-t.turn:
	case <-ctx.Done():
		return ctx.Err()
	}

	written := make(chan error, 1)
	go func() {
		err := t.flush(context.WithoutCancel(ctx))
		t.turn <- struct{}{}
		written <- err
	}()
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// flush is Flush of the holder of the turn.
func (t *Tracker) flush(ctx context.Context) error {
	t.mu.Lock()
	work, dropped := t.pending, t.dropped
	empty := len(work.series)+len(work.uids)+len(t.described) == 0 // then puts go on to fill it
	if !empty {
		t.pending = &collected{}
		t.emptied.Broadcast()
	}
	t.dropped = 0
	t.mu.Unlock()

	if dropped > 0 {
		t.cfg.Log.Warn("more series at once than are recorded in the meta data; they come with their next point",
			"dropped", dropped)
	}
	if empty {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
	defer cancel()
	defer context.AfterFunc(t.life, cancel)()

	rest, err := t.write(ctx, work)
	t.collectAgain(rest, err != nil)
	return err
}

// collectAgain adds what could not be written to what is collected. failed says whether the write failed.
func (t *Tracker) collectAgain(rest *collected, failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failing = failed

	for _, s := range rest.series {
		s.again = true
		if waits := t.pending.find([]byte(s.tsuid)); waits != nil {
			waits.points += s.points
			waits.again = true
			continue
		}
		t.add(s)
	}

	for _, u := range rest.uids {
		if t.room(givenBytes) {
			t.pending.uids = append(t.pending.uids, u)
		}
	}
}

// Close writes what is collected and ends the tracker. What is stored after it is not
// recorded.
func (t *Tracker) Close() error {
	t.mu.Lock()
	first := !t.closed
	t.closed = true
	t.emptied.Broadcast()
	t.mu.Unlock()
	if !first {
		return nil
	}

	// Nothing more is collected, so that one last write has all of it. Abandon ends it.
	close(t.stop)
	t.done.Wait()
	return t.Flush(context.WithoutCancel(t.life))
}

// Forget makes the tracker look again whether series have a TSMeta: somebody may have deleted
// some. A series gets a new one with its next point.
func (t *Tracker) Forget() { t.forget.Store(true) }

// Abandon ends the write that waits for a store, and so makes Close return.
func (t *Tracker) Abandon() { t.end() }
