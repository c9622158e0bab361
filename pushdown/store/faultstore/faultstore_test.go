package faultstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
	"downpour/pushdown/store/open/opentest"
	"downpour/pushdown/store/pebble"
	"downpour/pushdown/store/storetest"
)

var errFault = errors.New("fault")

// embedded is a store with tables a and b of ten rows each.
func embedded(t *testing.T) *pebble.Store {
	t.Helper()
	s := opentest.Embedded(t, opentest.Table("a", "t"), opentest.Table("b", "t"))
	for _, table := range []string{"a", "b"} {
		for i := range 10 {
			if err := s.Apply(t.Context(), table, put(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

func put(row string) []store.Mutation {
	return []store.Mutation{{Row: []byte(row), Family: "t", Value: []byte("v")}}
}

// scan reads a table row by row.
func scan(s store.Store, table string) (rows int, err error) {
	sc, err := s.Scan(context.Background(), store.Scan{Table: table, BlockBytes: 1})
	if err != nil {
		return 0, err
	}
	defer sc.Close()
	for {
		block, err := sc.Next()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			if _, again := sc.Next(); !errors.Is(again, err) {
				return rows, fmt.Errorf("next after %w gave %v", err, again)
			}
			return rows, err
		}
		rows += len(block)
	}
}

// Without rules the wrapper is a store like any other.
func TestConformance(t *testing.T) {
	storetest.RunShare(t, 0, func(t *testing.T) store.Store {
		s, err := pebble.Open("db", pebble.Options{FS: vfs.NewMem()})
		if err != nil {
			t.Fatal(err)
		}
		return faultstore.New(s)
	})
}

// listener is a store that notes what it is asked.
type listener struct {
	*pebble.Store
	heard string
}

func (l *listener) Features() store.Features {
	f := l.Store.Features()
	f.Versioner = store.VersionFunc(l.Version)
	return f
}

func (l *listener) Get(_ context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	l.heard = fmt.Sprint(table, family, keys)
	return []store.Row{{Key: []byte("r")}}, errFault
}

func (l *listener) Regions(_ context.Context, table string, start, stop []byte) ([]store.Region, error) {
	l.heard = fmt.Sprint(table, start, stop)
	return []store.Region{{Start: []byte("r")}}, errFault
}

func (l *listener) Apply(_ context.Context, table string, mutations []store.Mutation) error {
	l.heard = fmt.Sprint(table, mutations)
	return errFault
}

func (l *listener) Increment(_ context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	l.heard = fmt.Sprint(table, cell, delta)
	return 7, errFault
}

func (l *listener) CompareAndPut(_ context.Context, table string, cell store.CellKey,
	expected, value []byte) (bool, error) {
	l.heard = fmt.Sprint(table, cell, expected, value)
	return true, errFault
}

func (l *listener) Replace(_ context.Context, table, family string,
	changes []store.Replacement) ([]store.Outcome, error) {
	l.heard = fmt.Sprint(table, family, changes)
	return make([]store.Outcome, 2), errFault
}

func (l *listener) Version(_ context.Context, table, family string, r store.KeyRange) (string, error) {
	l.heard = fmt.Sprint(table, family, r)
	return "v", errFault
}

// Without rules the wrapped store is asked what the wrapper is asked, and its answer and error are returned.
func TestPassed(t *testing.T) {
	cell := store.CellKey{Row: []byte("c"), Family: "t", Qualifier: []byte("q")}
	keys := store.KeyRange{Start: []byte("a"), Stop: []byte("b")}
	changes := []store.Replacement{{Read: store.Row{Key: []byte("1")}}, {Read: store.Row{Key: []byte("2")}}}
	inner := &listener{Store: embedded(t)}
	ask := func(s store.Store) (said []string) {
		ctx := t.Context()
		say := func(answer any, err error) { said = append(said, fmt.Sprint(inner.heard, answer, err)) }
		rows, err := s.Get(ctx, "a", "t", [][]byte{[]byte("x"), []byte("y")})
		say(rows, err)
		regions, err := s.Regions(ctx, "a", []byte("x"), []byte("y"))
		say(regions, err)
		say(nil, s.Apply(ctx, "a", put("x")))
		n, err := s.Increment(ctx, "a", cell, 3)
		say(n, err)
		ok, err := s.CompareAndPut(ctx, "a", cell, []byte("old"), []byte("new"))
		say(ok, err)
		outcomes, err := s.Replace(ctx, "a", "t", changes)
		say(outcomes, err)
		version, err := storetest.Version(ctx, s.Features().Versioner, "a", "t", keys)
		say(version, err)
		return said
	}
	if d := cmp.Diff(ask(inner), ask(faultstore.New(inner))); d != "" {
		t.Errorf("-wrapped +wrapper\n%s", d)
	}
}

// No call goes past the rules: of what the wrapped store can do nothing is handed out but that
// which has rules, and a watch, which reads nothing.
func TestFeatures(t *testing.T) {
	features := reflect.ValueOf(faultstore.New(embedded(t)).Features())
	for i := range features.NumField() {
		name := features.Type().Field(i).Name
		if got, want := !features.Field(i).IsZero(), name == "Versioner" || name == "Watch"; got != want {
			t.Errorf("%s is there: %t, want %t", name, got, want)
		}
	}
}

// Rules can be replaced, and scanners are counted until they are closed.
func TestSet(t *testing.T) {
	s := faultstore.New(embedded(t), faultstore.Rule{Op: faultstore.Scan, Err: errFault})
	if _, err := s.Scan(t.Context(), store.Scan{Table: "a"}); !errors.Is(err, errFault) || s.OpenScans() != 0 {
		t.Errorf("got %v and %d open scans, want %v and none", err, s.OpenScans(), errFault)
	}
	s.Set()
	sc, err := s.Scan(t.Context(), store.Scan{Table: "a"})
	if err != nil || s.OpenScans() != 1 {
		t.Fatalf("got %v and %d open scans, want one", err, s.OpenScans())
	}
	sc.Close()
	sc.Close()
	if n := s.OpenScans(); n != 0 {
		t.Errorf("got %d open scans after it was closed twice, want none", n)
	}
}

func TestNthNext(t *testing.T) {
	// The first scan of table a calls Next 11 times, for 10 rows and the end; call 14 is the third
	// of its second scan.
	s := faultstore.New(embedded(t), faultstore.Rule{Op: faultstore.Next, Table: "a", Nth: 14, Err: errFault})
	for i, want := range []struct {
		table string
		rows  int
		err   error
	}{{"a", 10, nil}, {"b", 10, nil}, {"a", 2, errFault}, {"a", 10, nil}} {
		if rows, err := scan(s, want.table); rows != want.rows || !errors.Is(err, want.err) {
			t.Errorf("scan %d of %q: %d rows, %v, want %d, %v", i, want.table, rows, err, want.rows, want.err)
		}
	}
	if diff := cmp.Diff([]int{1}, s.Hits()); diff != "" {
		t.Error(diff)
	}
}

// A rule makes calls of its operation fail and no others, before they have done their work or
// after it.
func TestEveryCall(t *testing.T) {
	cell := store.CellKey{Row: []byte("c"), Family: "t"}
	calls := map[faultstore.Op]func(s store.Store) error{
		faultstore.Scan:    func(s store.Store) error { _, err := scan(s, "a"); return err },
		faultstore.Next:    func(s store.Store) error { _, err := scan(s, "a"); return err },
		faultstore.Get:     func(s store.Store) error { _, err := s.Get(t.Context(), "a", "", nil); return err },
		faultstore.Regions: func(s store.Store) error { _, err := s.Regions(t.Context(), "a", nil, nil); return err },
		faultstore.Apply:   func(s store.Store) error { return s.Apply(t.Context(), "a", put("new")) },
		faultstore.Increment: func(s store.Store) error {
			_, err := s.Increment(t.Context(), "a", cell, 1)
			return err
		},
		faultstore.CompareAndPut: func(s store.Store) error {
			_, err := s.CompareAndPut(t.Context(), "a", cell, nil, []byte("12345678"))
			return err
		},
	}
	for op, do := range calls {
		for _, after := range []bool{false, true} {
			inner := embedded(t)
			before, _ := scan(inner, "a")
			s := faultstore.New(inner, faultstore.Rule{Op: op, Table: "a", Err: errFault, After: after})
			if err := do(s); !errors.Is(err, errFault) {
				t.Errorf("%s, after %v: %v, want the fault", op, after, err)
			}
			writes := op == faultstore.Apply || op == faultstore.Increment || op == faultstore.CompareAndPut
			if now, _ := scan(inner, "a"); (now > before) != (writes && after) {
				t.Errorf("%s, after %v: %d rows became %d, want more only after a write was done", op, after, before,
					now)
			}
			for other, do := range calls {
				if err := do(s); other != op && !(op == faultstore.Next && other == faultstore.Scan) &&
					!(op == faultstore.Scan && other == faultstore.Next) && err != nil {
					t.Errorf("rule for %s: %s fails too: %v", op, other, err)
				}
			}
		}
	}
}

// The same seed fails the same calls.
func TestChance(t *testing.T) {
	run := func(seed uint64) (failed []int) {
		s := faultstore.New(embedded(t), faultstore.Rule{Op: faultstore.Apply, Chance: 0.3, Seed: seed, Err: errFault})
		for i := range 100 {
			if s.Apply(t.Context(), "a", put("r")) != nil {
				failed = append(failed, i)
			}
		}
		return failed
	}
	first := run(1)
	if len(first) < 10 || len(first) > 60 {
		t.Errorf("%d of 100 calls failed, want about 30", len(first))
	}
	if diff := cmp.Diff(first, run(1)); diff != "" {
		t.Errorf("same seed: %s", diff)
	}
	if cmp.Equal(first, run(2)) {
		t.Error("another seed fails the same calls")
	}
}

// nothing is a store that does nothing, for tests of delays with a simulated clock.
type nothing struct{ store.Store }

func (nothing) Features() store.Features { return store.Features{} }

func (nothing) Apply(context.Context, string, []store.Mutation) error { return nil }

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := faultstore.New(nothing{}, faultstore.Rule{Op: faultstore.Apply, Delay: time.Minute},
			faultstore.Rule{Nth: 2, Err: errFault})
		start := time.Now()
		if err := s.Apply(t.Context(), "a", nil); err != nil || time.Since(start) != time.Minute {
			t.Errorf("after %v: %v, want a minute and no error", time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if err := s.Apply(ctx, "a", nil); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(start) != time.Second {
			t.Errorf("after %v: %v, want the deadline after a second", time.Since(start), err)
		}
	})
}
