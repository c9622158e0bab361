package sim

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/gateway"
	"downpour/gateway/extra/tools"
	"downpour/integration/differential"
	"downpour/pushdown/process/network/networktest"
	"downpour/pushdown/store/hbase"
)

// ground is what a world's gateways store points in, with the faults that it has.
type ground interface {
	// gateways are how many gateways it takes, and settings those that they need for it.
	gateways() int
	settings(r *rand.Rand) map[string]string
	// start stores cells of a TSD, by table, and starts what it needs in addition to gateways.
	start(cells map[string][]differential.Cell) error
	// open opens it for a process on a machine, with a proof of cached results.
	open(process string, host *networktest.Host, proof hbase.Proof) (store, error)
	// live breaks things, and lets writers other than gateways write, until the world stops. heal
	// mends all that is broken.
	live()
	heal()
	// killed is called when a process was killed, before what still runs of it may end as if it were not.
	killed()
	close()
}

// store is an open ground.
type store interface {
	tools.Store
	Close() error
}

// World is a store with its gateways and clients, in a bubble of package synctest.
type World struct {
	t     testing.TB
	seed  uint64
	began time.Time

	network  networktest.Memory
	faults   *faults
	ground   ground
	gateways []*process
	clients  *clients
	model    *model
	recorded *recorded
	deletes  bool // clients delete, too
	tempo    tempo
	jobs     map[string]string // settings of jobs in gateways
	settings *gateway.Config   // of a gateway
	token    string            // of clients, "" if all may do everything
	counts   Counts

	stop chan struct{}  // closed when clients and faults end
	all  sync.WaitGroup // of clients and of what breaks things
	// dying are killed processes that have not noticed yet.
	dying sync.WaitGroup

	mu      sync.Mutex
	history []string
	busy    map[int64]bool // minutes in which a client has sent a request
}

// tempo is how a world passes its time.
type tempo struct {
	slowness  time.Duration // how many times longer all pauses are
	followers int           // live queries
}

// tempos are those of worlds: one of minutes, and one of half a day for the jobs that look at
// hours, in which nobody follows.
var (
	minutes = tempo{slowness: 1, followers: 3}
	hours   = tempo{slowness: 200}
)

// slower is how long a pause is in this world.
func (w *World) slower(d time.Duration) time.Duration { return w.tempo.slowness * d }

// Counts is what has happened in a world.
type Counts struct {
	Puts, PutsRefused       int // requests
	Points, Deleted         int // acknowledged
	Queries, QueriesRefused int
	RolledUp, Past, Sealed  int            // points, rows deleted by retention, and rows sealed
	News                    int            // messages of live queries
	Commands                int            // of tools
	Faults, Checks          map[string]int // by kind
	Simulated               time.Duration
	Busy                    time.Duration // the minutes of it in which a client sent a request
}

// operations are requests, messages and commands.
func (c Counts) operations() int { return c.Puts + c.Queries + c.News + c.Commands }

func sum(kinds map[string]int) (n int) {
	for _, of := range kinds {
		n += of
	}
	return n
}

// add adds what has happened in another world.
func (c *Counts) add(o Counts) {
	c.Puts += o.Puts
	c.PutsRefused += o.PutsRefused
	c.Points += o.Points
	c.Deleted += o.Deleted
	c.Queries += o.Queries
	c.QueriesRefused += o.QueriesRefused
	c.RolledUp += o.RolledUp
	c.Past += o.Past
	c.Sealed += o.Sealed
	c.News += o.News
	c.Commands += o.Commands
	c.Simulated += o.Simulated
	c.Busy += o.Busy
	if c.Faults == nil {
		c.Faults, c.Checks = map[string]int{}, map[string]int{}
	}
	for kind, n := range o.Faults {
		c.Faults[kind] += n
	}
	for kind, n := range o.Checks {
		c.Checks[kind] += n
	}
}

// Run lets a world live for a time, and then checks that all is well. It is called in a bubble.
func Run(t testing.TB, seed uint64, on func(*World) ground, pace tempo, d time.Duration) Counts {
	w := &World{
		t:     t,
		seed:  seed,
		tempo: pace,
		began: time.Now(),
		model: newModel(),
		stop:  make(chan struct{}),
		busy:  map[int64]bool{},
	}
	w.counts.Checks = map[string]int{}
	defer func() {
		if t.Failed() {
			t.Logf("seed %d, what happened:\n%s", seed, w.story())
		}
	}()
	w.open(on)
	w.live(d)
	w.heal()
	w.calm()
	w.checkAtEnd()
	w.checkAgreement()
	w.close()
	w.counts.Faults = w.faults.counts()
	w.counts.Simulated = time.Since(w.began)
	w.counts.Busy = time.Duration(len(w.busy)) * time.Minute
	return w.counts
}

// rand returns a generator of what the seed draws for a purpose.
func (w *World) rand(purpose string) *rand.Rand { return drawn(w.seed, purpose) }

// drawn returns a generator for a seed and a purpose. They are hashed because generators of seeds
// that are close to each other begin alike.
func drawn(seed uint64, purpose string) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, purpose))))
}

// counted changes the counts.
func (w *World) counted(change func(*Counts)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.counts)
}

// checked counts an answer that was compared.
func (w *World) checked(kind string) { w.counted(func(c *Counts) { c.Checks[kind]++ }) }

// note adds a line to the history, which is shown if the world fails.
func (w *World) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, fmt.Sprintf("%10v "+format,
		append([]any{time.Since(w.began).Round(time.Millisecond)}, args...)...))
}

// storyLines bounds what is shown of the history: what came before the first wrong answer, else the end.
const storyLines = 300

func (w *World) story() (out string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	end := len(w.history)
	first := slices.IndexFunc(w.history, func(line string) bool { return strings.Contains(line, wrongAnswer) })
	if first >= 0 {
		end = min(end, first+storyLines/10)
	}
	for _, line := range w.history[max(0, end-storyLines):end] {
		out += line + "\n"
	}
	return out
}

// open starts all servers and the clients' side, without faults.
func (w *World) open(on func(*World) ground) {
	r := w.rand("settings")
	w.faults = newFaults(w)
	w.deletes = r.IntN(2) == 0
	w.drawJobs(r)
	w.recorded = recordings[r.IntN(len(recordings))]()
	w.ground = on(w)
	err := w.ground.start(map[string][]differential.Cell{"tsdb-uid": w.recorded.data.UID, "tsdb": w.recorded.data.Rows})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range w.ground.gateways() {
		w.gateways = append(w.gateways, w.newGateway(i))
		w.gateways[i].start()
	}
	w.clients = newClients(w)
}

// live lets clients work and things break.
func (w *World) live(d time.Duration) {
	w.all.Go(w.ground.live)
	w.all.Go(w.breakGateways)
	w.clients.work()
	pass(d)
	close(w.stop)
	w.all.Wait()
}

// heal ends all faults, repairs rows while all gateways are down, starts them, and waits until they answer.
func (w *World) heal() {
	w.ground.heal()
	for _, g := range w.gateways {
		g.stop()
	}
	w.dying.Wait()
	w.repair()
	for _, g := range w.gateways {
		g.start()
	}
	w.clients.await()
	pass(noticed)
	w.checkNames()
	w.settleJobs()
}

// noticed is how long it takes at most until the servers that go on have noticed that a connection
// is deaf: longer than some queries may take.
const noticed = 30 * time.Second

func (w *World) close() {
	w.clients.close()
	w.checkMemory()
	for _, g := range w.gateways {
		g.stop()
	}
	w.dying.Wait()
	w.checkTables()
	w.ground.close()
}

// pass lets a time pass in the bubble.
func pass(d time.Duration) { <-time.After(d) }

// pause waits a drawn time of about d at most. It returns false when the world is to stop.
func (w *World) pause(r *rand.Rand, d time.Duration) bool {
	select {
	case <-w.stop:
		return false
	case <-time.After(10*time.Millisecond + w.slower(time.Duration(r.Int64N(int64(d))))):
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
