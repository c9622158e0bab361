package forest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"downpour/encoding"
	"downpour/gateway/extra/trees/tree"
	"downpour/pushdown/store"
)

// parallelSeries is how many series are added at a time: they share the syncs of the store
// to disk.
const parallelSeries = 16

// Add puts new series into all enabled trees. It returns those that could not be put into
// all of them because of the store, and the first such error. A series that a tree leaves out
// is no error, nor is one that can be in no tree, which the log names. Adding a series again
// changes nothing. Source: TreeBuilder.processAllTrees.
func (f *Forest) Add(ctx context.Context, tsuids []string) (rest []string, err error) {
	f.adding.RLock()
	defer f.adding.RUnlock()
	trees, err := f.enabled(ctx)
	if err != nil {
		return tsuids, err
	}
	if len(trees.all) == 0 {
		return nil, nil
	}

	known := newKnownBranches()
	var mu sync.Mutex
	var work errgroup.Group
	work.SetLimit(parallelSeries)
	for _, tsuid := range tsuids {
		work.Go(func() error {
			_, failed := f.addTo(ctx, trees, known, []byte(tsuid))
			if unnamed(failed) || damaged(failed) {
				f.cfg.Log.Warn("a new series is in no tree", "tsuid", encoding.UID(tsuid), "err", failed)
				return nil
			}
			if failed != nil {
				mu.Lock()
				defer mu.Unlock()
				rest = append(rest, tsuid)
				if err == nil {
					err = failed
				}
			}
			return nil
		})
	}
	_ = work.Wait()
	return rest, err
}

// Counts are series by what trees have made of them, once for each tree.
type Counts struct {
	Added      int64 `json:"added"`      // a leaf is new
	There      int64 `json:"there"`      // the leaf was there
	Collisions int64 `json:"collisions"` // another series has the leaf
	NotMatched int64 `json:"notMatched"` // no leaf, by the rules or a bound
}

func (c *Counts) add(o Counts) {
	c.Added, c.There, c.Collisions, c.NotMatched = c.Added+o.Added, c.There+o.There, c.Collisions+o.Collisions,
		c.NotMatched+o.NotMatched
}

// addTo puts one series into some trees.
func (f *Forest) addTo(ctx context.Context, trees *snapshot, known *knownBranches, tsuid []byte) (n Counts, err error) {
	s, err := f.series(ctx, tsuid, trees.custom)
	if err != nil {
		return n, err
	}
	left, share := tree.MaxWork, tree.MaxWork/2/max(1, len(trees.all))
	for i, t := range trees.all {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		// Half of the work is kept in equal shares for the trees behind this one: no tree
		// takes all of it.
		p := t.Place(s, left-share*(len(trees.all)-1-i), false)
		left -= p.Work
		one, err := f.plant(ctx, t, known, tsuid, p)
		if err != nil {
			return n, fmt.Errorf("series %s, tree %d: %w", s.TSUID, t.ID, err)
		}
		n.add(one)
	}
	return n, nil
}

// plant stores one placement: branches that are not there, then the leaf. A
// reader that finds a leaf so finds the way to it.
func (f *Forest) plant(
	ctx context.Context, t *tree.Compiled, known *knownBranches, tsuid []byte, p tree.Placement,
) (Counts, error) {
	if !p.Stored(t.StrictMatch) {
		// As in OpenTSDB a tree has a root once it has seen a series, kept or not.
		// Source: TreeBuilder.loadOrInitializeRoot.
		if _, err := f.plantBranches(ctx, t.ID, known, nil); err != nil {
			return Counts{}, err
		}
		return Counts{NotMatched: 1}, f.fail(ctx, t, NotMatched, tsuid, p.Missing())
	}

	key, err := f.plantBranches(ctx, t.ID, known, p.Path)
	if err != nil {
		return Counts{}, err
	}

	name, value := tree.LeafQualifier(p.Leaf), tree.AppendLeaf(nil, p.Leaf, encoding.UID(tsuid).String())
	for range attempts {
		ok, err := f.exchange(ctx, key, name, nil, value)
		if err != nil || ok {
			return Counts{Added: 1}, err
		}
		there, err := f.cell(ctx, key, name)
		if err != nil {
			return Counts{}, err
		}
		if there == nil {
			continue // it was deleted since
		}

		leaf, err := tree.ParseLeaf(there)
		switch {
		case err != nil: // a damaged leaf keeps its place, and names no other series
			return Counts{Collisions: 1}, f.fail(ctx, t, Collisions, tsuid, "")
		case leaf.TSUID == encoding.UID(tsuid).String():
			return Counts{There: 1}, nil
		}
		return Counts{Collisions: 1}, f.fail(ctx, t, Collisions, tsuid, leaf.TSUID)
	}
	return Counts{}, ErrConflict
}

// fail records a series that is left out, if the tree wants it.
func (f *Forest) fail(ctx context.Context, t *tree.Compiled, l Failures, tsuid []byte, why string) error {
	if !t.StoreFailures {
		return nil
	}
	return f.apply(ctx, []store.Mutation{mutation(store.Put, l.key(t.ID), l.qualifier(tsuid), []byte(why))})
}

// plantBranches stores the branches of a path, the root first, and returns the key of the
// last one.
func (f *Forest) plantBranches(
	ctx context.Context, id int, known *knownBranches, path []string,
) (key []byte, err error) {
	names := append([]string{tree.Root}, path...)
	keys := make([][]byte, len(names)) // each is a prefix of the next one
	for depth := range names {
		if key = tree.Key(id); depth > 0 {
			key = tree.AppendChild(bytes.Clone(keys[depth-1]), names[depth])
		}
		keys[depth] = key
	}

	missing, err := f.missing(ctx, keys, known)
	if err != nil {
		return nil, err
	}
	for _, depth := range missing {
		// If another process is faster, the branch is there as well.
		if _, err := f.exchange(ctx, keys[depth], []byte(tree.BranchQualifier), nil,
			tree.AppendBranch(nil, names[:depth+1])); err != nil {
			return nil, err
		}
	}
	known.add(keys)
	return key, nil
}

// missing returns the indexes of the keys that have no branch, by one scan.
func (f *Forest) missing(ctx context.Context, keys [][]byte, known *knownBranches) (out []int, err error) {
	var ranges []store.KeyRange
	unknown := map[string]int{}
	for i, key := range keys {
		if !known.has(key) {
			unknown[string(key)] = i
			ranges = append(ranges, exactly(key))
		}
	}
	if len(unknown) == 0 {
		return nil, nil
	}

	// The ranges ascend, because each key is a prefix of the next one.
	scan := store.Scan{
		Table:   f.cfg.TreeTable,
		Family:  encoding.FamilyData,
		Start:   ranges[0].Start,
		Stop:    ranges[len(ranges)-1].Stop,
		Filter:  store.RowFilter{Ranges: ranges},
		Columns: []store.KeyRange{exactly([]byte(tree.BranchQualifier))},
	}
	for r, err := range store.Rows(ctx, f.cfg.Store, scan) {
		if err != nil {
			return nil, err
		}
		delete(unknown, string(r.Key))
	}
	for _, i := range unknown {
		out = append(out, i)
	}
	slices.Sort(out)
	return out, nil
}

// knownBranches are branches that were seen to be there, during one addition of series and
// under one snapshot. It is not kept longer: somebody may delete them.
type knownBranches struct {
	mu  sync.Mutex
	set map[string]struct{}
}

// maxKnownBranches bounds the branches that are known; some 20 MiB.
const maxKnownBranches = 100_000

func newKnownBranches() *knownBranches { return &knownBranches{set: map[string]struct{}{}} }

func (k *knownBranches) has(key []byte) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.set[string(key)]
	return ok
}

// add adds the branches of a path. A full set is emptied first: what it held is looked for
// again.
func (k *knownBranches) add(keys [][]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.set)+len(keys) > maxKnownBranches {
		clear(k.set)
	}
	for _, key := range keys {
		k.set[string(key)] = struct{}{}
	}
}
