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
	l := loader{Target: t, d: d, keys: make([]*write.SeriesKey, d.Series())}
	if l.Batch <= 0 {
		l.Batch = d.PerHour()
	}

	series := write.NewSeries(write.SeriesConfig{Schema: t.Schema, Names: t.Names, Auto: write.Auto{Metrics: true, TagKs: true, TagVs: true}})
	for i := range l.keys {
		var tags []write.Tag
		for _, tag := range d.Host(i / d.MetricCount) {
			tags = append(tags, write.Tag{K: tag.K, V: tag.V})
		}
		key, err := series.Resolve(ctx, workload.Metrics[i%d.MetricCount].Name, tags)
		if err != nil {
			return nil, fmt.Errorf("load: series %d: %w", i, err)
		}
		l.keys[i] = key
	}

	for h := range d.Hourly() {
		if err := l.hour(ctx, h); err != nil {
			return nil, fmt.Errorf("load: hour %d of series %d: %w", h.Base, h.Series, err)
		}
		p.Add(int64(len(h.Values)))
	}

	return l.keys[0].Metric, l.flush(ctx)
}

// loader collects the mutations of many rows before it writes them.
type loader struct {
	Target
	d         workload.Devops
	keys      []*write.SeriesKey
	mutations []store.Mutation
}

// loadMutations is how many mutations are written together.
const loadMutations = 1000

// hour adds the row of one hour and series.
func (l *loader) hour(ctx context.Context, h workload.Hour) error {
	k := l.keys[h.Series]
	row := l.Schema.AppendRowKey(nil, k.Metric, uint32(h.Base), k.Tags)
	switch l.Form {
	case write.MultiPoint:
		l.compacted(row, h)
	case write.Appended:
		l.appended(row, h)
	default:
		l.cells(row, h)
	}

	if len(l.mutations) < loadMutations {
		return nil
	}
	return l.flush(ctx)
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
func (l *loader) compacted(row []byte, h workload.Hour) {
	var cell encoding.CellBuilder
	for i := range h.Values {
		cell.Add(l.point(i, h))
	}
	qualifier, value := cell.Cell()
	l.mutations = append(l.mutations, store.Mutation{Row: row, Family: "t", Qualifier: qualifier, Value: value})
}

// appended adds an hour to the append column, Batch points at a time.
func (l *loader) appended(row []byte, h workload.Hour) {
	for from := 0; from < len(h.Values); from += l.Batch {
		var entries []byte
		for i := from; i < min(from+l.Batch, len(h.Values)); i++ {
			q, value := l.point(i, h)
			entries = encoding.AppendEntry(entries, q, value)
		}
		l.mutations = append(l.mutations, store.Mutation{Kind: store.Append, Row: row, Family: "t", Qualifier: encoding.AppendColumn, Value: entries})
	}
}

// cells adds an hour as a cell for each point.
func (l *loader) cells(row []byte, h workload.Hour) {
	for i := range h.Values {
		q, value := l.point(i, h)
		l.mutations = append(l.mutations, store.Mutation{Row: row, Family: "t", Qualifier: encoding.AppendQualifier(nil, q), Value: value})
	}
}

func (l *loader) flush(ctx context.Context) error {
	err := l.Store.Apply(ctx, l.Table, l.mutations)
	l.mutations = l.mutations[:0]
	return err
}

// Fill makes OpenTSDB's tables, with names that begin with prefix, if they do not exist,
// and writes a data set into them, a whole row at a time.
func Fill(ctx context.Context, st store.Store, schema encoding.Schema, prefix string, d workload.Devops, form write.Form, p *progress.Progress) error {
	l, err := newLocal(ctx, st, schema, prefix)
	if err != nil {
		return err
	}
	return l.load(ctx, d, form, 0, p)
}
