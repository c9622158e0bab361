package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/gateway/extra/tools/uiduse"
	"downpour/gateway/metadata/wholetable"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
)

// deletion removes the mappings between names and their UIDs, and their meta data. A name whose UID rows have is
// left, unless the deletion is forced: the rows would stay, and every query that reads one would fail because the UID
// has no name.
//
// Points that are put at the same time are not lost. The caller has looked for rows before. It looks two times more:
//
//   - after it has kept this process from writing under the names, and all writes that had begun are done;
//   - after the forward mappings are removed and other processes have had time to find that out. A name under which
//     they have written rows until then gets its UID back.
//
// The forward mapping goes first and the reverse one last, each only as it was read. So a UID that writers can find
// always has a name, and a deletion that was killed leaves UIDs without a name of theirs, which harm nothing and
// which uid reclaim removes.
//
// Source: UniqueId.deleteAsync, which does not look, and deletes one name.
type deletion struct {
	*work
	names []*doomed
	force bool
	// drawn are the kinds whose UIDs were drawn at random, as far as the caller knows.
	drawn    [3]bool
	progress func(line string) // nil for nobody
}

// doomed is a name that a deletion is about.
type doomed struct {
	uiduse.Key
	name string
	// leftover says that the UID leads to the name and no name to the UID: what a deletion has left that was killed.
	leftover bool

	fate   fate
	row    uiduse.Row   // that has the UID; without a key if none was found
	now    encoding.UID // of a name that is replaced: its new UID, nil for none
	meta   bool         // its UIDMeta object is removed
	series int          // how many rows of series with it are removed from the meta table
}

// fate is what becomes of a name.
type fate int

const (
	doom     fate = iota // it goes, or has to get its UID back
	gone                 // it is deleted
	inUse                // it stays, because rows have its UID
	changed              // it stays as another process has left it
	replaced             // rows have its UID, and it has got another one
)

// uid is the UID of the name.
func (n *doomed) uid() encoding.UID { return encoding.UID(n.UID) }

// forward and reverse are the cells of its mappings.
func (n *doomed) forward() store.CellKey {
	row, _ := encoding.AppendName(nil, n.name) // it was read from the table
	return store.CellKey{Row: row, Family: encoding.FamilyID, Qualifier: n.Kind.Qualifier()}
}

func (n *doomed) reverse() store.CellKey {
	return store.CellKey{Row: n.uid(), Family: encoding.FamilyName, Qualifier: n.Kind.Qualifier()}
}

// replacedError says what cannot be put right.
func (n *doomed) replacedError() error {
	return fmt.Errorf("%s %q has got another UID (%s) while it was deleted; what was stored under %s, row %x of table "+
		"%s and perhaps others, is found by that UID alone",
		n.Kind, n.name, n.now, n.uid(), []byte(n.row.Key), n.row.Table)
}

// run deletes the names and notes the fate of each. After an error the names that were not deleted have their UIDs, as
// far as the store can be reached.
func (d *deletion) run(ctx context.Context) error {
	w, err := d.withdraw(ctx)
	if err != nil {
		return err
	}
	defer func() { w.End(d.uids()...) }()

	// Until they were withdrawn the names could get points, or other UIDs.
	if err := d.reread(ctx); err != nil {
		return err
	}
	if err := d.look(ctx); err != nil { //fault:uid-deleted-without-a-look-after-puts TestReclaim_putsBetween
		return err
	}
	if err := d.removeAll(ctx); err != nil {
		return errors.Join(err, d.restore(ctx, d.with(doom, inUse)))
	}
	return nil
}

// with returns the names of some fates.
func (d *deletion) with(fates ...fate) (names []*doomed) {
	for _, n := range d.names {
		if slices.Contains(fates, n.fate) {
			names = append(names, n)
		}
	}
	return names
}

func (d *deletion) uids() []encoding.UID {
	uids := make([]encoding.UID, len(d.names))
	for i, n := range d.names {
		uids[i] = n.uid()
	}
	return uids
}

// String names one name, or says how many there are.
func (d *deletion) String() string {
	if len(d.names) == 1 {
		return fmt.Sprintf("deleting %s %q", d.names[0].Kind, d.names[0].name)
	}
	return fmt.Sprintf("deleting %d names", len(d.names))
}

// settleFor bounds the wait for points that are being written. No write takes longer
// than that: it is given up before.
const settleFor = 2 * time.Minute

// withdraw keeps this process from writing under the names, and waits until what is being
// written under them is stored.
func (d *deletion) withdraw(ctx context.Context) (*uid.Withdrawal, error) {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()

	var names uid.Names
	for _, n := range d.names {
		names[n.Kind] = append(names[n.Kind], n.name)
	}
	w, err := d.Names.WithdrawAll(ctx, names)
	if err != nil {
		return nil, err
	}
	if err := w.AwaitHolds(ctx); err != nil {
		w.End()
		return nil, fmt.Errorf("%w: %v: points are still being written after %s: run it again",
			store.ErrUnavailable, d, settleFor)
	}
	return w, nil
}

// look reads which UIDs rows have. Names of these stay, unless the deletion is forced.
func (d *deletion) look(ctx context.Context) error {
	names, wanted := d.with(doom), map[uiduse.Key]bool{}
	for _, n := range names {
		wanted[n.Key] = true
	}
	tables := d.rowTables(d.progress)
	rows, err := tables.Find(ctx, wanted)
	if err != nil {
		return fmt.Errorf("%v: %w", d, err)
	}
	for _, n := range names {
		row, used := rows[n.Key]
		if n.row = row; used && !d.force {
			n.fate = inUse
		}
	}
	return nil
}

// rowTables are the tables whose rows have UIDs.
func (x *work) rowTables(progress func(line string)) uiduse.Tables {
	return uiduse.Tables{
		Store:    x.Store,
		Schema:   x.Schema,
		Names:    slices.Concat([]string{x.Tables.Data}, x.Tables.Rollups),
		Progress: progress,
	}
}

// removeAll removes the mappings and the meta data of the names that go.
func (d *deletion) removeAll(ctx context.Context) error {
	if err := d.removeForward(ctx); err != nil {
		return err
	}
	if err := d.Names.Tell(ctx); err != nil {
		return err
	}
	// A forced deletion leaves rows as they are, so it need not wait for those of others.
	if !d.force && !d.dryRun {
		if err := d.awaitOthers(ctx); err != nil {
			return err
		}
		going := d.with(doom)
		if err := d.look(ctx); err != nil { //fault:uid-deleted-without-a-last-look TestUID_deleteMeetsPut
			return err
		}
		going = slices.DeleteFunc(going, func(n *doomed) bool { return n.fate != inUse })
		if err := d.restore(ctx, going); err != nil {
			return err
		}
	}
	if err := d.removeMeta(ctx); err != nil {
		return err
	}
	return d.removeReverse(ctx)
}

// awaitOthers waits until other processes know that the names are gone. An embedded store is this process's alone,
// which has withdrawn them.
func (d *deletion) awaitOthers(ctx context.Context) error {
	if d.Embedded {
		return nil
	}
	return pause(ctx, d.KnownWithin)
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// removeMeta removes the rows of series with a UID that goes from the meta table, because lookups could not name them
// any more.
func (d *deletion) removeMeta(ctx context.Context) error {
	// Pending meta data would bring rows of the series back after they are removed.
	if d.Flush != nil {
		if err := d.Flush(ctx); err != nil {
			return err
		}
	}

	going := map[uiduse.Key]*doomed{}
	scan := store.Scan{Table: d.Tables.Meta, Family: encoding.FamilyName, KeysOnly: true}
	for _, n := range d.with(doom) {
		going[n.Key] = n
		// A row's key is a TSUID: it begins with the metric, and may have a tag anywhere.
		if n.Kind == encoding.UIDMetric {
			scan.Start, scan.Stop = n.uid(), encoding.PrefixEnd(n.uid())
		}
	}
	if len(going) > 1 {
		scan.Start, scan.Stop = nil, nil
	}
	if err := d.removeSeries(ctx, scan, going); err != nil {
		return fmt.Errorf("%v: the meta data: %w", d, err)
	}
	return nil
}

// removeSeries deletes the rows of a scan of the meta table whose series have a UID that goes.
func (d *deletion) removeSeries(ctx context.Context, scan store.Scan, going map[uiduse.Key]*doomed) error {
	if len(going) == 0 {
		return nil
	}
	var rows []store.Mutation
	for row, err := range wholetable.Rows(ctx, d.Store, scan) {
		if err != nil {
			return err
		}
		metric, tags, err := d.Schema.SplitTSUID(row.Key)
		if err != nil {
			continue
		}
		goes := false
		for kind, u := range uiduse.UIDs(d.Schema, metric, tags) {
			if n := going[uiduse.Key{Kind: kind, UID: string(u)}]; n != nil {
				n.series++
				goes = true
			}
		}
		if !goes {
			continue
		}
		rows = append(rows, store.Mutation{
			Kind:   store.DeleteRow,
			Row:    bytes.Clone(row.Key),
			Family: encoding.FamilyName,
		})
		if len(rows) < uidsAtOnce {
			continue
		}
		if err := d.Store.Apply(ctx, d.Tables.Meta, rows); err != nil {
			return err
		}
		rows = nil // a row's key must not change after Apply
	}
	if len(rows) == 0 {
		return nil
	}
	return d.Store.Apply(ctx, d.Tables.Meta, rows)
}
