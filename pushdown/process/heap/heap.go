// Package heap makes Go collect the garbage of a small heap less often. A server's own
// data take a few MiB, and each reply of a scan allocates as much again. Go's usual
// pace, a collection whenever the heap has doubled, would collect several times in each
// query and take a third of its processor time. The price is memory that holds garbage, so a
// server that has nothing to do gives it back.
package heap

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// Server is the pace for a server: it may allocate this many bytes between two
// collections, the garbage of some queries over millions of points.
const Server = 64 << 20

// defaultPercent is Go's default of GOGC: the percentage of garbage to live data at
// which it collects.
const defaultPercent = 100

// Pace makes Go allocate at least so many bytes between two collections, until stop is
// called. A heap with less live data than that is collected later than by default, a
// larger one as by default. gogc is the environment's GOGC: if that is set it decides,
// and Pace does nothing. GOMEMLIMIT holds in any case.
func Pace(least int64, gogc string) (stop func()) {
	if gogc != "" {
		return func() {}
	}
	p := &pacer{least: least, ended: make(chan struct{})}
	p.percent.Store(defaultPercent)
	p.adjust()
	go p.giveBack(debug.FreeOSMemory)
	return sync.OnceFunc(func() {
		close(p.ended)
		debug.SetGCPercent(defaultPercent)
	})
}

// Limit makes Go collect garbage often enough to stay within so many bytes, unless GOMEMLIMIT is
// set: a heap that doubles between two collections would otherwise grow to twice the process's
// budget. 0 is no bound.
func Limit(bytes int64) {
	if bytes > 0 && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(bytes)
	}
}

// pacer sets GOGC's percentage again after each collection.
type pacer struct {
	least   int64 // bytes between two collections
	percent atomic.Int64
	ended   chan struct{}
}

// quiet is the time in which a server that is at rest allocates next to nothing: a sixteenth of what it
// may between two collections.
const quiet = 10 * time.Second

// giveBack returns garbage to the system in quiet times, until the pacer has ended. It collects only
// after enough was allocated to be worth it: a quarter of what is between two collections, or of
// the live data, whose marking is what a collection costs.
func (p *pacer) giveBack(free func()) {
	ticks := time.NewTicker(quiet)
	defer ticks.Stop()
	last := allocatedBytes()
	freed := last
	for {
		select {
		case <-p.ended:
			return
		case <-ticks.C:
		}
		now := allocatedBytes()
		if now-last < p.least/16 && now-freed > max(p.least, scannedBytes())/4 {
			free()
			now = allocatedBytes()
			freed = now
		}
		last = now
	}
}

// canary is an object that nothing refers to: its cleanup runs after the next
// collection.
type canary struct{ _ *pacer }

// adjust sets the percentage by the result of the last collection, and schedules itself after the
// next one.
func (p *pacer) adjust() {
	select {
	case <-p.ended:
		return
	default:
	}
	if want := percent(scannedBytes(), p.least); differsEnough(p.percent.Load(), want) {
		p.percent.Store(want)
		debug.SetGCPercent(int(want))
	}
	// Nothing refers to the canary, so the next collection frees it.
	runtime.AddCleanup(new(canary), (*pacer).adjust, p)
}

// scannedBytes returns the bytes that GOGC is a percentage of: live data, stacks and
// globals.
func scannedBytes() int64 {
	return read("/gc/heap/live:bytes", "/gc/scan/stack:bytes", "/gc/scan/globals:bytes")
}

// allocatedBytes returns how much this process has allocated since its start.
func allocatedBytes() int64 { return read("/gc/heap/allocs:bytes") }

// read adds up metrics of the runtime.
func read(names ...string) (sum int64) {
	found := make([]metrics.Sample, len(names))
	for i, name := range names {
		found[i].Name = name
	}
	metrics.Read(found)
	for _, s := range found {
		sum += int64(s.Value.Uint64())
	}
	return sum
}

// minHeap is the heap below which Go does not collect at its default percentage. The
// bound grows with the percentage.
const minHeap = 4 << 20

// percent returns the percentage at which least bytes are allocated between two
// collections of a heap with scanned bytes, or the default if that allows more.
func percent(scanned, least int64) int64 {
	return max(defaultPercent, least*100/max(scanned, minHeap))
}

// differsEnough reports whether a percentage differs enough from the old one to be set, which stops
// the process for an instant.
func differsEnough(old, want int64) bool { return want > old+old/8 || want < old-old/8 }
