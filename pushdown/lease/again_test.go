package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"downpour/pushdown/store"
)

// failing fails the next reads.
type failing struct {
	Cells
	err  error
	left int
}

func (c *failing) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	if c.left--; c.left >= 0 {
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
			k.Store = &failing{k.Store, c.err, c.left}
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
