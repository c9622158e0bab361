package hbase

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding/seedtest"
	"downpour/pushdown/process/network/networktest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"

	"github.com/google/go-cmp/cmp"
	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

var soak = flag.Bool("soak", false, "run the long forms of the tests that have one")

// The tests of this file run against a fake in memory, in simulated time: a
// server may spend minutes on a call, and the test still ends at once.

const tooBusy = "org.apache.hadoop.hbase.RegionTooBusyException"

// load is the work of some writers, and how many cells they have given to Apply.
type load struct {
	c       *cluster
	began   time.Time
	writers int
	rows    int           // of each writer, in each batch
	batches int           // of each writer
	timeout time.Duration // of one Apply, after which the batch is put again
	pause   time.Duration // between batches

	mu    sync.Mutex
	asked int // cells given to Apply
}

func newLoad(c *cluster) *load {
	return &load{c: c, began: time.Now(), writers: 4, rows: 45, batches: 4, timeout: time.Hour}
}

// row returns the key of a writer's i-th row. The rows of the writers alternate.
func row(writer, i int) []byte { return fmt.Appendf(nil, "r%05d-%d", i, writer) }

// run lets all writers put their batches, and fails unless each cell was written,
// appended ones once.
func (l *load) run() {
	l.c.Helper()
	var all sync.WaitGroup
	for w := range l.writers {
		all.Go(func() {
			for b := range l.batches {
				l.put(w, b)
				time.Sleep(l.pause)
			}
		})
	}

	all.Wait()
	took := time.Since(l.began)
	l.check()
	received := l.c.Received()
	l.c.Logf("%d cells asked in %v, %d received: %.2f times as many", l.asked, took.Round(time.Second/10), received,
		float64(received)/float64(l.asked))
	if received > 2*l.asked {
		l.c.Errorf("the servers got %d cells where %d were asked, want at most twice as many", received, l.asked)
	}
}

// put applies a batch until it is acknowledged. In every third row it appends instead
// of putting.
func (l *load) put(w, b int) {
	var ms []store.Mutation
	for i := range l.rows {
		m := store.Mutation{
			Row:       row(w, i),
			Family:    "t",
			Qualifier: fmt.Appendf(nil, "q%03d", b),
			Value:     fmt.Appendf(nil, "v%03d", b),
		}
		if i%3 == 0 {
			m.Kind, m.Qualifier = store.Append, []byte("appended")
		}
		ms = append(ms, m)
	}

	for len(ms) > 0 {
		l.mu.Lock()
		l.asked += len(ms)
		l.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
		err := l.c.st.Apply(ctx, "t", ms)
		cancel()
		if err == nil {
			return
		}
		var partial *store.ApplyError
		if !errors.As(err, &partial) || !errors.Is(err, store.ErrUnavailable) {
			l.c.Errorf("apply: %v", err)
			return
		}
		// A second attempt is a new operation, which might append twice: appends get none.
		var left []store.Mutation
		for _, i := range partial.Failed {
			if ms[i].Kind != store.Append {
				left = append(left, ms[i])
			}
		}
		ms = left
	}
}

// check reads all cells back and compares them.
func (l *load) check() {
	l.c.Helper()
	l.c.SetHook(nil)
	var want, appended []string
	for i := range l.rows {
		for w := range l.writers {
			value := ""
			for b := range l.batches {
				value += fmt.Sprintf("v%03d", b)
				if i%3 != 0 {
					want = append(want, fmt.Sprintf("%s q%03d v%03d", row(w, i), b, b))
				}
			}
			if i%3 == 0 {
				appended = append(appended, fmt.Sprintf("%s appended %s", row(w, i), value))
			}
		}
	}

	if l.timeout < time.Hour {
		appended = nil // it is not known whether the appends of failed operations were executed
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	before := l.c.ctx
	l.c.ctx = ctx
	got, _, err := l.c.read(store.Scan{})
	l.c.ctx = before
	if err != nil {
		l.c.Fatal(err)
	}
	if appended == nil {
		got = slices.DeleteFunc(got, func(s string) bool { return s[len("r00000-0 "):][:8] == "appended" })
	}

	want = append(want, appended...)
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		l.c.Errorf("got %d cells, want %d: %s", len(got), len(want), firstDifference(got, want))
	}
}

func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("got %q, want %q", got[i], want[i])
		}
	}
	return "the end"
}

// slowly runs f with a cluster of two servers in memory and simulated time.
func slowly(t *testing.T, f func(c *cluster)) {
	t.Helper()
	slowlyOn(t, hbasefake.Options{Handlers: 3}, f)
}

func slowlyOn(t *testing.T, opts hbasefake.Options, f func(c *cluster)) {
	t.Helper()
	opts.Network = new(networktest.Memory)
	synctest.Test(t, func(t *testing.T) {
		c := start(t, opts)
		c.CreateTable("t", []string{"t"}, []byte("r00015"), []byte("r00030"))
		f(c)
	})
}

// Calls wait for a server that spends long on each batch. Nothing is sent twice,
// even if its only handler does not get to the probe.
func TestSlow_everyBatch(t *testing.T) {
	for _, d := range []time.Duration{5 * time.Second, 20 * time.Second, 70 * time.Second} {
		for name, opts := range map[string]hbasefake.Options{
			"answers probes": {Handlers: 1},
			"says nothing":   {Handlers: 1, NoPriority: true},
		} {
			t.Run(fmt.Sprintf("%v/%s", d, name), func(t *testing.T) {
				slowlyOn(t, opts, func(c *cluster) {
					c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
						if call.Method != "Multi" {
							return hbasefake.Fault{}
						}
						return hbasefake.Fault{Delay: d}
					})
					l := newLoad(c)
					l.writers = 2
					l.run()
					if l.asked != c.Received() {
						t.Errorf("%d cells received, want the %d asked", c.Received(), l.asked)
					}
				})
			})
		}
	}
}

// blocked reports whether writes are blocked: in the first half of each minute.
func (l *load) blocked() bool { return time.Since(l.began)%time.Minute < time.Minute/2 }

// A region that refuses writes while it flushes, for half of every minute, gets few
// mutations until it accepts them again.
func TestSlow_refusesWrites(t *testing.T) {
	for name, batches := range map[string]int{"one batch in each block": 12, "all the time": 60} {
		t.Run(name, func(t *testing.T) {
			slowly(t, func(c *cluster) {
				l := newLoad(c)
				l.batches = batches
				if batches == 12 {
					l.pause = time.Minute
				} else {
					l.pause = time.Second
				}
				c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
					if call.Method == "Multi" && l.blocked() {
						return hbasefake.Fault{
							Kind:      hbasefake.RefuseActions,
							Exception: tooBusy,
							Delay:     10 * time.Millisecond,
						}
					}
					return hbasefake.Fault{Delay: 50 * time.Millisecond}
				})
				l.run()
			})
		})
	}
}

// Calls wait for a server whose handlers are all stuck until it has flushed. It
// answers only the probe.
func TestSlow_handlersStuck(t *testing.T) {
	slowly(t, func(c *cluster) {
		l := newLoad(c)
		l.batches, l.pause = 50, time.Second
		c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
			if l.blocked() && call.Method == "Multi" {
				return hbasefake.Fault{Delay: time.Minute/2 - time.Since(l.began)%time.Minute}
			}
			return hbasefake.Fault{Delay: 50 * time.Millisecond}
		})
		l.run()
		if l.asked != c.Received() {
			t.Errorf("%d cells received, want the %d asked", c.Received(), l.asked)
		}
	})
}

// A paused server that keeps its regions gets no call twice, and its answers count
// once it is resumed.
func TestSlow_serverPaused(t *testing.T) {
	slowly(t, func(c *cluster) {
		l := newLoad(c)
		l.batches, l.pause = 40, time.Second
		paused := make(chan struct{})
		go func() {
			defer close(paused)
			for range 5 {
				time.Sleep(2500 * time.Millisecond)
				c.PauseServer(1)
				time.Sleep(25 * time.Second)
				c.ResumeServer(1)
			}
		}()
		l.run()
		<-paused
		if l.asked != c.Received() {
			t.Errorf("%d cells received, want the %d asked", c.Received(), l.asked)
		}
	})
}

// If the regions of a paused server are moved, they are found at their new server
// soon, and not only after the calls' timeout.
func TestSlow_pausedServerLosesRegions(t *testing.T) {
	slowly(t, func(c *cluster) {
		l := newLoad(c)
		l.pause = time.Second
		go func() {
			time.Sleep(time.Second / 2) // the server has been written to, and is connected
			c.PauseServer(1)
			time.Sleep(20 * time.Second)
			c.MoveRegion("t", row(0, 20)) // to server 0
		}()
		l.run()
		if took := time.Since(l.began); took > 30*time.Second {
			t.Errorf("it took %v, want less than 10 s from the move on", took)
		}
	})
}

// A connection that is dead while its server lives is given up before the calls'
// timeout.
func TestSlow_deadConnection(t *testing.T) {
	slowly(t, func(c *cluster) {
		l := newLoad(c)
		cut := false
		c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
			if call.Method == "Multi" && call.Server == 1 && !cut {
				cut = true
				return hbasefake.Fault{Kind: hbasefake.Deafen}
			}
			return hbasefake.Fault{}
		})
		l.run()
		if took := time.Since(l.began); took > 30*time.Second {
			t.Errorf("it took %v, want no more than some silences", took)
		}
	})
}

// Faults of all these kinds, drawn at random: delays, refused writes, omissions and
// repetitions in replies, cut connections, lost replies, moves and splits, pauses.
func TestSlow_random(t *testing.T) {
	n := uint64(3)
	if *soak {
		n = 1000
	}
	first := seedtest.Of(t)
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			slowly(t, func(c *cluster) { randomFaults(c, seed) })
		})
	}
}

// identity distinguishes calls by their contents and not by their arrival, so that a
// seed means the same faults whatever the scheduler does.
type identity struct {
	server      int
	method, row string
	nth         int // of the calls that are alike so far
}

// draws gives each call a generator of its own. It is used under the lock of the fake alone.
type draws struct {
	seed uint64
	seen map[identity]int
}

func (d draws) of(call hbasefake.Call) *rand.Rand {
	id := identity{server: call.Server, method: call.Method, row: call.Row}
	n := d.seen[id]
	d.seen[id]++
	id.nth = n
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %q %d", id.server, id.method, id.row, id.nth)
	return rand.New(rand.NewPCG(d.seed, h.Sum64()))
}

// Calls that are alike draw the same whatever came between them.
func TestDraws(t *testing.T) {
	a, b := hbasefake.Call{Method: "Multi", Row: "a"}, hbasefake.Call{Method: "Multi", Row: "b"}
	draw := func(calls ...hbasefake.Call) (drawn map[string][]uint64) {
		drawn = map[string][]uint64{}
		d := draws{seed: 7, seen: map[identity]int{}}
		for _, call := range calls {
			drawn[call.Row] = append(drawn[call.Row], d.of(call).Uint64())
		}
		return drawn
	}
	one, other := draw(a, a, b, a, b), draw(b, b, a, a, a)
	if d := cmp.Diff(one, other); d != "" {
		t.Errorf("in another order: -want +got\n%s", d)
	}
	if one["a"][0] == one["a"][1] || one["a"][0] == one["b"][0] {
		t.Errorf("%v: two calls draw the same", one)
	}
}

func randomFaults(c *cluster, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	calls := draws{seed: seed, seen: map[identity]int{}}
	l := newLoad(c)
	l.batches, l.pause = 20, 3*time.Second
	if rng.IntN(3) == 0 {
		l.timeout = 2 * time.Minute // the writer's own
	}

	slowest := []time.Duration{time.Second, 5 * time.Second, 20 * time.Second, 70 * time.Second}[rng.IntN(4)]
	// A refusal comes at once. Blocks are not combined with calls that last about as
	// long as a block: whether one is refused would not depend on the last one, so
	// that no window could fit.
	blocks := rng.IntN(2) == 0 && slowest == time.Second
	c.Logf("calls of up to %v, writes blocked: %t, put again after %v", slowest, blocks, l.timeout)
	c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
		if call.Method != "Multi" {
			return hbasefake.Fault{}
		}
		if blocks && l.blocked() {
			return hbasefake.Fault{Kind: hbasefake.RefuseActions, Exception: tooBusy, Delay: 10 * time.Millisecond}
		}
		rng := calls.of(call)
		f := hbasefake.Fault{Delay: time.Duration(rng.Int64N(int64(slowest)))}
		switch rng.IntN(100) { // what ends a connection ends other writers' calls too
		case 0:
			f.Kind = hbasefake.DropBefore
		case 1:
			f.Kind = hbasefake.DropAfter
		case 2:
			f.Kind = hbasefake.Deafen
		case 3, 4, 5:
			f.Kind, f.Exception = hbasefake.Refuse, "org.apache.hadoop.hbase.CallQueueTooBigException"
		case 6, 7, 8, 9, 10, 11:
			f.Change = func(m proto.Message) { lie(m.(*pb.MultiResponse), rng.IntN(3)) }
		}
		return f
	})

	stop := make(chan struct{})
	var chaos sync.WaitGroup
	chaos.Go(func() { disturbRegions(c, seed, stop) })
	l.run()
	close(stop)
	chaos.Wait()
}

// lie changes a reply: it leaves results out, repeats one, or gives one to an action
// that does not exist.
func lie(m *pb.MultiResponse, how int) {
	r := m.RegionActionResult[0]
	if len(r.ResultOrException) == 0 {
		return
	}

	last := len(r.ResultOrException) - 1
	switch how {
	case 0:
		r.ResultOrException = r.ResultOrException[:last/2]
	case 1:
		r.ResultOrException = append(r.ResultOrException, r.ResultOrException[last])
	case 2:
		r.ResultOrException[last].Index = proto.Uint32(5000)
	}
}

// disturbRegions moves and splits regions and pauses servers at random times.
func disturbRegions(c *cluster, seed uint64, stop <-chan struct{}) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for {
		wait := time.NewTimer(time.Duration(rng.Int64N(int64(40 * time.Second))))
		select {
		case <-wait.C:
		case <-stop:
			return
		}
		switch rng.IntN(3) {
		case 0:
			c.MoveRegion("t", row(0, rng.IntN(45)))
		case 1:
			c.SplitRegion("t", row(0, rng.IntN(45)))
		case 2:
			i := rng.IntN(2)
			c.PauseServer(i)
			time.Sleep(time.Duration(rng.Int64N(int64(30 * time.Second))))
			c.ResumeServer(i)
		}
	}
}

// A write whose caller has left may still be executed. Later writes wait until it is
// known that it was, or cannot be, so that a point that was acknowledged is never
// overwritten by one that was not.
func TestSlow_abandonedWrite(t *testing.T) {
	for name, d := range map[string]time.Duration{"done late": time.Minute, "never": time.Hour} {
		t.Run(name, func(t *testing.T) {
			slowly(t, func(c *cluster) {
				c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
					if call.Method == "Multi" && call.N == 0 {
						return hbasefake.Fault{Delay: d}
					}
					return hbasefake.Fault{}
				})
				put := func(value string, patience time.Duration) error {
					ctx, cancel := context.WithTimeout(context.Background(), patience)
					defer cancel()
					return c.st.Apply(ctx, "t",
						[]store.Mutation{{Row: []byte("a"), Family: "t", Qualifier: []byte("q"), Value: []byte(value)}})
				}
				if err := put("first", 10*time.Second); !errors.Is(err, store.ErrUnavailable) {
					t.Fatalf("got %v, want no answer within 10 s", err)
				}
				if err := put("in vain", 10*time.Second); !errors.Is(err, errWritePending) {
					t.Fatalf("got %v, want to be told of the earlier write", err)
				}
				if err := put("second", 10*time.Minute); err != nil {
					t.Fatal(err)
				}
				if d == time.Minute { // the other one is still under way; its connection has ended
					time.Sleep(d)
				}
				got, _, err := func() ([]string, store.ScanStats, error) {
					c.ctx = context.Background()
					return c.read(store.Scan{})
				}()
				if err != nil || !slices.Equal(got, []string{"a q second"}) {
					t.Errorf("got %q, %v, want the write that was acknowledged", got, err)
				}
			})
		})
	}
}

// A region that has refused writes gets one at a time, whatever else is read from it, until it has accepted one. A
// reply that accepts nothing does not end that.
func TestMulti_oneAtATime(t *testing.T) {
	slowly(t, func(c *cluster) {
		var writes []time.Duration
		var cells []int
		began := time.Now()
		c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
			if call.Method != "Multi" || call.Cells == 0 {
				return hbasefake.Fault{Delay: 20 * time.Second}
			}
			writes, cells = append(writes, time.Since(began)), append(cells, call.Cells)
			f := [...]hbasefake.Fault{outcome(tooBusy, tooBusy), outcome("-"), {}, {}, {}}[len(writes)-1]
			f.Delay = 5 * time.Second
			return f
		})
		done := make(chan error)
		go func() { _, err := c.st.Get(c.ctx, "t", "t", [][]byte{[]byte("a")}); done <- err }()
		go func() { done <- c.st.Apply(c.ctx, "t", puts("a", "a2")) }()
		time.Sleep(6 * time.Second) // it was refused, and is sent again
		go func() { done <- c.st.Apply(c.ctx, "t", puts("b")) }()
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		c.SetHook(nil)
		// The last one may be two, of a cell each.
		if len(writes) < 4 || writes[1] > 6*time.Second || !slices.Equal(cells[:3], []int{2, 1, 1}) {
			t.Fatalf("writes at %v of %d cells, want four, the second before 6 s and of one", writes, cells)
		}
		for i := range 3 {
			if writes[i+1]-writes[i] < 5*time.Second {
				t.Errorf("writes at %v, want each after the reply to the one before", writes)
			}
		}
	})
}

// The reply to a write whose caller has left is noticed when it comes.
func TestMulti_abandonedIsAnswered(t *testing.T) {
	slowly(t, func(c *cluster) {
		c.disturb("Multi", 1000, hbasefake.Fault{Delay: 40 * time.Second})
		ctx, cancel := context.WithTimeout(c.ctx, time.Second)
		defer cancel()
		began := time.Now()
		wantError(t, c.st.Apply(ctx, "t", puts("a")), store.ErrUnavailable)
		if err := c.st.Apply(c.ctx, "t", puts("a")); err != nil || time.Since(began) > 45*time.Second {
			t.Errorf("written again after %v, %v, want it soon after the reply", time.Since(began), err)
		}
	})
}
