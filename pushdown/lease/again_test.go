package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"downpour/pushdown/store"
)

// failing fails the next reads, and then each second one if it keeps failing.
type failing struct {
	Cells
	err   error
	left  int
	keeps bool
	until time.Time // all calls fail earlier

	mu       sync.Mutex
	reads    int
	contexts []context.Context // of all calls
}

// call counts a call and returns its error.
func (c *failing) call(ctx context.Context, read bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.contexts = append(c.contexts, ctx)
	if time.Now().Before(c.until) {
		return c.err
	}
	if !read {
		return nil
	}
	c.reads++
	if c.left--; c.left >= 0 || c.keeps && c.left%2 == 0 {
		return c.err
	}
	return nil
}

func (c *failing) CompareAndPut(ctx context.Context, table string, cell store.CellKey,
	expected, value []byte) (bool, error) {
	if err := c.call(ctx, false); err != nil {
		return false, err
	}
	return c.Cells.CompareAndPut(ctx, table, cell, expected, value)
}

func (c *failing) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	if err := c.call(ctx, true); err != nil {
		return nil, err
	}
	return c.Cells.Get(ctx, table, family, keys)
}

// TestTake_again: Take tries again after an error of the store, but not long, and not after one
// that lasts.
func TestTake_again(t *testing.T) {
	for _, c := range []struct {
		err  error
		left int
		want error
	}{
		{errLost, takeAttempts - 1, nil}, {errLost, takeAttempts, errLost}, {store.ErrNoTable, 1, store.ErrNoTable},
		{store.ErrDenied, 1, store.ErrDenied},
	} {
		synctest.Test(t, func(t *testing.T) {
			k, _ := newOffice(t, rand.New(rand.NewPCG(7, 7))).worker(1, 0, false)
			k.Store = &failing{Cells: k.Store, err: c.err, left: c.left}
			l, err := k.Take(t.Context(), "x")
			if !errors.Is(err, c.want) || (l == nil) != (c.want != nil) {
				t.Errorf("%v %d times: got %v, want %v", c.err, c.left, err, c.want)
			}
			if l != nil {
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestTake_stumbling: while another holder has the lease, Take waits on even if many reads fail, but not
// several one after another.
func TestTake_stumbling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, rand.New(rand.NewPCG(8, 8)))
		holder, _ := o.worker(1, 0, false)
		l, err := holder.Take(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		k, _ := o.worker(2, 0, false)
		k.Store = &failing{Cells: k.Store, err: errLost, keeps: true}
		ctx, cancel := context.WithTimeout(t.Context(), 10*defaultDeadAfter+time.Second) // between two tries
		defer cancel()
		if _, err := k.Take(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "lease x is held by w1") {
			t.Errorf("got %v, want the end of its context, and who has the lease", err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLease_writesOnly: a holder knows what is written, so that renewing and saving read nothing. Each
// call's context ends with it.
func TestLease_writesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := newOffice(t, rand.New(rand.NewPCG(9, 9))).worker(1, 0, false)
		cells := &failing{Cells: k.Store}
		k.Store = cells
		l, err := k.Take(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		reads, calls := cells.reads, len(cells.contexts)
		time.Sleep(10 * defaultBeat) // simulated by synctest
		synctest.Wait()
		if err := l.Save(t.Context(), []byte("state")); err != nil {
			t.Error(err)
		}
		if err := l.Release(t.Context()); err != nil || cells.reads != reads || len(cells.contexts) != calls+12 {
			t.Errorf("%v, %d reads and %d calls after the lease was taken, want none and 12", err, cells.reads-reads,
				len(cells.contexts)-calls)
		}
		for i, ctx := range cells.contexts[calls:] {
			if ctx.Err() == nil {
				t.Errorf("the context of call %d has not ended", i)
			}
		}
	})
}

// TestLease_outage: a lease outlives an outage that ends a moment before others could take it, because
// its holder then tries more often.
func TestLease_outage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := newOffice(t, rand.New(rand.NewPCG(10, 10))).worker(1, 0, false)
		cells := &failing{Cells: k.Store, err: errLost}
		k.Store = cells
		l, err := k.Take(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		cells.mu.Lock()
		cells.until = time.Now().Add(defaultDeadAfter - defaultBeat - defaultBeat/4)
		cells.mu.Unlock()
		time.Sleep(2 * defaultDeadAfter) // simulated by synctest
		synctest.Wait()
		if l.Context().Err() != nil {
			t.Errorf("the lease has ended: %v", context.Cause(l.Context()))
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// writing is a table whose writes do something else.
type writing struct {
	*failing
	write func(ctx context.Context, expected, value []byte) (bool, error)
}

func (w *writing) CompareAndPut(ctx context.Context, _ string, _ store.CellKey, expected, value []byte) (bool, error) {
	return w.write(ctx, expected, value)
}

// holder is who has the lease.
func (c *table) holder() string {
	r, err := parseRecord(c.get())
	if err != nil {
		c.Error(err)
	}
	return r.Holder
}

// tryWriting runs a test of a keeper whose writes do something else.
func tryWriting(t *testing.T, name string, try func(t *testing.T, o *office, k *Keeper, w *writing)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, rand.New(rand.NewPCG(11, 11)))
			k, _ := o.worker(1, 0, false)
			w := &writing{failing: &failing{Cells: k.Store, err: errLost}}
			k.Store = w
			try(t, o, k, w)
		})
	})
}

// TestTake_answers: whatever a write answers, the lease is taken if the table says so, and at once.
func TestTake_answers(t *testing.T) {
	tryWriting(t, "two answers are lost", func(t *testing.T, o *office, k *Keeper, w *writing) {
		w.write = func(_ context.Context, expected, value []byte) (bool, error) {
			if wrote := o.cell.compareAndPut(expected, value); len(o.cell.turns) > 1 {
				return wrote, nil
			}
			w.left = 1
			return false, errLost
		}
		began := time.Now()
		l, err := k.Take(t.Context(), "x")
		if err != nil || time.Since(began) > defaultBeat || w.reads != 3 {
			t.Fatalf("%v after %v and %d reads, want a lease at the second try, and 3", err, time.Since(began), w.reads)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
	tryWriting(t, "an answer comes with the end of the context", func(t *testing.T, o *office, k *Keeper, w *writing) {
		ctx, cancel := context.WithCancel(t.Context())
		w.write = func(_ context.Context, expected, value []byte) (bool, error) {
			cancel()
			return o.cell.compareAndPut(expected, value), nil
		}
		l, err := k.Take(ctx, "x")
		if err != nil || o.cell.holder() != k.Holder {
			t.Fatalf("the lease is held by %q: %v", o.cell.holder(), err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
	tryWriting(t, "another takes it, and the context ends", func(t *testing.T, o *office, k *Keeper, w *writing) {
		other, _ := o.worker(2, 0, false)
		var taken *Lease
		ctx, cancel := context.WithCancel(t.Context())
		w.write = func(ctx context.Context, expected, value []byte) (_ bool, err error) {
			if taken != nil {
				return o.cell.compareAndPut(expected, value), nil
			}
			if taken, _, err = other.Try(t.Context(), "x"); err != nil {
				t.Fatal(err)
			}
			cancel()
			return false, ctx.Err()
		}
		if _, err := k.Take(ctx, "x"); !errors.Is(err, context.Canceled) || o.cell.holder() != "w2" {
			t.Errorf("the lease is held by %q, %v, want w2 and the end of the context", o.cell.holder(), err)
		}
		if err := taken.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestTake_unclear: a write that comes late, or whose answer says another thing than the table.
func TestTake_unclear(t *testing.T) {
	tryWriting(t, "a write comes late, after another holder", func(t *testing.T, o *office, k *Keeper, w *writing) {
		other, _ := o.worker(2, 0, false)
		taken, err := other.Take(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(defaultBeat) // simulated by synctest
			if err := taken.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		var waits []string
		k.Waits = func(_, holder string) { waits = append(waits, holder) }
		var late [][]byte
		w.write = func(_ context.Context, expected, value []byte) (bool, error) {
			if late == nil {
				late = [][]byte{expected, value}
				return false, errLost
			}
			o.cell.compareAndPut(late[0], late[1])
			return o.cell.compareAndPut(expected, value), nil
		}
		l, err := k.Take(t.Context(), "x")
		if err != nil || !slices.Equal(waits, []string{"w2"}) {
			t.Fatalf("waited for %q, %v, want for w2 and no error", waits, err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
	tryWriting(t, "a failed write says that it was done", func(t *testing.T, _ *office, k *Keeper, w *writing) {
		w.write = func(context.Context, []byte, []byte) (bool, error) { return true, errLost }
		if l, ok, err := k.Try(t.Context(), "x"); l != nil || ok || !errors.Is(err, errLost) {
			t.Errorf("got %v, %t, %v, want %v", l, ok, err, errLost)
		}
	})
	tryWriting(t, "refused, and unchanged when it is read", func(t *testing.T, _ *office, k *Keeper, w *writing) {
		w.write = func(context.Context, []byte, []byte) (bool, error) { return false, nil }
		if l, ok, err := k.Try(t.Context(), "x"); l != nil || ok || err != nil {
			t.Errorf("got %v, %t, %v, want no lease and no error", l, ok, err)
		}
	})
}

// TestSave_ended: under a lease that has ended nothing is written.
func TestSave_ended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := newOffice(t, rand.New(rand.NewPCG(12, 12))).worker(1, 0, false)
		cells := &failing{Cells: k.Store}
		k.Store = cells
		l, err := k.Take(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		calls, want := len(cells.contexts), "lease x: cannot save the state: "+ErrReleased.Error()
		for range 20 { // the context of a call ends at once, or a moment later
			if err := l.Save(t.Context(), nil); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		if n := len(cells.contexts) - calls; n != 0 {
			t.Errorf("%d calls, want none", n)
		}
	})
}

// admin is a store in which a table exists, and nobody may create one.
type admin struct{ store.Admin }

func (admin) TableExists(context.Context, string) (bool, error)  { return true, nil }
func (admin) CreateTable(context.Context, store.TableSpec) error { return store.ErrDenied }

func TestCreateTable_exists(t *testing.T) {
	if err := CreateTable(t.Context(), admin{}, "state"); err != nil {
		t.Errorf("a table that exists: %v, want that no right to create it is needed", err)
	}
}
