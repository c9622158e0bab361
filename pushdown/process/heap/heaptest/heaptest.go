// Package heaptest tells tests how much of Go's heap is in use.
package heaptest

import "runtime"

// InUse returns the bytes that are in use. It collects garbage three times before:
// what a sync.Pool keeps is gone after two collections, and what cleanups let go
// after another.
func InUse() int64 {
	for range 3 {
		runtime.GC()
	}

	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
