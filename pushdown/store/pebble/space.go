package pebble

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/pushdown/store"
)

// Writes are refused while less than maxReserve is free on the disk. It is left for one
// step of Reclaim, without which a full store could not give the place of deleted rows
// back, and with it keepFree for the log, the MANIFEST and the tables of what was
// written already, and for closing in good order.
const (
	keepFree    = 8 << 20
	maxReserve  = reclaimStep + keepFree
	reservePart = 20 // at most one twentieth of the file system
)

// reserveOf returns how much is kept back of a disk.
func reserveOf(usage vfs.DiskUsage) uint64 {
	return min(maxReserve, usage.TotalBytes/reservePart)
}

// fitMemTables makes memtables smaller on a small disk: once it is full, what they hold must still fit into
// what reserveOf keeps back, or the store could not start again.
func (s *Store) fitMemTables() {
	usage, err := s.opts.FS.GetDiskUsage(s.dir)
	if err == nil {
		s.opts.MemTableBytes = min(s.opts.MemTableBytes, max(defaultMemTable, reserveOf(usage)/16))
	}
}

// forReclaim returns how many bytes Reclaim may write now. On a disk whose reserve is
// small, half of that is left for the rest.
func forReclaim(usage vfs.DiskUsage) uint64 {
	keep := min(keepFree, reserveOf(usage)/2)
	return usage.AvailBytes - min(keep, usage.AvailBytes)
}

// checkSpace returns why writes are refused for lack of space, nil if they are not.
// They are not where the file system does not say what is free.
func (s *Store) checkSpace() error {
	usage, err := s.opts.FS.GetDiskUsage(s.dir)
	if err != nil {
		return nil
	}

	reserve := reserveOf(usage)
	if usage.AvailBytes >= reserve {
		return nil
	}
	return fmt.Errorf("%w of the data directory %s: %d KiB are free, the last %d KiB are kept back",
		store.ErrFull, s.dir, usage.AvailBytes>>10, reserve>>10)
}

// startBytes is what opening a database writes in addition to what was in its logs.
const startBytes = 1 << 20

// spaceToOpen returns why a database cannot be opened for want of space, nil if it
// can: pebble writes what is in the logs to tables first, and without space it tries
// that for ever.
func (s *Store) spaceToOpen(e *examination) error {
	usage, err := s.opts.FS.GetDiskUsage(s.dir)
	if err != nil {
		return nil
	}

	need := uint64(e.replay + e.bytes + startBytes)
	if usage.AvailBytes >= need {
		return nil
	}
	return fmt.Errorf("%w of the data directory %s: %d KiB are free, the start needs %d KiB",
		store.ErrFull, s.dir, usage.AvailBytes>>10, need>>10)
}

// Writable returns why a write would be refused now, nil if it would not:
// store.ErrStalled or store.ErrFull.
func (s *Store) Writable() error {
	if err := s.stalling(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrStalled, err)
	}

	err := s.checkSpace()
	switch {
	case err != nil:
		s.logNoSpace(err)
	case s.trouble.fullLogged.Load():
		s.logSpaceAgain()
	}
	return err
}

// stalling returns the error that keeps pebble from flushing memtables or compacting
// tables, once it is about to make writes wait for that, perhaps for ever; nil
// before. See MaxMemTables and maxSublevels, from which it keeps some distance.
func (s *Store) stalling() error {
	flush, compaction := s.trouble.flush.Load(), s.trouble.compaction.Load()
	if flush == nil && compaction == nil {
		return nil
	}

	m := s.db.Metrics()
	// A flush reads no tables, so its error is never about damage.
	if flush != nil && m.MemTable.Size >= s.opts.MemTableBytes*(MaxMemTables-2) {
		return *flush
	}
	if compaction != nil && m.Levels[0].Sublevels >= maxSublevels-4 {
		return unreadable(*compaction)
	}
	return nil
}

// DiskUsage returns the bytes that the store takes on its disk, and those that are free.
func (s *Store) DiskUsage() (used, free int64, err error) {
	if err := s.begin(context.Background()); err != nil {
		return 0, 0, err
	}
	defer s.life.RUnlock()
	usage, err := s.opts.FS.GetDiskUsage(s.dir)
	if err != nil {
		return 0, 0, fmt.Errorf("data directory %s: %w", s.dir, err)
	}
	return int64(s.db.Metrics().DiskSpaceUsage()), int64(usage.AvailBytes), nil
}
