package store

import "context"

// RangeDeleter is a store that deletes all rows of a range of keys in one call. A scan
// that is open sees the rows as before, any later one does not see them.
type RangeDeleter interface {
	// DeleteRows deletes all rows of the ranges, which have a first and a last key, with the
	// cells of all families, and returns once that is durable: either all rows of the call
	// are deleted or none. It also works on a disk that has no room for puts.
	DeleteRows(ctx context.Context, table string, ranges []KeyRange) error
	// Reclaim gives the place of deleted rows on the disk back where much of the table's is
	// theirs, and returns once that is done. ranges, which ascend, are those in which no rows
	// are.
	Reclaim(ctx context.Context, table string, ranges []KeyRange) error
	// DiskBytes returns about how many bytes on the disk hold the rows of the ranges, deleted
	// ones included. The newest writes are not yet on the disk.
	DiskBytes(ctx context.Context, table string, ranges []KeyRange) (int64, error)
}
