package tools

import (
	"context"
	"fmt"

	"downpour/pushdown/store"
)

// Without a number of orphans that may go, none does if of at least so many rows more than one
// in so many is an orphan.
const (
	fewRows       = 10
	rowsPerOrphan = 10
)

// allowOrphans returns an error if orphans may not be deleted. Before the first deletion it
// counts those of all rows of the run: the UID table of another installation may name some of
// the UIDs, and to look a name up once more asks the same wrong table.
func (r *rowChecker) allowOrphans(ctx context.Context) error {
	r.orphansMu.Lock()
	defer r.orphansMu.Unlock()
	if r.orphansJudged {
		return r.orphansRefused
	}

	rows, orphans, err := r.countOrphans(ctx)
	if err != nil {
		return fmt.Errorf("cannot count orphans before the first is deleted: %w", err)
	}
	r.orphansJudged = true
	tables := r.call.Tables
	switch most := r.req.YesDeleteOrphans; {
	case most > 0 && orphans > most:
		r.orphansRefused = fmt.Errorf("no orphan is deleted: %d of %d rows of table %s are orphans, at most %d may go", orphans, rows, tables.Data, most)
	case most == 0 && rows >= fewRows && orphans*rowsPerOrphan > rows:
		r.orphansRefused = fmt.Errorf("no orphan is deleted: %d of %d rows of table %s have a UID that table %s does not name, which may be the UID table of another installation; if that is meant: -yes-delete-orphans %d",
			orphans, rows, tables.Data, tables.UID, orphans)
	}
	return r.orphansRefused
}

// countOrphans counts the rows of the run that are of series, and the orphans of them.
func (r *rowChecker) countOrphans(ctx context.Context) (rows, orphans int64, err error) {
	names := newNamer(r.call, r.conn, namerBytes)
	for i := range r.parts {
		part := &r.parts[i]
		scan := part.scan(r.call.Tables.Data)
		scan.KeysOnly = true
		for row, err := range store.Rows(ctx, r.conn.store, scan) {
			if err != nil {
				return 0, 0, err
			}
			key, err := r.call.Schema.ParseRowKey(row.Key)
			if err != nil {
				continue // a bad key is a finding of its own
			}
			named, err := names.series(ctx, key)
			if err != nil {
				return 0, 0, err
			}
			if !part.admits(row.Key, key, named) {
				continue
			}
			rows++
			if named.orphan != "" {
				orphans++
			}
			if rows%reportRows == 0 {
				r.counting(rows, orphans)
			}
		}
	}
	return rows, orphans, nil
}

// counting tells from time to time how far countOrphans is.
func (r *rowChecker) counting(rows, orphans int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.call.Now(); now.Sub(r.told) >= tellEvery {
		r.told = now
		r.progress(fmt.Sprintf("before the first orphan is deleted: %d rows looked at, %d of them orphans", rows, orphans))
	}
}
