package summary

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/pebble"
)

// createTable makes the data table in a store.
func createTable(t *testing.T, admin store.Admin) {
	t.Helper()
	spec := store.TableSpec{Name: operatortest.Table, Families: []store.FamilySpec{{Name: encoding.FamilyData}}}
	if err := admin.CreateTable(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

func openPebble(t *testing.T) *pebble.Store {
	t.Helper()
	st, err := pebble.Open("data", pebble.Options{FS: vfs.NewMem(), Logger: slog.New(slog.DiscardHandler), IdleFlush: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	createTable(t, st)
	return st
}

// Whatever is written, overwritten, compacted and deleted between two asks: the
// answer with the cache is the answer without it, byte by byte.
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

// The same on HBase, where regions move and split, and servers lose their
// connections.
func TestLaw_hbase(t *testing.T) {
	seeds(t, 6, func(t *testing.T, rng *rand.Rand) Counts {
		fake, st := startFake(t, hbasefake.Options{Servers: 2})
		w := newWorld(t, rng, st)
		w.extra = []func(){
			func() { fake.MoveRegion(operatortest.Table, w.row()) },
			func() { fake.SplitRegion(operatortest.Table, w.row()) },
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

// startFake runs a fake HBase with the data table.
func startFake(t *testing.T, opts hbasefake.Options) (*hbasefake.Cluster, *hbase.Store) {
	t.Helper()
	fake, err := hbasefake.Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	st, err := hbase.Open(hbase.Config{Quorum: fake.Address()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	fake.CreateTable(operatortest.Table, []string{encoding.FamilyData})
	return fake, st
}

// patience is more than any of these tests needs.
const patience = 5 * time.Minute

// Of a family whose cells go by themselves nothing is kept, from the moment on
// that it is one.
func TestOpen_timeToLive(t *testing.T) {
	fake, st := startFake(t, hbasefake.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w := newWorld(t, rand.New(rand.NewPCG(1, 1)), st)
	p := w.part()
	hits := func() (n int64) {
		for range 4 {
			n += w.ask(p).SummaryHits
		}
		return n
	}
	if n := hits(); n != 2 {
		t.Errorf("%d hits of 4 asks, want 2: the second one keeps", n)
	}
	fake.Alter(operatortest.Table, encoding.FamilyData, "TTL", "86400")
	if n := hits(); n != 0 {
		t.Errorf("%d hits in a table with a TTL", n)
	}
	if mark, err := st.Mark(ctx, operatortest.Table, encoding.FamilyData, store.KeyRange{}); mark != "" && err != nil {
		t.Errorf("mark %q with error %v", mark, err)
	}
}
