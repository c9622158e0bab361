package tools

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query/plan"
	"downpour/pushdown/operator"
	"downpour/pushdown/store"
)

// exporter writes rows as import lines.
type exporter struct {
	call     *call
	conn     *connection
	out      io.Writer
	names    *namer
	withMeta bool // annotations and meta data are written, too
	counts   exportCounts

	// The row that was decoded last.
	decoder encoding.RowDecoder
	points  encoding.Points
	milli   map[int64]bool // times that are stored as milliseconds; nil for none
	line    []byte         // scratch
}

// newExporter returns an exporter to out. In a gateway its names take less memory.
func newExporter(c *call, conn *connection, out io.Writer) *exporter {
	bound := aloneNamerBytes
	if c.served {
		bound = namerBytes
	}
	x := &exporter{call: c, conn: conn, out: out, names: newNamer(c, conn, bound)}
	x.decoder.FixDuplicates = c.Compile.FixDuplicates
	return x
}

// exportMetric exports the series of one metric that its filters admit.
func (x *exporter) exportMetric(ctx context.Context, times [2]string, name, filters string) error {
	c, err := x.call.plan(ctx, x.conn, times, name, filters)
	if err != nil {
		return err
	}
	if c.Nothing != "" {
		return nil
	}

	for _, r := range c.Plan.Ranges {
		if err := x.scan(ctx, c, r); err != nil {
			return err
		}
	}

	return nil
}

// exportBlock is the number of bytes that the store delivers at a time.
const exportBlock = 1 << 20

// scan exports the rows of a range. The store may return more rows than the filters
// of the plan want; exportRow looks again.
func (x *exporter) scan(ctx context.Context, c *plan.Compiled, r scanplan.KeyRange) error {
	access := operator.ChooseFilter(&scanplan.Part{Plan: *c.Plan, Range: r})
	if access.Nothing {
		return nil
	}

	s := store.Scan{Table: c.Plan.Table, Start: r.Start, Stop: r.Stop, Family: encoding.FamilyData,
		Filter: access.Filter, BlockBytes: exportBlock}
	for row, err := range store.Rows(ctx, x.conn.store, s) {
		if err != nil {
			return err
		}
		if err := x.exportRow(ctx, c, row); err != nil {
			return fmt.Errorf("row %x: %w", row.Key, err)
		}
	}
	return nil
}

// exportRow writes the points and annotations of a row, unless it is of another series,
// metric or hour than the plan wants.
func (x *exporter) exportRow(ctx context.Context, c *plan.Compiled, row store.Row) error {
	key, err := c.Plan.Schema.ParseRowKey(row.Key)
	if err != nil {
		return err
	}

	// The store's filter is on the key's bytes and may let more rows pass.
	if base := int64(key.BaseTime); base < c.Plan.From || base >= c.Plan.To || !bytes.Equal(key.Metric, c.Plan.Metric) {
		return nil
	}

	if !admits(c.Plan, key.Tags) {
		return nil
	}
	s, err := x.names.series(ctx, key)
	if err != nil {
		return err
	}
	if ok, err := s.matches(c); err != nil || !ok {
		return err
	}
	// Names that are gone are damage, which the user must know of; others just cannot be
	// written in a line.
	if s.orphan != "" {
		return s.noLine
	}

	if err := x.decode(key.BaseTime, row.Cells); err != nil {
		return err
	}
	if err := x.writePoints(c.Plan, s); err != nil {
		return err
	}
	if s.noLine != nil {
		x.counts.SkippedMeta += int64(len(x.decoder.Annotations()))
		return nil
	}
	return x.writeAnnotations(c.Plan, s.metric+s.lineTags)
}

// decode reads a row's points into x.points and the times that are stored as
// milliseconds into x.milli.
func (x *exporter) decode(base uint32, cells []store.Cell) error {
	x.decoder.Reset(base)
	x.points.Reset()
	x.milli = nil
	for _, cell := range cells {
		if err := x.decoder.Add(cell.Qualifier, cell.Value, cell.Timestamp); err != nil {
			return err
		}
		if err := x.recordMillis(base, cell); err != nil {
			return err
		}
	}
	x.counts.Skipped += int64(x.decoder.Skipped())
	return x.decoder.Finish(&x.points)
}

// recordMillis adds to x.milli the times of one cell that are stored as
// milliseconds. The decoder has accepted the cell before. Of two points of one time the
// one that comes later in the row decides.
func (x *exporter) recordMillis(base uint32, cell store.Cell) error {
	// A compacted cell has its qualifiers one after another. An append column has them
	// in the value, each with a point's value behind it.
	appended := len(cell.Qualifier) == len(encoding.AppendColumn) && cell.Qualifier[0] == encoding.PrefixAppend
	rest := cell.Qualifier
	switch {
	case appended:
		rest = cell.Value
	case len(rest)%2 != 0:
		return nil // no points: an annotation, for one
	}

	for len(rest) > 0 {
		q, more, err := encoding.ParseQualifier(rest)
		if err != nil {
			return err
		}
		rest = more
		if appended {
			rest = rest[q.Width:] // past the point's value
		}

		t := int64(base)*1000 + int64(q.OffsetMS)
		switch {
		case q.Milli && x.milli == nil: // few rows have any
			x.milli = map[int64]bool{t: true}
		case q.Milli:
			x.milli[t] = true
		case x.milli != nil:
			delete(x.milli, t)
		}
	}
	return nil
}

// writePoints writes the points of the decoded row that lie between the plan's
// start and end, and counts those that import would not take.
func (x *exporter) writePoints(p *scanplan.Plan, s *namedSeries) error {
	for i := range x.points.Len() {
		t, v := x.points.At(i)
		// Rows are of whole hours.
		if t < p.Start || t > p.End {
			continue
		}

		milli := x.milli[t]
		if !milli {
			t /= 1000
		}

		if s.noLine != nil || !importable(t, milli, v) {
			x.counts.Unwritable++
			continue
		}

		x.line = append(appendLine(x.line[:0], s.metric, t, v, s.lineTags), '\n')
		if _, err := x.out.Write(x.line); err != nil {
			return err
		}
		x.counts.Points++
	}
	return nil
}
