package forest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/extra/trees/tree"
	"downpour/pushdown/store"
)

// The work of the expressions of all trees for one series has one bound. Each tree has a share
// of it that the trees before it cannot use up.
func TestAdd_work(t *testing.T) {
	g := onPebble(t)
	heavy := func(n int, more ...tree.Rule) int {
		id := g.plantTree().ID
		for i := range n {
			more = append(more, tree.Rule{Type: tree.Metric, Order: i, Regex: "([b-z]{100})"})
		}
		for i := range more {
			more[i].TreeID = id
		}
		if err := g.ReplaceRules(t.Context(), more); err != nil {
			t.Fatal(err)
		}
		return id
	}
	host := tree.Rule{Type: tree.TagK, Field: "host", Level: 1}
	var ids []int
	for range 4 {
		ids = append(ids, heavy(60, tree.Rule{Type: tree.Metric, Order: 99, Separator: `\.`}, host))
	}
	light := heavy(10, tree.Rule{Type: tree.TagK, Field: "dc", Order: 99}, host)
	s := g.series(strings.Repeat("aaaaaaaaaa.", 22)+"a", "host=h", "dc=d")
	g.add(g.Forest, s)

	// The first heavy tree fits into its bound; what it leaves is too little for the other three.
	for i, id := range ids {
		out := g.failed(NotMatched, id)[upper(s)]
		if (i > 0) != strings.Contains(out, "rules whose expressions take too long") {
			t.Errorf("heavy tree %d: got %.200q, want that all but tree 0 take too long", i, out)
		}
	}
	if got := g.shown(light); len(got) != 3 {
		t.Errorf("the light tree has %q, want the root, a branch and a leaf", got)
	}
}

// leafThen is a store that calls do after each leaf that is written.
type leafThen struct {
	store.Store
	do func()
}

func (*leafThen) Features() store.Features { return store.Features{} }

func (l *leafThen) CompareAndPut(ctx context.Context, table string, c store.CellKey, old, value []byte) (bool, error) {
	ok, err := l.Store.CompareAndPut(ctx, table, c, old, value)
	if strings.HasPrefix(string(c.Qualifier), tree.LeafPrefix) {
		l.do()
	}
	return ok, err
}

// An addition ends with its context between two trees, also if the next tree needs no call of
// the store: here the root of the second tree is known and no failures are stored.
func TestAdd_ends(t *testing.T) {
	g := onPebble(t)
	g.plantTree(byHost, byMetric)
	other := g.plantTree(byDC, byMetric).ID
	no := false
	if _, err := g.Change(t.Context(), tree.Change{ID: other, StoreFailures: &no}, false); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	f := g.beside(&leafThen{g.st, leave})
	trees, err := f.enabled(ctx)
	if err != nil {
		t.Fatal(err)
	}
	known := newKnownBranches()
	known.add([][]byte{tree.Key(other)})
	if n, err := f.addTo(ctx, trees, known, []byte(g.series("m", "host=h"))); !errors.Is(err, context.Canceled) ||
		n.Added != 1 {
		t.Errorf("got %+v, %v, want one added and the end of the context", n, err)
	}
}

// A series whose custom fields cannot be parsed is in no tree and is not tried again, and other
// series are added. A treesync reports it as an error.
func TestAdd_damagedCustom(t *testing.T) {
	g := onPebble(t)
	id := g.plantTree(tree.Rule{Type: tree.MetricCustom, Field: "x", CustomField: "team", DisplayFormat: "{value}"},
		byHost, byDC).ID
	bad, good := g.series("bad", "host=h", "dc=d"), g.series("good", "host=h", "dc=d")
	for _, text := range []string{"{", `{"custom":7}`} {
		m := store.Mutation{
			Row:       []byte(bad[:3]),
			Family:    encoding.FamilyName,
			Qualifier: encoding.UIDMetric.MetaQualifier(),
			Value:     []byte(text),
		}
		if err := g.st.Apply(t.Context(), names.UID, []store.Mutation{m}); err != nil {
			t.Fatal(err)
		}
		g.add(g.Forest, bad, good)
		if diff := cmp.Diff([]string{"ROOT", "ROOT/h", "ROOT/h: d = goodmap[dc:d host:h]"}, g.shown(id)); diff != "" {
			t.Error(diff)
		}
		if _, err := g.Sync(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot parse UIDMeta") {
			t.Errorf("treesync: got %v, want that a UIDMeta cannot be parsed", err)
		}
	}
}
