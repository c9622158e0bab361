package store

// DiskGauge is a store that knows how much of its disk it takes. The embedded store is one.
type DiskGauge interface {
	// DiskUsage returns the bytes that the store takes on its disk, and those that are free.
	DiskUsage() (used, free int64, err error)
}
