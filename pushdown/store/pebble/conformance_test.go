package pebble

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/pushdown/store"
	"downpour/pushdown/store/storetest"
)

// openMem opens a store in memory; the test closes it.
func openMem(t testing.TB, opts Options) *Store {
	t.Helper()
	if opts.FS == nil {
		opts.FS = vfs.NewMem()
	}
	s, err := Open("data", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// restless flushes and compacts after writes, so that cells lie in memtables,
// in tables that overlap and in the last level, joined and unjoined.
type restless struct {
	*Store
	applied atomic.Int64
}

func (r *restless) Features() store.Features { return r.Store.Features() }

func (r *restless) Apply(ctx context.Context, table string, ms []store.Mutation) error {
	if err := r.Store.Apply(ctx, table, ms); err != nil {
		return err
	}
	n := r.applied.Add(1)
	if n%3 == 0 {
		if err := r.Flush(ctx); err != nil {
			return err
		}
	}
	if n%11 == 0 {
		return r.db.Compact(ctx, []byte{0}, []byte{0xff, 0}, true)
	}
	return nil
}

// The store does what every store of Downpour does: on disk, and wherever
// pebble has put the cells.
//
//fault:cell-that-exists-put-as-absent !found => true
func TestConformance(t *testing.T) {
	t.Run("disk", func(t *testing.T) {
		storetest.RunShare(t, 2, func(t *testing.T) store.Store {
			s, err := Open(t.TempDir(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		})
	})
	t.Run("restless", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) store.Store {
			return &restless{Store: openMem(t, Options{MemTableBytes: 64 << 10, IdleFlush: time.Millisecond})}
		})
	})
}
