package uid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tableContents returns all mappings of the UID table: forward by kind and name, reverse by
// kind and UID.
func tableContents(t testing.TB, s store.Reader) (forward, reverse map[string]string) {
	t.Helper()
	sc, err := s.Scan(context.Background(), store.Scan{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	forward, reverse = map[string]string{}, map[string]string{}
	for {
		rows, err := sc.Next()
		if err == io.EOF {
			return forward, reverse
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if bytes.Equal(r.Key, encoding.CounterRow) {
				continue
			}
			for _, c := range r.Cells {
				if kind := string(c.Qualifier); string(c.Family) == encoding.FamilyID {
					forward[kind+" "+string(r.Key)] = string(c.Value)
				} else {
					reverse[kind+" "+string(r.Key)] = string(c.Value)
				}
			}
		}
	}
}

type fataler interface {
	Helper()
	Errorf(string, ...any)
}

// sound checks that every forward mapping has its reverse mapping, and that no two names have
// one UID.
func sound(t fataler, forward, reverse map[string]string) {
	t.Helper()
	owners := map[string]string{}
	for key, u := range forward {
		kind, name, _ := strings.Cut(key, " ")
		if got := reverse[kind+" "+u]; got != name {
			t.Errorf("%s leads to UID % X, whose name is %q", key, u, got)
		}
		if other, ok := owners[kind+u]; ok {
			t.Errorf("% X is the UID of %s and %s", u, name, other)
		}
		owners[kind+u] = name
	}
}

// assignAll lets eight writers assign the same names, each in an order of its own and with the
// dictionary that writer returns for it, and checks the UIDs that they got.
func assignAll(t *testing.T, names int, s store.Store, writer func(int) *Dictionary) {
	t.Helper()
	seed := seedtest.Of(t)
	given := make([][]string, 8)
	var wg sync.WaitGroup
	for w := range given {
		given[w] = make([]string, names)
		d := writer(w)
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			for _, i := range rand.New(rand.NewPCG(seed, uint64(w))).Perm(names) {
				u, err := d.Assign(ctx, encoding.UIDMetric, fmt.Sprint("name", i))
				if err != nil {
					t.Errorf("name%d: %v", i, err)
					return
				}
				given[w][i] = string(u)
			}
		})
	}
	wg.Wait()
	forward, reverse := tableContents(t, s)
	sound(t, forward, reverse)
	if len(forward) != names {
		t.Errorf("%d names have a UID, want %d", len(forward), names)
	}
	for w := range given {
		for i, u := range given[w] {
			if want := forward[fmt.Sprint("metrics name", i)]; u != want {
				t.Fatalf("writer %d has UID % X for name%d, the table % X", w, u, i, want)
			}
		}
	}
}

// Eight concurrent writers that share a dictionary, as in one gateway, lose no UID.
func TestAssign_oneDictionary(t *testing.T) {
	s := newMemory()
	d := dictionary(s)
	assignAll(t, 20_000, s, func(int) *Dictionary { return d })
	if got, want := d.Stats(), (Stats{Assigned: 20_000}); got != want {
		t.Errorf("%+v, want %+v", got, want) // one dictionary assigns a name once: no UID leaks
	}
}

// Eight writers with a dictionary each, as in eight gateways, assign every name once.
func TestAssign_eightDictionaries(t *testing.T) {
	s := newMemory()
	var ds [8]*Dictionary
	assignAll(t, 20_000, s, func(w int) *Dictionary { ds[w] = dictionary(s); return ds[w] })
	var sum Stats
	for _, d := range ds {
		sum.Assigned += d.Stats().Assigned
		sum.Leaked += d.Stats().Leaked
		sum.Conflicts += d.Stats().Conflicts
	}
	if sum.Assigned != 20_000 || sum.Conflicts != 0 {
		t.Errorf("%+v, want 20000 assigned and no conflict", sum)
	}
	t.Logf("%d UIDs leaked by lost races", sum.Leaked)
}

// dying is the store of a process that dies: of its next left operations the last one fails,
// done or not done as doLast says, and all later ones fail undone.
type dying struct {
	store.Store
	mu     sync.Mutex // one operation at a time
	left   int
	doLast bool
}

func (*dying) Features() store.Features { return store.Features{} }

var errDead = errors.New("this process has died")

func die[T any](d *dying, op func() (T, error)) (none T, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left--
	if d.left == 0 && d.doLast {
		op()
	}
	if d.left <= 0 {
		return none, errDead
	}
	return op()
}

func (d *dying) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	return die(d, func() ([]store.Row, error) { return d.Store.Get(ctx, table, family, keys) })
}

func (d *dying) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	return die(d, func() (int64, error) { return d.Store.Increment(ctx, table, cell, delta) })
}

func (d *dying) CompareAndPut(ctx context.Context, table string, cell store.CellKey,
	expected, value []byte) (bool, error) {
	return die(d, func() (bool, error) { return d.Store.CompareAndPut(ctx, table, cell, expected, value) })
}

// Writers that die one after the other, at any step, leave no forward mapping without its
// reverse mapping, and the next writer assigns and finds names as usual.
func TestAssign_crash(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newMemory()
		first := map[string]string{}
		for life := range rapid.IntRange(1, 6).Draw(rt, "lives") {
			d := dictionary(&dying{
				Store:  s,
				left:   rapid.IntRange(1, 12).Draw(rt, fmt.Sprint("operations", life)),
				doLast: rapid.Bool().Draw(rt, fmt.Sprint("doLast", life)),
			})
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, 4), 1, 4).Draw(rt, fmt.Sprint("names", life)) {
				name := fmt.Sprint("n", i)
				u, err := d.Assign(t.Context(), encoding.UIDTagK, name)
				if err != nil {
					if !errors.Is(err, errDead) {
						rt.Fatal(err)
					}
					break
				}
				if old, ok := first[name]; ok && old != string(u) {
					rt.Errorf("%s was % X and is % X", name, old, u)
				}
				first[name] = string(u)
			}
			forward, reverse := tableContents(t, s)
			sound(rt, forward, reverse)
		}
		d := dictionary(s)
		for name, u := range first {
			if got, err := d.Assign(t.Context(), encoding.UIDTagK, name); err != nil || string(got) != u {
				rt.Errorf("%s was % X and is % X, %v", name, u, got, err)
			}
		}
	})
}

func put(t *testing.T, s store.Store, m encoding.UIDMapping, forward, reverse bool) {
	t.Helper()
	var muts []store.Mutation
	add := func(c encoding.Cell, err error) {
		if err != nil {
			t.Fatal(err)
		}
		muts = append(muts, store.Mutation{Row: c.Row, Family: c.Family, Qualifier: c.Qualifier, Value: c.Value})
	}
	if forward {
		add(m.Forward())
	}
	if reverse {
		add(m.Reverse())
	}
	if err := s.Apply(t.Context(), table, muts); err != nil {
		t.Fatal(err)
	}
}

// In a damaged table two names lead to one UID. The name that the UID does not lead back to can
// be neither resolved nor assigned, and the conflict is counted and logged.
func TestResolve_conflict(t *testing.T) {
	s := open(t)
	u := encoding.UID{0, 0, 7}
	put(t, s, encoding.UIDMapping{Kind: encoding.UIDTagV, Name: "right", UID: u}, true, true)
	put(t, s, encoding.UIDMapping{Kind: encoding.UIDTagV, Name: "wrong", UID: u}, true, false)
	var log bytes.Buffer
	d := New(Config{
		Store:  s,
		Table:  table,
		Schema: encoding.DefaultSchema(),
		Log:    slog.New(slog.NewTextHandler(&log, nil)),
	})
	if got, err := d.Resolve(t.Context(), encoding.UIDTagV, "right"); err != nil || !bytes.Equal(got, u) {
		t.Errorf("right: got %s, %v, want 000007", got, err)
	}
	var conflict *ConflictError
	if got, err := d.Assign(t.Context(), encoding.UIDTagV, "wrong"); !errors.As(err, &conflict) {
		t.Errorf("wrong: %s, %v, want a conflict", got, err)
	} else if diff := cmp.Diff(&ConflictError{encoding.UIDTagV, u, "wrong", "right"}, conflict); diff != "" {
		t.Error(diff)
	}
	if _, err := dictionary(s).ResolveMany(t.Context(), encoding.UIDTagV,
		[]string{"wrong", "right"}); !errors.As(err, &conflict) {
		t.Errorf("both at once: %v, want a conflict", err)
	}
	if d.Stats().Conflicts != 1 || !strings.Contains(log.String(), "name=wrong owner=right") {
		t.Errorf("%+v, log %q, want one conflict and a line with both names", d.Stats(), log.String())
	}
}

// After a rename by another process the new name has the UID, and the cached old name has none.
func TestResolve_renamed(t *testing.T) {
	s := open(t)
	d := dictionary(s)
	u, err := d.Assign(t.Context(), encoding.UIDMetric, "old")
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, encoding.UIDMapping{Kind: encoding.UIDMetric, Name: "new", UID: u}, true, true)
	old := store.Mutation{
		Kind:      store.DeleteCell,
		Row:       []byte("old"),
		Family:    encoding.FamilyID,
		Qualifier: encoding.UIDMetric.Qualifier(),
	}
	if err := s.Apply(t.Context(), table, []store.Mutation{old}); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Resolve(t.Context(), encoding.UIDMetric, "new"); err != nil || !bytes.Equal(got, u) {
		t.Errorf("new: %s, %v, want %s", got, err, u)
	}
	if got, err := d.Resolve(t.Context(), encoding.UIDMetric, "old"); !isNoName(err) {
		t.Errorf("old: got %s, %v, want no such name", got, err)
	}
	if name, err := d.Name(t.Context(), encoding.UIDMetric, u); name != "new" || err != nil {
		t.Errorf("%s: got %q, %v, want new", u, name, err)
	}
}

// ResolveMany finds more names than one read of the table holds, and leaves out those without
// a UID.
func TestResolveMany(t *testing.T) {
	s := open(t)
	d := dictionary(s)
	var names []string
	for i := range 2*namesPerRead + 10 {
		names = append(names, fmt.Sprint("v", i))
		put(t, s, encoding.UIDMapping{
			Kind: encoding.UIDTagV,
			Name: names[i],
			UID:  encoding.UID{1, byte(i >> 8), byte(i)},
		}, true, true)
	}
	for range 2 { // the second time from the cache
		got, err := d.ResolveMany(t.Context(), encoding.UIDTagV, append(names, "unknown", "", "日本", "v0"))
		if err != nil || len(got) != len(names) || got["v258"].String() != "010102" {
			t.Errorf("%d of %d found, v258 is %s, %v, want all and 010102", len(got), len(names), got["v258"], err)
		}
	}
}

func TestResolve_wrongWidth(t *testing.T) {
	s := open(t)
	put(t, s, encoding.UIDMapping{Kind: encoding.UIDMetric, Name: "m", UID: encoding.UID{0, 0, 0, 1}}, true, true)
	if _, err := dictionary(s).Resolve(t.Context(), encoding.UIDMetric, "m"); err == nil ||
		!strings.Contains(err.Error(), "4 bytes, want 3") {
		t.Errorf("a UID of 4 bytes: got %v, want an error that names both widths", err)
	}
}

// Enumerate lists names with a prefix, and reports whether it has listed all of them.
func TestEnumerate(t *testing.T) {
	s := open(t)
	d := dictionary(s)
	for i := range 5 {
		put(t, s, encoding.UIDMapping{
			Kind: encoding.UIDTagV,
			Name: fmt.Sprint("v", i),
			UID:  encoding.UID{0, 0, byte(i + 1)},
		}, true, true)
		put(t, s, encoding.UIDMapping{
			Kind: encoding.UIDTagK,
			Name: fmt.Sprint("v", i),
			UID:  encoding.UID{0, 0, byte(9 - i)},
		}, true, true)
	}
	f := func(prefix string, limit, want int, wantComplete bool) {
		t.Helper()
		got, complete, err := d.Enumerate(t.Context(), encoding.UIDTagV, prefix, limit)
		if err != nil || len(got) != want || complete != wantComplete {
			t.Errorf("%q up to %d: %v, complete %t, %v; want %d, %t", prefix, limit, got, complete, err, want,
				wantComplete)
		}
		for i, e := range got {
			if len(prefix) < 2 && (e.Name != fmt.Sprint("v", i) || e.UID[2] != byte(i+1)) {
				t.Errorf("entry %d: %v", i, e)
			}
		}
	}
	f("", 10, 5, true)
	f("", 5, 5, true)
	f("v", 4, 4, false)
	f("v3", 1, 1, true)
	f("x", 0, 0, true)
}

// Assign retries a store that fails until the name has a UID or the caller gives up.
func TestAssign_unavailable(t *testing.T) {
	s := &flaky{Store: open(t), rnd: rand.New(rand.NewPCG(1, 2))}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for i := range 100 { // one in ten calls fails, before or after
		if _, err := dictionary(s).Assign(ctx, encoding.UIDTagV, fmt.Sprint("v", i)); err != nil {
			t.Fatal(err)
		}
	}
	forward, reverse := tableContents(t, s)
	sound(t, forward, reverse)
	gone, stop := context.WithCancel(t.Context())
	stop()
	unreachable := down{s, make(chan struct{})}
	defer close(unreachable.over) // the assignment outlives its caller
	if _, err := dictionary(unreachable).Assign(gone, encoding.UIDTagV, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that has left: got %v, want that its context has ended", err)
	}
}

// down is a store that answers no read until over is closed, and then fails it.
type down struct {
	store.Store
	over chan struct{}
}

func (down) Features() store.Features { return store.Features{} }

func (d down) Get(context.Context, string, string, [][]byte) ([]store.Row, error) {
	<-d.over
	return nil, errDead
}
