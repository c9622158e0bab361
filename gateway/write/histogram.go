package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Codec is the number before a SimpleHistogram in its cell. NoCodec means that histograms are not
// configured: they are neither accepted nor read.
// Source: HistogramCodecManager.
type Codec int

// NoCodec is the codec of a gateway without DOWNPOUR_HISTOGRAMS.
const NoCodec Codec = -1

// Enabled reports whether histograms are configured.
func (c Codec) Enabled() bool { return c >= 0 }

// simpleHistogram is the only class of OpenTSDB that reads and writes histograms.
const simpleHistogram = "net.opentsdb.core.SimpleHistogramDecoder"

// ParseCodec reads the configuration of histograms: a JSON object of classes and their
// numbers. Without text it returns NoCodec. Numbers above 127 are refused, because
// OpenTSDB writes but cannot read them. Source: tsd.core.histograms.config.
func ParseCodec(text string) (Codec, error) {
	if text == "" {
		return NoCodec, nil
	}

	var classes map[string]int
	if err := json.Unmarshal([]byte(text), &classes); err != nil {
		return NoCodec, fmt.Errorf("want a JSON object of classes and numbers: %w", err)
	}
	number, ok := classes[simpleHistogram]
	switch {
	case !ok || len(classes) != 1:
		return NoCodec, fmt.Errorf("got %d classes, want %s alone", len(classes), simpleHistogram)
	case number < 0 || number > encoding.MaxHistogramCodec:
		return NoCodec, fmt.Errorf("%s has number %d, want 0 to %d", simpleHistogram, number,
			encoding.MaxHistogramCodec)
	}
	return Codec(number), nil
}

// Errors of histograms. The texts that begin in upper case are OpenTSDB's.
var (
	ErrNoHistograms = errors.New(
		"Histogram storage has not been enabled. Check the 'tsd.core.histograms.config' configuration.")
	errBoundsOrder  = errors.New("want the lower bound not above the upper one")
	errBoundsFinite = errors.New("want bounds that are finite; underflow and overflow count what lies outside")
)

// Cell returns the value of a histogram's cell. id is the codec that the client names.
func (c Codec) Cell(id int, h *encoding.Histogram) ([]byte, error) {
	if int(c) != id {
		return nil, fmt.Errorf("No codec found mapped to ID %d", id)
	}
	if err := checkHistogram(h); err != nil {
		return nil, err
	}
	return encoding.AppendHistogram([]byte{byte(c)}, h), nil
}

// checkHistogram refuses what OpenTSDB stores and then computes nonsense from.
func checkHistogram(h *encoding.Histogram) error {
	if n := len(h.Buckets); n > encoding.MaxHistogramBuckets {
		return fmt.Errorf("Too many buckets: %d, maximum allowed: %d", n, encoding.MaxHistogramBuckets)
	}
	for _, b := range h.Buckets {
		if err := checkBucket(b); err != nil {
			return fmt.Errorf("Invalid bucket %v,%v: %w", b.Lower, b.Upper, err)
		}
	}

	if h.Underflow < 0 || h.Overflow < 0 {
		return fmt.Errorf("Invalid histogram: got the underflow %d and the overflow %d, want at least 0", h.Underflow,
			h.Overflow)
	}
	return nil
}

// checkBucket refuses bounds that are not finite or not in order, and a negative count.
func checkBucket(b encoding.HistogramBucket) error {
	switch {
	case !finite(b.Lower) || !finite(b.Upper):
		return errBoundsFinite
	case b.Lower > b.Upper:
		return errBoundsOrder
	case b.Count < 0:
		return fmt.Errorf("got the count %d, want at least 0", b.Count)
	}
	return nil
}

// finite reports whether f is a number and no infinity.
func finite(f float32) bool { return f-f == 0 }

// histogramCell is a histogram of a batch.
type histogramCell struct {
	row       uint32 // index in rows.list; set by rows.addHistogram
	qualifier []byte
	value     []byte
}

// newHistogramCell returns the cell of a histogram and the base time of its row. The
// error is ErrTimestamp if the time cannot be stored.
func newHistogramCell(t int64, value []byte) (*histogramCell, uint32, error) {
	base, q, err := splitTime(t)
	if err != nil {
		return nil, 0, err
	}
	return &histogramCell{qualifier: encoding.AppendHistogramQualifier(nil, q.OffsetMS, q.Milli), value: value}, base,
		nil
}

// AddHistogram puts a histogram into a batch as AddTo does with a point. value is that of
// Codec.Cell; it must no longer change.
func (w *Writer) AddHistogram(ctx context.Context, s *SeriesKey, t int64, value []byte) (*Batch, error) {
	c, base, err := newHistogramCell(t, value)
	if err != nil {
		return nil, err
	}
	return w.addToShard(ctx, s, base, rowItem{histogram: c})
}

// AddHistogram is Writer.AddHistogram. The histogram is written after Send, or earlier.
func (b *RequestBatch) AddHistogram(ctx context.Context, s *SeriesKey, t int64, value []byte) (*Batch, error) {
	if !b.separate {
		return b.w.AddHistogram(ctx, s, t, value)
	}
	c, base, err := newHistogramCell(t, value)
	if err != nil {
		return nil, err
	}
	return b.addToSeparate(ctx, s, base, rowItem{histogram: c})
}

// addHistogram adds a copy of a histogram to row i, and returns by how many bytes the batch grows.
func (r *rows) addHistogram(i uint32, c *histogramCell) (grown int) {
	added := *c
	added.row = i
	r.histograms = append(r.histograms, added)
	return len(c.qualifier) + len(c.value) + rowCost
}

// addHistograms adds one mutation for each row and time that has a histogram, for any form of points:
// histograms are neither compacted nor appended. The last of several of one time counts. Source:
// TSDB.storeIntoDB.
func (c *cells) addHistograms(r *rows) {
	if len(r.histograms) == 0 {
		return
	}

	made := make(map[string]int, len(r.histograms)) // by row key and qualifier, the index in c.out
	var cell []byte
	for i := range r.histograms {
		h := &r.histograms[i]
		cell = append(append(cell[:0], r.list[h.row].key...), h.qualifier...)
		if i, ok := made[string(cell)]; ok {
			c.out[i].Value = h.value
			continue
		}
		made[string(cell)] = len(c.out)
		c.out = append(c.out, store.Mutation{
			Row:       r.list[h.row].key,
			Family:    dataFamily,
			Qualifier: h.qualifier,
			Value:     h.value,
		})
	}
}
