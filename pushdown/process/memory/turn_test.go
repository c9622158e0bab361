package memory

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

var refusal = &BusyError{Need: 3 * mib}

// One account has the turn at a time; the others get it in the order of their calls, except those
// that have left.
func TestTurn_order(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(128 * mib)
		end, err := p.Open(Query).Turn(t.Context(), refusal, Patience)
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		left, leave := context.WithCancelCause(t.Context())
		gone := errors.New("client has left")
		var group sync.WaitGroup
		for i := range 4 {
			ctx := t.Context()
			if i == 1 {
				ctx = left
			}
			group.Go(func() {
				end, err := p.Open(Query).Turn(ctx, refusal, Patience)
				if i == 1 {
					if !errors.Is(err, gone) {
						t.Errorf("the one that has left: %v, want why", err)
					}
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i) // one at a time
				end()
				end() // does nothing: the turn is another one's
			})
			synctest.Wait()
		}
		leave(gone)
		synctest.Wait()
		if len(order) != 0 || p.Stats().Waiting != 3 {
			t.Errorf("%v had their turn and %d wait, want none and 3", order, p.Stats().Waiting)
		}
		end()
		group.Wait()
		if len(order) != 3 || order[0] != 0 || order[1] != 2 || order[2] != 3 {
			t.Errorf("turns came to %v, want 0, 2, 3", order)
		}
		if p.turn != nil || len(p.turns) != 0 {
			t.Errorf("an account has the turn at the end, or %d wait", len(p.turns))
		}

		// A request that waits too long is refused as before.
		if end, err = p.Open(Query).Turn(t.Context(), refusal, Patience); err != nil {
			t.Fatal(err)
		}
		defer end()
		var busy *BusyError
		if _, err := p.Open(Query).Turn(t.Context(), refusal, Patience); !errors.As(err, &busy) ||
			busy.Need != refusal.Need {
			t.Errorf("%v, want that it is refused %d bytes", err, refusal.Need)
		}
	})
}

// The holder of the turn waits for memory of those that wait for the turn: a deadlock. The youngest
// of these is refused, and the holder is served, though it is younger.
func TestTurn_deadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(128 * mib)
		var accounts []*Account
		for range 3 {
			a := p.Open(Query)
			reserve(t, a, p.common.size/4)
			accounts = append(accounts, a)
		}
		has := p.Open(Query)
		reserve(t, has, p.common.size/8)
		end, err := has.Turn(t.Context(), refusal, Patience)
		if err != nil {
			t.Fatal(err)
		}
		errs := make([]error, len(accounts))
		var group sync.WaitGroup
		for i, a := range accounts {
			group.Go(func() {
				end, err := a.Turn(t.Context(), refusal, Patience)
				if errs[i] = err; err == nil {
					end()
				}
				a.Close()
			})
			synctest.Wait()
		}
		if err := has.Reserve(t.Context(), p.common.size/4); err != nil {
			t.Errorf("the one that has the turn: %v, want it served", err)
		}
		has.Close()
		end()
		group.Wait()
		var busy *BusyError
		if errs[0] != nil || errs[1] != nil || !errors.As(errs[2], &busy) {
			t.Errorf("those that waited: %v, want that the last one alone is refused", errs)
		}
		check(t, p, append(accounts, has)...)
		if p.common.used != 0 {
			t.Errorf("%d bytes are held, want none", p.common.used)
		}
	})
}
