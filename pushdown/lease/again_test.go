package lease

import (
	"context"
	"errors"
	"math/rand/v2"
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
		ctx, cancel := context.WithTimeout(t.Context(), 10*defaultDeadAfter)
		defer cancel()
		if _, err := k.Take(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of its context", err)
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
		if err := l.Release(t.Context()); err != nil || cells.reads != reads || len(cells.contexts) < calls+12 {
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
