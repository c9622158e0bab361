package forest

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/extra/trees/tree"
	"downpour/pushdown/store"
)

// A treesync adds the series that are not in the enabled trees yet, counts those with a UID
// without a name as skipped, and changes nothing the second time.
func TestSync(t *testing.T) {
	both(t, func(t *testing.T, g *grove) {
		g.series("m", "host=h1", "dc=a")
		g.series("m", "host=h1", "dc=b")
		g.series("m", "host=h2")
		g.series("m", "dc=b")
		if done, err := g.Sync(t.Context()); err != nil || done != (Synced{}) {
			t.Errorf("without trees: %+v, %v", done, err)
		}

		id := g.plantTree(byHost, byMetric).ID
		off := g.plantTree(byMetric, byHost).ID
		no := false
		if _, err := g.Change(t.Context(), tree.Change{ID: off, Enabled: &no}, false); err != nil {
			t.Fatal(err)
		}
		key := store.CellKey{
			Row:       []byte{0, 0, 9, 0, 0, 1, 0, 0, 1},
			Family:    encoding.FamilyName,
			Qualifier: []byte(encoding.TSMetaQualifier),
		}
		if _, err := g.st.CompareAndPut(t.Context(), names.Meta, key, nil, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		done, err := g.Sync(t.Context())
		if want := (Synced{
			Counts:  Counts{Added: 2, Collisions: 1, NotMatched: 1},
			Trees:   1,
			Series:  5,
			Skipped: 1,
		}); err != nil || done != want {
			t.Errorf("got %+v, %v, want %+v", done, err, want)
		}
		before := g.cells()
		done, err = g.Sync(t.Context())
		if want := (Synced{
			Counts:  Counts{There: 2, Collisions: 1, NotMatched: 1},
			Trees:   1,
			Series:  5,
			Skipped: 1,
		}); err != nil || done != want {
			t.Errorf("again: got %+v, %v, want %+v", done, err, want)
		}
		if diff := cmp.Diff(before, g.cells()); diff != "" || len(g.shown(id)) != 5 {
			t.Errorf("the second treesync has changed cells: %s\nthe tree has %q, want 5 branches and leaves",
				diff, g.shown(id))
		}
	})
}

// oneByOne is a store that returns one series a read, and calls between before the second.
type oneByOne struct {
	store.Store
	between func()
}

func (*oneByOne) Features() store.Features { return store.Features{} }

func (o *oneByOne) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	sc, err := o.Store.Scan(ctx, s)
	if err == nil && s.Table == names.Meta && s.Start == nil {
		return &singleRows{Scanner: sc, between: o.between}, nil
	}
	return sc, err
}

type singleRows struct {
	store.Scanner
	rows    []store.Row
	n       int
	between func()
}

func (s *singleRows) Next() (rows []store.Row, err error) {
	for len(s.rows) == 0 {
		if s.rows, err = s.Scanner.Next(); err != nil {
			return nil, err
		}
	}
	if s.n++; s.n == 2 {
		s.between()
	}
	rows, s.rows = s.rows[:1], s.rows[1:]
	return rows, nil
}

// A change of a tree during a treesync takes effect for the series that follow: the tree is
// deleted, gets other rules, or loses its branches.
func TestSync_treeChanges(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(ctx context.Context, f *Forest, id int) error
		trees int
		want  []string
	}{
		"deleted": {func(ctx context.Context, f *Forest, id int) error { return f.Delete(ctx, id, true) }, 0, nil},
		"other rules": {func(ctx context.Context, f *Forest, id int) error {
			_, err := f.PutRule(ctx, tree.Rule{TreeID: id, Type: tree.Metric, DisplayFormat: "all"}, true)
			return err
		}, 1, []string{
			"ROOT", "ROOT/all", "ROOT/all: h2 = mmap[host:h2]", "ROOT/all: h3 = mmap[host:h3]", "ROOT/m",
			"ROOT/m: h1 = mmap[host:h1]",
		}},
		"purged": {func(ctx context.Context, f *Forest, id int) error { return f.Delete(ctx, id, false) }, 1,
			[]string{"ROOT", "ROOT/m", "ROOT/m: h2 = mmap[host:h2]", "ROOT/m: h3 = mmap[host:h3]"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := onPebble(t)
			id := g.plantTree(byMetric, byHost).ID
			for i := range 3 {
				g.series("m", fmt.Sprintf("host=h%d", i+1))
			}
			slow := &oneByOne{Store: g.st}
			f := g.beside(slow)
			slow.between = func() {
				if err := c.do(t.Context(), f, id); err != nil {
					t.Error(err)
				}
			}
			done, err := f.Sync(t.Context())
			if err != nil || done.Series != 3 || done.Trees != c.trees {
				t.Errorf("got %+v, %v, want 3 series and the trees that are left", done, err)
			}
			if c.want == nil {
				if left := g.cells(); len(left) > 0 {
					t.Errorf("cells %v are left, want none", left)
				}
				return
			}
			if diff := cmp.Diff(c.want, g.shown(id)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A treesync reads the trees again, and so sees a tree that another process has just made.
func TestSync_othersTrees(t *testing.T) {
	g := onPebble(t)
	other := g.beside(g.st)
	g.add(other, g.series("m", "host=h")) // it has read that there is no tree
	g.plantTree(byMetric, byHost)
	if done, err := other.Sync(t.Context()); err != nil || done.Added != 1 {
		t.Errorf("got %+v, %v, want one series added", done, err)
	}
}
