package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

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
//
// No point is lost that is put meanwhile. In this process nobody writes under
// the name from before the second look for rows until the end, and that look
// comes when all that was begun before is written. Other processes find out that
// the name is gone; then a third look shows what they have written until they
// did, and the name is given back.
// Source: UniqueId.deleteAsync, which does not look.
type deletion struct {
	settings *Settings
	st       Store
	names    *uid.Dictionary
	flush    func(context.Context) error // of the meta data; nil for nothing
	kind     encoding.UIDKind
	name     string
	force    bool

	uid  encoding.UID
	done Deleted
}

func (d *deletion) run(ctx context.Context) (*Deleted, error) {
	if err := d.look(ctx); err != nil {
		return nil, err
	}
	w, err := d.withdraw(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { w.End(d.uid) }()
	first := d.uid
	if err := d.look(ctx); err != nil {
		return nil, err
	}
	if !bytes.Equal(first, d.uid) {
		return nil, fmt.Errorf("deleting %s %q: its UID was %s and is %s: run it again", d.kind, d.name, first, d.uid)
	}
	if err := d.removeAll(ctx); err != nil {
		return nil, errors.Join(err, d.restore(ctx))
	}
	return &d.done, nil
}

// removeAll removes what there is of the name. The forward mapping goes first, and
// is given back if the rest fails: a UID that writers can find has a name,
// whatever happens in between, and a deletion that failed can be run again.
func (d *deletion) removeAll(ctx context.Context) error {
	forward, err := d.forward()
	if err == nil {
		err = d.remove(ctx, d.settings.Tables.UID, forward)
	}
	if err == nil {
		err = d.others(ctx)
	}
	if err == nil {
		err = d.removeMeta(ctx)
	}
	if err == nil {
		reverse := store.CellKey{Row: d.uid, Family: encoding.FamilyName, Qualifier: d.kind.Qualifier()}
		err = d.remove(ctx, d.settings.Tables.UID, reverse)
	}
	return err
}

// others lets other processes know that the name is gone, and looks at what they
// wrote under it until they did.
func (d *deletion) others(ctx context.Context) error {
	if err := d.names.Tell(ctx); err != nil || d.force {
		return err
	}
	if !d.settings.Embedded {
		select {
		case <-time.After(d.settings.KnownWithin):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return d.checkUnused(ctx)
}

func (d *deletion) forward() (store.CellKey, error) {
	row, err := encoding.AppendName(nil, d.name)
	return store.CellKey{Row: row, Family: encoding.FamilyID, Qualifier: d.kind.Qualifier()}, err
}

// look reads the UID and makes sure that it is of use to nobody.
func (d *deletion) look(ctx context.Context) (err error) {
	// A rename elsewhere must not have us delete another's UID.
	if d.uid, err = d.names.Fresh(ctx, d.kind, d.name); err != nil {
		return err
	}
	d.done.UID = d.uid
	return d.checkUnused(ctx)
}

// settleFor bounds the wait for points that are being written: a write that
// takes longer is given up.
const settleFor = 2 * time.Minute

// withdraw keeps everybody in this process from writing under the name, and
// waits for what is being written.
func (d *deletion) withdraw(ctx context.Context) (*uid.Withdrawal, error) {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	w, err := d.names.Withdraw(ctx, d.kind, d.name)
	if err != nil {
		return nil, err
	}
	if err := w.AwaitHolds(ctx); err != nil {
		w.End()
		return nil, fmt.Errorf("%w: deleting %s %q: points are still being written after %s: run it again", store.ErrUnavailable, d.kind, d.name, settleFor)
	}
	return w, nil
}

func (d *deletion) remove(ctx context.Context, table string, at store.CellKey) error {
	m := store.Mutation{Kind: store.DeleteCell, Row: at.Row, Family: at.Family, Qualifier: at.Qualifier}
	if err := d.st.Apply(ctx, table, []store.Mutation{m}); err != nil {
		return fmt.Errorf("deleting %s %q: %w (run it again)", d.kind, d.name, err)
	}
	return nil
}

// restoreFor bounds the giving back of a mapping.
const restoreFor = 30 * time.Second

// restore gives the name its UID again, whether who asked has left or not.
func (d *deletion) restore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreFor)
	defer cancel()
	forward, err := d.forward()
	if err != nil {
		return err
	}
	ok, err := d.st.CompareAndPut(ctx, d.settings.Tables.UID, forward, nil, d.uid)
	if err != nil || ok {
		return err
	}
	if now, err := d.names.Fresh(ctx, d.kind, d.name); err != nil || !bytes.Equal(now, d.uid) {
		return fmt.Errorf("%s %q has got another UID meanwhile (%s, %v); what was stored under %s is found by that UID alone", d.kind, d.name, now, err, d.uid)
	}
	return nil
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
	if d.flush != nil {
		if err := d.flush(ctx); err != nil {
			return err
		}
	}
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
