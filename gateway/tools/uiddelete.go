package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
)

// deleteWish asks a gateway to delete a name.
type deleteWish struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Force bool   `json:"force"`
}

// Deleted tells what a deletion removed.
type Deleted struct {
	UID encoding.UID `json:"uid"`
	// Meta tells that the UID had meta data; Series is how many series with it
	// were recorded in the meta table. Both are removed.
	Meta   bool `json:"meta"`
	Series int  `json:"series"`
	// Row is a row of points that stays, without a name to find it by; nil if
	// there is none.
	Row encoding.UID `json:"row,omitempty"`
}

// errInUse refuses to delete the name of data.
var errInUse = errors.New("has data")

// deletion removes a name and its UID from each other, and the meta data of
// both. While rows have the UID it is refused unless forced: they would stay,
// and every query that meets one would fail for want of a name.
// Source: UniqueId.deleteAsync, which does not look.
type deletion struct {
	settings *Settings
	st       Store
	names    *uid.Dictionary
	forget   func() // what this process remembers of series; nil for nothing
	kind     encoding.UIDKind
	name     string
	force    bool

	uid  encoding.UID
	done Deleted
}

func (d *deletion) run(ctx context.Context) (*Deleted, error) {
	d.drop() // a rename elsewhere must not have us delete another's UID
	var err error
	if d.uid, err = d.names.Resolve(ctx, d.kind, d.name); err != nil {
		return nil, err
	}
	d.done.UID = d.uid
	if err := d.checkUnused(ctx); err != nil {
		return nil, err
	}
	row, err := encoding.AppendName(nil, d.name)
	if err != nil {
		return nil, err
	}
	// The forward mapping goes first: a UID that writers can still find has a
	// name, whatever happens in between.
	forward := store.CellKey{Row: row, Family: encoding.FamilyID, Qualifier: d.kind.Qualifier()}
	if err := d.remove(ctx, d.settings.Tables.UID, forward); err != nil {
		return nil, err
	}
	d.drop()
	// What was written since the first look was written under the name.
	if err := d.checkUnused(ctx); err != nil {
		return nil, errors.Join(err, d.restore(ctx, forward))
	}
	if err := d.removeMeta(ctx); err != nil {
		return nil, err
	}
	reverse := store.CellKey{Row: d.uid, Family: encoding.FamilyName, Qualifier: d.kind.Qualifier()}
	if err := d.remove(ctx, d.settings.Tables.UID, reverse); err != nil {
		return nil, err
	}
	d.drop()
	return &d.done, nil
}

func (d *deletion) drop() {
	d.names.Drop()
	if d.forget != nil {
		d.forget()
	}
}

func (d *deletion) remove(ctx context.Context, table string, at store.CellKey) error {
	m := store.Mutation{Kind: store.DeleteCell, Row: at.Row, Family: at.Family, Qualifier: at.Qualifier}
	if err := d.st.Apply(ctx, table, []store.Mutation{m}); err != nil {
		return fmt.Errorf("deleting %s %q: %w (run it again)", d.kind, d.name, err)
	}
	return nil
}

// restore gives the name its UID again.
func (d *deletion) restore(ctx context.Context, forward store.CellKey) error {
	ok, err := d.st.CompareAndPut(context.WithoutCancel(ctx), d.settings.Tables.UID, forward, nil, d.uid)
	if err == nil && !ok {
		err = fmt.Errorf("%s %q has got another UID meanwhile; what was stored under %s is found by that UID alone", d.kind, d.name, d.uid)
	}
	return err
}

// checkUnused looks for a row with the UID.
func (d *deletion) checkUnused(ctx context.Context) error {
	row, err := d.dataRow(ctx)
	if err != nil {
		return fmt.Errorf("looking for data of %s %q: %w", d.kind, d.name, err)
	}
	if row == nil {
		return nil
	}
	d.done.Row = row
	if d.force {
		return nil
	}
	return fmt.Errorf("%s %q %w: row %x of table %s holds its UID %s; delete its points first, or give -force, which makes them unreadable",
		d.kind, d.name, errInUse, []byte(row), d.settings.Tables.Data, d.uid)
}

// dataRow returns the key of a row with the UID, nil if there is none. For a
// metric that is a look at its place in each salt; for a tag the whole table is
// read, keys alone.
func (d *deletion) dataRow(ctx context.Context) (encoding.UID, error) {
	schema := d.settings.Schema
	if d.kind != encoding.UIDMetric {
		return d.scanRows(ctx, store.Scan{Filter: d.pattern()})
	}
	for bucket := range schema.Buckets() {
		start := schema.AppendRangeKey(nil, bucket, d.uid, 0)
		stop := encoding.Behind(start[:schema.BaseTimeAt()])
		if row, err := d.scanRows(ctx, store.Scan{Start: start, Stop: stop}); row != nil || err != nil {
			return row, err
		}
	}
	return nil, nil
}

// pattern lets the servers pass over rows without a tag key.
func (d *deletion) pattern() (f store.RowFilter) {
	schema := d.settings.Schema
	if d.kind == encoding.UIDTagK {
		f.Pattern = &store.KeyPattern{Head: schema.HeadWidth(), NameLen: schema.TagKWidth, ValueLen: schema.TagVWidth, Wants: []store.Want{{Name: d.uid}}}
	}
	return f
}

func (d *deletion) scanRows(ctx context.Context, s store.Scan) (encoding.UID, error) {
	s.Table, s.Family, s.KeysOnly, s.BlockBytes = d.settings.Tables.Data, encoding.FamilyData, true, exportBlock
	for row, err := range store.Rows(ctx, d.st, s) {
		if err != nil {
			return nil, err
		}
		k, err := d.settings.Schema.ParseRowKey(row.Key)
		if err == nil && d.in(k.Metric, k.Tags) { // else no row of ours, or of another series
			return bytes.Clone(row.Key), nil
		}
	}
	return nil, nil
}

// in tells whether a series has the UID.
func (d *deletion) in(metric, tags []byte) bool {
	if d.kind == encoding.UIDMetric {
		return bytes.Equal(metric, d.uid)
	}
	for _, p := range d.settings.Schema.AppendPairs(nil, tags) {
		if d.kind == encoding.UIDTagK && bytes.Equal(p.K, d.uid) || d.kind == encoding.UIDTagV && bytes.Equal(p.V, d.uid) {
			return true
		}
	}
	return false
}

// seriesOf are the deletions of the rows, among those scanned, of series with the
// UID.
func (d *deletion) seriesOf(ctx context.Context, scan store.Scan) (series []store.Mutation, err error) {
	for row, err := range store.Rows(ctx, d.st, scan) {
		if err != nil {
			return nil, err
		}
		if metric, tags, err := d.settings.Schema.SplitTSUID(row.Key); err == nil && d.in(metric, tags) {
			series = append(series, store.Mutation{Kind: store.DeleteRow, Row: bytes.Clone(row.Key), Family: encoding.FamilyName})
		}
	}
	return series, nil
}

// removeMeta removes the UIDMeta, and what the meta table has of series with the
// UID: lookups could not name them.
func (d *deletion) removeMeta(ctx context.Context) error {
	scan := store.Scan{Table: d.settings.Tables.Meta, Family: encoding.FamilyName, KeysOnly: true, BlockBytes: exportBlock}
	if d.kind == encoding.UIDMetric {
		scan.Start, scan.Stop = d.uid, encoding.Behind(d.uid)
	}
	series, err := d.seriesOf(ctx, scan)
	if err == nil && len(series) > 0 {
		err = d.st.Apply(ctx, d.settings.Tables.Meta, series)
	}
	if err != nil {
		return fmt.Errorf("deleting the meta data of %s %q: %w", d.kind, d.name, err)
	}
	d.done.Series = len(series)
	rows, err := d.st.Get(ctx, d.settings.Tables.UID, encoding.FamilyName, [][]byte{d.uid})
	if err != nil {
		return err
	}
	at := store.CellKey{Row: d.uid, Family: encoding.FamilyName, Qualifier: d.kind.MetaQualifier()}
	for _, r := range rows {
		for _, c := range r.Cells {
			d.done.Meta = d.done.Meta || bytes.Equal(c.Qualifier, at.Qualifier)
		}
	}
	if !d.done.Meta {
		return nil
	}
	return d.remove(ctx, d.settings.Tables.UID, at)
}
