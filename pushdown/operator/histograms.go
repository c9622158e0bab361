package operator

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/downsample"
	"downpour/pushdown/operator/histogram"
	"downpour/pushdown/store"
)

// histograms is the work on the rows of a part that reads histograms: decode, put into
// buckets, and add up, by group with partial aggregation and else by span. The sums so
// far can be shipped at any time, because the merge adds batches up.
type histograms struct {
	plan     *scanplan.Plan
	bySeries bool
	// bucketer is nil if times stay as they are: without downsampling, and in calendar
	// buckets, whose place depends on points that other parts of a series may have.
	bucketer *downsample.Bucketer
	sums     histogram.Sums
	unsent   map[string]*batch.Histograms // spans and annotations to ship, by group
	bytes    int64                        // of unsent
	writer   *batch.HistogramWriter

	key   []byte
	value encoding.Histogram
	row   batch.Histograms
}

// newHistograms returns what a part of histograms works with, nil for a part of points.
func newHistograms(part *scanplan.Part, opts Options) (*histograms, error) {
	p := &part.Plan
	if p.Histograms == nil {
		return nil, nil
	}

	h := &histograms{
		plan:     p,
		bySeries: part.Mode == scanplan.PerSeries,
		unsent:   map[string]*batch.Histograms{},
		writer:   batch.NewHistogramWriter(opts.Mem),
	}
	// The place of calendar buckets depends on points that other parts of a series may have:
	// times then stay as they are.
	if p.Downsample != nil && !p.Downsample.Calendar {
		var err error
		if h.bucketer, err = bucketer(p); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// cellsAtOnce is after how many cells of a row the memory is checked: one histogram can
// have half a megabyte.
const cellsAtOnce = 16

// addHistograms adds the histograms of a row. It checks the memory several times, because one
// histogram can have half a megabyte.
func (o *partOperator) addHistograms(sp *series, r *store.Row, base uint32) error {
	for cells := range slices.Chunk(r.Cells, cellsAtOnce) {
		n, skipped, err := o.histograms.addCells(sp, base, cells)
		o.stats.Points, o.stats.Skipped = o.stats.Points+n, o.stats.Skipped+skipped
		if err != nil {
			return dataError(&o.part.Plan, r.Key, err)
		}
		if err := o.checkMemory(); err != nil {
			return err
		}
	}
	return nil
}

// addCells adds histograms of a row to the group of its series. It returns their number,
// and the number of cells that it has not read.
func (h *histograms) addCells(sp *series, base uint32, cells []store.Cell) (n, skipped int64, err error) {
	if !h.groupKey(sp.id) {
		return 0, 0, nil // the series lacks a tag key of the group-by
	}

	var group *histogram.Group
	for i := range cells {
		c := &cells[i]
		switch {
		case len(c.Qualifier)%2 == 1 && c.Qualifier[0] == encoding.PrefixAnnotation:
			w := h.waitingOf()
			w.NoteSpan, w.Notes = append(w.NoteSpan, sp.id), append(w.Notes, bytes.Clone(c.Value))
			h.bytes += int64(len(c.Value)) + spanOverhead
			continue
		// Points of the series, which are in the same row, or cells of a kind that is not known.
		case !encoding.IsHistogram(c.Qualifier):
			skipped++
			continue
		}

		t, err := h.decode(base, c)
		if err != nil {
			return n, skipped, err
		}

		// It was read, and so counts, even if it is outside of all buckets.
		n++
		if h.bucketer != nil {
			var ok bool
			if t, ok = h.bucketer.Place(t); !ok {
				continue
			}
		}

		// Here and not before: a series without a histogram in a bucket makes no group.
		if group == nil {
			group = h.sums.Group(h.key)
		}
		group.Add(t, &h.value)
	}

	// A member counts even if all its histograms are outside of buckets. It is named once.
	if n > 0 && !sp.shipped {
		sp.shipped = true
		w := h.waitingOf()
		w.Spans = append(w.Spans, sp.id)
		h.bytes += int64(len(sp.id))
	}
	return n, skipped, nil
}

// groupKey sets key to that of the series, and returns false if it is in no group.
func (h *histograms) groupKey(span []byte) (ok bool) {
	if h.bySeries {
		h.key, ok = append(h.key[:0], span...), true
		return ok
	}
	h.key, ok = h.plan.AppendGroupKey(h.key[:0], span)
	return ok
}

// waitingOf returns what waits to be shipped of the group of key.
func (h *histograms) waitingOf() *batch.Histograms {
	w := h.unsent[string(h.key)]
	if w == nil {
		w = &batch.Histograms{}
		h.unsent[string(h.key)] = w
		h.bytes += int64(len(h.key)) + spanOverhead
	}
	return w
}

// errCodec is the reason of a DataError for a histogram that the plan cannot read.
var errCodec = errors.New("the codec is another one")

// decode reads a histogram into value and returns its time in ms.
func (h *histograms) decode(base uint32, c *store.Cell) (int64, error) {
	offset, _, err := encoding.ParseHistogramQualifier(c.Qualifier)
	if err != nil {
		return 0, err
	}
	if len(c.Value) == 0 {
		return 0, fmt.Errorf("histogram column % X is empty", c.Qualifier)
	}
	if got := c.Value[0]; int(got) != h.plan.Histograms.Codec {
		return 0, fmt.Errorf("%w: histogram column % X has codec %d, want %s", errCodec, c.Qualifier, got,
			codecText(h.plan.Histograms.Codec))
	}
	if err := encoding.ParseHistogram(c.Value[1:], &h.value); err != nil {
		return 0, fmt.Errorf("histogram column % X: %w", c.Qualifier, err)
	}
	return int64(base)*1000 + int64(offset), nil
}

// codecText names the codec that can be read.
func codecText(codec int) string {
	if codec == scanplan.NoCodec {
		return "one that is configured (DOWNPOUR_HISTOGRAMS, tsd.core.histograms.config), and none is"
	}
	return fmt.Sprint(codec)
}

// memory is about the bytes that wait to be shipped.
func (h *histograms) memory() int64 { return h.sums.Bytes() + h.bytes }

// flush makes records of all that was added up so far and forgets it.
func (h *histograms) flush(e *emitter) {
	pending := 0
	cut := func() {
		if pending > 0 {
			e.push(h.writer.Record())
			pending = 0
		}
	}

	write := func(key string, row *batch.Histograms) {
		row.Group = []byte(key)
		h.writer.Append(row)
		if pending += histogramsBytes(row); pending >= e.limit {
			cut()
		}
	}

	// Rows of spans and annotations alone, in the order of keys, so that a part always
	// answers with the same batches.
	for _, key := range slices.Sorted(maps.Keys(h.unsent)) {
		write(key, h.unsent[key])
	}

	for _, g := range h.sums.Sorted() {
		h.row.Reset()
		for _, t := range g.Times() {
			h.row.Add(t, g.At(t))
			if histogramsBytes(&h.row) >= e.limit {
				write(g.Key, &h.row)
				h.row.Reset()
			}
		}
		if len(h.row.Time) > 0 {
			write(g.Key, &h.row)
		}
	}
	cut()

	h.sums.Reset()
	clear(h.unsent)
	h.bytes = 0
}

// histogramsBytes returns about the bytes of a row in a batch: a histogram has a time, two
// counts and a number of buckets, a bucket two bounds and a count.
func histogramsBytes(h *batch.Histograms) int {
	n := len(h.Group) + len(h.Time)*28 + len(h.Count)*16
	for _, lists := range [][][]byte{h.Spans, h.NoteSpan, h.Notes} {
		for _, b := range lists {
			n += len(b) + 8
		}
	}
	return n
}
