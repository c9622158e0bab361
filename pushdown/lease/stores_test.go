package lease_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"downpour/pushdown/lease"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/open/opentest"
)

// TestStores: both stores make the table once, give a lease to one of many, and keep its state;
// on HBase also while replies to writes are lost.
func TestStores(t *testing.T) {
	t.Run("pebble", func(t *testing.T) {
		checkStore(t, opentest.Embedded(t))
	})

	t.Run("hbase", func(t *testing.T) {
		fake := opentest.Fake(t, hbasefake.Options{})
		var lost atomic.Int64
		fake.SetHook(func(c hbasefake.Call) hbasefake.Fault {
			if c.Method == "Mutate" && c.N%3 == 0 {
				lost.Add(1)
				return hbasefake.Fault{Kind: hbasefake.DropAfter}
			}
			return hbasefake.Fault{}
		})
		checkStore(t, opentest.HBaseWith(t, fake, hbase.Config{}))
		if lost.Load() == 0 {
			t.Error("no reply was lost")
		}
	})
}

func checkStore(t *testing.T, st store.Store) {
	for range 2 {
		if err := lease.CreateTable(t.Context(), st, "state"); err != nil {
			t.Fatal(err)
		}
	}

	var mu sync.Mutex
	var taken []*lease.Lease
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			k := &lease.Keeper{Store: st, Table: "state", Holder: lease.Holder()}
			l, ok, err := k.Try(t.Context(), "x")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if ok {
				taken = append(taken, l)
			}
		})
	}
	all.Wait()
	if len(taken) != 1 {
		t.Fatalf("%d have taken the lease, want one", len(taken))
	}

	l := taken[0]
	for _, state := range []string{"one", "two", "three\nlines"} {
		if err := l.Save(t.Context(), []byte(state)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	k := &lease.Keeper{Store: st, Table: "state", Holder: "again"}
	l, err := k.Take(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(l.State()); got != "three\nlines" {
		t.Errorf("the state is %q, want the last", got)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
