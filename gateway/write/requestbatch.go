package write

import "context"

// RequestBatch gathers the points of one request. Many points get separate batches,
// which are written concurrently with those of other requests and of the shards: no
// request waits for another, and a store can let them share a log write. Few points go
// to the shards. A RequestBatch is for one goroutine.
type RequestBatch struct {
	w        *Writer
	separate bool   // it has batches of its own
	open     *Batch // takes points; nil while it would be empty
	lastSent *Batch // nil before the first
}

// UsualRequestBatchFrom is a good value of Config.RequestBatchFrom. Requests of
// fewer points are better off in one shard: with 16 senders of 300 points a
// request, a shard takes 1.1 times as many points a second as request batches do.
// With 2 or 4 senders of 1,000 points a request, request batches take 1.1 to 1.2
// times as many as a shard, with 16 senders the same.
const UsualRequestBatchFrom = 512

// RequestBatch begins a request of about so many points.
func (w *Writer) RequestBatch(points int) *RequestBatch {
	return &RequestBatch{w: w, separate: w.cfg.RequestBatchFrom > 0 && points >= w.cfg.RequestBatchFrom}
}

// AddTo adds a point of a resolved series as Writer.AddTo does: to a batch of the request, or, for a
// request of few points, to a shard's. The point is written after Send, or earlier.
func (b *RequestBatch) AddTo(ctx context.Context, s *SeriesKey, p *Point) (*Batch, error) {
	if !b.separate {
		return b.w.AddTo(ctx, s, p)
	}

	var entryBuf [12]byte // as in Writer.AddTo
	entry, base, err := p.appendEntry(entryBuf[:0])
	if err != nil {
		return nil, err
	}
	return b.addToSeparate(ctx, s, base, rowItem{entry: entry})
}

// addToSeparate adds an item to the request's open batch, and opens one if there is none. It sends a batch
// that has become full, and waits before it opens the next.
func (b *RequestBatch) addToSeparate(ctx context.Context, s *SeriesKey, base uint32,
	item rowItem) (_ *Batch, err error) {
	for {
		if b.open == nil {
			if err := b.waitAndOpen(ctx); err != nil {
				return nil, err
			}
		}
		if b.open.accepts(s) {
			break
		}
		// To resolve the series again may take a wait for a change of names, and the change waits for
		// open batches: so before such a wait Send is called. The names may change again before
		// the next batch is opened, so this is a loop.
		if s, err = b.w.series.resolveAgain(ctx, s, b.Send); err != nil {
			return nil, err
		}
	}

	batch := b.open
	if batch.bytes += batch.rows.add(&b.w.cfg.Schema, s, base, item); batch.bytes >= b.w.cfg.WindowBytes {
		b.Send()
	}
	return batch, nil
}

// waitAndOpen opens a batch once the one before is written: so points of one time
// are written in their order, and a request holds the memory of one batch however
// many points it has. It fails only if ctx ends.
func (b *RequestBatch) waitAndOpen(ctx context.Context) error {
	if b.lastSent != nil {
		select {
		case <-b.lastSent.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	b.open = b.w.newBatch(0) // no commit window: its size or Send ends it
	return nil
}

// Send starts writing the added points that are not yet being written. It does not wait: the batch of each
// point has the outcome.
func (b *RequestBatch) Send() {
	if b.open == nil {
		return
	}
	b.w.commitInBackground(b.open)
	b.lastSent, b.open = b.open, nil
}
