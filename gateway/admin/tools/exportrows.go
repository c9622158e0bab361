package tools

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

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
	withMeta bool // annotations and meta data are written, too
	counts   exportCounts

	// The row that was decoded last.
	decoder encoding.RowDecoder
	points  encoding.Points
	milli   map[int64]bool // times that are stored as milliseconds; nil for none
	line    []byte         // scratch

	// seriesCache holds series of the metric by their tag UIDs: each hour has the
	// same series again, and a look-up of their names is slow.
	seriesCache map[string]seriesText
	seriesBytes int // size of seriesCache
}

// seriesText is a series as lines have it.
type seriesText struct {
	text   string // its tags, each with a blank before it
	wanted bool   // the filters of the export admit it
}

func newExporter(c *call, conn *connection, out io.Writer) *exporter {
	x := &exporter{call: c, conn: conn, out: out}
	x.decoder.FixDuplicates = c.Compile.FixDuplicates
	return x
}

// exportMetric exports the series of one metric that its filters admit.
func (x *exporter) exportMetric(ctx context.Context, times [2]string, metric string) error {
	c, err := x.call.plan(ctx, x.conn, times, metric)
	if err != nil {
		return err
	}
	if c.Nothing != "" {
		return nil
	}

	name, err := x.conn.names.Name(ctx, encoding.UIDMetric, c.Plan.Metric)
	if err == nil {
		err = checkName(name)
	}
	if err != nil {
		return err
	}

	x.seriesCache, x.seriesBytes = map[string]seriesText{}, 0
	for _, r := range c.Plan.Ranges {
		if err := x.scan(ctx, c, r, name); err != nil {
			return err
		}
	}

	return nil
}

// exportBlock is the number of bytes that the store delivers at a time.
const exportBlock = 1 << 20

// scan exports the rows of a range. The store may return more rows than the filters
// of the plan want; exportRow looks again.
func (x *exporter) scan(ctx context.Context, c *plan.Compiled, r scanplan.KeyRange, metric string) error {
	access := operator.ChooseAccess(&scanplan.Part{Plan: *c.Plan, Range: r}, nil)
	if access.Nothing {
		return nil
	}

	s := store.Scan{Table: c.Plan.Table, Start: r.Start, Stop: r.Stop, Family: encoding.FamilyData,
		Filter: access.Filter, BlockBytes: exportBlock}
	for row, err := range store.Rows(ctx, x.conn.store, s) {
		if err != nil {
			return err
		}
		if err := x.exportRow(ctx, c, row, metric); err != nil {
			return fmt.Errorf("row %x: %w", row.Key, err)
		}
	}
	return nil
}

// exportRow writes the points and annotations of a row, unless it is of another series,
// metric or hour than the plan wants.
func (x *exporter) exportRow(ctx context.Context, c *plan.Compiled, row store.Row, metric string) error {
	key, err := c.Plan.Schema.ParseRowKey(row.Key)
	if err != nil {
		return err
	}

	// The store's filter is on the key's bytes and may let more rows pass.
	if base := int64(key.BaseTime); base < c.Plan.From || base >= c.Plan.To || !bytes.Equal(key.Metric, c.Plan.Metric) {
		return nil
	}

	s, ok := x.seriesCache[string(key.Tags)]
	if !ok {
		if s, err = x.describeSeries(ctx, c, key.Tags); err != nil {
			return err
		}
		x.cacheSeries(key.Tags, s)
	}
	if !s.wanted {
		return nil
	}

	if err := x.decode(key.BaseTime, row.Cells); err != nil {
		return err
	}
	if err := x.writePoints(c.Plan, metric, s.text); err != nil {
		return err
	}
	return x.writeAnnotations(c.Plan, metric+s.text)
}

const (
	seriesCacheBytes = 64 << 20 // bound of exporter.seriesBytes
	seriesCacheCost  = 96       // what an entry takes beside its tags and text
)

// cacheSeries keeps a series for the hours to come. A full cache is emptied: the
// series that come next are looked up again.
func (x *exporter) cacheSeries(tags []byte, s seriesText) {
	cost := seriesCacheCost + len(tags) + len(s.text)
	if x.seriesBytes+cost > seriesCacheBytes {
		clear(x.seriesCache)
		x.seriesBytes = 0
	}
	x.seriesCache[string(tags)] = s
	x.seriesBytes += cost
}

// describeSeries spells the tags of a series and applies the filters to them.
func (x *exporter) describeSeries(ctx context.Context, c *plan.Compiled, tags []byte) (s seriesText, err error) {
	if !admits(c.Plan, tags) {
		return s, nil
	}

	var values map[string]string
	if s.text, values, err = x.spellTags(ctx, tags); err != nil {
		return s, err
	}

	s.wanted = c.PostFilter == nil || c.PostFilter.Keep(func(tagk encoding.UID) (string, bool) {
		v, ok := values[string(tagk)]
		return v, ok
	})
	return s, nil
}

// spellTags returns tag UIDs as lines have them, " host=web01 cpu=0", and the tag
// values by the UID of their key.
func (x *exporter) spellTags(ctx context.Context, tags []byte) (string, map[string]string, error) {
	values := map[string]string{}
	var text []byte
	for _, p := range x.call.Schema.AppendPairs(nil, tags) {
		k, err := x.conn.names.Name(ctx, encoding.UIDTagK, p.K)
		if err != nil {
			return "", nil, err
		}
		v, err := x.conn.names.Name(ctx, encoding.UIDTagV, p.V)
		if err != nil {
			return "", nil, err
		}
		values[string(p.K)] = v
		if text, err = appendTag(text, k, v); err != nil {
			return "", nil, err
		}
	}
	return string(text), values, nil
}

// admits applies a plan's tag predicates to a series: the store may return rows
// that they do not admit.
func admits(p *scanplan.Plan, tags []byte) bool {
	for _, want := range p.Tags {
		v, ok := p.Schema.Tag(tags, want.TagK)
		if !ok {
			return false
		}
		in := slices.ContainsFunc(want.Values, func(u encoding.UID) bool { return bytes.Equal(u, v) })
		if want.Op == scanplan.In && !in || want.Op == scanplan.NotIn && in {
			return false
		}
	}
	return !p.Exact || len(tags) == len(p.Tags)*p.Schema.TagWidth()
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
// milliseconds. The decoder has accepted the cell before. Of two cells with the same
// time the later one decides.
func (x *exporter) recordMillis(base uint32, cell store.Cell) error {
	// A compacted cell has its qualifiers one after another. An append column has them
	// in the value, each with a point's value behind it.
	appended := bytes.Equal(cell.Qualifier, encoding.AppendColumn)
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
		case q.Milli && x.milli == nil:
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
// start and end.
func (x *exporter) writePoints(p *scanplan.Plan, metric, tags string) error {
	for i := range x.points.Len() {
		t, v := x.points.At(i)
		if t < p.Start || t > p.End {
			continue
		}

		milli := x.milli[t]
		if !milli {
			t /= 1000
		}

		// Import takes neither NaN nor infinity. It takes times below 2^32 for seconds,
		// so early milliseconds would become others; 0 is no time at all.
		if d := v.Double(); v.Float && (math.IsNaN(d) || math.IsInf(d, 0)) || milli && t>>32 == 0 || t == 0 {
			x.counts.Unwritable++
			continue
		}

		x.line = append(appendLine(x.line[:0], metric, t, v, tags), '\n')
		if _, err := x.out.Write(x.line); err != nil {
			return err
		}
		x.counts.Points++
	}
	return nil
}
