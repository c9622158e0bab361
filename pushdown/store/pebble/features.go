package pebble

import "downpour/pushdown/store"

var _ store.Store = (*Store)(nil)

// Features implements store.Reader. The store has no old versions of cells, and no servers.
func (s *Store) Features() store.Features {
	return store.Features{
		Versioner:     store.VersionFunc(s.Version),
		Marker:        s,
		Staged:        s.Staged(),
		RangeDeleter:  s,
		Versioned:     nil,
		PutAbsent:     s.PutAbsent,
		IncrementAll:  s.IncrementAll,
		Watch:         s.Watch,
		Writable:      s.Writable,
		DiskUsage:     s.DiskUsage,
		Checkpoint:    s.Checkpoint,
		Seal:          s.Seal,
		Inspect:       nil,
		CheckReadable: nil,
	}
}
