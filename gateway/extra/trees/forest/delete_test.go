package forest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway/extra/trees/tree"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

// A deletion removes branches, leaves and failures of its tree and leaves other trees alone. The
// definition stays unless it is to be deleted, too.
func TestDelete(t *testing.T) {
	both(t, func(t *testing.T, g *grove) {
		id, other := g.plantTree(byMetric, byHost).ID, g.plantTree(byHost, byMetric).ID
		var all []string
		for i := range 30 {
			all = append(all, g.series(fmt.Sprintf("a.m%d", i/2), fmt.Sprintf("host=h%d", i%2)))
		}
		g.add(g.Forest, append(all, g.series("a.m1", "host=h0", "dc=d"), g.series("m", "dc=d"))...)
		before := g.shown(other)

		if err := g.Delete(t.Context(), id, false); err != nil {
			t.Fatal(err)
		}
		var missing *NotFoundError
		if _, err := g.Branch(t.Context(), tree.Key(id)); !errors.As(err, &missing) ||
			len(g.failed(Collisions, id))+len(g.failed(NotMatched, id)) > 0 {
			t.Errorf("branches or failures are left: got %v, want a *NotFoundError and no failures", err)
		}
		if left, err := g.Tree(t.Context(), id); err != nil || len(left.Rules) != 2 {
			t.Errorf("got tree %+v, %v, want it with 2 rules", left, err)
		}
		g.add(g.Forest, all[0])
		if err := g.Delete(t.Context(), id, true); err != nil {
			t.Fatal(err)
		}
		if err := g.Delete(t.Context(), 77, true); err != nil {
			t.Errorf("a tree that is not there: got %v, want no error", err)
		}
		g.add(g.Forest, g.series("a.m1", "host=h9"))
		for r, err := range store.Rows(t.Context(), g.st, store.Scan{Table: names.Tree}) {
			if err != nil || tree.IDOf(r.Key) != other {
				t.Errorf("row %x, %v, want rows of the other tree alone", r.Key, err)
			}
		}
		if got := g.shown(other); len(got) < len(before) {
			t.Errorf("the other tree has %d branches and leaves, want at least %d", len(got), len(before))
		}
	})
}

// Another process that still has the definition of a deleted tree may add leaves to it. No tree
// that is made afterwards has them.
func TestCreate_leftovers(t *testing.T) {
	both(t, func(t *testing.T, g *grove) {
		first := g.plantTree(byMetric, byHost).ID
		id := g.plantTree(byMetric, byHost).ID
		other := g.beside(g.st)
		g.add(other, g.series("m", "host=h1"))
		if err := g.Delete(t.Context(), id, true); err != nil {
			t.Fatal(err)
		}
		g.add(other, g.series("m", "host=h2"))
		if all, err := g.Trees(t.Context()); err != nil || len(all) != 1 || all[0].ID != first {
			t.Fatalf("got trees %+v, %v, want the first one alone", all, err)
		}

		next := g.plantTree(byMetric, byHost).ID
		var missing *NotFoundError
		if b, err := g.Branch(t.Context(), tree.Key(next)); !errors.As(err, &missing) {
			t.Errorf("the new tree %d has %+v, %v", next, b, err)
		}

		// Another deletion removes what is left, and then a new tree can have the id.
		for _, id := range []int{next, id} {
			if err := g.Delete(t.Context(), id, true); err != nil {
				t.Fatal(err)
			}
		}
		if again := g.plantTree().ID; again != id {
			t.Errorf("got tree %d, want %d", again, id)
		}
	})
}

// Trees finds all trees among keys that belong to no tree, also after a gap in the ids.
func TestTrees_strayKeys(t *testing.T) {
	both(t, func(t *testing.T, g *grove) {
		for range 2 {
			g.plantTree()
		}
		var stray []store.Mutation
		for _, key := range []string{"\x00", "\x01", "\x00\x01x"} {
			stray = append(stray, mutation(store.Put, []byte(key), []byte("x"), nil))
		}
		far := tree.Tree{ID: 300, Name: "far"}
		stray = append(stray,
			mutation(store.Put, tree.Key(far.ID), []byte(tree.DefinitionQualifier), far.AppendDefinition(nil)))
		if err := g.apply(t.Context(), stray); err != nil {
			t.Fatal(err)
		}
		var ids []int
		all, err := g.Trees(t.Context())
		for _, x := range all {
			ids = append(ids, x.ID)
		}
		if diff := cmp.Diff([]int{1, 2, 300}, ids); diff != "" || err != nil {
			t.Error(diff, err)
		}
		if next := g.plantTree().ID; next != 301 {
			t.Errorf("the next tree is %d, want 301", next)
		}
	})
}

// held is a store that writes leaves only once gate is closed, and closes reached at the first.
type held struct {
	store.Store
	reached, gate chan struct{}
	once          sync.Once
}

func (*held) Features() store.Features { return store.Features{} }

func (h *held) CompareAndPut(ctx context.Context, table string, c store.CellKey, old, value []byte) (bool, error) {
	if strings.HasPrefix(string(c.Qualifier), tree.LeafPrefix) {
		h.once.Do(func() { close(h.reached) })
		<-h.gate
	}
	return h.Store.CompareAndPut(ctx, table, c, old, value)
}

// A series that is being added, by a put or by treesync, while its tree is deleted leaves
// nothing behind.
func TestDelete_whileAdding(t *testing.T) {
	for name, bySync := range map[string]bool{"put": false, "treesync": true} {
		t.Run(name, func(t *testing.T) { deleteWhileAdding(t, bySync) })
	}
}

func deleteWhileAdding(t *testing.T, bySync bool) {
	g := onPebble(t)
	id := g.plantTree(byMetric, byHost).ID
	h := &held{Store: g.st, reached: make(chan struct{}), gate: make(chan struct{})}
	f := g.beside(h)
	s := g.series("a.b", "host=h")

	var wg sync.WaitGroup
	wg.Go(func() {
		var err error
		if bySync {
			_, err = f.Sync(t.Context())
		} else {
			_, err = f.Add(t.Context(), []string{s})
		}
		if err != nil {
			t.Error(err)
		}
	})
	<-h.reached
	wg.Go(func() {
		if err := f.Delete(t.Context(), id, true); err != nil {
			t.Error(err)
		}
	})
	for { // until the definition is gone
		if all, err := g.Trees(t.Context()); err != nil || len(all) == 0 {
			break
		}
	}
	close(h.gate)
	wg.Wait()
	if left := g.cells(); len(left) > 0 {
		t.Errorf("cells %v are left, want none", left)
	}
}

// A deletion that fails may have deleted branches, so the trees are read again before the next
// series is added.
func TestDelete_cutShort(t *testing.T) {
	g := onPebble(t)
	id := g.plantTree(byMetric, byHost).ID
	f := g.beside(
		faultstore.New(g.st, faultstore.Rule{Op: faultstore.Apply, Nth: 1, Err: store.ErrUnavailable, After: true}),
	)
	g.add(f, g.series("m", "host=h"))
	before, err := f.enabled(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), id, false); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v, want that the store is unavailable", err)
	}
	if after, err := f.enabled(t.Context()); err != nil || after == before {
		t.Errorf("got the same snapshot of trees, %v, want one that was read again", err)
	}
}
