package lease

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding/seedtest"
	"downpour/pushdown/process/wait"
	"downpour/pushdown/store"
)

var rounds = flag.Int("rounds", 300, "drawn rounds of workers that share a lease")

// table is the one cell of a lease. It fails the test if a turn writes again after another.
type table struct {
	*testing.T
	mu    sync.Mutex
	value []byte
	turns []string
	late  sync.WaitGroup // writes that come later
}

func (c *table) get() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value
}

func (c *table) compareAndPut(expected, value []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !bytes.Equal(c.value, expected) {
		return false
	}
	c.value = bytes.Clone(value)
	r, err := parseRecord(value)
	if err != nil {
		c.Error(err)
	}
	if n := len(c.turns); n == 0 || c.turns[n-1] != r.Turn {
		if slices.Contains(c.turns, r.Turn) {
			c.Errorf("turn %s has written after another one", r.Turn)
		}
		c.turns = append(c.turns, r.Turn)
	}
	return true
}

// view is how one worker reaches the table: slowly, with calls that fail before or after
// they were carried out, or that are carried out much later.
type view struct {
	*table
	mu     sync.Mutex
	rng    *rand.Rand
	slow   time.Duration // calls take up to so long each way
	faulty bool
	dead   bool // all calls are blocked, as if the process had ended
}

var errLost = fmt.Errorf("the reply is lost: %w", store.ErrUnavailable)

// draw returns a number below n.
func (v *view) draw(n int64) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.rng.Int64N(n)
}

func (v *view) kill() { v.setDead(true) }

func (v *view) setDead(dead bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dead = dead
}

// way is one way of a call.
func (v *view) way(ctx context.Context) error {
	if err := wait.For(ctx, time.Duration(v.draw(int64(v.slow)+1))); err != nil || ctx.Err() != nil {
		return ctx.Err()
	}
	v.mu.Lock()
	dead := v.dead
	v.mu.Unlock()
	if dead {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (v *view) Get(ctx context.Context, _, _ string, keys [][]byte) ([]store.Row, error) {
	if err := v.way(ctx); err != nil {
		return nil, err
	}
	if v.faulty && v.draw(10) == 0 {
		return nil, errLost
	}
	value := v.get()
	if err := v.way(ctx); err != nil || value == nil {
		return nil, err
	}
	return []store.Row{{Key: keys[0], Cells: []store.Cell{{Qualifier: []byte(column), Value: value}}}}, nil
}

func (v *view) CompareAndPut(ctx context.Context, _ string, _ store.CellKey, expected, value []byte) (bool, error) {
	if err := v.way(ctx); err != nil {
		return false, err
	}
	fault := int64(9)
	if v.faulty {
		fault = v.draw(10)
	}
	switch fault {
	case 0:
		return false, errLost
	case 1:
		late := time.Duration(v.draw(int64(2 * time.Minute)))
		v.late.Go(func() {
			time.Sleep(late)
			v.compareAndPut(expected, value)
		})
		return false, errLost
	}
	wrote := v.compareAndPut(expected, value)
	if fault == 2 {
		return false, errLost
	}
	return wrote, v.way(ctx)
}

// office is workers that take one lease one after another.
type office struct {
	*testing.T
	cell *table
	rng  *rand.Rand

	mu      sync.Mutex
	holding map[*Lease]int // of living workers
	// Saved states: the last acknowledged one, and later attempts without an acknowledgement.
	saved string
	tried []string
	saves int
	taken []time.Time
}

func newOffice(t *testing.T, rng *rand.Rand) *office {
	return &office{T: t, cell: &table{T: t}, rng: rng, holding: map[*Lease]int{}}
}

// worker returns a worker's keeper and its way to the table.
func (o *office) worker(n int, slow time.Duration, faulty bool) (*Keeper, *view) {
	v := &view{table: o.cell, rng: rand.New(rand.NewPCG(o.rng.Uint64(), uint64(n))), slow: slow, faulty: faulty}
	return &Keeper{Store: v, Table: "state", Holder: fmt.Sprintf("w%d", n)}, v
}

// took checks that nobody else holds the lease, and that its state was saved.
func (o *office) took(l *Lease, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken = append(o.taken, time.Now())
	for other, m := range o.holding {
		if other.Context().Err() == nil {
			o.Errorf("worker %d has taken the lease, worker %d holds it", n, m)
		}
	}
	if l.Context().Err() == nil {
		o.holding[l] = n
	}
	if state := string(l.State()); state != o.saved && !slices.Contains(o.tried, state) {
		o.Errorf("worker %d: the state is %q, want %q or one of %q", n, state, o.saved, o.tried)
	}
}

// save saves the next state.
func (o *office) save(ctx context.Context, l *Lease) {
	o.mu.Lock()
	o.saves++
	state := fmt.Sprint(o.saves)
	o.tried = append(o.tried, state)
	o.mu.Unlock()

	err := l.Save(ctx, []byte(state))
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		o.saved, o.tried = state, nil
	} else if errors.Is(err, ErrLost) && l.Context().Err() == nil {
		o.Errorf("the lease is lost, and its context lives: %v", err)
	}
}

func (o *office) left(l *Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.holding, l)
}

// work takes the lease again and again, until the worker dies or ctx ends.
func (o *office) work(ctx context.Context, n int, k *Keeper, v *view) {
	for ctx.Err() == nil {
		l, err := k.Take(ctx, "x")
		if err != nil {
			continue
		}
		o.took(l, n)
		for v.draw(5) > 0 && l.Context().Err() == nil {
			_ = wait.For(l.Context(), time.Duration(v.draw(int64(time.Minute))))
			o.save(ctx, l)
		}
		o.left(l)
		if v.draw(6) == 0 {
			v.kill() // its goroutines end with their context
			_ = wait.For(l.Context(), time.Hour)
			return
		}
		if err := l.Release(ctx); err == nil && l.Context().Err() == nil {
			o.Error("a released lease's context lives")
		}
	}
}

// TestLease_one: however slow calls are, whatever fails and whatever comes late, no two living
// workers hold the lease at the same time, no turn writes after another, and no saved state is
// lost.
func TestLease_one(t *testing.T) {
	seed := seedtest.Of(t)
	taken, saves := 0, 0
	for round := range *rounds {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, rand.New(rand.NewPCG(seed, uint64(round))))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
			defer cancel()
			slow := []time.Duration{0, time.Second, 12 * time.Second}[round%3]
			var all sync.WaitGroup
			for n := range 4 {
				k, v := o.worker(n, slow, round%4 > 0)
				all.Go(func() { o.work(ctx, n, k, v) })
			}
			all.Wait()
			o.cell.late.Wait()
			taken, saves = taken+len(o.taken), saves+o.saves
		})
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("taken %d times, saved %d times", taken, saves)
	if taken < *rounds || saves < *rounds {
		t.Errorf("taken %d times, saved %d times in %d rounds", taken, saves, *rounds)
	}
}

// TestTake_dead: who waits for a holder that dies takes the lease within 60 s, and not before
// the holder's own context would have ended.
func TestTake_dead(t *testing.T) {
	for dies := range 20 {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, rand.New(rand.NewPCG(1, uint64(dies))))
			holder, v := o.worker(1, time.Second, false)
			waiter, _ := o.worker(2, time.Second, false)
			waited := ""
			waiter.Waits = func(name, holder string) { waited += name + " " + holder + "\n" }

			held, err := holder.Take(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			if err := held.Save(t.Context(), []byte("half")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(dies) * time.Second)
			taken := make(chan *Lease)
			go func() {
				l, err := waiter.Take(t.Context(), "x")
				if err != nil {
					t.Error(err)
				}
				taken <- l
			}()
			time.Sleep(5 * time.Second)
			v.kill()
			death := time.Now()

			l := <-taken
			if took := time.Since(death); took > time.Minute {
				t.Errorf("taken %v after the holder's death, want 60 s at most", took)
			}
			if held.Context().Err() == nil {
				t.Error("taken while the holder's context lives")
			}
			if cause := context.Cause(held.Context()); !errors.Is(cause, ErrLost) {
				t.Errorf("the holder's context ended by %v, want %v", cause, ErrLost)
			}
			if waited != "x w1\n" || string(l.State()) != "half" {
				t.Errorf("waited %q, state %q", waited, l.State())
			}
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTry_living: a lease that is renewed is never taken, however long somebody tries.
func TestTry_living(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, rand.New(rand.NewPCG(2, 2)))
		holder, _ := o.worker(1, time.Second, false)
		other, _ := o.worker(2, 0, false)
		l, ok, err := holder.Try(t.Context(), "x")
		if !ok || err != nil {
			t.Fatalf("%v, %v", ok, err)
		}
		for range 6000 {
			time.Sleep(100 * time.Millisecond)
			if _, ok, err := other.Try(t.Context(), "x"); ok || err != nil {
				t.Fatalf("%v, %v, want a lease that is held", ok, err)
			}
		}
		if l.Context().Err() != nil {
			t.Fatal(context.Cause(l.Context()))
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil || !errors.Is(context.Cause(l.Context()), ErrReleased) {
			t.Errorf("released again: %v, ended by %v", err, context.Cause(l.Context()))
		}
		l, ok, err = other.Try(t.Context(), "x")
		if !ok || err != nil {
			t.Fatalf("a released lease: %v, %v", ok, err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLease_unreachable: a holder that cannot reach the table ends its work before another
// could begin, and a release says that nothing was written.
func TestLease_unreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, rand.New(rand.NewPCG(3, 3)))
		k, v := o.worker(1, 0, false)
		began := time.Now()
		l, err := k.Take(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		v.kill()
		<-l.Context().Done()
		if lived := time.Since(began); lived != defaultDeadAfter-defaultBeat {
			t.Errorf("the context ended after %v, want %v", lived, defaultDeadAfter-defaultBeat)
		}
		for what, err := range map[string]error{"save": l.Save(t.Context(), nil), "release": l.Release(t.Context())} {
			if !errors.Is(err, ErrLost) || strings.Count(err.Error(), ErrLost.Error()) != 1 {
				t.Errorf("a %s: %v, want that the lease was lost, once", what, err)
			}
		}
	})
}

// TestTake_ended: a Take that is cut off after it has written releases what it has taken.
func TestTake_ended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, rand.New(rand.NewPCG(4, 4)))
		k, _ := o.worker(1, 0, false)
		k.Store = cutting{k.Store}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := k.Take(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of its context", err)
		}
		if took := time.Since(began); took != time.Second { // of simulated time
			t.Errorf("it took %v, want 1s and no wait behind it", took)
		}
		r, err := parseRecord(o.cell.get())
		if err != nil || !r.free() {
			t.Errorf("the lease is held: %+v, %v", r, err)
		}
	})
}

// cutting replies to a write only after its context.
type cutting struct{ Cells }

func (c cutting) CompareAndPut(ctx context.Context, table string, cell store.CellKey,
	expected, value []byte) (bool, error) {
	if _, err := c.Cells.CompareAndPut(ctx, table, cell, expected, value); err != nil {
		return false, err
	}
	if _, limited := ctx.Deadline(); limited && !bytes.Contains(value, []byte(`"holder":""`)) {
		<-ctx.Done()
		return false, ctx.Err()
	}
	return true, nil
}

// TestDo: work ends with its context and with the lease, and the lease is released then.
func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, rand.New(rand.NewPCG(5, 5)))
		k, v := o.worker(1, 0, false)
		failed, began := errors.New("failed"), time.Now()
		var under context.Context
		if err := k.Do(t.Context(), "x",
			func(ctx context.Context, _ *Lease) error { under = ctx; return failed }); !errors.Is(err, failed) ||
			err.Error() != failed.Error() {
			t.Errorf("got %v, want %v", err, failed)
		}
		if under.Err() == nil {
			t.Error("the work is over and its context goes on")
		}
		if took := time.Since(began); took != 0 { // of simulated time
			t.Errorf("work and release took %v, want no wait", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := k.Do(ctx, "x", func(ctx context.Context, l *Lease) error {
			cancel()
			<-ctx.Done()
			return l.Context().Err() // it goes on
		})
		if err != nil {
			t.Error(err)
		}
		// Whether or not the release then reaches the table.
		for _, back := range []bool{true, false} {
			err = k.Do(t.Context(), "x", func(ctx context.Context, _ *Lease) error {
				v.setDead(true)
				<-ctx.Done()
				v.setDead(!back)
				return ctx.Err()
			})
			if !errors.Is(err, ErrLost) {
				t.Errorf("back %t: got %v, want %v", back, err, ErrLost)
			}
		}
		// Work that is done is no failure.
		v.setDead(false)
		err = k.Do(t.Context(), "x", func(ctx context.Context, _ *Lease) error {
			v.setDead(true)
			<-ctx.Done()
			v.setDead(false)
			return nil
		})
		if err != nil {
			t.Errorf("work that has ended without an error, and a release: %v", err)
		}
	})
}

// readOnly refuses each write.
type readOnly struct{ Cells }

func (readOnly) CompareAndPut(context.Context, string, store.CellKey, []byte, []byte) (bool, error) {
	return false, errLost
}

// TestKeeper_refused: settings that would let a living holder appear dead, invalid cells, and
// states that are too large are errors, as is a table that takes no writes.
func TestKeeper_refused(t *testing.T) {
	o := newOffice(t, rand.New(rand.NewPCG(6, 6)))
	f := func(want string, change func(*Keeper)) {
		t.Helper()
		k, _ := o.worker(1, 0, false)
		change(k)
		if _, _, err := k.Try(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f("no name", func(k *Keeper) { k.Holder = "" })
	f("want at least four beats", func(k *Keeper) { k.Heartbeat = 20 * time.Second })
	for _, value := range []string{"x", "x\n", "{}\n", `{"turn":"a"}`, `{"turn":"a","beat":"b"}` + "\n"} {
		f(`cannot read lease x in row "lease/x" of table state`, func(*Keeper) { o.cell.value = []byte(value) })
	}

	o.cell.value = nil
	f("cannot write lease x in table state: "+errLost.Error(), func(k *Keeper) { k.Store = readOnly{k.Store} })
	k, _ := o.worker(1, 0, false)
	l, err := k.Take(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Save(t.Context(), make([]byte, maxState)); err != nil {
		t.Errorf("a state as large as may be: %v", err)
	}
	if err := l.Save(t.Context(), make([]byte, maxState+1)); err == nil ||
		!strings.Contains(err.Error(), "want at most") {
		t.Errorf("a large state: %v", err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// The time for which others' leases do not change is counted also where there are very many of them.
func TestKeeper_manyNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &Keeper{}
		expired := func() (n int) {
			for i := range 1200 {
				if k.isExpired(fmt.Sprint("lease ", i), record{value: []byte("x")}) {
					n++
				}
			}
			return n
		}
		if n := expired(); n != 0 {
			t.Errorf("%d leases of 1200 are expired when they are seen first", n)
		}
		time.Sleep(k.deadAfter())
		if n := expired(); n != 1200 {
			t.Errorf("%d leases of 1200 are expired, want all", n)
		}
		few := &Keeper{}
		few.isExpired("x", record{value: []byte("x")})
		time.Sleep(2*k.deadAfter() + 1)
		few.isExpired("y", record{value: []byte("y")})
		if !few.isExpired("x", record{value: []byte("x")}) {
			t.Error("a lease of few that is read seldom: it was forgotten")
		}
		k.isExpired("another", record{value: []byte("x")})
		if n := len(k.seen); n != 1 {
			t.Errorf("%d leases are remembered, want the only one that was read lately", n)
		}
	})
}

// A lease that was taken by one who knew that its holder was dead is lost, and the next write of the holder, if it
// lives, says so. A lease that was released twice, even after another has taken it, is released.
func TestLease_taken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, rand.New(rand.NewPCG(5, 5)))
		first, _ := o.worker(1, 0, false)
		second, _ := o.worker(2, 0, false)
		second.Gone = func(holder string) bool { return holder == "w1" }
		lost, err := first.Take(t.Context(), "x")
		if err != nil || lost.State() != nil {
			t.Fatalf("state %q of a new lease, error %v, want nil and none", lost.State(), err)
		}
		taken, ok, err := second.Try(t.Context(), "x")
		if err != nil || !ok {
			t.Fatalf("the lease of a dead holder is not taken: %v", err)
		}
		if err := lost.Save(t.Context(), []byte("late")); !errors.Is(err, ErrLost) {
			t.Errorf("a state was saved under a lost lease: got %v, want %v", err, ErrLost)
		}
		if cause := context.Cause(lost.Context()); !errors.Is(cause, ErrLost) {
			t.Errorf("the context of the lost lease: got %v, want %v", cause, ErrLost)
		}

		if err := taken.Release(t.Context()); err != nil {
			t.Error(err)
		}
		again, err := first.Take(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if err := taken.Release(t.Context()); err != nil {
			t.Errorf("released for the second time: %v", err)
		}
		if state := again.State(); state != nil {
			t.Errorf("state %q, want nil: none was saved", state)
		}
		if err := again.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A renewal that another write keeps waiting for a heartbeat has failed.
func TestLease_renewalWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLease(t.Context(), &Keeper{}, "lease", record{}, time.Now())
		defer l.end(nil)
		defer l.expiry.Stop()
		l.writing <- struct{}{}
		if err := l.renewOnce(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
	})
}
