package lease_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"downpour/pushdown/lease"
	"downpour/pushdown/store"
)

// cells are the cells of a table in memory.
type cells struct {
	mu     sync.Mutex
	values map[string][]byte
	reads  atomic.Int64
}

func (c *cells) Get(_ context.Context, _, _ string, keys [][]byte) (rows []store.Row, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads.Add(1)
	for _, key := range slices.SortedFunc(slices.Values(keys), bytes.Compare) {
		if v := c.values[string(key)]; v != nil {
			rows = append(rows, store.Row{Key: key, Cells: []store.Cell{{Qualifier: []byte("lease"), Value: v}}})
		}
	}
	return rows, nil
}

func (c *cells) CompareAndPut(_ context.Context, _ string, cell store.CellKey, expected, value []byte) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !bytes.Equal(c.values[string(cell.Row)], expected) {
		return false, nil
	}
	c.values[string(cell.Row)] = value
	return true, nil
}

// TestLook: one call sees of many leases who has one, what the others have saved, and, in the time
// in which Try would see it, that a holder is dead.
func TestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine := &cells{values: map[string][]byte{}}
		theirs := &theirCells{cells: mine}
		k := &lease.Keeper{Store: mine, Table: "state", Holder: "me"}
		other := &lease.Keeper{Store: theirs, Table: "state", Holder: "other"}
		names := []string{"broken", "free", "held", "never"}
		mine.values["lease/broken"] = []byte(`{"holder":"without a turn"}` + "\n")
		l, ok, err := other.Try(t.Context(), "free")
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if err := l.Save(t.Context(), []byte("saved")); err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		held, ok, err := other.Try(t.Context(), "held")
		if err != nil || !ok {
			t.Fatal(ok, err)
		}

		var after time.Duration
		death := time.Now().Add(2 * time.Minute)
		for range 60 {
			synctest.Wait() // for the heartbeat of this moment
			before := mine.reads.Load()
			sights, err := k.Statuses(t.Context(), names)
			if err != nil || len(sights) != 4 || mine.reads.Load() != before+1 {
				t.Fatalf("%d sights in %d calls, %v, want 4 in one", len(sights), mine.reads.Load()-before, err)
			}
			if free := sights[1]; free.Held || free.Expired || string(free.State) != "saved" {
				t.Errorf("the lease that was released: %+v", free)
			}
			for _, i := range []int{0, 3} {
				if s := sights[i]; s.Held || s.State != nil {
					t.Errorf("lease %s: %+v, want nothing", names[i], s)
				}
			}
			if !sights[2].Held {
				t.Errorf("the lease that is held: %+v", sights[2])
			}
			if sights[2].Expired {
				after = time.Since(death)
				break
			}
			time.Sleep(5 * time.Second)
			if time.Now().After(death) {
				theirs.silence()
			}
		}
		if after < 35*time.Second || after > time.Minute {
			t.Errorf("the holder is dead after %v, want 45 s after its last beat and not before its death", after)
		}
		l, ok, err = k.Try(t.Context(), "held")
		if err != nil || !ok {
			t.Fatalf("whose holder is dead: %v, %v, want that Look has noted since when", ok, err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		theirs.silence()
		_ = held.Release(t.Context())
	})
}

// theirCells are the cells as another process reaches them.
type theirCells struct {
	*cells
	mu     sync.Mutex
	silent bool
}

func (c *theirCells) silence() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = true
}

func (c *theirCells) CompareAndPut(ctx context.Context, table string, cell store.CellKey,
	expected, value []byte) (bool, error) {
	c.mu.Lock()
	silent := c.silent
	c.mu.Unlock()
	if silent {
		<-ctx.Done()
		return false, fmt.Errorf("the process is dead: %w", ctx.Err())
	}
	return c.cells.CompareAndPut(ctx, table, cell, expected, value)
}
