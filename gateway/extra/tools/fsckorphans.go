package tools

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Without a number of orphans that may go, none does if of at least so many rows more than one
// in so many is an orphan.
const (
	fewRows       = 10
	rowsPerOrphan = 10
)

// keepsOrphans reports whether the run keeps its orphans because they are too many; all else is repaired.
// Before the first deletion it counts those of all rows of the run: the UID table of another installation
// may name some of the UIDs, and to look a name up once more asks the same wrong table. If they cannot be
// counted, that is an error and none is deleted.
func (r *rowChecker) keepsOrphans(ctx context.Context) (bool, error) {
	// A worker that counts needs the place of those that wait for it.
	r.leave()
	defer r.enterAgain()
	r.orphansOnce.Do(func() {
		rows, orphans, err := r.countOrphans(ctx)
		if err != nil {
			r.orphansUncounted = fmt.Errorf("cannot count orphans before the first is deleted: %w", err)
			return
		}
		r.orphansRefused = r.judgeOrphans(rows, orphans)
	})
	return r.orphansRefused != nil, r.orphansUncounted
}

// judgeOrphans returns why so many orphans are not deleted, nil if they are.
func (r *rowChecker) judgeOrphans(rows, orphans int64) error {
	tables := r.Tables
	switch most := r.req.YesDeleteOrphans; {
	case most > 0 && orphans > most:
		return fmt.Errorf("no orphan is deleted: %d of %d rows of table %s are orphans, at most %d may go", orphans,
			rows, tables.Data, most)
	case most == 0 && rows >= fewRows && orphans*rowsPerOrphan > rows:
		return fmt.Errorf("no orphan is deleted: %d of %d rows of table %s have a UID that table %s does not name, "+
			"which may be the UID table of another installation; if that is meant: -yes-delete-orphans %d",
			orphans, rows, tables.Data, tables.UID, orphans)
	}
	return nil
}

// orphanCount is how many rows of the run were looked at, and how many of them are orphans.
type orphanCount struct{ rows, orphans int64 }

// countOrphans counts the rows of the run that are of series, and the orphans of them, in as many parts at a time
// as are checked.
func (r *rowChecker) countOrphans(ctx context.Context) (rows, orphans int64, err error) {
	var sum orphanCount // guarded by r.mu
	var taken atomic.Int64
	g, counting := errgroup.WithContext(ctx)
	for range min(cap(r.places), len(r.parts)) {
		g.Go(func() error {
			if err := r.enter(counting); err != nil {
				return err
			}
			defer r.leave()

			names := r.namer(namerBytes)
			for i := taken.Add(1) - 1; i < int64(len(r.parts)); i = taken.Add(1) - 1 {
				if err := r.countPart(counting, &r.parts[i], names, &sum); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return 0, 0, err
	}
	return sum.rows, sum.orphans, ctx.Err()
}

// countPart adds the rows of a part to a sum.
func (r *rowChecker) countPart(ctx context.Context, part *checkedPart, names *namer, sum *orphanCount) error {
	var since orphanCount
	for row, err := range r.walk(ctx, &part.stretch, names, true) {
		if err != nil {
			return err
		}
		if row.bad != nil || row.key.Global() {
			continue // a bad key is a finding of its own, and global annotations are of no series
		}
		since.rows++
		if row.named.orphan != "" {
			since.orphans++
		}
		if since.rows == reportRows {
			r.counted(&since, sum)
		}
	}
	r.counted(&since, sum)
	return nil
}

// counted adds what a worker has counted to the sum, and reports from time to time how far that is.
func (r *rowChecker) counted(since, sum *orphanCount) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum.rows += since.rows
	sum.orphans += since.orphans
	*since = orphanCount{}
	if now := r.now(); now.Sub(r.told) >= tellEvery {
		r.told = now
		r.progress(fmt.Sprintf("before the first orphan is deleted: %d rows looked at, %d of them orphans", sum.rows,
			sum.orphans))
	}
}
