package rollupjob

import (
	"context"
	"fmt"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// First returns the base time of the first raw row of a metric between two times, in s. ok is
// false if there is none.
func (j *Job) First(ctx context.Context, metric encoding.UID, from, to int64) (base int64, ok bool, err error) {
	for bucket := range j.Schema.Buckets() {
		keys := store.KeyRange{
			Start: j.Schema.AppendRangeKey(nil, bucket, metric, encoding.KeyTime(from)),
			Stop:  j.Schema.AppendRangeKey(nil, bucket, metric, encoding.KeyTime(to)),
		}
		one, found, err := j.first(ctx, keys)
		if err != nil {
			return 0, false, err
		}
		if found && (!ok || one < base) {
			base, ok, to = one, true, one // the others matter if they are earlier
		}
	}
	return base, ok, nil
}

// Any reports whether there is a raw row of a metric between two times, in s.
func (j *Job) Any(ctx context.Context, metric encoding.UID, from, to int64) (bool, error) {
	for bucket := range j.Schema.Buckets() {
		keys := store.KeyRange{
			Start: j.Schema.AppendRangeKey(nil, bucket, metric, encoding.KeyTime(from)),
			Stop:  j.Schema.AppendRangeKey(nil, bucket, metric, encoding.KeyTime(to)),
		}
		if _, found, err := j.first(ctx, keys); err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// firstBytes is the size of the blocks that a look for a row reads.
const firstBytes = 1 << 10

// first returns the base time of the first raw row of a key range. Keys that have none are
// passed over.
func (j *Job) first(ctx context.Context, keys store.KeyRange) (base int64, ok bool, err error) {
	scan := store.Scan{
		Table:      j.Tables.Data,
		Start:      keys.Start,
		Stop:       keys.Stop,
		Family:     encoding.FamilyData,
		KeysOnly:   true,
		BlockBytes: firstBytes,
	}
	for row, err := range store.Rows(ctx, j.Store, scan) {
		if err != nil {
			return 0, false, fmt.Errorf("cannot look for the first raw row: %w", err)
		}
		if at, ok := j.Schema.RowHours().Time(row.Key); ok {
			return int64(at), true, nil
		}
	}
	return 0, false, nil
}

// LongestPiece returns the longest time that is rolled up as a unit, in s: rolling up from some
// time on begins at the start of the piece that holds it.
func (j *Job) LongestPiece() (longest int64, err error) {
	intervals, err := j.Config.ComputedIntervals()
	for _, i := range intervals {
		longest = max(longest, newLayout(j.Schema, j.Tables, j.Config, i, j.FixDuplicates).piece())
	}
	return longest, err
}
