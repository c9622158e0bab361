package background

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/pushdown/compaction"
	"downpour/pushdown/store"
)

// errPause ends a walk that will continue later.
var errPause = errors.New("the time of this piece of work is over")

// walk compacts the rows of an interval of hours in a region, from work.At on. In row keys the time
// comes after the metric: for each metric the first row is looked up, then the rows of the interval
// are read. An error of job.Before ends it; work.At is where to continue.
func walk(ctx context.Context, from store.Reader, job compaction.Job, region store.KeyRange, w *work,
	count func(compaction.Counts)) error {
	for {
		left := w.left(region)
		if isEmpty(left) {
			return nil
		}
		if err := job.Before(ctx); err != nil {
			return err
		}
		first, err := firstKey(ctx, from, job.Table, left)
		if first == nil {
			return err
		}
		key, err := job.Schema.ParseRowKey(first)
		if err != nil {
			w.At = append(first, 0) // no row of points
			continue
		}

		if base, ok := job.Schema.RowHours().Time(first); ok {
			w.Oldest = min(w.Oldest, int64(base))
		}
		prefix := first[:job.Schema.BaseTimeAt()]
		if rows := w.rows(prefix, left); int64(key.BaseTime) < w.To && !isEmpty(rows) {
			if err := compactRows(ctx, job, rows, w, count); err != nil {
				return err
			}
		} else {
			count(compaction.Counts{}) // the look-up has a cost, too
		}
		next := after(prefix)
		if next == nil {
			return nil // no key comes after these
		}
		w.At = next
	}
}

// left returns the keys of a region that are not done.
func (w *work) left(region store.KeyRange) store.KeyRange {
	if bytes.Compare(w.At, region.Start) > 0 {
		region.Start = w.At
	}
	return region
}

// rows returns the keys of a metric, with its salt, that are in the interval and in keys.
func (w *work) rows(prefix []byte, keys store.KeyRange) store.KeyRange {
	rows := store.KeyRange{Start: withTime(prefix, w.From), Stop: withTime(prefix, w.To)}
	if bytes.Compare(keys.Start, rows.Start) > 0 {
		rows.Start = keys.Start
	}
	if len(keys.Stop) > 0 && bytes.Compare(keys.Stop, rows.Stop) < 0 {
		rows.Stop = keys.Stop
	}
	return rows
}

// isEmpty reports whether a range has no keys; without a Stop it has.
func isEmpty(r store.KeyRange) bool {
	return len(r.Stop) > 0 && bytes.Compare(r.Start, r.Stop) >= 0
}

// compactRows compacts rows of one metric.
func compactRows(ctx context.Context, job compaction.Job, rows store.KeyRange, w *work,
	count func(compaction.Counts)) error {
	job.Reached = func(done compaction.Counts, next []byte) {
		w.Rows += done.Rows
		if next != nil {
			w.At = bytes.Clone(next)
		}
		count(done)
	}
	return job.Run(ctx, rows, nil)
}

// firstKey returns the first key of a range that is there, nil if there is none or with an error.
func firstKey(ctx context.Context, from store.Reader, table string, keys store.KeyRange) ([]byte, error) {
	scan := store.Scan{
		Table:    table,
		Start:    keys.Start,
		Stop:     keys.Stop,
		Family:   encoding.FamilyData,
		MaxRows:  1,
		KeysOnly: true,
	}
	for row, err := range store.Rows(ctx, from, scan) {
		if err != nil {
			return nil, fmt.Errorf("cannot look for the first row from %x on: %w", keys.Start, err)
		}
		return bytes.Clone(row.Key), nil
	}
	return nil, nil
}

// withTime returns the first key of a metric, with its salt, at a time.
func withTime(prefix []byte, seconds int64) []byte {
	return binary.BigEndian.AppendUint32(bytes.Clone(prefix), encoding.KeyTime(seconds))
}

// after returns the first key after all that begin with prefix, nil if there is none.
func after(prefix []byte) []byte {
	stop := bytes.Clone(prefix)
	for i := len(stop) - 1; i >= 0; i-- {
		if stop[i]++; stop[i] != 0 {
			return stop[:i+1]
		}
	}
	return nil
}
