package pebble

import (
	"context"
	"fmt"

	"downpour/pushdown/store"
)

// Writes are refused while less than this is free on the disk. It is left for the
// log, the MANIFEST and the tables of what was written already, and for closing in
// good order.
const (
	maxReserve  = 8 << 20
	reservePart = 20 // at most one twentieth of the file system
)

// checkSpace returns why writes are refused for want of space, nil if they are not.
// They are not where the file system does not tell what is free.
func (s *Store) checkSpace() error {
	usage, err := s.opts.FS.GetDiskUsage(s.dir)
	if err != nil {
		return nil
	}

	reserve := min(maxReserve, usage.TotalBytes/reservePart)
	if usage.AvailBytes >= reserve {
		return nil
	}
	return fmt.Errorf("%w of the data directory %s: %d KiB are free, the last %d KiB are kept back",
		store.ErrFull, s.dir, usage.AvailBytes>>10, reserve>>10)
}

// startBytes is what opening a database writes beside what was in its logs.
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

var _ store.Gauge = (*Store)(nil)

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
// before. See maxMemTables and maxSublevels, from which it keeps some distance.
func (s *Store) stalling() error {
	flush, compaction := s.trouble.flush.Load(), s.trouble.compaction.Load()
	if flush == nil && compaction == nil {
		return nil
	}

	m := s.db.Metrics()
	// A flush reads no tables, so its error is never about damage.
	if flush != nil && m.MemTable.Size >= s.opts.MemTableBytes*(maxMemTables-2) {
		return *flush
	}
	if compaction != nil && m.Levels[0].Sublevels >= maxSublevels-4 {
		return unreadable(*compaction)
	}
	return nil
}

var _ store.DiskGauge = (*Store)(nil)

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
