package putroutes

import (
	"context"
	"errors"
	"iter"
	"sync"

	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/process/memory"
)

// pointList is the points of a put body: scanned if the scanner can read all of
// them, else decoded.
type pointList struct {
	body    []byte // of scanned points
	scanned []scannedPoint
	kept    *[]scannedPoint // memory of scanned, from scans
	decoded []dataPoint
}

// readPoints reads a body. A list that scanPoints has made refers to the body's bytes, which
// must not change; any other body is decoded. The caller frees the list.
func readPoints(ctx context.Context, body []byte) (*pointList, error) {
	body = trim(body)
	kept := scans.Get().(*[]scannedPoint)
	if scanned, ok := scanPoints(body, (*kept)[:0]); ok {
		*kept = scanned
		return &pointList{body: body, scanned: scanned, kept: kept}, nil
	}
	scans.Put(kept)

	if err := memory.Reserve(ctx, int64(len(body))*decodedBytes); err != nil {
		return nil, err
	}
	decoded, err := decodePoints[dataPoint](body)
	return &pointList{decoded: decoded}, err
}

// scans keeps the memory of scanned points.
var scans = sync.Pool{New: func() any { return new([]scannedPoint) }}

// mostScanned is how many points a list holds whose memory is kept for others.
const mostScanned = 16 << 10

// free gives the list's memory to others. Points of at are not part of it.
func (l *pointList) free() {
	if l.kept != nil && cap(l.scanned) <= mostScanned {
		scans.Put(l.kept)
	}
}

func (l *pointList) len() int { return len(l.scanned) + len(l.decoded) }

// at returns point i as the decoder gives it.
func (l *pointList) at(i int) *dataPoint {
	if l.decoded != nil {
		return &l.decoded[i]
	}
	return l.scanned[i].decode(l.body)
}

// pendingPoints are consecutive points in one batch.
type pendingPoints struct {
	batch     *write.Batch
	from, end int
}

// store passes all points to the writer and waits until they are durable.
func (h *Handlers) store(ctx context.Context, points *pointList) *putResult {
	in := h.newAdder(points.len())
	return h.storeEach(ctx, in.request, points.len(),
		func(i int) (*write.Batch, error) { return in.add(ctx, points, i) },
		func(i int) refused { return points.at(i) })
}

// storeEach passes n points or histograms to the writer and waits until they are durable. add adds
// number i, and at returns it, to be shown with its error.
func (h *Handlers) storeEach(ctx context.Context, request *write.RequestBatch, n int,
	add func(i int) (*write.Batch, error), at func(i int) refused) *putResult {
	res := &putResult{}
	// Other requests may wait for the added points: they must be written however this function
	// ends. Send does nothing the second time.
	defer request.Send()

	var pending []pendingPoints
	for i := range n {
		if err := ctx.Err(); err != nil { // the remaining points are not awaited
			res.addUnstored(ctx, at(i), err)
			continue
		}
		batch, err := add(i)
		switch {
		case err == nil:
			if last := len(pending) - 1; last >= 0 && pending[last].batch == batch && pending[last].end == i {
				pending[last].end++
			} else {
				pending = append(pending, pendingPoints{batch, i, i + 1})
			}
		case write.IsStorage(err), ctx.Err() != nil: // once the request is over, errors are not the point's
			res.addUnstored(ctx, at(i), err)
		default:
			res.invalid = true
			res.addFailed(at(i), err)
		}
	}

	request.Send()
	for _, s := range pending { //fault:last-points-of-a-put-not-waited-for TestStories/put_flags
		if err := s.batch.Wait(ctx); err != nil {
			for i := s.from; i < s.end; i++ {
				res.addUnstored(ctx, at(i), err)
			}
			continue
		}
		res.Success += s.end - s.from
	}
	h.Count.Puts(res.Success, res.Failed+res.late)
	return res
}

// adder passes the points of one request to the writer.
type adder struct {
	writer   *write.Writer
	request  *write.RequestBatch
	resolver *write.Resolver
	prepared int // points before this one have had their names prepared
}

// newAdder returns the adder of a request with so many points.
func (h *Handlers) newAdder(points int) *adder {
	request := h.Writer.RequestBatch(points)
	return &adder{writer: h.Writer, request: request, resolver: request.Resolver(write.JSONSpelling)}
}

// add adds point i. A scanned point whose series was spelled so before is never
// decoded.
func (a *adder) add(ctx context.Context, points *pointList, i int) (*write.Batch, error) {
	if points.scanned == nil {
		return a.addDecoded(ctx, points, i)
	}

	p := &points.scanned[i]
	s, ok := a.resolver.Find(p.spelling(points.body))
	if !ok {
		return a.addDecoded(ctx, points, i)
	}

	// The names were checked when the spelling was first seen.
	t := p.time(points.body)
	if t <= 0 {
		return nil, write.ErrTimestamp
	}
	v, err := write.ParseValue(p.value.in(points.body))
	if err != nil {
		return nil, err
	}
	return a.request.AddTo(ctx, s, &write.Point{Time: t, Value: v})
}

// addDecoded adds point i, whose series has to be resolved.
func (a *adder) addDecoded(ctx context.Context, points *pointList, i int) (*write.Batch, error) {
	p, err := a.validPoint(points, i)
	if err != nil {
		return nil, err
	}
	if i >= a.prepared {
		a.prepared = i + 1 + a.writer.PrepareNames(ctx, p, a.pointsBehind(points, i))
	}
	s, err := a.resolve(ctx, p)
	if err != nil {
		return nil, err
	}
	return a.request.AddTo(ctx, s, p)
}

// validPoint returns point i, or why it is refused.
func (a *adder) validPoint(points *pointList, i int) (*write.Point, error) {
	p, err := points.at(i).point()
	if err != nil {
		return nil, err
	}
	return p, a.writer.Validate(p)
}

// pointsBehind yields the points after point i, nil for one that will be refused.
func (a *adder) pointsBehind(points *pointList, i int) iter.Seq[*write.Point] {
	return func(yield func(*write.Point) bool) {
		for i++; i < points.len(); i++ {
			p, err := a.validPoint(points, i)
			if err != nil {
				p = nil
			}
			if !yield(p) {
				return
			}
		}
	}
}

// resolve resolves the series of a validated point.
func (a *adder) resolve(ctx context.Context, p *write.Point) (*write.SeriesKey, error) {
	s, err := a.resolver.Resolve(ctx, p.Metric, p.Tags)
	var unknown *uid.NoSuchNameError
	if errors.As(err, &unknown) {
		return nil, unknownMetric{unknown}
	}
	return s, err
}

// unknownMetric has OpenTSDB's text, for any kind of unknown name; the log has the name.
type unknownMetric struct{ name *uid.NoSuchNameError }

// Error is OpenTSDB's text.
func (unknownMetric) Error() string { return "Unknown metric" }

// Unwrap is the name that is unknown.
func (e unknownMetric) Unwrap() error { return e.name }
