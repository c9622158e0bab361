package write

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Config says how points are written.
type Config struct {
	Schema encoding.Schema
	Table  string // the data table
	Form   Form
	// Window is the longest time a point waits for company; WindowBytes ends
	// the wait early, as does somebody who waits for the batch, unless the form
	// is Multi. Defaults 10 ms and 1 MiB.
	Window      time.Duration
	WindowBytes int
	// Lanes write side by side; the rows of a lane are written in the order
	// of arrival. Default 1.
	Lanes int
	// BundleFrom is from how many points on a bundle has batches of its own;
	// 0 is never. It is for stores whose writes share a log write when they
	// come side by side.
	BundleFrom int
	// Allowed are characters that names may have beside the usual ones.
	// Source: tsd.core.tag.allow_specialchars.
	Allowed []rune
	// Timeout bounds one write. Default 2 min: a region of HBase that flushes, or
	// goes to another server, takes no writes for tens of seconds, and who sends
	// a point again because it was refused only adds to that.
	Timeout time.Duration
	// Observer, if set, is told of every row written.
	Observer Observer
}

// Observer is told what was stored, before it is acknowledged. It must not
// block, and keeps nothing of the key.
type Observer interface {
	// Stored tells that so many points of a row are durable.
	Stored(key []byte, points int)
}

func (c Config) withDefaults() Config {
	if c.Window == 0 {
		c.Window = 10 * time.Millisecond
	}
	if c.WindowBytes == 0 {
		c.WindowBytes = 1 << 20
	}
	if c.Lanes == 0 {
		c.Lanes = 1
	}
	if c.Timeout == 0 {
		c.Timeout = 2 * time.Minute
	}
	return c
}

// IsStorage tells whether err is the store's fault, or the end of the writer, and
// not the point's: it may be sent again.
func IsStorage(err error) bool {
	var partial *store.ApplyError
	var names *storageError
	return errors.As(err, &names) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNoTable) ||
		errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrStalled) || errors.Is(err, store.ErrDamaged) ||
		errors.Is(err, store.ErrClosed) || errors.Is(err, ErrClosing) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &partial)
}

// storageError marks a fault of the UID table.
type storageError struct{ err error }

// Error is the fault's text.
func (e *storageError) Error() string { return e.err.Error() }

// Unwrap is the fault.
func (e *storageError) Unwrap() error { return e.err }

// ErrClosing is returned for points that come after Close.
var ErrClosing = errors.New("the writer is closing")

// errAbandoned ends the wait for a store that does not answer.
var errAbandoned = fmt.Errorf("%w, and the store has not answered: the points may be stored, or not", ErrClosing)

// Writer collects points and writes them. All methods may be called from many
// goroutines. A full lane makes Add wait; nothing is ever dropped.
type Writer struct {
	cfg    Config
	store  store.Writer
	series *Series
	lanes  []*shard
	free   chan *rows // of earlier batches, empty
	wg     sync.WaitGroup
	life   context.Context // of writes
	end    context.CancelFunc

	mu      sync.Mutex
	closing bool            // no bundle begins to be written any more
	writing map[*Batch]bool // handed to the store and not settled; nil once abandoned
}

// New starts a writer. Close it to write what is left.
func New(cfg Config, w store.Writer, series *Series) *Writer {
	cfg = cfg.withDefaults()
	out := &Writer{cfg: cfg, store: w, series: series, free: make(chan *rows, cfg.Lanes+runtime.GOMAXPROCS(0)), writing: map[*Batch]bool{}}
	out.life, out.end = context.WithCancel(context.Background())
	for range cfg.Lanes {
		l := &shard{opened: make(chan struct{}, 1), full: make(chan struct{}, 1), room: make(chan struct{})}
		out.lanes = append(out.lanes, l)
		out.wg.Add(1)
		go out.run(l)
	}
	return out
}

// Add validates a point, finds or assigns its UIDs and puts it into a batch.
// The point is durable when the batch is. Add waits while the lane is full; an
// error means that the point was not taken.
func (w *Writer) Add(ctx context.Context, p *Point) (*Batch, error) {
	if err := p.Validate(w.cfg.Schema, w.cfg.Allowed...); err != nil {
		return nil, err
	}
	s, err := w.series.Resolve(ctx, p.Metric, p.Tags)
	if err != nil {
		return nil, err
	}
	return w.AddTo(ctx, s, p)
}

// Validate checks a point's form and names as Add does.
func (w *Writer) Validate(p *Point) error { return p.Validate(w.cfg.Schema, w.cfg.Allowed...) }

// AddTo is Add for a series already resolved; it trusts the point's names and
// checks the rest.
func (w *Writer) AddTo(ctx context.Context, s *SeriesKey, p *Point) (*Batch, error) {
	var entryBuf [12]byte
	entry, base, err := p.appendEntry(entryBuf[:0])
	if err != nil {
		return nil, err
	}
	for {
		l := w.lanes[0]
		if len(w.lanes) > 1 {
			l = w.lanes[s.shard(base)%uint64(len(w.lanes))]
		}
		batch, err := w.addEntry(ctx, l, s, base, entry)
		if err != errOldNames {
			return batch, err
		}
		if s, err = w.series.again(ctx, s, func() {}); err != nil {
			return nil, err
		}
	}
}

// errOldNames tells that a name may have changed since a series was resolved.
var errOldNames = errors.New("put: names of an older generation")

func (w *Writer) addEntry(ctx context.Context, l *shard, s *SeriesKey, base uint32, entry []byte) (*Batch, error) {
	for {
		l.mu.Lock()
		if l.closing {
			l.mu.Unlock()
			return nil, ErrClosing
		}
		if l.open == nil {
			w.begin(l)
		}
		if b := l.open; b.bytes < w.cfg.WindowBytes {
			if !b.takes(s) {
				l.mu.Unlock()
				return nil, errOldNames
			}
			b.bytes += b.rows.add(&w.cfg.Schema, s, base, entry)
			if b.bytes >= w.cfg.WindowBytes {
				signal(l.full)
			}
			l.mu.Unlock()
			return b, nil
		}
		room := l.room
		l.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// commit writes a batch and tells who waits for it. The memory of one that
// failed is not used again: a call that timed out may still read it.
func (w *Writer) commit(b *Batch) {
	r := b.rows
	if !w.hand(b) {
		b.finish(errAbandoned)
		return
	}
	err := w.write(r)
	if !w.takeBack(b) {
		return // nobody waits for it any more
	}
	b.finish(err)
	if err != nil {
		return
	}
	r.reset()
	select {
	case w.free <- r:
	default:
	}
}

// hand notes that a batch goes to the store; false once the store is not waited
// for any more.
func (w *Writer) hand(b *Batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing == nil {
		return false
	}
	w.writing[b] = true
	return true
}

// takeBack notes that the store has answered; false if the batch is abandoned.
func (w *Writer) takeBack(b *Batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	mine := w.writing[b]
	delete(w.writing, b)
	return mine
}

// rows are empty ones.
func (w *Writer) rows() *rows {
	select {
	case r := <-w.free:
		return r
	default:
		return newRows()
	}
}

// start writes a batch of a bundle.
func (w *Writer) start(b *Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		b.finish(ErrClosing)
		return
	}
	w.wg.Go(func() { w.commit(b) })
}

func (w *Writer) write(r *rows) error {
	ctx, cancel := context.WithTimeout(w.life, w.cfg.Timeout)
	defer cancel()
	r.deal()
	mutations, err := r.cells.make(r, w.cfg.Form)
	if err != nil {
		return fmt.Errorf("put: a batch of %d rows: %w", len(r.list), err)
	}
	if err := w.store.Apply(ctx, w.cfg.Table, mutations); err != nil {
		return err
	}
	w.observe(r)
	return nil
}

func (w *Writer) observe(r *rows) {
	if w.cfg.Observer == nil {
		return
	}
	for i := range r.list {
		w.cfg.Observer.Stored(r.list[i].key, r.list[i].points)
	}
}

// Close writes what was accepted and ends the writer. Points that come later
// are refused.
func (w *Writer) Close() {
	w.close()
	w.wg.Wait()
	w.end()
}

func (w *Writer) close() {
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	for _, l := range w.lanes {
		l.mu.Lock()
		l.closing = true
		l.mu.Unlock()
		signal(l.opened)
		signal(l.full)
	}
}

// Abandon ends the wait for a store that does not answer: whoever waits for a
// point that is not stored yet is told so, and no other is taken. It returns how
// many points these are.
func (w *Writer) Abandon() (points int) {
	w.close()
	w.mu.Lock()
	left := w.writing
	w.writing = nil
	w.mu.Unlock()
	w.end()
	for b := range left {
		points += b.rows.points()
		b.finish(errAbandoned)
	}
	for _, l := range w.lanes {
		if b, _ := l.takeBatch(); b != nil {
			points += b.rows.points()
			b.finish(errAbandoned)
		}
	}
	return points
}
