// Package heaptest measures Go's heap for tests.
package heaptest

import "runtime"

// InUse returns the bytes of the heap that are in use. It collects garbage three times
// before: what a sync.Pool keeps is freed by the second collection, and what cleanups
// release by the one after it.
func InUse() int64 {
	for range 3 {
		runtime.GC()
	}

	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
