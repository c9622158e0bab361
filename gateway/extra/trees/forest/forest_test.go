package forest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"downpour/encoding"
	"downpour/gateway/extra/trees/tree"
	"downpour/gateway/metadata/meta"
	"downpour/gateway/metadata/tables/tablestest"
	"downpour/gateway/uid"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/open/opentest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var names = tablestest.Names

// grove is a forest over an empty store, and all that is needed to add series.
type grove struct {
	*testing.T
	*Forest
	st    store.Store
	names *uid.Dictionary
	now   time.Time
}

// both runs a test on each of the two stores.
func both(t *testing.T, test func(t *testing.T, g *grove)) {
	t.Run("embedded", func(t *testing.T) { test(t, onPebble(t)) })
	t.Run("HBase", func(t *testing.T) {
		fake := opentest.Fake(t, hbasefake.Options{MaxReplyCells: 7, HeartbeatEvery: 3})
		test(t, grow(t, opentest.HBaseWith(t, fake, hbase.Config{}, groveTables...)))
	})
}

var groveTables = tablestest.Specs(encoding.DefaultSchema())

func onPebble(t *testing.T) *grove { return grow(t, opentest.Embedded(t, groveTables...)) }

// grow returns a forest in a store.
func grow(t *testing.T, st store.Store) *grove {
	t.Helper()
	g := &grove{T: t, st: st, now: time.Unix(1356998400, 0),
		names: uid.New(uid.Config{Store: st, Table: names.UID, Schema: encoding.DefaultSchema()})}
	g.Forest = g.beside(st)
	return g
}

// beside returns a forest as another process would have it over the same tables; st may wrap
// the store.
func (g *grove) beside(st store.Store) *Forest {
	return New(Config{
		Store:     st,
		TreeTable: names.Tree,
		UIDTable:  names.UID,
		MetaTable: names.Meta,
		Schema:    encoding.DefaultSchema(),
		Names:     g.names,
		Now:       func() time.Time { return g.now },
		Log:       slog.New(slog.DiscardHandler),
	})
}

// series assigns UIDs to the names of a series, stores its TSMeta and returns its TSUID.
func (g *grove) series(metric string, tags ...string) string {
	g.Helper()
	assign := func(kind encoding.UIDKind, name string) encoding.UID {
		u, err := g.names.Assign(g.Context(), kind, name)
		if err != nil {
			g.Fatal(err)
		}
		return u
	}
	tsuid := slices.Clone(assign(encoding.UIDMetric, metric))
	for _, tag := range tags {
		k, v, _ := strings.Cut(tag, "=")
		tsuid = append(append(tsuid, assign(encoding.UIDTagK, k)...), assign(encoding.UIDTagV, v)...)
	}
	if _, err := g.meta.CreateTSMeta(g.Context(), tsuid, meta.TSChange{}); err != nil &&
		!errors.Is(err, meta.ErrConflict) {
		g.Fatal(err)
	}
	return string(tsuid)
}

// plantTree makes an enabled tree that keeps failures, with rules of levels 0, 1, ….
func (g *grove) plantTree(rules ...tree.Rule) *tree.Tree {
	g.Helper()
	yes := true
	t, err := g.Create(g.Context(), tree.Change{Name: "t", Enabled: &yes, StoreFailures: &yes})
	if err != nil {
		g.Fatal(err)
	}
	for i, r := range rules {
		r.TreeID, r.Level = t.ID, i
		if _, err := g.PutRule(g.Context(), r, true); err != nil {
			g.Fatal(err)
		}
	}
	return t
}

var (
	byMetric = tree.Rule{Type: tree.Metric, Separator: `\.`}
	byHost   = tree.Rule{Type: tree.TagK, Field: "host"}
	byDC     = tree.Rule{Type: tree.TagK, Field: "dc"}
)

// add adds series to the trees of a forest and wants none to be left.
func (g *grove) add(f *Forest, tsuids ...string) {
	g.Helper()
	if rest, err := f.Add(g.Context(), tsuids); err != nil || len(rest) > 0 {
		g.Fatalf("%x is left: %v", rest, err)
	}
}

// shown lists all branches of a tree as paths, and its leaves.
func (g *grove) shown(id int) (out []string) {
	g.Helper()
	var walk func(key []byte)
	walk = func(key []byte) {
		b, err := g.Branch(g.Context(), key)
		if err != nil {
			g.Fatal(err)
		}
		path := strings.Join(b.Path, "/")
		out = append(out, path)
		for _, l := range b.Leaves {
			out = append(out, fmt.Sprintf("%s: %s = %s%v", path, l.DisplayName, l.Metric, l.Tags))
		}
		for _, c := range b.Branches {
			walk(c.Key)
		}
	}
	walk(tree.Key(id))
	return out
}

// cells counts the cells of the tree table by the beginning of their qualifiers.
func (g *grove) cells() map[string]int {
	g.Helper()
	out := map[string]int{}
	for r, err := range store.Rows(g.Context(), g.st, store.Scan{Table: names.Tree}) {
		if err != nil {
			g.Fatal(err)
		}
		for _, c := range r.Cells {
			kind, _, _ := strings.Cut(string(c.Qualifier), ":")
			out[kind]++
		}
	}
	return out
}

// failed returns the series that a tree has left out, all or those of tsuids, with the reasons.
func (g *grove) failed(l Failures, id int, tsuids ...string) map[string]string {
	g.Helper()
	var wanted [][]byte
	for _, s := range tsuids {
		wanted = append(wanted, []byte(s))
	}
	out, err := g.Failed(g.Context(), l, id, wanted)
	if err != nil {
		g.Fatal(err)
	}
	return out
}

func upper(tsuid string) string { return strings.ToUpper(hex.EncodeToString([]byte(tsuid))) }

// Rules place series. If two have the same leaf, the first keeps it and the other is a collision;
// a series for which the rules yield too few names is not matched. Adding all again changes
// nothing.
func TestAdd(t *testing.T) {
	both(t, func(t *testing.T, g *grove) {
		id := g.plantTree(byMetric, byHost).ID
		a, b := g.series("sys.cpu", "host=h1", "dc=a"), g.series("sys.net", "host=h1")
		again, lone := g.series("sys.cpu", "host=h1", "dc=b"), g.series("m", "dc=a")
		for range 2 {
			g.add(g.Forest, a, b)
			g.add(g.Forest, again, lone)
		}
		want := []string{
			"ROOT", "ROOT/sys", "ROOT/sys/cpu", "ROOT/sys/cpu: h1 = sys.cpumap[dc:a host:h1]", "ROOT/sys/net",
			"ROOT/sys/net: h1 = sys.netmap[host:h1]",
		}
		if diff := cmp.Diff(want, g.shown(id)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]string{upper(again): upper(a)}, g.failed(Collisions, id)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]string{upper(lone): "[1:1:0:TAGK]"}, g.failed(NotMatched, id)); diff != "" {
			t.Error(diff)
		}
		if got := g.failed(NotMatched, id, a, lone); len(got) != 1 {
			t.Errorf("asked for two series: got %v, want the one that is not matched", got)
		}
		if got := g.failed(Collisions, id, lone); len(got) != 0 {
			t.Errorf("asked for a series without a collision: got %v, want none", got)
		}

		// A series with a UID that has no name, and a key that is no TSUID, can be in no tree and
		// are not tried again.
		g.add(g.Forest, "\x00\x00\xff\x00\x00\x01\x00\x00\x01", "x")
	})
}

// A rule on a custom field makes branches of what UIDMeta has for that field.
func TestAdd_custom(t *testing.T) {
	g := onPebble(t)
	id := g.plantTree(tree.Rule{Type: tree.MetricCustom, Field: "x", CustomField: "team"}, byHost).ID
	s := g.series("m", "host=h")
	_, err := g.meta.ChangeUIDMeta(t.Context(),
		meta.UIDChange{Kind: encoding.UIDMetric, UID: encoding.UID(s[:3]), Custom: map[string]string{"team": "net"}},
		false)
	if err != nil {
		t.Fatal(err)
	}
	g.add(g.Forest, s)
	if diff := cmp.Diff([]string{"ROOT", "ROOT/net", "ROOT/net: h = mmap[host:h]"}, g.shown(id)); diff != "" {
		t.Error(diff)
	}
}

// Changes of trees by this process take effect at once, those by another process after
// ReloadAfter.
func TestAdd_reload(t *testing.T) {
	g := onPebble(t)
	other := g.beside(g.st)
	g.add(other, g.series("m", "host=h0")) // it has read that there is no tree
	id := g.plantTree(byHost, byMetric).ID
	g.add(g.Forest, g.series("m", "host=h1"))
	g.add(other, g.series("m", "host=h2"))
	if got := g.shown(id); len(got) != 3 {
		t.Errorf("got %q, want only the series of the process that made the tree", got)
	}
	g.now = g.now.Add(ReloadAfter)
	g.add(other, g.series("m", "host=h3"))
	if got := g.shown(id); len(got) != 5 {
		t.Errorf("got %q, want one more series", got)
	}
}

// Several processes add the same series and make trees and rules at the same time: every tree
// gets an id of its own, and every series is either a leaf or a collision.
func TestForest_concurrent(t *testing.T) {
	both(t, func(t *testing.T, g *grove) {
		id := g.plantTree(byDC, byMetric).ID
		var all []string
		for i := range 40 {
			all = append(all,
				g.series(fmt.Sprintf("a.m%d", i%20), fmt.Sprintf("dc=d%d", i%3), fmt.Sprintf("host=h%d", i)))
		}
		var wg sync.WaitGroup
		ids := make([]int, 6)
		for i := range ids {
			f := g.beside(g.st)
			wg.Go(func() {
				if rest, err := f.Add(t.Context(), all); err != nil || len(rest) > 0 {
					t.Errorf("%d series are left: %v", len(rest), err)
				}
				made, err := f.Create(t.Context(), tree.Change{Name: fmt.Sprint(i)})
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = made.ID
				// All of them change the same rule and the same definition. Each attempt that fails is one
				// by which another process has made its change, so no more fail than there are others.
				r := tree.Rule{TreeID: id, Level: 5, Type: tree.TagK, Field: "no", Notes: fmt.Sprint(i)}
				if _, err := f.PutRule(t.Context(), r, false); err != nil {
					t.Error(err)
				}
				if _, err := f.Change(t.Context(), tree.Change{ID: id, Notes: fmt.Sprint(i)}, false); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()

		slices.Sort(ids)
		if diff := cmp.Diff([]int{2, 3, 4, 5, 6, 7}, ids); diff != "" {
			t.Error(diff)
		}
		leaves, collisions := 0, g.failed(Collisions, id)
		for _, line := range g.shown(id) {
			if strings.Contains(line, "=") {
				leaves++
			}
		}
		if leaves+len(collisions) != len(all) {
			t.Errorf("%d leaves and %d collisions, want as many as there are series, %d",
				leaves, len(collisions), len(all))
		}
	})
}

// meddler is a store that calls do before the first CompareAndPut, as another process would
// write then.
type meddler struct {
	store.Store
	once sync.Once
	do   func()
}

func (*meddler) Features() store.Features { return store.Features{} }

func (m *meddler) CompareAndPut(ctx context.Context, table string, c store.CellKey, old, value []byte) (bool, error) {
	m.once.Do(m.do)
	return m.Store.CompareAndPut(ctx, table, c, old, value)
}

// A change of a tree, a rule or the ids that meets another process's change is made on top of it
// and does not undo it.
func TestForest_compareAndSet(t *testing.T) {
	both(t, func(t *testing.T, g *grove) {
		id := g.plantTree(byMetric).ID
		ctx := t.Context()
		between := func(do func(f *Forest) error) *Forest {
			return g.beside(&meddler{Store: g.st, do: func() {
				if err := do(g.Forest); err != nil {
					t.Error(err)
				}
			}})
		}

		f := between(func(f *Forest) error {
			_, err := f.Change(ctx, tree.Change{ID: id, Notes: "n"}, false)
			return err
		})
		if now, err := f.Change(ctx, tree.Change{ID: id, Description: "d"}, false); err != nil || now.Notes != "n" ||
			now.Description != "d" {
			t.Errorf("the tree is %+v, %v, want both changes", now, err)
		}
		f = between(func(f *Forest) error {
			_, err := f.PutRule(ctx, tree.Rule{TreeID: id, Notes: "n"}, false)
			return err
		})
		if now, err := f.PutRule(ctx, tree.Rule{TreeID: id, Description: "d"}, false); err != nil || now.Notes != "n" ||
			now.Description != "d" {
			t.Errorf("the rule is %+v, %v, want both changes", now, err)
		}
		f = between(func(f *Forest) error { _, err := f.Create(ctx, tree.Change{Name: "first"}); return err })
		if now, err := f.Create(ctx, tree.Change{Name: "second"}); err != nil || now.ID != id+2 {
			t.Errorf("the second tree is %+v, %v, want the id after the first one's", now, err)
		}
	})
}

// While the store fails now and then, Add returns the series that it could not add. Repeated
// attempts add all of them, and no branch above a leaf is missing.
func TestAdd_faults(t *testing.T) {
	g := onPebble(t)
	id := g.plantTree(byMetric, byHost).ID
	var all []string
	for i := range 60 {
		all = append(all, g.series(fmt.Sprintf("a.b%d.c", i%7), fmt.Sprintf("host=h%d", i)))
	}
	broken := faultstore.New(g.st,
		faultstore.Rule{Op: faultstore.CompareAndPut, Chance: 0.3, Seed: 1, Err: store.ErrUnavailable},
		faultstore.Rule{Op: faultstore.CompareAndPut, Chance: 0.2, Seed: 2, Err: store.ErrUnavailable, After: true},
		faultstore.Rule{Op: faultstore.Scan, Table: names.Tree, Chance: 0.02, Seed: 3, Err: store.ErrUnavailable})
	f := g.beside(broken)

	rest, failures := all, 0
	for try := 0; len(rest) > 0; try++ {
		var err error
		if rest, err = f.Add(t.Context(), rest); (err == nil) != (len(rest) == 0) {
			t.Fatalf("%d series are left, error %v, want an error if and only if some are left", len(rest), err)
		}
		failures += len(rest)
		if try > 500 {
			t.Fatalf("%d series are left after %d attempts", len(rest), try)
		}
	}
	if failures == 0 {
		t.Error("nothing failed")
	}
	if got := g.shown(id); len(got) != 1+1+7+7+60 {
		t.Errorf("%d branches and leaves, want 76: %q", len(got), got) // ROOT, a, b0 … b6 with a c each, 60 leaves
	}
}

// A branch lists exactly its children, however many rows of deeper branches lie between them,
// and none of another tree.
func TestBranch_deep(t *testing.T) {
	both(t, func(t *testing.T, g *grove) {
		g.plantTree(byMetric, byHost)
		id := g.plantTree(byMetric, byHost).ID
		var all, want []string
		for _, top := range []string{"a", "b", "c"} {
			for i := range 3 {
				n := 1
				if i == 1 && top != "b" {
					n = 2*deeperRows + 5
				}
				child := fmt.Sprint(top, i)
				want = append(want, child)
				for j := range n {
					all = append(all, g.series(fmt.Sprintf("%s.%s.x%d", top, child, j), "host=h"))
				}
			}
		}
		g.add(g.Forest, all...)
		root, err := g.Branch(t.Context(), tree.Key(id))
		if err != nil || len(root.Branches) != 3 {
			t.Fatalf("got %v, %v, want a root with 3 branches", root, err)
		}
		var got []string
		for _, top := range root.Branches {
			b, err := g.Branch(t.Context(), top.Key)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range b.Branches {
				got = append(got, c.Path[len(c.Path)-1])
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// A tree with a rule that Downpour cannot apply, as a TSD may have stored it, is shown but takes
// no series; other trees do. Once the rule is deleted the tree takes series again.
func TestAdd_foreignRule(t *testing.T) {
	g := onPebble(t)
	bad, good := g.plantTree(byMetric, byHost).ID, g.plantTree(byHost, byMetric).ID
	foreign := tree.Rule{Type: tree.Metric, Regex: "(?=a)", TreeID: bad, Level: 7}
	put := mutation(store.Put, tree.Key(bad), tree.RuleQualifier(7, 0), foreign.AppendStored(nil))
	if err := g.apply(t.Context(), []store.Mutation{put}); err != nil {
		t.Fatal(err)
	}
	g.add(g.Forest, g.series("m", "host=h"))
	if got := g.cells(); got["leaf"] != 1 || len(g.shown(good)) != 3 {
		t.Errorf("cells %v, want 1 leaf, of the good tree", got)
	}
	if shown, err := g.Tree(t.Context(), bad); err != nil || shown.Rule(7, 0) == nil {
		t.Errorf("got %v, %v, want the tree with the foreign rule", shown, err)
	}
	if _, err := g.PutRule(t.Context(),
		tree.Rule{Type: tree.TagK, Field: "dc", TreeID: bad, Level: 8}, false); err != nil {
		t.Errorf("another rule is put: got %v, want no error", err)
	}
	if err := g.DeleteRule(t.Context(), foreign); err != nil {
		t.Error(err)
	}
	g.add(g.Forest, g.series("m.n", "host=h"))
	if got := g.cells(); got["leaf"] != 3 {
		t.Errorf("cells %v, want 3 leaves: the new series in both trees", got)
	}
}

// The number of a tree's rules is bounded, and a change of several rules is made as a whole or
// not at all.
func TestRules(t *testing.T) {
	g := onPebble(t)
	id := g.plantTree().ID
	many := make([]tree.Rule, tree.MaxRules)
	for i := range many {
		many[i] = tree.Rule{Type: tree.Metric, TreeID: id, Level: i}
	}
	if err := g.ReplaceRules(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	one := tree.Rule{Type: tree.Metric, TreeID: id, Level: 999}
	for _, put := range []func() error{
		func() error { _, err := g.PutRule(t.Context(), one, false); return err },
		func() error { return g.PutRules(t.Context(), []tree.Rule{one}) },
	} {
		if err := put(); err == nil || !strings.Contains(err.Error(), "257 rules, want at most 256") {
			t.Errorf("got %v, want that 257 rules are too many", err)
		}
	}

	// A change with one bad rule changes nothing.
	if err := g.ReplaceRules(t.Context(), []tree.Rule{one, {Type: tree.TagK, TreeID: id}}); err == nil {
		t.Error("a bad rule is stored")
	}
	if err := g.PutRules(t.Context(),
		[]tree.Rule{{Type: tree.Metric, TreeID: id, Notes: "n"}, {Level: 1, Type: tree.TagK, TreeID: id}}); err == nil {
		t.Error("a bad rule is stored")
	}
	if now, err := g.Tree(t.Context(), id); err != nil || len(now.Rules) != tree.MaxRules || now.Rules[0].Notes != "" {
		t.Errorf("%d rules, %v, want the 256 as they were", len(now.Rules), err)
	}

	last := tree.Rule{Type: tree.Metric, TreeID: id, Level: 3, Notes: "last"}
	if err := g.ReplaceRules(t.Context(),
		[]tree.Rule{{Type: tree.TagK, Field: "f", TreeID: id, Level: 3}, last}); err != nil {
		t.Fatal(err)
	}
	if now, err := g.Tree(t.Context(), id); err != nil || len(now.Rules) != 1 || now.Rules[0] != last {
		t.Errorf("got rules %+v, %v, want the last one of the level alone", now.Rules, err)
	}
	if err := g.DeleteRules(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	var missing *NotFoundError
	if err := g.DeleteRule(t.Context(), last); !errors.As(err, &missing) {
		t.Errorf("got %v, want a *NotFoundError", err)
	}
}

// Branch reserves the memory of its answer, and ends with its context.
func TestBranch_bounds(t *testing.T) {
	g := onPebble(t)
	id := g.plantTree(byMetric, byHost).ID
	value := tree.AppendLeaf(nil, strings.Repeat("n", 1<<19), "000001000001000001")
	var mutations []store.Mutation
	for i := range 40 {
		mutations = append(mutations,
			mutation(store.Put, tree.Key(id), append([]byte(tree.LeafPrefix), 0, 0, 0, byte(i)), value))
	}
	mutations = append(mutations,
		mutation(store.Put, tree.Key(id), []byte(tree.BranchQualifier), tree.AppendBranch(nil, []string{tree.Root})))
	if err := g.apply(t.Context(), mutations); err != nil {
		t.Fatal(err)
	}
	within := memory.With(t.Context(), memory.New(memory.Least).Open(memory.Query))
	var large *memory.LimitError
	if _, err := g.Branch(within, tree.Key(id)); !errors.As(err, &large) {
		t.Errorf("%v, want that the process lacks the memory", err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := g.Branch(ctx, tree.Key(id)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the context has ended", err)
	}
}
