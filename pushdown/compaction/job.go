package compaction

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// callRows is the number of rows of one call. A server changes them one after another and syncs its
// log after each, so the calls of a page are sent concurrently.
const callRows = 64

// pageRows is the number of rows that are read and compacted at a time by default.
const pageRows = 256

// attempts is how often a row is read and tried, while others write to it.
const attempts = 4

// staleLeast is the least age at which a row is read again before it is changed, even if half the
// margin is less: a page takes some seconds where HBase is slow.
const staleLeast = 10 * time.Second

// Job compacts rows of a table. Several may run concurrently, also on the same rows.
type Job struct {
	Store         store.Versioned
	Table         string
	Schema        encoding.Schema
	FixDuplicates bool
	// Margin is the age that a row's hour and newest version have at least. It is more than
	// the clocks of all servers and of this process differ.
	Margin time.Duration
	Now    func() time.Time
	// PageRows is how many rows are read and compacted at a time. Default 256.
	PageRows int
	// Before, if set, is called before a page is read, and may wait. Its error ends Run.
	Before func(ctx context.Context) error
	// Reached is called after each range that is done, with its counts and the first key that is
	// not done, nil at the end.
	Reached func(done Counts, next []byte)
}

// Check returns why the table is not compacted at all, nil if it is.
func (j *Job) Check(ctx context.Context) error {
	if err := j.Store.CheckVersions(ctx, j.Table, encoding.FamilyData); err != nil {
		return fmt.Errorf("cannot compact rows: %w", err)
	}
	return nil
}

// Run compacts the rows of a key range that admit wants. After an error, also that of ctx,
// some rows after the last Reached may be compacted; the others are as before, or hold
// their points twice with equal values until the next run.
func (j *Job) Run(ctx context.Context, keys store.KeyRange, admit func(row []byte, key encoding.RowKey) bool) error {
	page := cmp.Or(j.PageRows, pageRows)
	for at := keys.Start; ; {
		if j.Before != nil {
			if err := j.Before(ctx); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		read := j.Now()
		rows, next, err := j.Store.Versions(ctx, j.Table, encoding.FamilyData,
			store.KeyRange{Start: at, Stop: keys.Stop}, page)
		if err != nil {
			return fmt.Errorf("cannot read rows from %x on: %w", at, err)
		}

		var counts Counts
		if err := j.page(ctx, j.wanted(rows, read, admit), &counts); err != nil {
			return err
		}
		if j.Reached != nil {
			j.Reached(counts, next)
		}
		if at = next; next == nil {
			return nil
		}
	}
}

// wanted returns the rows, read at a time, of the wanted series.
func (j *Job) wanted(rows []store.VersionRow, read time.Time, admit func(row []byte, key encoding.RowKey) bool) []work {
	var list []work
	for _, row := range rows {
		key, err := j.Schema.ParseRowKey(row.Key)
		if err == nil && !key.Global() && (admit == nil || admit(row.Key, key)) {
			list = append(list, work{row: row, base: key.BaseTime, read: read})
		}
	}
	return list
}

// work is a row that is being compacted.
type work struct {
	row  store.VersionRow
	base uint32
	read time.Time // before row was
	plan Plan
}

// stale reports whether a row was read so long ago, in a process that was suspended since, that
// others may have changed it to other cells with as many columns and no new timestamp, see the
// package.
func (j *Job) stale(w work) bool { return j.Now().Sub(w.read) > max(j.Margin/2, staleLeast) }

// page compacts rows. Those that others have written to since they were read are read and
// tried again.
func (j *Job) page(ctx context.Context, rows []work, counts *Counts) error {
	for attempt := 1; len(rows) > 0; attempt++ {
		left, err := j.attempt(ctx, rows, counts)
		if err != nil || len(left) == 0 {
			return err
		}
		if attempt == attempts {
			for range left {
				counts.count(&Plan{Reason: Changed})
			}
			return nil
		}

		rows = rows[:0]
		for _, w := range left {
			read := j.Now()
			again, _, err := j.Store.Versions(ctx, j.Table, encoding.FamilyData,
				store.KeyRange{Start: w.row.Key, Stop: append(slices.Clone(w.row.Key), 0)}, 1)
			if err != nil {
				return fmt.Errorf("cannot read row %x again: %w", w.row.Key, err)
			}
			// It may have been deleted.
			for _, row := range again {
				rows = append(rows, work{row: row, base: w.base, read: read})
			}
		}
		slices.SortFunc(rows, func(a, b work) int { return bytes.Compare(a.row.Key, b.row.Key) })
	}
	return nil
}

// attempt decides about rows and carries the plans out. It returns the rows that others have
// written to since they were read.
func (j *Job) attempt(ctx context.Context, rows []work, counts *Counts) (left []work, err error) {
	o := Options{FixDuplicates: j.FixDuplicates, OlderThan: j.Now().Add(-j.Margin).UnixMilli()}
	var live []work
	for _, w := range rows {
		w.plan = Decide(w.row, w.base, o)
		// A row in which all points are deleted has no cell.
		if w.plan.Cells == 0 && w.plan.Reason == Single {
			continue
		}
		if w.plan.Reason != None {
			counts.count(&w.plan)
			continue
		}
		if j.stale(w) {
			left = append(left, w)
			continue
		}
		live = append(live, w)
	}

	put := func(w work) *store.ConditionalChange {
		if w.plan.There {
			return nil
		}
		return &store.ConditionalChange{Row: w.row.Key, If: store.Condition{Stamps: w.plan.Stamps, Columns: w.plan.Columns}, Put: []store.Cell{w.plan.Merged}} //fault:compaction-brings-a-deleted-cell-back TestJob_partlyDeleted
	}
	live, changed, err := j.change(ctx, live, put)
	if err != nil {
		return nil, fmt.Errorf("cannot put merged cells: %w", err)
	}
	left = append(left, changed...)

	remove := func(w work) *store.ConditionalChange {
		return &store.ConditionalChange{Row: w.row.Key, If: store.Condition{Stamps: w.plan.Stamps, Cell: &w.plan.Merged}, Delete: w.plan.Delete}
	}
	done, hidden, err := j.change(ctx, live, remove)
	if err != nil {
		return nil, fmt.Errorf("cannot delete the parts of merged cells: %w", err)
	}
	for i := range done {
		counts.count(&done[i].plan)
	}
	return append(left, hidden...), nil
}

// change carries out a change of each row, nil for none, and returns the rows whose
// condition held and the others.
func (j *Job) change(ctx context.Context, rows []work,
	of func(work) *store.ConditionalChange) (held, not []work, err error) {
	var changes []store.ConditionalChange
	for _, w := range rows {
		if c := of(w); c != nil {
			changes = append(changes, *c)
		}
	}
	if len(changes) == 0 {
		return rows, nil, nil
	}
	outcomes, err := j.changeAll(ctx, changes)
	if err != nil {
		return nil, nil, err
	}

	i := 0
	for _, w := range rows {
		if of(w) == nil {
			held = append(held, w)
			continue
		}
		if outcomes[i] {
			held = append(held, w)
		} else {
			not = append(not, w)
		}
		i++
	}
	return held, not, nil
}

// changeAll carries out changes in several calls and returns which conditions held.
func (j *Job) changeAll(ctx context.Context, changes []store.ConditionalChange) ([]bool, error) {
	outcomes := make([]bool, len(changes))
	calls, ctx := errgroup.WithContext(ctx)
	for first := 0; first < len(changes); first += callRows {
		calls.Go(func() error {
			held, err := j.Store.ChangeIf(ctx, j.Table, encoding.FamilyData,
				changes[first:min(first+callRows, len(changes))])
			copy(outcomes[first:], held)
			return err
		})
	}
	return outcomes, calls.Wait()
}

// LeaseName is the name of the lease of a region's rows, by the first key of the region.
func LeaseName(table string, start []byte) string { return fmt.Sprintf("compact/%s/%x", table, start) }
