package putroutes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/jackson"
	"downpour/gateway/write"
)

// histogramPoint is one histogram of a body. Source: HistogramPojo.
type histogramPoint struct {
	Metric    string            `json:"metric"`
	Timestamp timestamp         `json:"timestamp"`
	Tags      map[string]string `json:"tags"`
	ID        int32             `json:"id"`
	Value     *string           `json:"value"` // base64, see write.ParseHistogram
	Buckets   bucketList        `json:"buckets"`
	Underflow int64             `json:"underflow"`
	Overflow  int64             `json:"overflow"`
}

// bucketList is an object of bounds and counts, {"0,1.75": 12}.
type bucketList struct {
	given  bool // neither missing nor null
	bounds []string
	counts []int64
	more   int // buckets that are not kept, because they are too many
}

// UnmarshalJackson reads the object. It keeps no more buckets than a histogram may have. The last
// count of equal bounds is kept.
func (l *bucketList) UnmarshalJackson(r *jackson.Reader, t jackson.Token) error {
	*l = bucketList{}
	if t.Kind == jackson.Null {
		return nil
	}
	l.given = true
	places := map[string]int{}
	return r.Each(t, func(bounds string, t jackson.Token) error {
		count, err := t.AsLong()
		place, known := places[bounds]
		switch {
		case known:
			l.counts[place] = count
		case len(l.bounds) == encoding.MaxHistogramBuckets:
			l.more++
		default:
			places[bounds] = len(l.bounds)
			l.bounds, l.counts = append(l.bounds, bounds), append(l.counts, count)
		}
		return err
	})
}

// MarshalJSON writes the object as it came.
func (l *bucketList) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, bounds := range l.bounds {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := json.Marshal(bounds)
		if err != nil {
			return nil, err
		}
		out = fmt.Appendf(append(out, name...), ":%d", l.counts[i])
	}
	return append(out, '}'), nil
}

// histogramEcho is a refused histogram as the parameter details shows it.
type histogramEcho struct {
	Metric    string            `json:"metric"`
	Timestamp timestamp         `json:"timestamp"`
	Value     *string           `json:"value,omitempty"`
	Tags      map[string]string `json:"tags,omitzero"`
	ID        int32             `json:"id"`
	Buckets   *bucketList       `json:"buckets,omitempty"`
	Underflow int64             `json:"underflow"`
	Overflow  int64             `json:"overflow"`
}

// echo shows the buckets only if the client has given some.
func (p *histogramPoint) echo() any {
	e := histogramEcho{p.Metric, p.Timestamp, p.Value, p.Tags, p.ID, nil, p.Underflow, p.Overflow}
	if p.Buckets.given {
		e.Buckets = &p.Buckets
	}
	return e
}

// hasValue reports whether the histogram comes in binary. Then its buckets do not count.
func (p *histogramPoint) hasValue() bool { return p.Value != nil && *p.Value != "" }

// check refuses faults that OpenTSDB finds before those of names. Source: HistogramPojo.validate.
func (p *histogramPoint) check() error {
	switch {
	case p.Metric == "":
		return write.ErrNoMetric
	case p.Timestamp.time() <= 0:
		return write.ErrTimestamp
	case len(p.Tags) == 0:
		return write.ErrNoTags
	case !p.hasValue() && len(p.Buckets.bounds) == 0:
		return errors.New("Histogram buckets cannot be null or empty if 'value' is empty.")
	case p.hasValue() && (p.ID < 0 || p.ID > 255): // buckets need no codec's number
		return errors.New("Invalid type. Must be from 0 to 255.")
	}
	return nil
}

// cell returns the value of the histogram's cell.
func (p *histogramPoint) cell(codec write.Codec) ([]byte, error) {
	if p.hasValue() {
		// OpenTSDB looks the codec up before it decodes.
		if int(p.ID) != int(codec) {
			return nil, fmt.Errorf("No codec found mapped to ID %d", p.ID)
		}
		h, err := write.ParseHistogram(*p.Value)
		if err != nil {
			return nil, err
		}
		return codec.Cell(int(p.ID), &h)
	}

	if p.Buckets.more > 0 { // those beyond the maximum were counted, not kept
		return nil, fmt.Errorf("Too many buckets: %d, maximum allowed: %d", len(p.Buckets.bounds)+p.Buckets.more,
			encoding.MaxHistogramBuckets)
	}
	buckets := make([]encoding.HistogramBucket, len(p.Buckets.bounds))
	for i, bounds := range p.Buckets.bounds {
		var err error
		if buckets[i], err = write.ParseBounds(bounds); err != nil {
			return nil, err
		}
		buckets[i].Count = p.Buckets.counts[i]
	}
	h := encoding.NewHistogram(buckets, p.Underflow, p.Overflow)
	return codec.Cell(int(codec), &h)
}

// histogram handles /api/histogram. It answers with success once the histograms are
// durable. Source: HistogramDataPointRpc.execute.
func (h *Handlers) histogram(w http.ResponseWriter, r *http.Request) error {
	if !h.Writer.Histograms().Enabled() {
		return &httpio.Error{Code: http.StatusServiceUnavailable, Message: write.ErrNoHistograms.Error(),
			Details: "The setting is DOWNPOUR_HISTOGRAMS"}
	}
	points, err := readDecoded[histogramPoint](w, r)
	if err != nil {
		return h.unread(r, err)
	}

	return h.storeAndAnswer(w, r, func(ctx context.Context) *putResult {
		in := h.newAdder(len(points))
		return h.storeEach(ctx, in.request, len(points),
			func(i int) (*write.Batch, error) { return in.addHistogram(ctx, &points[i]) },
			func(i int) refused { return &points[i] })
	})
}

// addHistogram adds one histogram to the request's batch.
func (a *adder) addHistogram(ctx context.Context, p *histogramPoint) (*write.Batch, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	value, err := p.cell(a.writer.Histograms())
	if err != nil {
		return nil, err
	}

	named := &write.Point{Metric: p.Metric, Tags: sortedTags(p.Tags), Time: p.Timestamp.time()}
	if err := a.writer.Validate(named); err != nil {
		return nil, err
	}
	s, err := a.resolve(ctx, named)
	if err != nil {
		return nil, err
	}
	return a.request.AddHistogram(ctx, s, named.Time, value)
}
