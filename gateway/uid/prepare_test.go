package uid

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

// Names get numbers in their order, over several steps; those that have one keep it, and those
// that can have none, or are being changed, are left out.
func TestPrepare(t *testing.T) {
	for kind, s := range map[string]store.Store{"embedded": open(t), "one call for each cell": newMemory()} {
		t.Run(kind, func(t *testing.T) {
			var told []string
			d := New(Config{Store: s, Table: table, Schema: encoding.DefaultSchema(), MaxName: 10,
				Assigned: func(_ encoding.UIDKind, name string, u encoding.UID) {
					told = append(told, fmt.Sprint(name, "=", encoding.UIDNumber(u)))
				}})
			if _, err := d.Assign(t.Context(), encoding.UIDTagV, "old"); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Assign(t.Context(), encoding.UIDTagV, "busy"); err != nil {
				t.Fatal(err)
			}
			w, err := d.Withdraw(t.Context(), encoding.UIDTagV, "busy")
			if err != nil {
				t.Fatal(err)
			}
			defer w.End()
			d.Drop()

			names := []string{"old", "日本", "ab日", "longer than ten", "busy", ""}
			want := []string{"old=1", "busy=2"}
			for i := range 2*preparedAtOnce + 2 {
				names = append(names, fmt.Sprint("v", i), fmt.Sprint("v", i/2)) // many come twice
				want = append(want, fmt.Sprintf("v%d=%d", i, i+3))
			}
			names = append(names, "just ten b")
			want = append(want, fmt.Sprintf("just ten b=%d", len(want)+1))
			Staged{d}.Prepare(t.Context(), encoding.UIDTagV, names)
			if diff := cmp.Diff(want, told); diff != "" {
				t.Error(diff)
			}
			if stats, n := d.Stats(), int64(len(want)); stats != (Stats{Assigned: n}) {
				t.Errorf("%+v, want %d assigned", stats, n)
			}

			forward, reverse := tableContents(t, s)
			sound(t, forward, reverse)
			if len(forward) != len(want) || len(reverse) != len(want) {
				t.Errorf("%d forward and %d reverse mappings, want %d of each", len(forward), len(reverse), len(want))
			}
			if !d.Cached(encoding.UIDTagV, "v1") || d.Cached(encoding.UIDTagV, "busy") {
				t.Error("v1 is not cached, or a name is that is being changed")
			}
		})
	}
}

// No name stays claimed: not those prepared, nor those among them that had a UID already.
func TestPrepare_claims(t *testing.T) {
	t.Parallel()
	s := newMemory()
	if _, err := dictionary(s).Assign(t.Context(), encoding.UIDTagV, "old"); err != nil {
		t.Fatal(err)
	}
	d := dictionary(s)
	Staged{d}.Prepare(t.Context(), encoding.UIDTagV, []string{"old", "new", "newer"})
	if len(d.preparing.names) > 0 {
		t.Errorf("claimed: %v, want none", d.preparing.names)
	}
	if got := d.Stats().Assigned; got != 2 {
		t.Errorf("%d UIDs assigned, want 2", got)
	}
}

// A number that is in use though it was never counted is left to its user.
func TestPrepare_numberInUse(t *testing.T) {
	s := newMemory()
	put(t, s, encoding.UIDMapping{Kind: encoding.UIDTagV, Name: "restored", UID: encoding.UID{0, 0, 2}}, true, true)
	d := dictionary(s)
	Staged{d}.Prepare(t.Context(), encoding.UIDTagV, []string{"a", "b", "c"})
	for name, want := range map[string]uint64{"restored": 2, "a": 1, "c": 3, "b": 4} {
		if name == "b" && d.Cached(encoding.UIDTagV, name) {
			t.Error("b is cached, want no UID for it yet")
		}
		if u, err := d.Assign(t.Context(), encoding.UIDTagV, name); err != nil || encoding.UIDNumber(u) != want {
			t.Errorf("%s: %s, %v, want %d", name, u, err, want)
		}
	}
	forward, reverse := tableContents(t, s)
	sound(t, forward, reverse)
}

// The last UIDs of a kind are given out; what is left then is refused by Assign.
func TestPrepare_full(t *testing.T) {
	schema := encoding.DefaultSchema()
	schema.TagVWidth = 1
	d := New(Config{Store: open(t), Table: table, Schema: schema})
	var names []string
	for i := range 300 {
		names = append(names, fmt.Sprint("v", i))
	}
	Staged{d}.Prepare(t.Context(), encoding.UIDTagV, names)
	if got := d.Stats().Assigned; got != 255 {
		t.Errorf("%d UIDs assigned, want 255", got)
	}
	if u, err := d.Assign(t.Context(), encoding.UIDTagV, "v254"); err != nil || encoding.UIDNumber(u) != 255 {
		t.Errorf("v254: %s, %v, want the last UID", u, err)
	}
	var full *FullError
	if _, err := d.Assign(t.Context(), encoding.UIDTagV, "v255"); !errors.As(err, &full) {
		t.Errorf("v255: %v, want that all UIDs are assigned", err)
	}
}

// Writers that prepare the same names, in orders of their own and in gateways of their own, and
// then assign them, get the same UIDs.
func TestPrepare_eightDictionaries(t *testing.T) {
	const many = 2000
	s, seed := newMemory(), seedtest.Of(t)
	var shared, given = dictionary(s), [8][many]string{}
	var work sync.WaitGroup
	for w := range given {
		d := shared // half of the writers are of one gateway
		if w%2 == 0 {
			d = dictionary(s)
		}
		work.Go(func() {
			order := rand.New(rand.NewPCG(seed, uint64(w))).Perm(many)
			for part := range slices.Chunk(order, 300) {
				var names []string
				for _, i := range part {
					names = append(names, fmt.Sprint("name", i))
				}
				Staged{d}.Prepare(context.Background(), encoding.UIDMetric, names)
				for _, i := range part {
					u, err := Staged{d}.Assign(context.Background(), encoding.UIDMetric, fmt.Sprint("name", i))
					if err != nil {
						t.Errorf("name%d: %v", i, err)
					}
					given[w][i] = string(u)
				}
			}
		})
	}
	work.Wait()

	forward, reverse := tableContents(t, s)
	sound(t, forward, reverse)
	for w := range given {
		for i, u := range given[w] {
			if want := forward[fmt.Sprint("metrics name", i)]; u != want {
				t.Fatalf("writer %d has UID % X for name%d, the table % X", w, u, i, want)
			}
		}
	}
}

// A gateway counts numbers once for names that several of its connections prepare.
func TestPrepare_oneDictionary(t *testing.T) {
	d := dictionary(newMemory())
	var names []string
	for i := range 3 * preparedAtOnce {
		names = append(names, fmt.Sprint("name", i))
	}
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() { Staged{d}.Prepare(context.Background(), encoding.UIDTagV, names) })
	}
	work.Wait()
	if got, want := d.Stats(), (Stats{Assigned: int64(len(names))}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// gated is a store whose first increment waits.
type gated struct {
	store.Store
	begun         atomic.Bool
	reached, open chan struct{}
}

func (*gated) Features() store.Features { return store.Features{} }

func (g *gated) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	if !g.begun.Swap(true) {
		close(g.reached)
		<-g.open
	}
	return g.Store.Increment(ctx, table, cell, delta)
}

// Who prepares names waits for others that prepare the same ones, and for no others.
func TestPrepare_sideBySide(t *testing.T) {
	g := &gated{Store: newMemory(), reached: make(chan struct{}), open: make(chan struct{})}
	d := dictionary(g)
	var work sync.WaitGroup
	work.Go(func() { Staged{d}.Prepare(context.Background(), encoding.UIDTagV, []string{"a", "b"}) })
	<-g.reached
	// Its own names are released before it waits for b, so the third waits for nobody.
	work.Go(func() { Staged{d}.Prepare(context.Background(), encoding.UIDTagV, []string{"b", "c", "d"}) })
	for !d.Cached(encoding.UIDTagV, "c") || !d.Cached(encoding.UIDTagV, "d") {
		Staged{d}.Prepare(t.Context(), encoding.UIDTagV, []string{"c", "d"})
	}
	if d.Cached(encoding.UIDTagV, "b") {
		t.Error("b is cached while its number is being counted")
	}
	close(g.open)
	work.Wait()
	if got, want := d.Stats(), (Stats{Assigned: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Writers that die while they prepare names, after any cell, leave no forward mapping without its
// reverse mapping, and the next one assigns all names.
func TestPrepare_crash(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newMemory()
		first := map[string]string{}
		for life := range rapid.IntRange(1, 6).Draw(rt, "lives") {
			var names []string
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, 9), 2, 8).Draw(rt, fmt.Sprint("names", life)) {
				names = append(names, fmt.Sprint("n", i))
			}
			d := dictionary(&dying{
				Store:  s,
				left:   rapid.IntRange(1, 24).Draw(rt, fmt.Sprint("operations", life)),
				doLast: rapid.Bool().Draw(rt, fmt.Sprint("doLast", life)),
			})
			Staged{d}.Prepare(t.Context(), encoding.UIDTagK, names)

			forward, reverse := tableContents(t, s)
			sound(rt, forward, reverse)
			for key, u := range forward {
				if old, ok := first[key]; ok && old != u {
					rt.Errorf("%s was % X and is % X", key, old, u)
				}
				first[key] = u
			}
		}

		d := dictionary(s)
		for i := range 10 {
			u, err := d.Assign(t.Context(), encoding.UIDTagK, fmt.Sprint("n", i))
			if old, ok := first[fmt.Sprint("tagk n", i)]; err != nil || ok && old != string(u) {
				rt.Errorf("n%d was % X and is % X, %v", i, old, u, err)
			}
		}
	})
}
