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

// exporter writes the lines of rows.
type exporter struct {
	call    *call
	conn    *connection
	out     io.Writer
	noting  bool // annotations are written too
	decoder encoding.RowDecoder
	points  encoding.Points
	milli   map[int64]bool // times of the row that are stored as milliseconds
	line    []byte
	series  map[string]seriesText // of the metric, by tags
	bytes   int                   // of series
	counts  exportCounts
}

// seriesText is a series' tags as lines have them.
type seriesText struct {
	text   string
	wanted bool
}

func newExporter(c *call, conn *connection, out io.Writer) *exporter {
	x := &exporter{call: c, conn: conn, out: out}
	x.decoder.FixDuplicates = c.Compile.FixDuplicates
	return x
}

// metric exports the series of one metric that its filters admit.
func (x *exporter) metric(ctx context.Context, times [2]string, metric string) error {
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
	x.series, x.bytes = map[string]seriesText{}, 0
	for _, r := range c.Plan.Ranges {
		if err := x.scan(ctx, c, r, name); err != nil {
			return err
		}
	}
	return nil
}

const exportBlock = 1 << 20

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
		if err := x.row(ctx, c, row, metric); err != nil {
			return fmt.Errorf("row %x: %w", row.Key, err)
		}
	}
	return nil
}

func (x *exporter) row(ctx context.Context, c *plan.Compiled, row store.Row, metric string) error {
	key, err := c.Plan.Schema.ParseRowKey(row.Key)
	if err != nil {
		return err
	}
	if base := int64(key.BaseTime); base < c.Plan.From || base >= c.Plan.To || !bytes.Equal(key.Metric, c.Plan.Metric) {
		return nil
	}
	s, ok := x.series[string(key.Tags)]
	if !ok {
		if s, err = x.describe(ctx, c, key.Tags); err != nil {
			return err
		}
		x.remember(key.Tags, s)
	}
	if !s.wanted {
		return nil
	}
	if err := x.decode(key.BaseTime, row.Cells); err != nil {
		return err
	}
	if err := x.write(c.Plan, metric, s.text); err != nil {
		return err
	}
	return x.notes(c.Plan, metric+s.text)
}

// What is remembered of series, and what one takes beside its tags and text. Each
// hour has all series again; of too many, those of the hours to come are
// described anew.
const (
	describedBytes = 64 << 20
	describedCost  = 96
)

func (x *exporter) remember(tags []byte, s seriesText) {
	cost := describedCost + len(tags) + len(s.text)
	if x.bytes+cost > describedBytes {
		clear(x.series)
		x.bytes = 0
	}
	x.series[string(tags)] = s
	x.bytes += cost
}

// describe judges a series and spells its tags.
func (x *exporter) describe(ctx context.Context, c *plan.Compiled, tags []byte) (s seriesText, err error) {
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

// spellTags spells tag pairs as lines have them, and returns the values by tagk.
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

// admits applies a plan's predicates to a series: the store may return more.
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

// decode reads a row's points, and which of their times are in the millisecond
// form.
func (x *exporter) decode(base uint32, cells []store.Cell) error {
	x.decoder.Reset(base)
	x.points.Reset()
	x.milli = nil
	for _, cell := range cells {
		if err := x.decoder.Add(cell.Qualifier, cell.Value, cell.Timestamp); err != nil {
			return err
		}
		if err := x.noteMillis(base, cell); err != nil {
			return err
		}
	}
	x.counts.Skipped += int64(x.decoder.Skipped())
	return x.decoder.Finish(&x.points)
}

// noteMillis walks the qualifiers of a cell that the decoder has accepted.
func (x *exporter) noteMillis(base uint32, cell store.Cell) error {
	appended := bytes.Equal(cell.Qualifier, encoding.AppendColumn)
	rest := cell.Qualifier
	switch {
	case appended:
		rest = cell.Value
	case len(rest)%2 != 0:
		return nil
	}
	for len(rest) > 0 {
		q, more, err := encoding.ParseQualifier(rest)
		if err != nil {
			return err
		}
		if rest = more; appended {
			rest = more[q.Width:]
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

func (x *exporter) write(p *scanplan.Plan, metric, tags string) error {
	for i := range x.points.Len() {
		t, v := x.points.At(i)
		if t < p.Start || t > p.End {
			continue
		}
		milli := x.milli[t]
		if !milli {
			t /= 1000
		}
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
