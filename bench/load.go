package bench

import (
	"context"
	"fmt"

	"downpour/bench/progress"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// Target is a store into which a data set is written as rows, without a server.
type Target struct {
	Store  store.Store
	Schema encoding.Schema
	Table  string
	Names  write.Names
	// Form is how the row of an hour is stored: Multi as one compacted cell, Single as a
	// cell for each point, Appended as one append column to which Batch points are
	// appended at a time, 0 for all.
	Form  write.Form
	Batch int
}

// Load writes a data set straight into the store and returns the UID of its
// first metric, the one that queries ask for.
func (t Target) Load(ctx context.Context, d workload.Devops, p *progress.Progress) (encoding.UID, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	keys, err := t.Keys(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	l := loader{Target: t, d: d, keys: keys, cells: &Cells{Store: t.Store, Table: t.Table}}
	if l.Batch <= 0 {
		l.Batch = d.PerHour()
	}

	for h := range d.Hourly() {
		if err := l.hour(ctx, h); err != nil {
			return nil, fmt.Errorf("load: hour %d of series %d: %w", h.Base, h.Series, err)
		}
		p.Add(int64(len(h.Values)))
	}

	return l.keys[0].Metric, l.cells.Flush(ctx)
}

// Keys returns the keys of all series of a data set, and gives their names UIDs.
func (t Target) Keys(ctx context.Context, d workload.Devops) ([]*write.SeriesKey, error) {
	keys := make([]*write.SeriesKey, d.Series())
	auto := write.Auto{Metrics: true, TagKs: true, TagVs: true}
	series := write.NewSeries(write.SeriesConfig{Schema: t.Schema, Names: t.Names, Auto: auto})
	for i := range keys {
		var tags []write.Tag
		for _, tag := range d.Host(i / d.MetricCount) {
			tags = append(tags, write.Tag{K: tag.K, V: tag.V})
		}
		var err error
		if keys[i], err = series.Resolve(ctx, d.MetricOf(i).Name, tags); err != nil {
			return nil, fmt.Errorf("series %d: %w", i, err)
		}
	}
	return keys, nil
}

// loader writes a data set.
type loader struct {
	Target
	d     workload.Devops
	keys  []*write.SeriesKey
	cells *Cells
}

// Cells collects the cells of many rows of a table before it writes them. The first error stays.
type Cells struct {
	Store store.Store
	Table string
	all   []store.Mutation
	err   error
}

// cellsAtOnce is how many cells are written together.
const cellsAtOnce = 1000

// Add adds a cell of the data's family.
func (c *Cells) Add(ctx context.Context, m store.Mutation) {
	m.Family = encoding.FamilyData
	if c.all = append(c.all, m); len(c.all) >= cellsAtOnce {
		c.Flush(ctx)
	}
}

// Flush writes the cells that are left, unless an earlier write has failed.
func (c *Cells) Flush(ctx context.Context) error {
	if c.err == nil {
		c.err = c.Store.Apply(ctx, c.Table, c.all)
	}
	c.all = c.all[:0]
	return c.err
}

// hour adds the row of one hour and series.
func (l *loader) hour(ctx context.Context, h workload.Hour) error {
	k := l.keys[h.Series]
	row := l.Schema.AppendRowKey(nil, k.Metric, uint32(h.Base), k.Tags)
	switch l.Form {
	case write.MultiPoint:
		l.compacted(ctx, row, h)
	case write.Appended:
		l.appended(ctx, row, h)
	default:
		for i := range h.Values {
			q, value := l.point(i, h)
			l.cells.Add(ctx, store.Mutation{Row: row, Qualifier: encoding.AppendQualifier(nil, q), Value: value})
		}
	}
	return l.cells.err
}

// point returns the qualifier and the value of the i-th point of an hour.
func (l *loader) point(i int, h workload.Hour) (encoding.Qualifier, []byte) {
	q := encoding.Qualifier{OffsetMS: int32(i * l.d.Step * 1000)}
	var value []byte
	if h.Metric.Decimals == 0 {
		value = encoding.AppendInt(nil, h.Values[i])
	} else {
		scale := 1.0
		for range h.Metric.Decimals {
			scale *= 10
		}
		q.Float, value = true, encoding.AppendDouble(nil, float64(h.Values[i])/scale)
	}

	q.Width = len(value)
	return q, value
}

// compacted adds an hour as one compacted cell.
func (l *loader) compacted(ctx context.Context, row []byte, h workload.Hour) {
	var cell encoding.CellBuilder
	for i := range h.Values {
		cell.Add(l.point(i, h))
	}
	qualifier, value := cell.Cell()
	l.cells.Add(ctx, store.Mutation{Row: row, Qualifier: qualifier, Value: value})
}

// appended adds an hour to the append column, Batch points at a time.
func (l *loader) appended(ctx context.Context, row []byte, h workload.Hour) {
	for from := 0; from < len(h.Values); from += l.Batch {
		var entries []byte
		for i := from; i < min(from+l.Batch, len(h.Values)); i++ {
			q, value := l.point(i, h)
			entries = encoding.AppendEntry(entries, q, value)
		}
		l.cells.Add(ctx, store.Mutation{Kind: store.Append, Row: row, Qualifier: encoding.AppendColumn, Value: entries})
	}
}

// Fill makes OpenTSDB's tables, with names that begin with prefix, if they do not exist,
// and writes a data set into them, a whole row at a time.
func Fill(
	ctx context.Context, st store.Store, schema encoding.Schema, prefix string, d workload.Devops,
	form write.Form, p *progress.Progress,
) error {
	l, err := newLocal(ctx, st, schema, prefix)
	if err != nil {
		return err
	}
	return l.load(ctx, d, form, 0, p)
}
