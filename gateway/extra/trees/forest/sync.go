package forest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Synced says what Sync has done.
type Synced struct {
	Counts
	Trees   int   `json:"trees"`   // enabled ones that can be applied
	Series  int64 `json:"series"`  // with a TSMeta
	Skipped int64 `json:"skipped"` // of these, without a name for a UID
}

// syncing is a Sync at work.
type syncing struct {
	*Forest
	trees *snapshot // nil before the first
	known *knownBranches
	mu    sync.Mutex // guards done
	done  Synced
}

// syncedAtOnce is after how many series Sync looks whether the trees have changed. Who
// deletes a tree waits as long.
const syncedAtOnce = 64

// Sync puts all series that have a TSMeta into all enabled trees. What is there already
// stays as it is; nothing is removed. What becomes of a tree during a run counts for the series
// that are still to come. Source: TreeSync.
func (f *Forest) Sync(ctx context.Context) (Synced, error) {
	// What other processes have made of the trees counts from the first series.
	f.current.Store(nil)
	s := &syncing{Forest: f}
	// Without rows this only learns which trees are enabled.
	if err := s.addRows(ctx, nil); err != nil || s.done.Trees == 0 {
		return s.done, err
	}

	scan := store.Scan{
		Table:   f.cfg.MetaTable,
		Family:  encoding.FamilyName,
		Columns: []store.KeyRange{exactly([]byte(encoding.TSMetaQualifier))},
	}
	for block, err := range store.Blocks(ctx, f.cfg.Store, scan) {
		if err != nil {
			return s.done, fmt.Errorf("reading the series: %w", err)
		}
		for some := range slices.Chunk(block, syncedAtOnce) {
			if err := s.addRows(ctx, some); err != nil {
				return s.done, err
			}
		}
	}
	return s.done, nil
}

// addRows adds the series of some rows of the meta table by the trees as they are now.
func (s *syncing) addRows(ctx context.Context, rows []store.Row) error {
	// Let go after each call, so that Delete need not wait for the end of Sync.
	s.adding.RLock()
	defer s.adding.RUnlock()
	trees, err := s.enabled(ctx)
	if err != nil {
		return err
	}

	// Under a new snapshot known branches may have been deleted.
	if trees != s.trees {
		s.trees, s.known, s.done.Trees = trees, newKnownBranches(), len(trees.all)
	}

	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(parallelSeries)
	for _, r := range rows {
		work.Go(func() error { return s.addOne(ctx, r.Key) })
	}
	return work.Wait()
}

// addOne adds one series.
func (s *syncing) addOne(ctx context.Context, tsuid []byte) error {
	n, err := s.addTo(ctx, s.trees, s.known, tsuid)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done.Series++
	s.done.add(n)
	if unnamed(err) {
		s.done.Skipped++
		return nil
	}
	// Add passes over damaged meta data; here it ends the tool, whose user is to mend it.
	return err
}
