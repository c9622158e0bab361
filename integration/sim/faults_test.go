package sim

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"downpour/pushdown/store/hbase/hbasefake"
)

// faults draws what goes wrong with calls to region servers. What happens to a call depends on the seed and on which call
// it is: server, method, table, key, and how many of these there were. So a seed means the same faults in whatever order
// calls of different rows arrive.
type faults struct {
	seed uint64
	kind []fault // what this seed has

	mu    sync.Mutex
	seen  map[string]int
	count map[string]int
}

// fault is a kind of fault, with how many of a thousand calls it hits.
type fault struct {
	name     string
	of1000   int
	happens  hbasefake.Fault
	uptoWait time.Duration
}

// allFaults are those that a world may have. Some last longer than one call may take; what is refused for good fails a put.
var allFaults = []fault{
	{"dropped before", 5, hbasefake.Fault{Kind: hbasefake.DropBefore}, 0},
	{"dropped after", 5, hbasefake.Fault{Kind: hbasefake.DropAfter}, 0},
	{"queue too big", 5, hbasefake.Fault{Kind: hbasefake.Refuse, Exception: "org.apache.hadoop.hbase.CallQueueTooBigException"}, 0},
	{"region too busy", 5, hbasefake.Fault{Kind: hbasefake.RefuseActions, Exception: "org.apache.hadoop.hbase.RegionTooBusyException"}, 0},
	{"refused for good", 2, hbasefake.Fault{Kind: hbasefake.RefuseActions, Exception: "org.apache.hadoop.hbase.DoNotRetryIOException"}, 0},
	{"actions left out", 3, hbasefake.Fault{Kind: hbasefake.SkipActions}, 0},
	{"reply cut", 3, hbasefake.Fault{Kind: hbasefake.CutCells}, 0},
	{"no reply", 1, hbasefake.Fault{Kind: hbasefake.Hang}, 0},
	{"deaf", 1, hbasefake.Fault{Kind: hbasefake.Deafen}, 0},
	{"late", 10, hbasefake.Fault{}, 10 * time.Second},
}

// newFaults draws the kinds of faults that a world has: about half of them, some ten times as often.
func newFaults(w *World) *faults {
	f := &faults{seed: w.seed, seen: map[string]int{}, count: map[string]int{}}
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
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", id, f.seen[id])
	f.seen[id]++

	r := rand.New(rand.NewPCG(f.seed, h.Sum64()))
	for _, k := range f.kind {
		if r.IntN(1000) >= k.of1000 {
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

// breakRegions moves, splits and merges regions, and lets servers stand still.
func (w *World) breakRegions() {
	r := w.rand("regions")
	for w.pause(r, 20*time.Second) {
		table := []string{"tsdb", "tsdb", "tsdb", "tsdb-uid", "tsdb-meta"}[r.IntN(5)]
		key := []byte{0, 0, byte(1 + r.IntN(3)), byte(r.IntN(256))}
		i, d := r.IntN(Servers), time.Duration(r.Int64N(int64(90*time.Second)))
		if r.IntN(8) == 0 {
			d += 3 * time.Minute // longer than the writer tries
		}
		switch r.IntN(6) {
		case 0:
			w.broke("region moved", "%s %x moves", table, key)
			w.hbase.MoveRegion(table, key)
		case 1:
			w.broke("region split", "%s %x is split", table, key)
			w.hbase.SplitRegion(table, key)
		case 2:
			w.broke("regions merged", "%s %x is merged", table, key)
			w.hbase.MergeRegions(table, key)
		case 3:
			w.broke("region server paused", "region server %d is paused for %v", i, d)
			w.hbase.PauseServer(i)
			w.rest(d)
			w.hbase.ResumeServer(i)
		case 4:
			w.broke("region server down", "region server %d is down for %v", i, d)
			w.hbase.StopServer(i)
			w.rest(d)
			if err := w.hbase.RestartServer(i); err != nil {
				w.t.Errorf("seed %d: %v", w.seed, err)
			}
		case 5:
			w.broke("ZooKeeper down", "ZooKeeper is down for %v", d)
			w.hbase.StopZooKeeper()
			w.rest(d)
			if err := w.hbase.RestartZooKeeper(); err != nil {
				w.t.Errorf("seed %d: %v", w.seed, err)
			}
		}
	}
}

// rest waits for a time, or until the world is to stop.
func (w *World) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.stop:
	}
}

// breakProcesses kills gateways and pushdown servers, and starts them again.
func (w *World) breakProcesses() {
	r := w.rand("processes")
	for w.pause(r, 90*time.Second) {
		i := r.IntN(Servers)
		switch r.IntN(3) {
		case 0:
			w.broke("gateway killed", "gateway %d is killed", i)
			w.gateways[i].kill()
			w.rest(time.Duration(r.Int64N(int64(20 * time.Second))))
			w.gateways[i].start()
		case 1:
			w.broke("gateway stopped", "gateway %d is stopped", i)
			w.gateways[i].stop()
			w.rest(time.Duration(r.Int64N(int64(20 * time.Second))))
			w.gateways[i].start()
		case 2:
			w.broke("pushdown server killed", "pushdown server %d is killed", i)
			w.pushdown[i].kill()
			w.rest(time.Duration(r.Int64N(int64(20 * time.Second))))
			w.pushdown[i].start()
		}
	}
}

// broke counts a fault of the world by its kind, and notes it.
func (w *World) broke(kind, format string, args ...any) {
	w.faults.add(kind)
	w.note(format, args...)
}
