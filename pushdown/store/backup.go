package store

import "context"

// Checkpointer is implemented by a store whose files can be kept as they are at one
// moment, while it is written to.
type Checkpointer interface {
	// Checkpoint makes a directory in the store's own, in which a copy of the store can
	// be read: everything that was visible when Checkpoint was called, and nothing half.
	// It returns the directory's name, which nobody can guess, and the function that
	// removes it. What is not removed, because the process was killed, the next opening
	// of the store removes. Until then files that the store needs no more take space.
	//
	// Errors: ErrClosed, ErrFull, ErrDamaged if a log cannot be read.
	Checkpoint(ctx context.Context) (name string, remove func() error, err error)
}

// BackupReport tells of a backup that was taken or restored.
type BackupReport struct {
	Path  string // of the backup
	Files int
	Bytes int64 // in these files
	// New are the files that an earlier backup in the same place did not have, and
	// NewBytes what is in them. Linked are the files that share their bytes on the disk
	// with the store.
	New      int
	NewBytes int64
	Linked   int
	// Removed are the earlier backups that were removed.
	Removed []string
}
