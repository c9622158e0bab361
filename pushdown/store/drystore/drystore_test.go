package drystore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
	"downpour/pushdown/store/pebble"
)

// Whatever is done to a Store, single cells and rows are afterwards as in a store to which the same was done, every
// answer is the same, and the store below it stays as it was.
func TestDryStore(t *testing.T) {
	ctx := t.Context()
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	below, real := inMemory(t), inMemory(t)
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	key := func(row, qualifier string) store.CellKey {
		return store.CellKey{Row: []byte(row), Family: "f", Qualifier: []byte(qualifier)}
	}
	anyCell := func() store.CellKey { return key(pick("a", "b", "c"), pick("p", "q")) }
	put := func(c store.CellKey, value string) []store.Mutation {
		return []store.Mutation{{Row: c.Row, Family: c.Family, Qualifier: c.Qualifier, Value: []byte(value)}}
	}
	for _, c := range []store.CellKey{key("a", "p"), key("b", "q")} {
		for _, st := range []store.Store{below, real} {
			if err := st.Apply(ctx, "t", put(c, "before")); err != nil {
				t.Fatal(err)
			}
		}
	}
	was := dump(t, below)

	dry := New(below)
	f := dry.Features()
	f.Marker = nil // it only reads
	if !reflect.ValueOf(f).IsZero() {
		t.Errorf("a dry run hands out what the store can do: %+v", f)
	}
	for range 3000 {
		c := anyCell()
		var do func(st store.Store) string
		switch rng.IntN(6) {
		case 0:
			old, value := pick("", "x", "y", "before"), pick("x", "y")
			do = func(st store.Store) string {
				ok, err := st.CompareAndPut(ctx, "t", c, []byte(old), []byte(value))
				return fmt.Sprint("compare ", ok, err)
			}
		case 1:
			c.Qualifier = []byte("n") // a counter
			do = func(st store.Store) string {
				n, err := st.Increment(ctx, "t", c, 3)
				return fmt.Sprint("increment ", n, err)
			}
		case 2:
			value := pick("x", "y")
			do = func(st store.Store) string { return fmt.Sprint("put ", st.Apply(ctx, "t", put(c, value))) }
		case 3:
			kind := store.DeleteCell
			if rng.IntN(3) == 0 {
				kind = store.DeleteRow
			}
			do = func(st store.Store) string {
				return fmt.Sprint("delete ", st.Apply(ctx, "t",
					[]store.Mutation{{Kind: kind, Row: c.Row, Family: c.Family, Qualifier: c.Qualifier}}))
			}
		case 4:
			do = func(st store.Store) string {
				rows, err := st.Get(ctx, "t", pick("f"), [][]byte{[]byte("a"), []byte("b"), []byte("c")})
				return fmt.Sprint("get ", text(rows), err)
			}
		default:
			scan := store.Scan{Table: "t", Family: "f", Start: c.Row, Stop: append(bytes.Clone(c.Row), 0)}
			if rng.IntN(2) == 0 {
				scan.Columns = []store.KeyRange{{Start: c.Qualifier, Stop: append(bytes.Clone(c.Qualifier), 0)}}
			}
			do = func(st store.Store) string { return "scan " + scanned(t, st, scan) }
		}
		if got, want := do(dry), do(real); got != want {
			t.Fatalf("%s: got %s, want %s", c.Row, got, want)
		}
	}
	if diff := cmp.Diff(was, dump(t, below)); diff != "" {
		t.Errorf("the store below has changed (-was +is):\n%s", diff)
	}
	if err := dry.Apply(ctx, "t",
		[]store.Mutation{{Kind: store.Append, Row: []byte("a"), Family: "f", Qualifier: []byte("p")}}); err == nil {
		t.Error("points are appended in a dry run")
	}
}

// A table that is made here is there, and empty.
func TestStore_made(t *testing.T) {
	ctx, dry := t.Context(), New(inMemory(t))
	absent := func(st store.Store) (err error) {
		for _, e := range store.Rows(ctx, st, store.Scan{Table: "new"}) {
			err = e
		}
		_, got := st.Get(ctx, "new", "f", [][]byte{[]byte("a")})
		return errors.Join(err, got)
	}
	if err := absent(dry); !errors.Is(err, store.ErrNoTable) {
		t.Errorf("a table that is not there: got %v, want ErrNoTable", err)
	}
	if err := errors.Join(dry.CreateTable(ctx, store.TableSpec{Name: "new"}), absent(dry)); err != nil {
		t.Errorf("a table that is made: %v", err)
	}
	if there, err := dry.TableExists(ctx, "new"); !there || err != nil {
		t.Errorf("a table that is made: %v, %v", there, err)
	}
	if there, err := dry.TableExists(ctx, "other"); there || err != nil {
		t.Errorf("a table that is not there: %v, %v", there, err)
	}
}

// Of a table that is forgotten everything is taken, and nothing is there afterwards.
func TestStore_forgets(t *testing.T) {
	ctx, below := t.Context(), inMemory(t)
	forgetful := New(below, "t")
	at := store.CellKey{Row: []byte("a"), Family: "f", Qualifier: []byte("z")}
	err := forgetful.Apply(ctx, "t", []store.Mutation{
		{Kind: store.Append, Row: at.Row, Family: "f", Qualifier: at.Qualifier},
		{Row: at.Row, Family: "f", Qualifier: at.Qualifier, Value: []byte("x")},
	})
	taken, takenErr := forgetful.CompareAndPut(ctx, "t", at, []byte("as it was read"), []byte("x"))
	rows, _ := forgetful.Get(ctx, "t", "f", [][]byte{at.Row})
	if err != nil || takenErr != nil || !taken || strings.Contains(text(rows), "z") {
		t.Errorf("a forgotten table: %v, %v, %v, and then %s", err, taken, takenErr, text(rows))
	}
}

func text(rows []store.Row) (out string) {
	for _, r := range rows {
		for _, c := range r.Cells {
			out += fmt.Sprintf("%s %s=%x; ", r.Key, c.Qualifier, c.Value)
		}
	}
	return out
}

func dump(t *testing.T, st store.Store) (lines []string) {
	for row, err := range store.Rows(t.Context(), st, store.Scan{Table: "t"}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range row.Cells {
			lines = append(lines, fmt.Sprintf("%s %s=%x@%d", row.Key, c.Qualifier, c.Value, c.Timestamp))
		}
	}
	return lines
}

// inMemory returns an embedded store with a table.
func inMemory(t *testing.T) *pebble.Store { return opentest.Embedded(t, opentest.Table("t", "f")) }

func scanned(t *testing.T, st store.Store, scan store.Scan) (out string) {
	for row, err := range store.Rows(t.Context(), st, scan) {
		if err != nil {
			t.Fatal(err)
		}
		out += text([]store.Row{row})
	}
	return out
}
