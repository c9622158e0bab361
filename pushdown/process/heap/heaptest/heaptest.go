// Package heaptest measures Go's heap for tests.
package heaptest

import "runtime"

// InUse returns the bytes of the heap that are in use. It collects garbage three times before: the
// second collection frees the contents of a sync.Pool, and the third the memory that cleanups
// release.
func InUse() int64 {
	for range 3 {
		runtime.GC()
	}

	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
