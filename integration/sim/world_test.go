package sim

import (
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/pushdown/process/network"
	"downpour/pushdown/store/hbase/hbasefake"
)

// Servers are how many there are of each kind: region servers with a pushdown server each, and gateways.
const Servers = 2

// tables are those of OpenTSDB and our own, with their families.
var tables = map[string][]string{"tsdb": {"t"}, "tsdb-uid": {"id", "name"}, "tsdb-meta": {"name"}, "tsdb-tree": {"t"}, "downpour-state": {"s"}}

// World is a cluster with its clients, in a bubble of package synctest.
type World struct {
	t     testing.TB
	seed  uint64
	began time.Time

	network  network.Memory
	hbase    *hbasefake.Cluster
	faults   *faults
	gateways [Servers]*process
	pushdown [Servers]*process
	clients  *clients
	model    *model
	recorded *recorded
	deletes  bool // clients delete, too
	counts   Counts

	stop chan struct{}  // closed when clients and faults end
	all  sync.WaitGroup // of clients and of what breaks things
	// dying are killed processes that have not noticed yet.
	dying sync.WaitGroup

	mu      sync.Mutex
	history []string
}

// Counts is what has happened in a world.
type Counts struct {
	Puts, PutsRefused       int // requests
	Points, Deleted         int // acknowledged
	Queries, QueriesRefused int
	News                    int            // messages of live queries
	Faults                  map[string]int // by kind
	Simulated               time.Duration
}

// Run lets a cluster live for a time, and then checks that all is well. It is called in a bubble.
func Run(t testing.TB, seed uint64, d time.Duration) Counts {
	w := &World{t: t, seed: seed, began: time.Now(), model: newModel(), stop: make(chan struct{})}
	defer func() {
		if t.Failed() {
			t.Logf("seed %d, what happened:\n%s", seed, w.story())
		}
	}()
	w.open()
	w.live(d)
	w.heal()
	w.checkAtEnd()
	w.close()
	w.counts.Faults = w.faults.counts()
	w.counts.Simulated = time.Since(w.began)
	return w.counts
}

// rand returns a generator of what the seed draws for a purpose.
func (w *World) rand(purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// counted changes the counts.
func (w *World) counted(change func(*Counts)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.counts)
}

// note adds a line to the history, which is shown if the world fails.
func (w *World) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, fmt.Sprintf("%10v "+format, append([]any{time.Since(w.began).Round(time.Millisecond)}, args...)...))
}

// storyLines bounds what is shown of the history.
const storyLines = 200

func (w *World) story() (out string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.history[max(0, len(w.history)-storyLines):] {
		out += line + "\n"
	}
	return out
}

// open starts the cluster, the servers and the clients' side, without faults.
func (w *World) open() {
	r := w.rand("settings")
	w.faults = newFaults(w)
	w.hbase = hbasefake.For(w.t, hbasefake.Options{Servers: Servers, Network: &w.network, Handlers: 3 + r.IntN(8),
		MaxReplyCells: []int{0, 3, 7, 50}[r.IntN(4)], HeartbeatEvery: []int{0, 3, 5}[r.IntN(3)], FlagCompleteRows: r.IntN(2) == 0})
	for name, families := range tables {
		w.hbase.CreateTable(name, families)
	}
	for _, name := range []string{"tsdb", "downpour-state"} {
		w.hbase.KeepVersions(name)
	}
	w.recorded = recordings[r.IntN(len(recordings))]()
	w.recorded.load(w)
	w.deletes = r.IntN(2) == 0
	for i := range Servers {
		w.pushdown[i] = w.newPushdown(i)
		w.pushdown[i].start()
	}
	for i := range Servers {
		w.gateways[i] = w.newGateway(i)
		w.gateways[i].start()
	}
	w.clients = newClients(w)
}

// live lets clients work and things break.
func (w *World) live(d time.Duration) {
	w.hbase.SetHook(w.faults.of)
	w.all.Go(w.breakRegions)
	w.all.Go(w.breakProcesses)
	w.clients.work()
	pass(d)
	close(w.stop)
	w.all.Wait()
}

// heal ends all faults, starts what is down, and waits until all answers.
func (w *World) heal() {
	w.hbase.SetHook(nil)
	for i := range Servers {
		w.pushdown[i].start()
		w.gateways[i].start()
	}
	w.clients.await()
}

func (w *World) close() {
	w.clients.close()
	for i := range Servers {
		w.gateways[i].stop()
	}
	for i := range Servers {
		w.pushdown[i].stop()
	}
	w.dying.Wait()
	w.hbase.Close()
}

// pass lets a time pass in the bubble.
func pass(d time.Duration) { <-time.After(d) }

// pause waits a drawn time of about d at most. It returns false when the world is to stop.
func (w *World) pause(r *rand.Rand, d time.Duration) bool {
	select {
	case <-w.stop:
		return false
	case <-time.After(10*time.Millisecond + time.Duration(r.Int64N(int64(d)))):
		return true
	}
}

// log returns the log of a server, whose warnings become part of the history.
func (w *World) log(name string) *slog.Logger {
	return slog.New(slog.NewTextHandler(lines{w, name}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// lines notes what is written into the history.
type lines struct {
	w    *World
	name string
}

func (l lines) Write(b []byte) (int, error) {
	l.w.note("%s: %.400s", l.name, strings.TrimSpace(string(b)))
	return len(b), nil
}
