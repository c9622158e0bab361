package retention

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/pushdown/process/wait"
	"downpour/pushdown/store"
)

// Rows of one call of Apply, and ranges of one of DeleteRows.
const (
	rowsPerApply    = 500
	rangesPerDelete = 1000
)

// delete deletes the rows of a table that go, and returns how many it has deleted.
func (j *Job) delete(ctx context.Context, p *past) (int64, error) {
	if ranges := j.Store.Features().RangeDeleter; ranges != nil {
		return j.deleteRanges(ctx, ranges, p)
	}
	return j.deleteRows(ctx, p)
}

// deleteRanges deletes the rows as ranges, around rows with impossible keys. Then it has the
// store give their place on the disk back, also that of earlier runs.
func (j *Job) deleteRanges(ctx context.Context, st store.RangeDeleter, p *past) (int64, error) {
	for some := range chunks(around(p.ranges(withRows), p.impossible), rangesPerDelete) {
		if err := st.DeleteRows(ctx, p.table.Name, some); err != nil {
			return 0, fmt.Errorf("table %s: cannot delete %d ranges of rows: %w", p.table.Name, len(some), err)
		}
	}

	return p.rows, j.reclaimTable(ctx, st, p)
}

// A placeError says that rows are deleted and that their place on the disk is not free yet.
type placeError struct {
	table string
	err   error
}

func (e *placeError) Error() string {
	return fmt.Sprintf("table %s: the place of deleted rows on the disk: %v", e.table, e.err)
}

func (e *placeError) Unwrap() error { return e.err }

// reclaim has the store give the place of those rows on the disk back that were past at a time, in
// seconds, and are deleted.
func (j *Job) reclaim(ctx context.Context, at int64) error {
	ranges := j.Store.Features().RangeDeleter
	if ranges == nil {
		return nil
	}
	all, _, err := j.find(ctx, 0, at)
	if err != nil {
		return err
	}

	var errs []error
	for _, p := range all {
		errs = append(errs, j.reclaimTable(ctx, ranges, p))
	}
	return errors.Join(errs...)
}

// reclaimTable has the store give the place of one table's deleted rows back.
func (j *Job) reclaimTable(ctx context.Context, st store.RangeDeleter, p *past) error {
	if len(p.metrics) == 0 || p.missing(j.exists(ctx, p)) {
		return nil
	}
	if err := st.Reclaim(ctx, p.table.Name, slices.Collect(p.fromStart())); err != nil {
		return &placeError{table: p.table.Name, err: err}
	}
	return nil
}

// exists returns an error if the table cannot be read.
func (j *Job) exists(ctx context.Context, p *past) error {
	_, err := j.Store.Regions(ctx, p.table.Name, nil, nil)
	return err
}

// deleteRows deletes the rows one by one.
func (j *Job) deleteRows(ctx context.Context, p *past) (deleted int64, err error) {
	pace := pace{rate: j.Rate, begun: time.Now()}
	tell := j.teller()
	var batch []store.Mutation
	apply := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := j.Store.Apply(ctx, p.table.Name, batch); err != nil {
			return fmt.Errorf("table %s: cannot delete %d rows from %x on: %w", p.table.Name, len(batch),
				batch[0].Row, err)
		}
		deleted += int64(len(batch))
		batch = batch[:0]
		return pace.wait(ctx, deleted)
	}

	err = j.walk(ctx, p.table.Name, p.ranges(withRows), true, func(row store.Row) (bool, error) {
		if _, ok, err := p.metricOf(row.Key); !ok || err != nil {
			return err == nil, err
		}
		batch = append(batch, store.Mutation{
			Kind:   store.DeleteRow,
			Row:    bytes.Clone(row.Key),
			Family: encoding.FamilyData,
		})
		tell(func() string {
			return fmt.Sprintf("table %s: %d of %d rows deleted; all before row %x", p.table.Name, deleted, p.rows,
				batch[0].Row)
		})
		if len(batch) < rowsPerApply {
			return true, nil
		}
		return true, apply()
	})
	if err == nil {
		err = apply()
	}
	return deleted, err
}

// pace bounds a rate.
type pace struct {
	rate  int // a second, 0 for no bound
	begun time.Time
}

// wait returns when so many are due since the begin.
func (p pace) wait(ctx context.Context, done int64) error {
	if err := ctx.Err(); err != nil || p.rate <= 0 {
		return err
	}

	due := time.Duration(float64(done) / float64(p.rate) * float64(time.Second))
	return wait.For(ctx, due-time.Since(p.begun))
}
