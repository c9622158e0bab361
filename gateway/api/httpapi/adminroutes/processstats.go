package adminroutes

import (
	"math"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"downpour/gateway/api/httpapi/httpio"
)

// started is approximately when the process started.
var started = time.Now()

// memoryUsage is a java.lang.management.MemoryUsage; -1 means unknown.
type memoryUsage struct {
	Init      int64 `json:"init"`
	Used      int64 `json:"used"`
	Committed int64 `json:"committed"`
	Max       int64 `json:"max"`
}

// processStats handles /api/stats/jvm: the numbers of OpenTSDB's Java process that a
// Go process has too, under the same names. Numbers without a counterpart (pools,
// boot class path, input arguments) are left out.
// Source: StatsRpc.printJVMStats.
func (h *Handlers) processStats(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		return httpio.MethodNotAllowed(r.Method)
	}
	read := readMetrics("/memory/classes/heap/objects:bytes", "/memory/classes/heap/released:bytes",
		"/memory/classes/total:bytes",
		"/gc/cycles/total:gc-cycles", "/memory/classes/heap/free:bytes", "/memory/classes/heap/unused:bytes")

	used := read["/memory/classes/heap/objects:bytes"]
	heap := used + read["/memory/classes/heap/free:bytes"] + read["/memory/classes/heap/unused:bytes"]
	total := read["/memory/classes/total:bytes"] - read["/memory/classes/heap/released:bytes"]
	limit := debug.SetMemoryLimit(-1) // reads it
	if limit == math.MaxInt64 {       // there is none
		limit = -1
	}

	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	return httpio.WriteJSON(w, r, http.StatusOK, map[string]any{
		"os": map[string]any{"systemLoadAverage": -1.0}, // what Java reports for unknown
		"gc": map[string]any{"go": map[string]any{"collectionCount": read["/gc/cycles/total:gc-cycles"],
			"collectionTime": gc.PauseTotal.Milliseconds()}},
		"runtime": map[string]any{"startTime": started.UnixMilli(), "uptime": h.Now().Sub(started).Milliseconds(),
			"vmName": "Go", "vmVendor": runtime.Compiler, "vmVersion": runtime.Version()},
		"memory": map[string]any{
			"heapMemoryUsage":            memoryUsage{Init: 0, Used: used, Committed: heap, Max: limit},
			"nonHeapMemoryUsage":         memoryUsage{Init: 0, Used: total - heap, Committed: total - heap, Max: -1},
			"objectsPendingFinalization": 0,
		},
	})
}

// readMetrics returns numbers of the Go runtime by name.
func readMetrics(names ...string) map[string]int64 {
	samples := make([]metrics.Sample, len(names))
	for i, n := range names {
		samples[i].Name = n
	}
	metrics.Read(samples)
	out := make(map[string]int64, len(names))
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			out[s.Name] = int64(s.Value.Uint64())
		}
	}
	return out
}
