package pebble

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
)

// DeleteRows deletes all rows of ranges by one batch of range deletions; see
// store.RangeDeleter. It goes through the log like every other batch, so a crash leaves all
// of it or nothing.
func (s *Store) DeleteRows(ctx context.Context, table string, ranges []store.KeyRange) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.life.RUnlock()

	bounds, err := s.bounds(table, ranges)
	if err != nil {
		return err
	}
	b := s.newBatch(0)
	for _, k := range bounds {
		if err := b.DeleteRange(k.Start, k.End, nil); err != nil {
			return errors.Join(err, b.Close())
		}
	}

	s.change.RLock()
	err = s.makeRangesVisible(b, table, ranges)
	s.change.RUnlock()
	if err != nil {
		return err
	}
	return s.awaitDurable(b)
}

// bounds returns the keys that bound ranges of rows, without ranges that are empty. The
// keys have a suffix, as all keys that are stored, the least that there is.
func (s *Store) bounds(table string, ranges []store.KeyRange) (out []pebble.KeyRange, err error) {
	if err := s.tables.check(table, ""); err != nil {
		return nil, err
	}
	for i, r := range ranges {
		if len(r.Start) == 0 || len(r.Stop) == 0 {
			return nil, fmt.Errorf("table %q: range %d is [%x, %x), want both bounds", table, i, r.Start, r.Stop)
		}
		k := pebble.KeyRange{
			Start: appendKey(nil, table, r.Start, "", nil),
			End:   appendKey(nil, table, r.Stop, "", nil),
		}
		if compareKeys(k.Start, k.End) < 0 {
			out = append(out, k)
		}
	}
	return out, nil
}

// makeRangesVisible is makeVisible for a batch that deletes all rows of ranges. It may use the space that
// is refused to puts, because it makes room, but leaves what the next start writes. It fails with
// store.ErrFull, with store.ErrStalled while pebble would make the batch wait, or with pebble's error, and
// then has closed the batch. The caller holds s.change.
func (s *Store) makeRangesVisible(b *batch, table string, ranges []store.KeyRange) error {
	fail := func(err error) error { return errors.Join(err, b.Close()) }
	if err := s.stalling(); err != nil {
		return fail(fmt.Errorf("%w: %w", store.ErrStalled, err))
	}
	need := startBytes + uint64(b.Len())
	if usage, err := s.opts.FS.GetDiskUsage(s.dir); err == nil && usage.AvailBytes < need {
		return fail(fmt.Errorf("%w of the data directory %s: %d KiB are free, deleting takes %d KiB",
			store.ErrFull, s.dir, usage.AvailBytes>>10, need>>10))
	}

	// Marks and version tokens of these rows no longer hold. No token may be given while the batch is
	// becoming visible.
	s.noteRanges(b, table, ranges)
	endChange := s.changes.beginRanges(table, ranges)
	defer endChange()
	if err := s.watches.applyRanges(s.db, b.Batch, table, ranges); err != nil {
		return fail(fmt.Errorf("cannot delete %d ranges: %w", len(ranges), err))
	}
	return nil
}

// DiskBytes returns about how many bytes on the disk hold the rows of some ranges; see
// store.RangeDeleter.
func (s *Store) DiskBytes(ctx context.Context, table string, ranges []store.KeyRange) (int64, error) {
	bounds, err := s.bounds(table, ranges)
	if err != nil {
		return 0, err
	}
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.life.RUnlock()
	return s.diskBytes(bounds)
}

// diskBytes is DiskBytes of keys.
func (s *Store) diskBytes(bounds []pebble.KeyRange) (sum int64, err error) {
	for _, k := range bounds {
		n, err := s.db.EstimateDiskUsage(k.Start, k.End)
		if err != nil {
			return 0, fmt.Errorf("bytes on the disk: %w", unreadable(err))
		}
		sum += int64(n)
	}
	return sum, nil
}
