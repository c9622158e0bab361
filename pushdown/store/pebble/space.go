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
// store.ErrFull, or store.ErrDamaged. While pebble cannot compact because a table
// is damaged, writes would wait for ever once there are too many tables.
func (s *Store) Writable() error {
	if s.trouble.stalled.Load() {
		if file, ok := s.trouble.damaged.any(); ok {
			return fmt.Errorf("writing stands still, %s keeps tables from being compacted: %w", file, store.ErrDamaged)
		}
	}
	return s.room()
}
