package putroutes

import (
	"bytes"
	"context"
	"errors"
	"unsafe"

	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/process/memory"
)

// pointList is the points of a put body: plain where all of them are, else
// decoded.
type pointList struct {
	body    []byte
	plain   []plainPoint
	decoded []dataPoint
}

// readPoints reads a body, whose memory the list keeps.
func readPoints(ctx context.Context, body []byte) (*pointList, error) {
	body = bytes.TrimSpace(body)
	if plain, ok := scanPoints(body); ok {
		return &pointList{body: body, plain: plain}, nil
	}
	if err := memory.Reserve(ctx, int64(len(body))*decodedBytes); err != nil {
		return nil, err
	}
	decoded, err := parsePoints(body)
	return &pointList{decoded: decoded}, err
}

func (l *pointList) len() int { return len(l.plain) + len(l.decoded) }

// at is point i as the decoder gives it.
func (l *pointList) at(i int) *dataPoint {
	if l.decoded != nil {
		return &l.decoded[i]
	}
	return l.plain[i].decode(l.body)
}

// sent are consecutive points in one batch.
type sent struct {
	batch     *write.Batch
	from, end int
}

// store hands all points to the writer and waits until they are durable.
func (h *Handlers) store(ctx context.Context, points *pointList) *putResult {
	res := &putResult{}
	var pending []sent
	var key []byte
	bundle := h.Writer.RequestBatch(points.len())
	defer bundle.Send() // whatever ends this: none waits for ever for what was added
	for i := range points.len() {
		batch, err := h.add(ctx, bundle, points, i, &key)
		switch {
		case err == nil:
			if n := len(pending); n > 0 && pending[n-1].batch == batch && pending[n-1].end == i {
				pending[n-1].end++
			} else {
				pending = append(pending, sent{batch, i, i + 1})
			}
		case write.IsStorage(err), ctx.Err() != nil:
			res.lose(ctx, points.at(i), err)
		default:
			res.invalid = true
			res.fail(points.at(i), err)
		}
	}
	bundle.Send()
	for _, s := range pending {
		if err := s.batch.Wait(ctx); err != nil {
			for i := s.from; i < s.end; i++ {
				res.lose(ctx, points.at(i), err)
			}
			continue
		}
		res.Success += s.end - s.from
	}
	h.Count.Puts(res.Success, res.Failed+res.late)
	return res
}

// add hands a point to the writer. The series of a spelling seen before is found
// without looking at its names again; key is memory for the spelling.
func (h *Handlers) add(ctx context.Context, to *write.RequestBatch, points *pointList, i int, key *[]byte) (*write.Batch, error) {
	if points.plain == nil {
		return h.addDecoded(ctx, to, &points.decoded[i], nil)
	}
	p := &points.plain[i]
	if p.spelled() > write.MaxSpelling {
		return h.addDecoded(ctx, to, p.decode(points.body), nil)
	}
	*key = p.appendSpelling((*key)[:0], points.body)
	s, ok := h.Series.Cached(unsafe.String(unsafe.SliceData(*key), len(*key)))
	if !ok {
		return h.addDecoded(ctx, to, p.decode(points.body), *key)
	}
	t := parseTimestamp(p.timestamp.in(points.body))
	if t <= 0 {
		return nil, write.ErrTimestamp
	}
	v, err := write.ParseValue(p.value.in(points.body))
	if err != nil {
		return nil, err
	}
	return to.AddTo(ctx, s, &write.Point{Time: t, Value: v})
}

// addDecoded hands a point to the writer and remembers its series under a
// spelling, if there is one.
func (h *Handlers) addDecoded(ctx context.Context, to *write.RequestBatch, d *dataPoint, spelling []byte) (*write.Batch, error) {
	p, err := d.point()
	if err != nil {
		return nil, err
	}
	if err := h.Writer.Validate(p); err != nil {
		return nil, err
	}
	s, err := to.Resolve(ctx, p.Metric, p.Tags)
	if err != nil {
		var unknown *uid.NoSuchNameError
		if errors.As(err, &unknown) {
			return nil, errors.New("Unknown metric")
		}
		return nil, err
	}
	if spelling != nil {
		h.Series.Remember(string(spelling), s)
	}
	return to.AddTo(ctx, s, p)
}
