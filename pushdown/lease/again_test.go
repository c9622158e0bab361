package lease

import (
	"context"
	"errors"
	"math/rand/v2"
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
	reads int
}

func (c *failing) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	c.reads++
	if c.left--; c.left >= 0 || c.keeps && c.left%2 == 0 {
		return nil, c.err
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

// TestLease_writesOnly: a holder knows what is written, so that renewing and saving read nothing.
func TestLease_writesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := newOffice(t, rand.New(rand.NewPCG(9, 9))).worker(1, 0, false)
		cells := &failing{Cells: k.Store}
		k.Store = cells
		l, err := k.Take(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		before := cells.reads
		time.Sleep(10 * defaultBeat) // simulated by synctest
		synctest.Wait()
		if err := l.Save(t.Context(), []byte("state")); err != nil {
			t.Error(err)
		}
		if err := l.Release(t.Context()); err != nil || cells.reads != before {
			t.Errorf("%v, %d reads after the lease was taken, want none", err, cells.reads-before)
		}
	})
}
