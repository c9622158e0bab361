package tools

import (
	"context"
	"fmt"
	"io"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/extra/tools/pointfile"
	"downpour/pushdown/store"
)

// exporter writes rows as import lines, or their points to a Parquet file.
type exporter struct {
	*work
	out      io.Writer
	names    *namer
	withMeta bool // annotations and meta data are written, too
	counts   exportCounts
	file     *pointfile.Writer // nil for lines

	// The row that was decoded last.
	decoder encoding.RowDecoder
	points  encoding.Points
	milli   map[int64]bool // times that are stored as milliseconds; nil for none
	line    []byte         // scratch
}

// exporter returns an exporter to out. In a gateway its names take less memory.
func (x *work) exporter(out io.Writer) *exporter {
	e := &exporter{work: x, out: out, names: x.namer(x.bound(namerBytes, aloneNamerBytes))}
	e.decoder.FixDuplicates = x.Compile.FixDuplicates
	return e
}

// eachRowOf calls f with each row of the series of one metric that its filters admit.
func (x *exporter) eachRowOf(
	ctx context.Context, times [2]string, name, filters string, keysOnly bool, f func(*scanplan.Plan, seriesRow) error,
) error {
	c, err := x.plan(ctx, times, name, filters)
	if err != nil {
		return err
	}
	for _, s := range stretchesOf(c) {
		for row, err := range x.walk(ctx, &s, x.names, keysOnly) {
			if err != nil {
				return err
			}
			err = row.bad
			if err == nil && row.named.orphan != "" {
				// Names that are gone are damage, which the user must know of; others just cannot be
				// written in a line.
				err = row.named.noLine
			}
			if err == nil {
				err = f(c.Plan, row)
			}
			if err != nil {
				return fmt.Errorf("row %x: %w", row.Key, err)
			}
		}
	}
	return nil
}

// exportRow writes the points and annotations of a row as lines.
func (x *exporter) exportRow(p *scanplan.Plan, row seriesRow) error {
	s := row.named
	if err := x.decode(row.key.BaseTime, row.Cells); err != nil {
		return err
	}
	if err := x.writePoints(p, s); err != nil {
		return err
	}
	if s.noLine != nil {
		x.counts.SkippedMeta += int64(len(x.decoder.Annotations()))
		return nil
	}
	return x.writeAnnotations(p, s.metric+s.lineTags)
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
		if x.file != nil { // its times have one unit
			continue
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
