// Package metapurge deletes all meta data: the UIDMeta of all names, and the TSMeta and the
// counter of all series. Names and points stay.
//
// Both tables are read in the order of their keys, and what is deleted is the version that
// was read: on HBase an object that is written later stays. A purge can be ended and run
// again at any time.
// Source: MetaPurge, which deletes only in rows below the largest metric UID.
package metapurge

import (
	"bytes"
	"context"
	"fmt"

	"downpour/encoding"
	"downpour/gateway/metadata/wholetable"
	"downpour/pushdown/store"
)

// Store is what a purge needs of a store.
type Store interface {
	store.Reader
	store.Writer
}

// Config says where the meta data is.
type Config struct {
	Store     Store
	UID, Meta string // tables
	// Progress gets what is being done, often. It must not be nil.
	Progress func(line string)
}

// Report counts what was deleted.
type Report struct {
	UIDMeta  int64 `json:"uidMeta"`
	TSMeta   int64 `json:"tsMeta"`
	Counters int64 `json:"counters"`
	// Written are those objects in which somebody has written a text or a field of their own.
	Written int64 `json:"written"`
}

// Run deletes all meta data. Errors are the store's.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	p := &purge{Config: cfg, report: new(Report)}
	if err := p.table(ctx, cfg.UID, p.uidMeta); err != nil {
		return p.report, err
	}
	return p.report, p.table(ctx, cfg.Meta, p.series)
}

// purge is a purge that runs.
type purge struct {
	Config
	report *Report
}

// perWrite bounds the cells of one write.
const perWrite = 1000

// table deletes the cells of a table that count knows.
func (p *purge) table(ctx context.Context, table string, count func(store.Cell) bool) error {
	var gone []store.Mutation
	progress := func(rows int) { p.Progress(fmt.Sprintf("%s: %d rows read; so far %s", table, rows, p.report)) }
	for row, err := range wholetable.Counted(ctx, p.Store, store.Scan{
		Table:  table,
		Family: encoding.FamilyName,
	}, perWrite, progress) {
		if err != nil {
			return err
		}

		for _, c := range row.Cells {
			if count(c) {
				// With the time of the version that was read, a later one survives on HBase.
				gone = append(gone, store.Mutation{
					Kind:      store.DeleteCell,
					Row:       bytes.Clone(row.Key),
					Family:    encoding.FamilyName,
					Qualifier: bytes.Clone(c.Qualifier),
					Timestamp: c.Timestamp,
				})
			}
		}
		if len(gone) >= perWrite {
			if err := p.delete(ctx, table, gone); err != nil {
				return err
			}
			gone = gone[:0]
		}
	}
	return p.delete(ctx, table, gone)
}

// delete deletes cells.
func (p *purge) delete(ctx context.Context, table string, gone []store.Mutation) error {
	if len(gone) == 0 {
		return nil
	}
	return p.Store.Apply(ctx, table, gone)
}

// uidMeta counts a cell of the UID table; it returns false for what is no meta data. Old
// versions of OpenTSDB kept those of series there, too.
func (p *purge) uidMeta(c store.Cell) bool {
	if _, meta, ok := encoding.ParseUIDKind(c.Qualifier); !ok || !meta {
		return p.series(c)
	}
	p.report.UIDMeta++
	// What cannot be read may be somebody's, too.
	if m, err := encoding.ParseUIDMeta(c.Value); err != nil || m.DisplayName+m.Description+m.Notes != "" ||
		len(m.Custom) > 0 {
		p.report.Written++
	}
	return true
}

// series counts a cell of the meta table; it returns false for what is no meta data.
func (p *purge) series(c store.Cell) bool {
	switch string(c.Qualifier) {
	case encoding.MetaCounterQualifier:
		p.report.Counters++
		return true
	case encoding.TSMetaQualifier:
		p.report.TSMeta++
		m, err := encoding.ParseTSMeta(c.Value)
		// What cannot be read may be somebody's, too.
		if err != nil || m.Written() {
			p.report.Written++
		}
		return true
	}
	return false
}

// String is the counts as text.
func (r *Report) String() string {
	return fmt.Sprintf("%d UIDMeta, %d TSMeta and %d counters; in %d of the objects somebody has written", r.UIDMeta,
		r.TSMeta, r.Counters, r.Written)
}
