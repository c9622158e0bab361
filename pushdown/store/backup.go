package store

// BackupReport describes a backup that was taken or restored.
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
