package retention

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"downpour/encoding"
	"downpour/gateway/extra/retention/rules"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
)

// Job deletes rows that are past. All fields but those that say so are set.
type Job struct {
	Store  store.Cells
	Schema encoding.Schema
	Tables []Table
	Rules  *rules.Rules
	// Names yields the metrics.
	Names func(context.Context) iter.Seq2[uid.Entry, error]
	Now   func() time.Time
	// Own, if not nil, reports by its name whether this host puts a metric of itself, by its own clock.
	Own func(metric string) bool
	// LastRun is when the last run was, by the clock then, in seconds; 0 if that is not known. Where it is long ago
	// the clock may be ahead.
	LastRun int64
	// Rate bounds the rows that are deleted one by one in a second; 0 is no bound.
	Rate int
	// Progress, if not nil, learns how far a run is, every ten seconds at most.
	Progress func(line string)
}

// DefaultRate is the rate at which rows are deleted next to puts and queries.
const DefaultRate = 5000

// A RefusedError says that more would go than a run was allowed to delete. Nothing was deleted.
type RefusedError struct {
	Table   string
	Past    int64 // rows of the table that are past
	Rows    int64 // that are past, of all tables
	Allowed int64 // by the caller; 0 if it has not said
	stay    int64 // rows of the table that stay
	ahead   int64 // the time of the clock if that may be ahead, in seconds; 0 if it is not that
}

// Error names the counts, and the command that would delete the rows.
func (e *RefusedError) Error() string {
	confirm := fmt.Sprintf("if that is meant: gateway retention run -yes-delete %d", e.Rows)
	if e.Allowed > 0 {
		return fmt.Sprintf("nothing is deleted: %d rows are past, at most %d may go; %s", e.Rows, e.Allowed, confirm)
	}
	if e.ahead > 0 {
		return fmt.Sprintf("nothing is deleted: the last run was more than %d days ago and nobody has put a point of "+
			"the last %d days into table %s, so that the clock, %s, may be ahead; %s (gateway retention plan "+
			"lists the rows)",
			gap/86_400, recent/86_400, e.Table, time.Unix(e.ahead, 0).UTC().Format("2006-01-02 15:04 UTC"), confirm)
	}
	return fmt.Sprintf("nothing is deleted: of table %s %d rows are past and only %d are not, which may be a wrong "+
		"pattern or clock; %s (gateway retention plan lists them)",
		e.Table, e.Past, e.stay, confirm)
}

// Run deletes the rows that are past, except those that were at the time since, in seconds:
// a run has deleted them before. 0 is all. If allowed is 0 and more than half of the rows of a
// table would go, or the clock may be ahead, or if more than allowed would go, it returns a
// *RefusedError. A table that cannot be read or written does not keep the rows of others, unless
// these would fail, too; then the error is a *tablesError. After any other error, rows may be gone;
// the report says how many. If only their place on the disk is not free yet, they all are, and the
// error is a *placeError or several.
func (j *Job) Run(ctx context.Context, since, allowed int64) (*Report, error) {
	all, report, err := j.counted(ctx, since, true)
	if err != nil {
		return report, err
	}
	if err := j.guard(ctx, all, report, allowed); err != nil {
		return report, err
	}

	var places []error
	for i, p := range all {
		if p.err != nil || p.rows == 0 && since > 0 {
			continue
		}
		n, err := j.delete(ctx, p)
		report.Tables[i].Deleted += n
		report.Deleted += n
		var place *placeError
		if errors.As(err, &place) {
			places = append(places, err)
		} else if err := p.fails(ctx, err); err != nil {
			return report, fmt.Errorf("%w (what is deleted is gone; run it again to go on)", err)
		}
	}
	return report, errors.Join(append(places, tablesFailed(all))...)
}

// Plan counts the rows that are past, and their bytes, and deletes nothing. refused is what Run
// would return without a number of rows that may go, nil if it would delete.
func (j *Job) Plan(ctx context.Context) (report *Report, refused *RefusedError, err error) {
	all, report, err := j.counted(ctx, 0, false)
	if err = errors.Join(err, tablesFailed(all)); err != nil {
		return report, nil, err
	}
	if ranges := j.Store.Features().RangeDeleter; ranges != nil {
		for i, p := range all {
			if report.Tables[i].DiskBytes, err = diskBytes(ctx, ranges, p); err != nil {
				return report, nil, err
			}
		}
	}

	err = j.guard(ctx, all, report, 0)
	if errors.As(err, &refused) {
		return report, refused, nil
	}
	return report, nil, errors.Join(err, tablesFailed(all))
}

// counted finds and counts the rows that go. Of a table that cannot be read none is counted.
func (j *Job) counted(ctx context.Context, since int64, keysOnly bool) ([]*past, *Report, error) {
	now := j.Now().Unix()
	all, kept, err := j.find(ctx, since, now)
	report := &Report{At: now, Kept: kept}
	if err != nil {
		return nil, report, err
	}
	for _, p := range all {
		if err := p.fails(ctx, j.count(ctx, p, keysOnly)); err != nil {
			return nil, report, err
		}
		report.add(p)
	}
	return all, report, nil
}

// guard refuses a run that would delete too much, or by a clock that may be ahead.
func (j *Job) guard(ctx context.Context, all []*past, report *Report, allowed int64) error {
	rows := report.Rows
	if allowed > 0 {
		if rows > allowed {
			return &RefusedError{Rows: rows, Allowed: allowed}
		}
		return nil
	}

	for _, p := range all {
		// As many rows as go are enough: no table has to be counted as a whole.
		stay, err := j.stay(ctx, p, p.rows)
		if err := p.fails(ctx, err); err != nil {
			return err
		}
		if stay < p.rows { //fault:retention-without-a-guard TestRun_guard
			return &RefusedError{Table: p.table.Name, Past: p.rows, Rows: rows, stay: stay}
		}
	}
	if rows == 0 || !j.jumped(report.At) {
		return nil
	}
	ok, err := j.shownRight(ctx, all, report.At)
	if err == nil && !ok { //fault:retention-by-a-clock-ahead TestRun_clockAhead
		return &RefusedError{Table: all[0].table.Name, Past: all[0].rows, Rows: rows, ahead: report.At}
	}
	return err
}

// tellEvery is the time between two lines of progress.
const tellEvery = 10 * time.Second

// teller returns a function that passes on a line of progress now and then.
func (j *Job) teller() func(line func() string) {
	told := j.Now()
	n := 0
	return func(line func() string) {
		// Not for each of the very many rows.
		if n++; j.Progress == nil || n%256 != 0 {
			return
		}
		if now := j.Now(); now.Sub(told) >= tellEvery {
			told = now
			j.Progress(line())
		}
	}
}
