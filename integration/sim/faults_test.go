package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"downpour/pushdown/store/hbase/hbasefake"
)

// faults draws what goes wrong with calls to region servers. What happens to a call depends on the
// seed and on which call it is: server, method, table, key, and how many of these there were. So a
// seed means the same faults in whatever order calls of different rows arrive.
type faults struct {
	seed uint64
	kind []fault // what this seed has

	mu      sync.Mutex
	seen    map[string]int
	count   map[string]int
	hangsUp map[int]bool // region servers that close each connection instead of answering
}

// fault is a kind of fault, with how many of a thousand calls it hits.
type fault struct {
	name     string
	of1000   int
	happens  hbasefake.Fault
	uptoWait time.Duration
	method   string // that it hits, "" for all; changeIf for a change of rows on conditions
}

// changeIf is how compaction changes rows: as they were read, or not at all.
const changeIf = "change if"

// allFaults are those that a world may have. Some last longer than one call may take; what is
// refused for good fails a put.
var allFaults = []fault{
	{"dropped before", 5, hbasefake.Fault{Kind: hbasefake.DropBefore}, 0, ""},
	{"dropped after", 5, hbasefake.Fault{Kind: hbasefake.DropAfter}, 0, ""},
	{"queue too big", 5, refusal("CallQueueTooBigException"), 0, ""},
	{"region too busy", 5, refusalOfActions("RegionTooBusyException"), 0, ""},
	{"refused for good", 2, refusalOfActions("DoNotRetryIOException"), 0, ""},
	{"actions left out", 3, hbasefake.Fault{Kind: hbasefake.SkipActions}, 0, ""},
	{"reply cut", 3, hbasefake.Fault{Kind: hbasefake.CutCells}, 0, ""},
	{"no reply", 1, hbasefake.Fault{Kind: hbasefake.Hang}, 0, ""},
	{"deaf", 1, hbasefake.Fault{Kind: hbasefake.Deafen}, 0, ""},
	{"late", 10, hbasefake.Fault{}, 10 * time.Second, ""},
	{"server stopping", 3, refusal("regionserver.RegionServerStoppedException"), 0, ""},
	{"scanner reset", 10, refusal("exceptions.ScannerResetException"), 0, "Scan"},
	{"change on conditions late", 300, hbasefake.Fault{}, 30 * time.Second, changeIf},
	{"scan refused for good", 2, refusal("DoNotRetryIOException"), 0, "Scan"},
}

// hbasePackage is the package of HBase's exceptions.
const hbasePackage = "org.apache.hadoop.hbase."

// refusal is the fault that a call is refused with an exception of HBase's package.
func refusal(exception string) hbasefake.Fault {
	return hbasefake.Fault{Kind: hbasefake.Refuse, Exception: hbasePackage + exception}
}

// refusalOfActions is the fault that the actions of a call are refused with one.
func refusalOfActions(exception string) hbasefake.Fault {
	return hbasefake.Fault{Kind: hbasefake.RefuseActions, Exception: hbasePackage + exception}
}

// newFaults draws the kinds of faults that a world has: about half of them, some ten times as often.
func newFaults(w *World) *faults {
	f := &faults{seed: w.seed, seen: map[string]int{}, count: map[string]int{}, hangsUp: map[int]bool{}}
	r := w.rand("kinds of faults")
	for _, k := range allFaults {
		if r.IntN(2) == 0 {
			continue
		}
		if r.IntN(4) == 0 {
			k.of1000 *= 10
		}
		f.kind = append(f.kind, k)
	}
	return f
}

// of returns what happens to a call.
func (f *faults) of(c hbasefake.Call) hbasefake.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := fmt.Sprintf("%d %s %s %x", c.Server, c.Method, c.Table, c.Key)
	r := drawn(f.seed, fmt.Sprint(id, " ", f.seen[id]))
	f.seen[id]++
	if f.hangsUp[c.Server] {
		return hbasefake.Fault{Kind: hbasefake.DropBefore}
	}
	for _, k := range f.kind {
		if r.IntN(1000) >= k.of1000 || k.method != "" && k.method != c.Method && !(k.method == changeIf && c.If) {
			continue
		}
		f.count[k.name]++
		happens := k.happens
		if k.uptoWait > 0 {
			happens.Delay, happens.Queued = time.Duration(r.Int64N(int64(k.uptoWait))), true
		}
		return happens
	}
	return hbasefake.Fault{Delay: time.Duration(r.Int64N(int64(20 * time.Millisecond))), Queued: true}
}

// hangUp lets a region server close each connection instead of answering, or answer again.
func (f *faults) hangUp(server int, does bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hangsUp[server] = does
}

// add counts a fault that is none of a call.
func (f *faults) add(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[name]++
}

func (f *faults) counts() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.count)
}

// rest waits for a time, or until the world is to stop.
func (w *World) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.stop:
	}
}

// breakGateways kills, stops and suspends gateways, and starts them again.
func (w *World) breakGateways() {
	r := w.rand("processes")
	for w.pause(r, 90*time.Second) {
		w.gateways[r.IntN(len(w.gateways))].fail(r)
	}
}

// fail lets a process be away for a time.
func (p *process) fail(r *rand.Rand) {
	d := time.Duration(r.Int64N(int64(20 * time.Second)))
	switch r.IntN(5) {
	case 0, 1:
		p.w.broke(p.kind+" killed", "%s is killed", p.name)
		p.kill()
	case 2, 3:
		p.w.broke(p.kind+" stopped", "%s is stopped", p.name)
		p.stop()
	case 4:
		p.w.broke(p.kind+" hung", "%s hangs for %v", p.name, d)
		p.hang(d)
		return
	}
	p.w.rest(d)
	p.start()
}

// broke counts a fault of the world by its kind, and notes it.
func (w *World) broke(kind, format string, args ...any) {
	w.faults.add(kind)
	w.note(format, args...)
}
