// Package heap lets a small heap grow some garbage before it is collected. A
// server's own data are a few MiB and a scan hands it as much again with each
// reply, so that Go's usual pace, a collection whenever the heap has doubled,
// collects several times a query and takes a third of its processor time.
package heap

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// Server is the pace of a server: the garbage of some queries over millions of
// points.
const Server = 64 << 20

// usual is the percentage of garbage to live data at which Go collects.
const usual = 100

// Pace lets at least so many bytes be allocated between two collections, until
// stop is called: a heap with less live data than that is collected later than
// usual, a larger one as ever. gogc is the environment's GOGC: where that is set
// it says how, and nothing is done. GOMEMLIMIT holds in any case.
func Pace(least int64, gogc string) (stop func()) {
	if gogc != "" {
		return func() {}
	}
	p := &pacer{least: least}
	p.percent.Store(usual)
	p.adjust()
	return func() {
		if !p.ended.Swap(true) {
			debug.SetGCPercent(usual)
		}
	}
}

// Limit has Go collect garbage as often as it takes to stay within so many bytes,
// unless GOMEMLIMIT says so already: what a process may hold and a heap that
// doubles between two collections would be twice that. 0 is no bound.
func Limit(bytes int64) {
	if bytes > 0 && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(bytes)
	}
}

// pacer sets the percentage anew after each collection.
type pacer struct {
	least   int64
	percent atomic.Int64
	ended   atomic.Bool
}

// canary is an object that nobody holds: its cleanup follows a collection.
type canary struct{ _ *pacer }

// adjust sets the percentage by what the last collection has found, and waits for
// the next one.
func (p *pacer) adjust() {
	if p.ended.Load() {
		return
	}
	if want := percent(scanned(), p.least); worth(p.percent.Load(), want) {
		p.percent.Store(want)
		debug.SetGCPercent(int(want))
	}
	runtime.AddCleanup(new(canary), (*pacer).adjust, p)
}

// scanned is what the percentage is one of: live data, stacks and globals, in
// bytes.
func scanned() (sum int64) {
	found := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(found)
	for _, s := range found {
		sum += int64(s.Value.Uint64())
	}
	return sum
}

// smallest is the heap below which Go does not collect, at the usual percentage;
// it grows with the percentage.
const smallest = 4 << 20

// percent is the one at which least bytes are allocated beside those found, but
// the usual one if that allows more.
func percent(found, least int64) int64 {
	return max(usual, least*usual/max(found, smallest))
}

// worth tells whether a percentage is so much another that it should be set,
// which stops the process for an instant.
func worth(old, want int64) bool { return want > old+old/8 || want < old-old/8 }
