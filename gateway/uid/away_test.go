package uid

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// away is a store that takes no writes for a while.
type away struct {
	*storeInMemory
	back time.Time
}

func (*away) Features() store.Features { return store.Features{} }

// wait returns once the store is back, or why it is not.
func (a *away) wait(ctx context.Context) error {
	select {
	case <-time.After(time.Until(a.back)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *away) CompareAndPut(ctx context.Context, table string, cell store.CellKey, old, value []byte) (bool, error) {
	if err := a.wait(ctx); err != nil {
		return false, err
	}
	return a.storeInMemory.CompareAndPut(ctx, table, cell, old, value)
}

// A line of telnet has nobody to send it again: it waits for a region that moves as long as a point
// of a known series does. A request that waits less leaves what it has begun to others.
func TestAssign_storeAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Config{
			Store:  &away{newMemory(), time.Now().Add(100 * time.Second)},
			Table:  table,
			Schema: encoding.DefaultSchema(),
		})
		began := time.Now()
		short, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if u, err := d.Assign(short, encoding.UIDMetric, "new"); err == nil || time.Since(began) != 30*time.Second {
			t.Errorf("got %s, %v after %v, want the end of the request's time", u, err, time.Since(began))
		}
		if _, err := d.Assign(t.Context(), encoding.UIDMetric, "new"); err != nil {
			t.Errorf("who waits longer: %v", err)
		}
	})
}

// A rename goes on when its client's time is over, and the client is not kept waiting.
func TestRename_storeAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &away{newMemory(), time.Now()}
		d := New(Config{Store: a, Table: table, Schema: encoding.DefaultSchema()})
		if _, err := d.Assign(t.Context(), encoding.UIDMetric, "old"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		a.back = began.Add(20 * time.Second)
		short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := d.Rename(short, encoding.UIDMetric, "old", "new"); err == nil || time.Since(began) != 5*time.Second {
			t.Errorf("got %v after %v, want an error after 5 s", err, time.Since(began))
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if _, err := d.Resolve(t.Context(), encoding.UIDMetric, "new"); err != nil {
			t.Errorf("the new name: %v", err)
		}
	})
}
