package resultcache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/open/opentest"
	"downpour/pushdown/store/pebble"
	"downpour/pushdown/store/storetest"
)

var dataTable = opentest.Table(operatortest.Table, encoding.FamilyData)

func openPebble(t *testing.T) *pebble.Store { return opentest.Embedded(t, dataTable) }

// Whatever is written, overwritten, compacted and deleted between two queries, the answer with the
// cache is the answer without it, byte by byte.
//
//fault:answer-of-changed-rows e.version != version => e.version != version && e.answer == nil
//fault:change-not-counted =>
func TestLaw_embedded(t *testing.T) {
	seeds(t, 15, func(t *testing.T, rng *rand.Rand) Counts {
		st := openPebble(t)
		w := newWorld(t, rng, st)
		w.extra = []func(){func() {
			if err := st.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}}
		return w.live(120)
	})
}

// The same on HBase, where regions move, split and merge, servers lose their
// connections, hbase:meta changes, and the table is replaced by another one whose
// regions have the old names and numbers.
//
//fault:read-point-ignored => return min(v, 1)
func TestLaw_hbase(t *testing.T) {
	seeds(t, 6, func(t *testing.T, rng *rand.Rand) Counts {
		fake, st := startFake(t, hbasefake.Options{Servers: 2})
		w := newWorld(t, rng, st)
		w.extra = []func(){
			func() { fake.MoveRegion(operatortest.Table, w.row()) },
			func() { fake.SplitRegion(operatortest.Table, w.row()) },
			func() { fake.MergeRegions(operatortest.Table, w.row()) },
			fake.TouchCatalog,
			func() { w.replaced(fake) },
			func() {
				fake.StopServer(1)
				if err := fake.RestartServer(1); err != nil {
					t.Fatal(err)
				}
			},
		}
		return w.live(60)
	})
}

// replaced takes a snapshot, writes, replaces the table by the snapshot and writes as often again:
// the read points of its regions are the old ones. It may also replace the table by an empty one.
func (w *world) replaced(fake *hbasefake.Cluster) {
	w.Helper()
	p, name, n := w.part(), fmt.Sprint("snapshot ", w.rng.Uint64()), w.rng.IntN(4)
	fake.Snapshot(operatortest.Table, name)
	for range 1 + w.rng.IntN(3) {
		for range n {
			w.put()
		}
		for range 3 { // notes its token, stores its answer, is answered from memory
			w.ask(p)
		}
		switch w.rng.IntN(4) {
		case 0:
			fake.RestoreSnapshot(operatortest.Table, name)
		case 1:
			fake.Truncate(operatortest.Table, w.rng.IntN(2) == 0)
			return // only by chance does the empty table get as many writes as the old one
		default:
			fake.CloneSnapshot(operatortest.Table, name)
		}
	}
	for range n {
		w.put()
	}
	w.ask(p)
}

// startFake runs a fake HBase with the data table.
func startFake(t *testing.T, opts hbasefake.Options) (*hbasefake.Cluster, *hbase.Store) {
	t.Helper()
	fake := opentest.Fake(t, opts)
	return fake, opentest.HBaseWith(t, fake, hbase.Config{}, dataTable)
}

// patience is more than any of these tests needs.
const patience = 5 * time.Minute

// As soon as a family has a time to live, no answer over it is cached, or given from memory.
func TestOpen_timeToLive(t *testing.T) {
	fake, st := startFake(t, hbasefake.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w := newWorld(t, rand.New(rand.NewPCG(1, 1)), st)
	p := w.part()
	hits := func() (n int64) {
		for range 4 {
			n += w.ask(p).CacheHits
		}
		return n
	}
	if n := hits(); n != 2 {
		t.Errorf("%d hits of 4 asks, want 2: the second one stores the answer", n)
	}
	fake.Alter(operatortest.Table, encoding.FamilyData, "TTL", "86400")
	if n := hits(); n != 0 {
		t.Errorf("%d hits in a table with a TTL, want none", n)
	}
	if version, err := storetest.Version(ctx, st, operatortest.Table, encoding.FamilyData,
		store.KeyRange{}); version != "" || !errors.Is(err, hbase.ErrExpiring) {
		t.Errorf("version %q with error %v, want none and %v", version, err, hbase.ErrExpiring)
	}
}
