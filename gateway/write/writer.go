package write

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Config is how points are written.
type Config struct {
	Schema encoding.Schema
	Table  string // the data table
	Form   Form
	// Window is the commit window: the longest time for which a batch gathers
	// points. It ends early once the batch has WindowBytes, or when somebody waits
	// for the batch, unless the form is MultiPoint. Defaults 10 ms and 1 MiB.
	Window      time.Duration
	WindowBytes int
	// Shards write at the same time; the rows of one shard are written in the order
	// of arrival. Default 1.
	Shards int
	// RequestBatchFrom is the number of points from which a request has separate batches; 0 is
	// never. It is for stores whose concurrent writes share a log write.
	RequestBatchFrom int
	// Allowed are characters that names may have in addition to OpenTSDB's.
	// Source: tsd.core.tag.allow_specialchars.
	Allowed []rune
	// Timeout bounds one write. Default 2 min: a region of HBase that is flushed, or
	// moves to another server, takes no writes for tens of seconds, and a client
	// that sends a refused point again only adds to the load.
	Timeout time.Duration
	// Observer, if set, is called for every row written.
	Observer Observer
	// Histograms is the codec of histograms.
	Histograms Codec
}

// Observer is called with stored rows, before they are acknowledged. It must not block, and must
// not keep the key.
type Observer interface {
	// Stored reports that so many points of a row are durable.
	Stored(key []byte, points int)
}

// withDefaults sets what is 0 to the defaults that the fields name.
func (c Config) withDefaults() Config {
	if c.Window == 0 {
		c.Window = 10 * time.Millisecond
	}
	if c.WindowBytes == 0 {
		c.WindowBytes = 1 << 20
	}
	if c.Shards == 0 {
		c.Shards = 1
	}
	if c.Timeout == 0 {
		c.Timeout = 2 * time.Minute
	}
	return c
}

// Writer collects points and writes them. All methods may be called from many
// goroutines. Add waits while a shard is full; nothing is ever dropped.
type Writer struct {
	cfg    Config
	store  store.Writer
	series *SeriesCache
	shards []*shard
	free   chan *rows // empty ones, of earlier batches: for each shard one, and for the batches of requests one for each CPU

	wg  sync.WaitGroup  // of goroutines that write
	ctx context.Context // of all writes
	end context.CancelFunc

	mu      sync.Mutex
	closing bool            // request batches are no longer written
	writing map[*Batch]bool // passed to the store, not answered; nil once abandoned
}

// New starts a writer. Close it to write the rest.
func New(cfg Config, w store.Writer, series *SeriesCache) *Writer {
	cfg = cfg.withDefaults()
	out := &Writer{
		cfg:     cfg,
		store:   w,
		series:  series,
		free:    make(chan *rows, cfg.Shards+runtime.GOMAXPROCS(0)),
		writing: map[*Batch]bool{},
	}
	out.ctx, out.end = context.WithCancel(context.Background())
	for range cfg.Shards {
		l := &shard{opened: make(chan struct{}, 1), full: make(chan struct{}, 1), taken: make(chan struct{})}
		out.shards = append(out.shards, l)
		out.wg.Add(1)
		go out.run(l)
	}
	return out
}

// Add validates a point, finds or assigns its UIDs and puts it into a batch. The
// point is durable when the batch is. Add waits while the shard is full. After an
// error the point is in no batch.
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

// Histograms returns the codec of histograms.
func (w *Writer) Histograms() Codec { return w.cfg.Histograms }

// Validate checks a point as Add does: everything except whether its names have
// UIDs.
func (w *Writer) Validate(p *Point) error { return p.Validate(w.cfg.Schema, w.cfg.Allowed...) }

// AddTo is Add for a series already resolved. It ignores the point's names and
// checks its time.
func (w *Writer) AddTo(ctx context.Context, s *SeriesKey, p *Point) (*Batch, error) {
	var entryBuf [12]byte // a qualifier has up to 4 bytes, a value 8; the batch copies them
	entry, base, err := p.appendEntry(entryBuf[:0])
	if err != nil {
		return nil, err
	}
	return w.addToShard(ctx, s, base, addition{entry: entry})
}

// addToShard adds a point or a histogram to the open batch of its row's shard.
func (w *Writer) addToShard(ctx context.Context, s *SeriesKey, base uint32, what addition) (*Batch, error) {
	for {
		l := w.shards[0]
		if len(w.shards) > 1 {
			// Points of one row go to one shard, which keeps their order.
			l = w.shards[s.rowHash(base)%uint64(len(w.shards))]
		}
		batch, err := w.addEntry(ctx, l, s, base, what)
		if err != errOldNames {
			return batch, err
		}
		// Nothing to send before a wait for names: a shard writes its open batch anyway.
		if s, err = w.series.resolveAgain(ctx, s, func() {}); err != nil {
			return nil, err
		}
	}
}

// addEntry adds to the shard's open batch and waits while that is full.
// It returns errOldNames if the batch does not accept the series.
func (w *Writer) addEntry(ctx context.Context, l *shard, s *SeriesKey, base uint32, what addition) (*Batch, error) {
	for {
		l.mu.Lock()
		if l.closing {
			l.mu.Unlock()
			return nil, ErrClosing
		}
		if l.open == nil {
			w.openBatch(l)
		}

		if b := l.open; b.bytes < w.cfg.WindowBytes {
			if !b.accepts(s) {
				l.mu.Unlock()
				return nil, errOldNames
			}
			b.bytes += b.rows.add(&w.cfg.Schema, s, base, what)
			if b.bytes >= w.cfg.WindowBytes {
				signal(l.full) // ends its commit window
			}
			l.mu.Unlock()
			return b, nil
		}

		// The batch is full: wait until the shard's goroutine takes it.
		taken := l.taken
		l.mu.Unlock()
		select {
		case <-taken:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// commit writes a batch and wakes those who wait for it. The memory of a batch that
// failed is not reused: a call that timed out may still read it.
func (w *Writer) commit(b *Batch) {
	r := b.rows // finish releases them
	if !w.beginWrite(b) {
		b.finish(errAbandoned)
		return
	}

	err := w.apply(r) //fault:ack-before-write TestWriter_acknowledgedAfterwards
	if !w.endWrite(b) {
		return // Abandon has finished it
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

// beginWrite records that a batch is being written. It returns false once the
// writer is abandoned.
func (w *Writer) beginWrite(b *Batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing == nil {
		return false
	}
	w.writing[b] = true
	return true
}

// endWrite records that the store has answered. It returns false if the batch was abandoned.
func (w *Writer) endWrite(b *Batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	mine := w.writing[b]
	delete(w.writing, b)
	return mine
}

// emptyRows returns an empty buffer, a recycled one if there is one.
func (w *Writer) emptyRows() *rows {
	select {
	case r := <-w.free:
		return r
	default:
		return newRows()
	}
}

// commitInBackground commits a request's batch in its own goroutine.
func (w *Writer) commitInBackground(b *Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		b.finish(ErrClosing)
		return
	}
	// Under the lock, so that Close waits for this goroutine, too.
	w.wg.Go(func() { w.commit(b) })
}

// apply writes rows into the store.
func (w *Writer) apply(r *rows) error {
	ctx, cancel := context.WithTimeout(w.ctx, w.cfg.Timeout)
	defer cancel()

	r.groupByRow()
	mutations, err := r.cells.build(r, w.cfg.Form)
	if err != nil {
		return fmt.Errorf("cannot make the cells of %d rows: %w", len(r.list), err)
	}
	if err := w.store.Apply(ctx, w.cfg.Table, mutations); err != nil {
		return err //fault:failed-write-acknowledged TestWriter_failure
	}
	w.observe(r)
	return nil
}

// observe calls the observer with the stored rows.
func (w *Writer) observe(r *rows) {
	if w.cfg.Observer == nil {
		return
	}
	for i := range r.list {
		w.cfg.Observer.Stored(r.list[i].key, r.list[i].points)
	}
}

// Close writes all accepted points and ends the writer. Later points are refused with ErrClosing.
func (w *Writer) Close() {
	w.stopAccepting()
	w.wg.Wait()
	w.end()
}

// stopAccepting refuses new points and ends all commit windows.
func (w *Writer) stopAccepting() {
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()

	for _, l := range w.shards {
		l.mu.Lock()
		l.closing = true
		l.mu.Unlock()
		// opened wakes a goroutine that has no batch, full one that gathers points.
		signal(l.opened)
		signal(l.full)
	}
}

// Abandon ends the wait for a store that does not answer: it fails all points that
// are not known to be stored, and new ones. It returns the number of points that
// were in a batch.
func (w *Writer) Abandon() (points int) {
	w.stopAccepting()

	// From here on a batch that the store answers for stays failed.
	w.mu.Lock()
	left := w.writing
	w.writing = nil
	w.mu.Unlock()
	w.end()

	for b := range left {
		points += b.rows.points()
		b.finish(errAbandoned) //fault:abandoned-points-acknowledged TestWriter_abandon
	}
	for _, l := range w.shards {
		if b, _ := l.takeBatch(); b != nil {
			points += b.rows.points()
			b.finish(errAbandoned)
		}
	}
	return points
}
