package write

import "context"

// RequestBatch gathers the points of one request. Many points get separate batches,
// which are written concurrently with those of other requests and of the shards: no
// request waits for another, and a store can let them share a log write. Few points go
// to the shards. A RequestBatch is for one goroutine.
type RequestBatch struct {
	w    *Writer
	own  bool   // whether it has separate batches
	open *Batch // takes points; nil while it would be empty
	last *Batch // the one sent last
}

// UsualRequestBatchFrom is a good value of Config.RequestBatchFrom. Requests of
// fewer points are better off in one shard: with 16 senders of 300 points a
// request, a shard takes 1.1 times as many points a second as request batches do.
// With 2 or 4 senders of 1,000 points a request, request batches take 1.1 to 1.2
// times as many as a shard, with 16 senders the same.
const UsualRequestBatchFrom = 512

// RequestBatch begins a request of about so many points.
func (w *Writer) RequestBatch(points int) *RequestBatch {
	return &RequestBatch{w: w, own: w.cfg.RequestBatchFrom > 0 && points >= w.cfg.RequestBatchFrom}
}

// AddTo adds a point of a resolved series, as Writer.AddTo does, to a batch of the
// request if it has its own. The point is written after Send, or earlier.
func (b *RequestBatch) AddTo(ctx context.Context, s *SeriesKey, p *Point) (*Batch, error) {
	if !b.own {
		return b.w.AddTo(ctx, s, p)
	}

	var entryBuf [12]byte // as in Writer.AddTo
	entry, base, err := p.appendEntry(entryBuf[:0])
	if err != nil {
		return nil, err
	}
	return b.addToOwn(ctx, s, base, addition{entry: entry})
}

// addToOwn adds a point or a histogram to the request's own batch.
func (b *RequestBatch) addToOwn(ctx context.Context, s *SeriesKey, base uint32, what addition) (_ *Batch, err error) {
	// A batch takes no series that was resolved before a name changed. Resolving it again may wait
	// for a change of names, which itself waits for open batches: so ours is sent first. The next
	// one may again be newer than the series.
	for {
		if b.open == nil {
			if err := b.openBatch(ctx); err != nil {
				return nil, err
			}
		}
		if b.open.accepts(s) {
			break
		}
		if s, err = b.w.series.resolveAgain(ctx, s, b.Send); err != nil {
			return nil, err
		}
	}

	batch := b.open
	if batch.bytes += batch.rows.add(&b.w.cfg.Schema, s, base, what); batch.bytes >= b.w.cfg.WindowBytes {
		b.Send()
	}
	return batch, nil
}

// openBatch opens a batch. It first waits for the one before: so points of one time
// are written in their order, and a request holds the memory of one batch however
// many points it has.
func (b *RequestBatch) openBatch(ctx context.Context) error {
	if b.last != nil {
		select {
		case <-b.last.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	b.open = b.w.newBatch(0) // no commit window: its size or Send ends it
	return nil
}

// Send starts writing the added points. The batches report when they are durable.
func (b *RequestBatch) Send() {
	if b.open == nil {
		return
	}
	b.w.commitInBackground(b.open)
	b.last, b.open = b.open, nil
}
