package pebble

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/pushdown/process/wait"
	"downpour/pushdown/store"
)

// Bounds of what Reclaim does by itself.
const (
	// reclaimPart is the part of a table's bytes that deleted rows take at least before
	// tables are written again for them: else each run would write much to free little.
	// What is less goes with later compactions.
	reclaimPart = 16
	// reclaimLeast is the fewest bytes for which it is done.
	reclaimLeast = 1 << 20
	// reclaimStep bounds the bytes of one compaction, which needs as much room until it ends. Where
	// less is free, a step is smaller; see fitting.
	reclaimStep = 256 << 20
	// baseBytes is pebble's LBaseMaxBytes: of a database that is larger, level 0 is not compacted
	// into the last level.
	baseBytes = 64 << 20
	// reclaimWait is how long pebble has to delete tables without a row that is left. It does so
	// soon after the flush, without reading them.
	reclaimWait = 5 * time.Second
	reclaimLook = 50 * time.Millisecond
)

// Reclaim gives the place of deleted rows back; see store.RangeDeleter. Tables that hold
// nothing else are deleted by pebble, the others are written again without them.
func (s *Store) Reclaim(ctx context.Context, table string, ranges []store.KeyRange) error {
	bounds, err := s.bounds(table, ranges)
	if err != nil {
		return err
	}
	if err := s.Flush(ctx); err != nil {
		return err
	}

	worth := false
	for until := time.Now().Add(reclaimWait); ; {
		if worth, err = s.worthReclaiming(ctx, table, bounds); err != nil || !worth {
			return err
		}
		if time.Now().After(until) {
			break
		}
		if err := wait.For(ctx, reclaimLook); err != nil {
			return err
		}
	}

	for len(bounds) > 0 {
		n, err := s.reclaimSome(ctx, bounds)
		if err != nil {
			return err
		}
		bounds = bounds[n:]
	}
	return nil
}

// worthReclaiming reports whether deleted rows take enough of a table.
func (s *Store) worthReclaiming(ctx context.Context, table string, bounds []pebble.KeyRange) (bool, error) {
	if err := s.begin(ctx); err != nil {
		return false, err
	}
	defer s.life.RUnlock()

	all, err := s.db.EstimateDiskUsage(appendPrefix(nil, table, nil), appendTableEnd(nil, table))
	if err != nil {
		return false, fmt.Errorf("table %q: bytes on the disk: %w", table, unreadable(err))
	}
	deleted, err := s.diskBytes(bounds)
	return deleted >= max(reclaimLeast, int64(all)/reclaimPart), err
}

// reclaimSome compacts the first of some ranges together with what is between them, and
// returns how many: half as many, and half of that, until there is room to write what stays.
func (s *Store) reclaimSome(ctx context.Context, bounds []pebble.KeyRange) (n int, err error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.life.RUnlock()

	start := bounds[0].Start
	for n = 1; n < len(bounds); n++ {
		bytes, err := s.db.EstimateDiskUsage(start, bounds[n].End)
		if err != nil {
			return 0, fmt.Errorf("bytes on the disk: %w", unreadable(err))
		}
		if bytes > reclaimStep {
			break
		}
	}
	if usage, err := s.opts.FS.GetDiskUsage(s.dir); err == nil {
		if n, err = s.fitting(bounds, n, usage); err != nil {
			return 0, err
		}
	}
	if err := s.db.Compact(ctx, start, bounds[n-1].End, true); err != nil {
		return 0, fmt.Errorf("compaction of deleted rows: %w", unreadable(err))
	}
	return n, nil
}

// fitting returns how many of the first n ranges can be compacted at once on a disk, or that
// not even one can.
func (s *Store) fitting(bounds []pebble.KeyRange, n int, usage vfs.DiskUsage) (int, error) {
	levels, err := s.db.SSTables()
	if err != nil {
		return 0, fmt.Errorf("tables: %w", unreadable(err))
	}

	for room := forReclaim(usage); ; n /= 2 {
		need := s.writtenAnew(levels, bounds, n)
		if need <= room {
			return n, nil
		}
		if n == 1 {
			return 0, fmt.Errorf("%w to write %d KiB of tables again: %d KiB are free",
				store.ErrFull, need>>10, usage.AvailBytes>>10)
		}
	}
}

// writtenAnew returns about how many bytes a compaction of the first n ranges writes: tables that
// have a part of them are written as a whole, except the rows that are deleted.
func (s *Store) writtenAnew(levels [][]pebble.SSTableInfo, bounds []pebble.KeyRange, n int) uint64 {
	all := pebble.KeyRange{Start: bounds[0].Start, End: bounds[n-1].End}
	overlaps := func(t pebble.SSTableInfo) bool {
		return compareKeys(t.Smallest.UserKey, all.End) < 0 && compareKeys(t.Largest.UserKey, all.Start) >= 0
	}

	// Tables of level 0 are compacted as a whole with what is below them. That is the last level
	// in a small database, and else one that holds little.
	var below, bytes uint64
	for _, tables := range levels[1:] {
		for _, t := range tables {
			below += t.Size
		}
	}
	if below <= baseBytes {
		wide := all
		for _, t := range levels[0] {
			if !overlaps(t) {
				continue
			}
			if compareKeys(t.Smallest.UserKey, wide.Start) < 0 {
				wide.Start = t.Smallest.UserKey
			}
			if compareKeys(t.Largest.UserKey, wide.End) > 0 {
				wide.End = t.Largest.UserKey
			}
		}
		all = wide
	}
	for _, tables := range levels {
		for _, t := range tables {
			if overlaps(t) {
				bytes += t.Size
			}
		}
	}

	// What is in these tables and is deleted is not written. Where level 0 has widened them, that
	// goes for later ranges, too.
	for n < len(bounds) && compareKeys(bounds[n].End, all.End) <= 0 {
		n++
	}
	if deleted, err := s.diskBytes(bounds[:n]); err == nil { // else the compaction says what cannot be read
		bytes -= min(bytes, uint64(deleted))
	}
	return bytes
}
