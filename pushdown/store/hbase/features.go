package hbase

import "downpour/pushdown/store"

var _ store.Store = (*Store)(nil)

// Features implements store.Reader. Writes are durable when they return, and nothing is known of the
// disks of the servers.
func (s *Store) Features() store.Features {
	return store.Features{
		Versioner:     s,
		Marker:        s,
		Staged:        nil,
		RangeDeleter:  nil,
		Versioned:     s,
		PutAbsent:     s.PutAbsent,
		IncrementAll:  nil,
		Watch:         nil,
		Writable:      nil,
		DiskUsage:     nil,
		Checkpoint:    nil,
		Seal:          nil,
		Inspect:       s.Inspect,
		CheckReadable: s.CheckReadable,
	}
}

// NextBytes implements store.Scanner. The servers do not report the size of their next reply.
func (s *scanner) NextBytes() int64 { return 0 }
