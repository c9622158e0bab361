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

// pageRows is the number of rows that are read and compacted at a time by default. Its four calls take four
// of the thirty handlers that a region server has by default. Pages of 1,024 rows were a sixth faster on an
// idle server, and would take sixteen.
const pageRows = 256

// attempts is how often a row is read and tried, while others write to it.
const attempts = 4

// minStaleAge is the least age at which a row is read again before it is changed, even if half the
// margin is less: a page takes some seconds where HBase is slow.
const minStaleAge = 10 * time.Second

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
		if err := j.compactPage(ctx, j.wantedRows(rows, read, admit), &counts); err != nil {
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

// wantedRows returns the rows that admit wants, all if it is nil, but no rows of global annotations.
// readAt is when they were read.
func (j *Job) wantedRows(rows []store.VersionRow, readAt time.Time,
	admit func(row []byte, key encoding.RowKey) bool) []rowWork {
	var list []rowWork
	for _, row := range rows {
		key, err := j.Schema.ParseRowKey(row.Key)
		if err == nil && !key.Global() && (admit == nil || admit(row.Key, key)) {
			list = append(list, rowWork{row: row, base: key.BaseTime, readAt: readAt})
		}
	}
	return list
}

// rowWork is a row that is being compacted.
type rowWork struct {
	row    store.VersionRow
	base   uint32    // base time, s
	readAt time.Time // just before row was read
	plan   Plan      // set by attempt
}

// stale reports whether a row was read so long ago, in a process that was suspended since, that
// others may have changed it to other cells with as many columns and no new timestamp: the condition of
// a change would hold though the row is another one.
func (j *Job) stale(w rowWork) bool { return j.Now().Sub(w.readAt) > max(j.Margin/2, minStaleAge) }

// compactPage compacts rows and adds them to counts. Rows that others have written to since they were
// read are read and tried again, up to attempts times.
func (j *Job) compactPage(ctx context.Context, rows []rowWork, counts *Counts) error {
	for attempt := 1; ; attempt++ {
		retry, err := j.attempt(ctx, rows, counts)
		if len(retry) == 0 { // as after an error
			return err
		}
		if attempt == attempts {
			for range retry {
				counts.count(&Plan{Reason: Changed})
			}
			return nil
		}

		rows = rows[:0]
		for _, w := range retry {
			readAt := j.Now()
			again, _, err := j.Store.Versions(ctx, j.Table, encoding.FamilyData,
				store.KeyRange{Start: w.row.Key, Stop: append(slices.Clone(w.row.Key), 0)}, 1)
			if err != nil {
				return fmt.Errorf("cannot read row %x again: %w", w.row.Key, err)
			}
			// It may have been deleted.
			for _, row := range again {
				rows = append(rows, rowWork{row: row, base: w.base, readAt: readAt})
			}
		}
		slices.SortFunc(rows, func(a, b rowWork) int { return bytes.Compare(a.row.Key, b.row.Key) })
	}
}

// attempt decides about rows and carries the plans out: it puts the merged cells, and then deletes the
// cells that they replace. It adds the rows to counts, except those that it returns: others have written
// to them since they were read, or it is too long ago that they were.
func (j *Job) attempt(ctx context.Context, rows []rowWork, counts *Counts) (retry []rowWork, err error) {
	o := Options{FixDuplicates: j.FixDuplicates, OlderThan: j.Now().Add(-j.Margin).UnixMilli()}
	var accepted []rowWork
	for _, w := range rows {
		w.plan = Decide(w.row, w.base, o)
		// A row in which all points are deleted has no cell.
		if w.plan.PointCells == 0 && w.plan.Reason == Single {
			continue
		}
		if w.plan.Reason != None {
			counts.count(&w.plan)
			continue
		}
		if j.stale(w) {
			retry = append(retry, w)
			continue
		}
		accepted = append(accepted, w)
	}

	put := func(w rowWork) *store.ConditionalChange {
		if w.plan.MergedExists {
			return nil
		}
		return &store.ConditionalChange{
			Row: w.row.Key,
			If: store.Condition{
				Stamps:  w.plan.Stamps,
				Columns: w.plan.VisibleCells, //fault:compaction-brings-a-deleted-cell-back TestJob_partlyDeleted
			},
			Put: []store.Cell{w.plan.Merged},
		}
	}
	merged, changedBefore, err := j.changeRows(ctx, accepted, put)
	if err != nil {
		return nil, fmt.Errorf("cannot put merged cells: %w", err)
	}
	retry = append(retry, changedBefore...)

	remove := func(w rowWork) *store.ConditionalChange {
		return &store.ConditionalChange{
			Row:    w.row.Key,
			If:     store.Condition{Stamps: w.plan.Stamps, Cell: &w.plan.Merged},
			Delete: w.plan.Delete,
		}
	}
	compacted, changedAfter, err := j.changeRows(ctx, merged, remove)
	if err != nil {
		return nil, fmt.Errorf("cannot delete the parts of merged cells: %w", err)
	}
	for i := range compacted {
		counts.count(&compacted[i].plan)
	}
	return append(retry, changedAfter...), nil
}

// changeRows carries out a conditional change of each row, and returns the rows that were changed, because
// their condition held, and the others. A row without a change, nil, counts as changed.
func (j *Job) changeRows(ctx context.Context, rows []rowWork,
	changeOf func(rowWork) *store.ConditionalChange) (changed, unchanged []rowWork, err error) {
	var changes []store.ConditionalChange
	var changing []int // indexes of their rows
	for i, w := range rows {
		if c := changeOf(w); c != nil {
			changes, changing = append(changes, *c), append(changing, i)
		}
	}
	outcomes, err := j.changeAll(ctx, changes)
	if err != nil {
		return nil, nil, err
	}

	refused := map[int]bool{}
	for k, held := range outcomes {
		refused[changing[k]] = !held
	}
	for i, w := range rows {
		if refused[i] {
			unchanged = append(unchanged, w)
		} else {
			changed = append(changed, w)
		}
	}
	return changed, unchanged, nil
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
