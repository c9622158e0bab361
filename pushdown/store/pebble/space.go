package pebble

import (
	"fmt"

	"downpour/pushdown/store"
)

// Room on the disk that puts leave: for the log, MANIFEST and tables of what was
// put already, and for an end in good order.
const (
	reserveMost = 8 << 20
	reservePart = 20 // of the file system
)

// room tells why writes are refused now, nil if they are not. Where nobody can
// say how much is free they are not.
func (s *Store) room() error {
	usage, err := s.opts.FS.GetDiskUsage(s.dir)
	if err != nil {
		return nil
	}
	reserve := min(reserveMost, usage.TotalBytes/reservePart)
	if usage.AvailBytes >= reserve {
		return nil
	}
	return fmt.Errorf("%w of the data directory %s: %d KiB are free, the last %d KiB are kept back",
		store.ErrFull, s.dir, usage.AvailBytes>>10, reserve>>10)
}

// startBytes is what opening a database writes beside what was in its logs.
const startBytes = 1 << 20

// roomFor tells why a database cannot be opened: pebble writes what is in the
// logs to tables first, and tries for ever.
func (s *Store) roomFor(e *examination) error {
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

// Writable tells why a write is refused before it has begun, nil if it is not:
// store.ErrFull, or store.ErrStalled.
func (s *Store) Writable() error {
	if err := s.stalling(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrStalled, err)
	}
	err := s.room()
	switch {
	case err != nil:
		s.noRoom(err)
	case s.trouble.lacking.Load():
		s.roomAgain()
	}
	return err
}

// stalling tells what keeps pebble from writing or compacting tables, once that
// has gone on for long: it would let writes wait, for ever perhaps, when there
// are too many memtables, or tables above one another.
func (s *Store) stalling() error {
	flush, compaction := s.trouble.flush.Load(), s.trouble.compaction.Load()
	if flush == nil && compaction == nil {
		return nil
	}
	m := s.db.Metrics()
	if flush != nil && m.MemTable.Size >= s.opts.MemTableBytes*(memTablesMost-2) {
		return *flush
	}
	if compaction != nil && m.Levels[0].Sublevels >= sublevelsMost-4 {
		return unreadable(*compaction)
	}
	return nil
}
