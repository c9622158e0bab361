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
	free   chan *rows // empty ones, of earlier batches: one for each shard, and one for each CPU for requests

	wg  sync.WaitGroup  // of goroutines that write
	ctx context.Context // of all writes
	end context.CancelFunc

	mu      sync.Mutex
	closing bool            // batches of requests are refused
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
		sh := &shard{
			opened:     make(chan struct{}, 1),
			endWindow:  make(chan struct{}, 1),
			batchTaken: make(chan struct{}),
		}
		out.shards = append(out.shards, sh)
		out.wg.Add(1)
		go out.run(sh)
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
	return w.addToShard(ctx, s, base, rowItem{entry: entry})
}

// addToShard adds an item to the open batch of its row's shard, in which the points of a row keep their
// order. It resolves the series again if the batch does not accept it, and waits while the shard is full.
func (w *Writer) addToShard(ctx context.Context, s *SeriesKey, base uint32, item rowItem) (*Batch, error) {
	for {
		sh := w.shards[0]
		if len(w.shards) > 1 { // else a division for each point
			sh = w.shards[s.rowHash(base)%uint64(len(w.shards))]
		}
		batch, err := w.addToOpenBatch(ctx, sh, s, base, item)
		if err != errOldNames {
			return batch, err
		}
		// Nothing has to be done before a wait for a name that is being changed: the change waits for
		// open batches, and the shard writes its own without us.
		if s, err = w.series.resolveAgain(ctx, s, func() {}); err != nil {
			return nil, err
		}
	}
}

// addToOpenBatch adds an item to the shard's open batch, and opens one if there is none. While the batch is
// full it waits for the next. It returns errOldNames if the batch does not accept the series.
func (w *Writer) addToOpenBatch(ctx context.Context, sh *shard, s *SeriesKey, base uint32,
	item rowItem) (*Batch, error) {
	for {
		sh.mu.Lock()
		if sh.closing {
			sh.mu.Unlock()
			return nil, ErrClosing
		}
		if sh.open == nil {
			w.openBatch(sh)
		}

		if b := sh.open; b.bytes < w.cfg.WindowBytes {
			if !b.accepts(s) {
				sh.mu.Unlock()
				return nil, errOldNames
			}
			b.bytes += b.rows.add(&w.cfg.Schema, s, base, item)
			if b.bytes >= w.cfg.WindowBytes {
				signal(sh.endWindow)
			}
			sh.mu.Unlock()
			return b, nil
		}

		// The batch is full, and its commit window has ended: the shard's goroutine takes it.
		taken := sh.batchTaken
		sh.mu.Unlock()
		select {
		case <-taken:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// commit writes a batch into the store and finishes it with the outcome. The memory of a
// batch that failed is not used again: a call that timed out may still read it.
func (w *Writer) commit(b *Batch) {
	r := b.rows // before finish, which sets it to nil
	if !w.beginWrite(b) {
		b.finish(errAbandoned)
		return
	}

	err := w.apply(r) //fault:ack-before-write TestWriter_acknowledgedAfterwards
	if !w.endWrite(b) {
		return // Abandon has finished the batch
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

// beginWrite records that a batch is being written, unless the writer is abandoned: then the
// batch must not be.
func (w *Writer) beginWrite(b *Batch) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing == nil {
		return false
	}
	w.writing[b] = true
	return true
}

// endWrite records that the store has answered. ok is false if the writer was abandoned before: then
// the batch has its outcome already.
func (w *Writer) endWrite(b *Batch) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ok = w.writing[b] // false in the nil map of an abandoned writer
	delete(w.writing, b)
	return ok
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

// commitInBackground commits a request's batch in a goroutine of its own. Once the writer is closing
// it fails the batch with ErrClosing.
func (w *Writer) commitInBackground(b *Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		b.finish(ErrClosing)
		return
	}
	// Close needs the lock before it waits for wg, so it waits for this goroutine, too.
	w.wg.Go(func() { w.commit(b) })
}

// apply makes cells of rows, writes them into the store, and calls the observer once they are stored.
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

// stopAccepting refuses new points, and has the shards write their open batches without further delay
// and then end.
func (w *Writer) stopAccepting() {
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()

	for _, sh := range w.shards {
		sh.mu.Lock()
		sh.closing = true
		sh.mu.Unlock()
		// A goroutine without a batch waits for the first, one whose batch gathers points for the second.
		signal(sh.opened)
		signal(sh.endWindow)
	}
}

// Abandon ends the wait for a store that does not answer: it fails all points that
// are not known to be stored, and new ones. It returns the number of points that
// were in a batch.
func (w *Writer) Abandon() (points int) {
	w.stopAccepting()

	// From here on commit leaves the batches that the store has not answered to this function.
	w.mu.Lock()
	unanswered := w.writing
	w.writing = nil
	w.mu.Unlock()
	w.end()

	for b := range unanswered {
		points += b.rows.points()
		b.finish(errAbandoned) //fault:abandoned-points-acknowledged TestWriter_abandon
	}
	for _, sh := range w.shards {
		if b, _ := sh.takeBatch(); b != nil {
			points += b.rows.points()
			b.finish(errAbandoned)
		}
	}
	return points
}
