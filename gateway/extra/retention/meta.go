package retention

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/gateway/metadata/wholetable"
	"downpour/pushdown/store"
)

// Meta deletes the meta data of series without rows: the TSMeta and the counter of
// each, in the meta table. Annotations of a series lie in its rows, and go with them.
//
// Of a metric that has an age, the series with meta data are listed, and the keys of its rows are
// read, those of now first, until each series has one or all were read. The row of a series
// without any is deleted only if it is as it was read (Replace of store.Cells). Then the keys of these
// series are looked for again, and their rows in the meta table are read: a series that has got a
// point by then, or a counter, gets back what was deleted. A point that comes later makes it
// again, as of a series that is new (package gateway/metadata/meta).
//
// What stays: objects in which somebody has written; UIDMeta, which is of names, and these stay.
// No put would make it again.
type Meta struct {
	Job *Job
	// Table is the meta table.
	Table string
	// Bytes bounds the memory of the series that are looked at together. Default 64 MiB.
	Bytes int
	// DryRun counts what would be deleted after the rows that are past, and deletes nothing.
	DryRun bool
}

// MetaReport counts what was found, and deleted.
type MetaReport struct {
	Series   int64 `json:"series"`   // with meta data, of metrics that have an age
	TSMeta   int64 `json:"tsMeta"`   // deleted
	Counters int64 `json:"counters"` // deleted
	Written  int64 `json:"written"`  // series without rows that stay, because somebody has written in their TSMeta
	Changed  int64 `json:"changed"`  // series that stay, or are back, because they have changed since
	DryRun   bool  `json:"dryRun,omitempty"`
}

// String sums up in one line.
func (r *MetaReport) String() string {
	done := "deleted"
	if r.DryRun {
		done = "would be deleted"
	}
	return fmt.Sprintf("meta data of series without rows: %d TSMeta and %d counters %s, of %d series; %d stay because "+
		"somebody has written in them, %d because they have changed",
		r.TSMeta, r.Counters, done, r.Series, r.Written, r.Changed)
}

const (
	defaultMetaBytes = 64 << 20
	// seriesBytes is about what a series takes on top of its row.
	seriesBytes = 300
	// perReplace is the number of series that are deleted at a time.
	perReplace = 1000
	// youngSpan is the time, in s, whose rows are looked at first: most series have one there.
	youngSpan = 86_400
)

// metaRun is a run of Meta.
type metaRun struct {
	*Meta
	tables []*past
	report *MetaReport
	tell   func(line func() string)
}

// series are rows of the meta table by the tags of their series.
type series map[string]store.Row

// Run deletes meta data. After an error it can be run again.
func (m *Meta) Run(ctx context.Context) (*MetaReport, error) {
	r := &metaRun{Meta: m, report: &MetaReport{DryRun: m.DryRun}, tell: m.Job.teller()}
	var err error
	if r.tables, _, err = m.Job.find(ctx, 0, m.Job.Now().Unix()); err != nil {
		return r.report, err
	}
	for _, p := range r.tables {
		if p.table.Interval != "" {
			continue
		}
		for i := range p.metrics {
			if err := r.metric(ctx, p.metrics[i].uid); err != nil {
				return r.report, fmt.Errorf("meta data of the series of metric %s: %w (what is deleted is gone; run "+
					"it again to go on)", p.metrics[i].uid, err)
			}
		}
		break // the first such table is that of points
	}
	return r.report, nil
}

// metric deletes what is to go of the series of a metric, as many at a time as fit into memory.
func (r *metaRun) metric(ctx context.Context, metric encoding.UID) error {
	most := r.Bytes
	if most <= 0 {
		most = defaultMetaBytes
	}
	found, used := series{}, 0
	flush := func() error {
		err := r.deleteRowless(ctx, metric, found)
		found, used = series{}, 0
		return err
	}
	scan := store.Scan{Table: r.Table, Family: encoding.FamilyName, Start: metric, Stop: encoding.PrefixEnd(metric)}
	for row, err := range wholetable.Rows(ctx, r.Job.Store, scan) {
		if err != nil {
			return err
		}
		_, tags, err := r.Job.Schema.SplitTSUID(row.Key)
		if err != nil {
			continue // of no series
		}
		clone := store.Row{Key: bytes.Clone(row.Key)}
		known := false
		for _, c := range row.Cells {
			known = known || isMeta(c)
			clone.Cells = append(clone.Cells, c.Clone())
			used += len(c.Qualifier) + len(c.Value)
		}
		if !known {
			continue
		}
		found[string(tags)] = clone
		r.report.Series++
		r.tell(func() string { return fmt.Sprintf("table %s: %d series looked at", r.Table, r.report.Series) })
		if used += len(row.Key) + seriesBytes; used >= most {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// isMeta reports whether a cell is a TSMeta or a counter.
func isMeta(c store.Cell) bool {
	return string(c.Qualifier) == encoding.TSMetaQualifier || string(c.Qualifier) == encoding.MetaCounterQualifier
}

// deleteRowless deletes the meta data of those of the found series of a metric that have no row, and puts
// it back if they have got one in between. found has only those series afterwards.
func (r *metaRun) deleteRowless(ctx context.Context, metric encoding.UID, found series) error {
	if err := r.dropSeriesWithRows(ctx, metric, found, r.DryRun); err != nil {
		return err
	}
	var changes []store.Replacement
	var tags []string
	for t, row := range found {
		c := store.Replacement{Read: row}
		written := false
		for _, cell := range row.Cells {
			if isMeta(cell) {
				c.Delete = append(c.Delete, cell)
			}
			if string(cell.Qualifier) == encoding.TSMetaQualifier {
				m, err := encoding.ParseTSMeta(cell.Value)
				written = err != nil || m.Written() // what cannot be read may be somebody's
			}
		}
		if written {
			r.report.Written++
			continue
		}
		changes, tags = append(changes, c), append(tags, t)
	}
	if r.DryRun {
		for i := range changes {
			r.count(changes[i].Delete, 1)
		}
		return nil
	}

	deleted := series{}
	for len(changes) > 0 {
		n := min(len(changes), perReplace)
		outcomes, err := r.Job.Store.Replace(ctx, r.Table, encoding.FamilyName, changes[:n])
		for i, o := range outcomes {
			if o == store.Replaced || err != nil { // after an error it may be gone
				deleted[tags[i]] = changes[i].Read
			}
			if o == store.Replaced {
				r.count(changes[i].Delete, 1)
			} else if err == nil {
				r.report.Changed++
			}
		}
		if err != nil {
			counted := *r.report
			err = errors.Join(err, r.restoreRevived(context.WithoutCancel(ctx), metric, deleted))
			*r.report = counted
			return err
		}
		changes, tags = changes[n:], tags[n:]
	}
	// An end of the run in the middle of this would leave series that have points without it.
	return r.restoreRevived(context.WithoutCancel(ctx), metric, deleted)
}

// count counts deleted cells, or with -1 those that are back.
func (r *metaRun) count(cells []store.Cell, by int64) {
	for _, c := range cells {
		switch string(c.Qualifier) {
		case encoding.TSMetaQualifier:
			r.report.TSMeta += by
		case encoding.MetaCounterQualifier:
			r.report.Counters += by
		}
	}
}

// dropSeriesWithRows removes from a set of series of a metric those that have a row. With expired, rows that
// retention is about to delete do not count.
func (r *metaRun) dropSeriesWithRows(ctx context.Context, metric encoding.UID, of series, expired bool) error {
	young := encoding.KeyTime(r.Job.Now().Unix() - youngSpan)
	for _, p := range r.tables {
		from := uint32(0)
		if i, ok := p.byUID[string(metric)]; ok && expired {
			from = p.metrics[i].cut
		}
		for _, times := range [][2]uint32{{max(young, from), 0}, {from, max(young, from)}} {
			if times[0] == times[1] {
				continue
			}
			for bucket := range r.Job.Schema.Buckets() {
				keys := store.KeyRange{
					Start: r.Job.Schema.AppendRangeKey(nil, bucket, metric, times[0]),
					Stop:  r.Job.Schema.AppendRangeKey(nil, bucket, metric, times[1]),
				}
				if times[1] == 0 { // to the end of the metric
					keys.Stop = encoding.PrefixEnd(keys.Start[:r.Job.Schema.BaseTimeAt()])
				}
				if err := r.dropSeriesSeenIn(ctx, p, keys, of); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// dropSeriesSeenIn removes from a set of series those that have a row in a range of keys of a table.
func (r *metaRun) dropSeriesSeenIn(ctx context.Context, p *past, keys store.KeyRange, of series) error {
	if len(of) == 0 {
		return nil
	}
	scan := store.Scan{
		Table:    p.table.Name,
		Family:   encoding.FamilyData,
		Start:    keys.Start,
		Stop:     keys.Stop,
		KeysOnly: true,
	}
	for row, err := range wholetable.Rows(ctx, r.Job.Store, scan) {
		if p.missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if k, err := r.Job.Schema.ParseRowKey(row.Key); err == nil {
			if delete(of, string(k.Tags)); len(of) == 0 {
				return nil
			}
		}
	}
	return nil
}

// restoreError is the error if it is not known which series have got points since their meta data was
// deleted. It says what the operator can do.
func restoreError(metric encoding.UID, err error) error {
	return fmt.Errorf("metric %X: cannot see whether series whose meta data was deleted have got points meanwhile; "+
		"uid metasync makes what is missing: %w", []byte(metric), err)
}

// restoreRevived puts the deleted meta data back of those series of a metric that have got a row or a
// counter since. A counter alone matters, too: a gateway that counts the points of a series takes one that
// has a counter for one that has a TSMeta.
func (r *metaRun) restoreRevived(ctx context.Context, metric encoding.UID, deleted series) error {
	rowless := make(series, len(deleted))
	keys := make([]string, 0, len(deleted))
	for tags, row := range deleted {
		rowless[tags] = row
		keys = append(keys, string(row.Key))
	}
	if err := r.dropSeriesWithRows(ctx, metric, rowless, false); err != nil {
		return restoreError(metric, err)
	}
	stored, err := wholetable.Lookup(ctx, r.Job.Store, r.Table, encoding.FamilyName, keys)
	if err != nil {
		return restoreError(metric, err)
	}

	var cells []store.CellKey
	var values [][]byte
	for tags, row := range deleted {
		_, hasNoRow := rowless[tags]
		if hasNoRow && stored.Value(string(row.Key), encoding.MetaCounterQualifier) == nil {
			continue
		}
		r.report.Changed++
		r.count(row.Cells, -1)
		// The TSMeta comes first: no moment has a counter without a TSMeta.
		for _, qualifier := range []string{encoding.TSMetaQualifier, encoding.MetaCounterQualifier} {
			for _, c := range row.Cells {
				if string(c.Qualifier) == qualifier {
					cells = append(cells, store.CellKey{
						Row:       row.Key,
						Family:    encoding.FamilyName,
						Qualifier: c.Qualifier,
					})
					values = append(values, c.Value)
				}
			}
		}
	}
	return r.putBack(ctx, cells, values)
}

// putBack puts cells of the meta table, in order, where no cell has been put since.
func (r *metaRun) putBack(ctx context.Context, cells []store.CellKey, values [][]byte) error {
	for len(cells) > 0 {
		n := min(len(cells), perReplace)
		if _, err := store.PutAbsent(ctx, r.Job.Store, r.Table, cells[:n], values[:n]); err != nil {
			return fmt.Errorf("cannot put back %d cells of meta data, of series that have points again (gateway uid "+
				"metasync makes them): %w", len(cells), err)
		}
		cells, values = cells[n:], values[n:]
	}
	return nil
}
