package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/gateway/metadata/wholetable"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
)

// deleteRequest asks a gateway to delete a name.
type deleteRequest struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Force bool   `json:"force"`
	// DryRun leaves the name, and says what would be removed.
	DryRun bool `json:"dryRun,omitempty"`
}

// Deleted says what a deletion removed.
type Deleted struct {
	UID encoding.UID `json:"uid"`
	// Meta is set if the UID had a UIDMeta object. Series is the number of series with
	// the UID in the meta table. Both are removed.
	Meta   bool `json:"meta"`
	Series int  `json:"series"`
	// Row is the key of a row of points that stays, although no name finds it any more;
	// nil if there is none.
	Row encoding.UID `json:"row,omitempty"`
}

// deletion removes the mappings between a name and its UID, and their meta data. It is
// refused while rows have the UID, unless forced: the rows would stay, and every query
// that reads one would fail because the UID has no name.
//
// Points that are put at the same time are not lost. It looks for rows three times:
//
//   - before it does anything;
//   - after it has kept this process from writing under the name, and all writes that
//     had begun are done;
//   - after the forward mapping is removed and other processes have had time to find
//     that out. If they have written rows until then, the name gets its UID back.
//
// Source: UniqueId.deleteAsync, which does not look.
type deletion struct {
	*work
	kind  encoding.UIDKind
	name  string
	force bool

	uid  encoding.UID
	done Deleted
}

// run deletes the name. It returns a conflict while rows have the UID.
func (d *deletion) run(ctx context.Context) (*Deleted, error) {
	if err := d.look(ctx); err != nil {
		return nil, err
	}

	w, err := d.withdraw(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { w.End(d.uid) }()

	// Until the name was withdrawn, it could get points or another UID, so it is looked at again.
	first := d.uid
	if err := d.look(ctx); err != nil {
		return nil, err
	}
	// The name was deleted or renamed, and put again, in between.
	if !bytes.Equal(first, d.uid) {
		return nil, fmt.Errorf("deleting %s %q: its UID was %s and is %s: run it again", d.kind, d.name, first, d.uid)
	}

	if err := d.removeAll(ctx); err != nil {
		return nil, errors.Join(err, d.restore(ctx))
	}
	return &d.done, nil
}

// removeAll removes the mappings and the meta data. The forward mapping goes first, and
// is restored if the rest fails: so a UID that writers can find always has a name, and a
// deletion that has failed can be run again.
func (d *deletion) removeAll(ctx context.Context) error {
	forward, err := d.forward()
	if err == nil {
		err = d.remove(ctx, d.Tables.UID, forward)
	}
	if err == nil {
		err = d.awaitOthers(ctx)
	}
	if err == nil {
		err = d.removeMeta(ctx)
	}
	if err == nil {
		reverse := store.CellKey{Row: d.uid, Family: encoding.FamilyName, Qualifier: d.kind.Qualifier()}
		err = d.remove(ctx, d.Tables.UID, reverse)
	}
	return err
}

// awaitOthers notifies other processes that the name is deleted, waits until they know, and
// looks for rows that they wrote until then.
func (d *deletion) awaitOthers(ctx context.Context) error {
	// A forced deletion leaves rows as they are, so it need not wait for those of others.
	if err := d.Names.Tell(ctx); err != nil || d.force || d.dryRun {
		return err
	}
	// An embedded store is this process's alone, which has withdrawn the name.
	if !d.Embedded {
		select {
		case <-time.After(d.KnownWithin):
		case <-ctx.Done():
			return ctx.Err()
		}
	}

	return d.checkUnused(ctx)
}

// forward returns the cell that maps the name to its UID.
func (d *deletion) forward() (store.CellKey, error) {
	row, err := encoding.AppendName(nil, d.name)
	return store.CellKey{Row: row, Family: encoding.FamilyID, Qualifier: d.kind.Qualifier()}, err
}

// look reads the UID and checks that no row has it.
func (d *deletion) look(ctx context.Context) (err error) {
	// The cached UID may be wrong: another process may have renamed the name.
	if d.uid, err = d.Names.Fresh(ctx, d.kind, d.name); err != nil {
		return err
	}

	d.done.UID = d.uid
	return d.checkUnused(ctx)
}

// settleFor bounds the wait for points that are being written. No write takes longer
// than that: it is given up before.
const settleFor = 2 * time.Minute

// withdraw keeps this process from writing under the name, and waits until what is being
// written under it is stored.
func (d *deletion) withdraw(ctx context.Context) (*uid.Withdrawal, error) {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()

	w, err := d.Names.Withdraw(ctx, d.kind, d.name)
	if err != nil {
		return nil, err
	}
	if err := w.AwaitHolds(ctx); err != nil {
		w.End()
		return nil, fmt.Errorf("%w: deleting %s %q: points are still being written after %s: run it again",
			store.ErrUnavailable, d.kind, d.name, settleFor)
	}
	return w, nil
}

// remove deletes a cell.
func (d *deletion) remove(ctx context.Context, table string, at store.CellKey) error {
	m := store.Mutation{Kind: store.DeleteCell, Row: at.Row, Family: at.Family, Qualifier: at.Qualifier}
	if err := d.Store.Apply(ctx, table, []store.Mutation{m}); err != nil {
		return fmt.Errorf("deleting %s %q: %w (run it again)", d.kind, d.name, err)
	}
	return nil
}

// restoreFor bounds restore.
const restoreFor = 30 * time.Second

// restore gives the name its UID again, even if the context has ended.
func (d *deletion) restore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreFor)
	defer cancel()

	forward, err := d.forward()
	if err != nil {
		return err
	}

	ok, err := d.Store.CompareAndPut(ctx, d.Tables.UID, forward, nil, d.uid)
	if err != nil || ok {
		return err
	}

	// Somebody has put under the name and so assigned it another UID.
	if now, err := d.Names.Fresh(ctx, d.kind, d.name); err != nil || !bytes.Equal(now, d.uid) {
		return fmt.Errorf("%s %q has got another UID meanwhile (%s, %v); what was stored under %s is found by "+
			"that UID alone", d.kind, d.name, now, err, d.uid)
	}
	return nil
}

// checkUnused returns a conflict if a row of data or of rollups has the UID, unless the
// deletion is forced.
func (d *deletion) checkUnused(ctx context.Context) error {
	for _, table := range slices.Concat([]string{d.Tables.Data}, d.Tables.Rollups) {
		row, err := d.dataRow(ctx, table)
		// Nobody has to make the tables of rollups before there are some.
		if table != d.Tables.Data && errors.Is(err, store.ErrNoTable) {
			continue
		}
		if err != nil {
			return fmt.Errorf("looking for data of %s %q: %w", d.kind, d.name, err)
		}
		if row != nil {
			return d.inUse(table, row)
		}
	}
	return nil
}

// inUse notes a row that has the UID. It returns a conflict unless the deletion is forced.
func (d *deletion) inUse(table string, row encoding.UID) error {
	d.done.Row = row
	if d.force {
		return nil
	}
	return conflict("%s %q has data: row %x of table %s holds its UID %s; delete its points first, or give -force, "+
		"which makes them unreadable",
		d.kind, d.name, []byte(row), table, d.uid)
}

// dataRow returns the key of a table's row with the UID, nil if there is none. For a metric it
// looks at one place in each salt bucket; for a tag it reads the keys of the whole table:
// the store filters by a tag key, scanRows by a tag value.
func (d *deletion) dataRow(ctx context.Context, table string) (encoding.UID, error) {
	schema := d.Schema
	if d.kind != encoding.UIDMetric {
		return d.scanRows(ctx, store.Scan{Table: table, Filter: d.pattern()})
	}

	for bucket := range schema.Buckets() {
		start := schema.AppendRangeKey(nil, bucket, d.uid, 0)
		stop := encoding.PrefixEnd(start[:schema.BaseTimeAt()])
		if row, err := d.scanRows(ctx, store.Scan{Table: table, Start: start, Stop: stop}); row != nil || err != nil {
			return row, err
		}
	}
	return nil, nil
}

// pattern returns a filter of rows with the tag key. For a tag value there is none.
func (d *deletion) pattern() (f store.RowFilter) {
	schema := d.Schema
	if d.kind == encoding.UIDTagK {
		f.Pattern = &store.KeyPattern{
			Head:     schema.HeadWidth(),
			NameLen:  schema.TagKWidth,
			ValueLen: schema.TagVWidth,
			Wants:    []store.Want{{Name: d.uid}},
		}
	}
	return f
}

// scanRows returns the key of the first row of a scan that has the UID, nil for none.
func (d *deletion) scanRows(ctx context.Context, s store.Scan) (encoding.UID, error) {
	s.Family, s.KeysOnly = encoding.FamilyData, true
	for row, err := range wholetable.Rows(ctx, d.Store, s) {
		if err != nil {
			return nil, err
		}

		// A key of an impossible length is of no series. That of a global annotation has no tags,
		// and a metric that is never assigned.
		k, err := d.Schema.ParseRowKey(row.Key)
		if err == nil && d.in(k.Metric, k.Tags) {
			return bytes.Clone(row.Key), nil
		}
	}
	return nil, nil
}

// in reports whether a series has the UID.
func (d *deletion) in(metric, tags []byte) bool {
	if d.kind == encoding.UIDMetric {
		return bytes.Equal(metric, d.uid)
	}

	for _, p := range d.Schema.AppendPairs(nil, tags) {
		if d.kind == encoding.UIDTagK && bytes.Equal(p.K, d.uid) ||
			d.kind == encoding.UIDTagV && bytes.Equal(p.V, d.uid) {
			return true
		}
	}
	return false
}

// seriesOf returns deletions of the rows of a scan of the meta table whose series have
// the UID.
func (d *deletion) seriesOf(ctx context.Context, scan store.Scan) (series []store.Mutation, err error) {
	for row, err := range wholetable.Rows(ctx, d.Store, scan) {
		if err != nil {
			return nil, err
		}
		if metric, tags, err := d.Schema.SplitTSUID(row.Key); err == nil && d.in(metric, tags) {
			series = append(series, store.Mutation{
				Kind:   store.DeleteRow,
				Row:    bytes.Clone(row.Key),
				Family: encoding.FamilyName,
			})
		}
	}
	return series, nil
}

// removeMeta removes the UIDMeta object, and the rows of series with the UID from the
// meta table, because lookups could not name these any more.
func (d *deletion) removeMeta(ctx context.Context) error {
	// Pending meta data would bring rows of the series back after they are removed.
	if d.Flush != nil {
		if err := d.Flush(ctx); err != nil {
			return err
		}
	}

	scan := store.Scan{Table: d.Tables.Meta, Family: encoding.FamilyName, KeysOnly: true}
	// A row's key is a TSUID: it begins with the metric, and may have the tag anywhere.
	if d.kind == encoding.UIDMetric {
		scan.Start, scan.Stop = d.uid, encoding.PrefixEnd(d.uid)
	}
	series, err := d.seriesOf(ctx, scan)
	if err == nil && len(series) > 0 {
		err = d.Store.Apply(ctx, d.Tables.Meta, series)
	}
	if err != nil {
		return fmt.Errorf("deleting the meta data of %s %q: %w", d.kind, d.name, err)
	}
	d.done.Series = len(series)

	// A deletion does not show whether the object was there.
	rows, err := d.Store.Get(ctx, d.Tables.UID, encoding.FamilyName, [][]byte{d.uid})
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
	return d.remove(ctx, d.Tables.UID, at)
}

// remove deletes a name.
func (h *served) remove(w http.ResponseWriter, r *http.Request) error {
	var in deleteRequest
	kind, err := decodeKind(w, r, &in, &in.Kind)
	if err != nil {
		return err
	}
	d := &deletion{work: &h.work, kind: kind, name: in.Name, force: in.Force}
	if in.DryRun {
		d.work = h.dry()
	}
	done, err := d.run(r.Context())
	if err != nil {
		return err
	}
	writeObject(w, http.StatusOK, done)
	return nil
}
