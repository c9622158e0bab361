package write

import "context"

// RequestBatch is the points of one request. Where they are many they have batches of
// their own, which are written side by side with those of other requests and of
// the lanes: none waits for another's, and the store lets them share a log
// write. A bundle belongs to one goroutine.
type RequestBatch struct {
	w    *Writer
	own  bool   // batches of its own
	open *Batch // takes points
	last *Batch // sent before
}

// RequestBatchUsual is a usual Config.BundleFrom. Requests of fewer points are better
// off in one lane: from 16 senders, 300 points a request, a lane takes 1.1 times
// as many as bundles do; from 2 or 4 senders, 1,000 a request, bundles take 1.1 to
// 1.2 times as many as a lane, from 16 the same.
const RequestBatchUsual = 512

// RequestBatch begins a bundle of about so many points.
func (w *Writer) RequestBatch(points int) *RequestBatch {
	return &RequestBatch{w: w, own: w.cfg.BundleFrom > 0 && points >= w.cfg.BundleFrom}
}

// Resolve is Series.Resolve. While it waits for a name, none waits for the
// bundle: what was added is written then.
func (b *RequestBatch) Resolve(ctx context.Context, metric string, tags []Tag) (*SeriesKey, error) {
	return b.w.series.find(ctx, metric, tags, b.Send)
}

// AddTo is Writer.AddTo. The point is written after Send, if not earlier.
func (b *RequestBatch) AddTo(ctx context.Context, s *SeriesKey, p *Point) (*Batch, error) {
	if !b.own {
		return b.w.AddTo(ctx, s, p)
	}
	var entryBuf [12]byte
	entry, base, err := p.appendEntry(entryBuf[:0])
	if err != nil {
		return nil, err
	}
	for {
		if b.open == nil {
			if err := b.begin(ctx); err != nil {
				return nil, err
			}
		}
		if b.open.takes(s) {
			break
		}
		if s, err = b.w.series.again(ctx, s, b.Send); err != nil {
			return nil, err
		}
	}
	batch := b.open
	if batch.bytes += batch.rows.add(&b.w.cfg.Schema, s, base, entry); batch.bytes >= b.w.cfg.WindowBytes {
		b.Send()
	}
	return batch, nil
}

// begin opens a batch once the one before is written: points of a time keep
// their order, and a bundle holds one batch's memory however many points it has.
func (b *RequestBatch) begin(ctx context.Context) error {
	if b.last != nil {
		select {
		case <-b.last.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	b.open = b.w.newBatch(0)
	return nil
}

// Send has what was added written. The batches tell when it is durable.
func (b *RequestBatch) Send() {
	if b.open == nil {
		return
	}
	b.w.start(b.open)
	b.last, b.open = b.open, nil
}
