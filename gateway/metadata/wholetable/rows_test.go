package wholetable_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"downpour/encoding"
	"downpour/gateway/metadata/tables/tablestest"
	"downpour/gateway/metadata/wholetable"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
	"downpour/pushdown/store/open/opentest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// filled returns a store whose table of names has n rows, each with an empty cell and one that
// holds its key.
func filled(t *testing.T, n int) (s store.Store, keys []string) {
	t.Helper()
	s = opentest.Embedded(t, tablestest.Specs(encoding.DefaultSchema())...)
	var all []store.Mutation
	for i := range n {
		key := fmt.Sprintf("%05d", i)
		keys = append(keys, key)
		for _, value := range []string{"", key} {
			all = append(all, store.Mutation{
				Row:       []byte(key),
				Family:    "name",
				Qualifier: []byte("of " + value),
				Value:     []byte(value),
			})
		}
	}
	if err := s.Apply(t.Context(), "tsdb-uid", all); err != nil {
		t.Fatal(err)
	}
	return s, keys
}

// Rows yields every row once, and calls progress before it yields each tenth row.
func TestRows(t *testing.T) {
	s, keys := filled(t, 25)
	var rows, told []string
	progress := func(n int) { told = append(told, fmt.Sprintf("%d after %d", n, len(rows))) }
	for row, err := range wholetable.Counted(t.Context(), s,
		store.Scan{Table: "tsdb-uid", Family: "name"}, 10, progress) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, string(row.Key))
	}
	if diff := cmp.Diff([][]string{keys, {"10 after 9", "20 after 19"}}, [][]string{rows, told}); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// An error of the store ends the rows.
func TestRows_error(t *testing.T) {
	s, _ := filled(t, 3)
	broken := errors.New("broken")
	var got error
	faults := faultstore.New(s, faultstore.Rule{Nth: 1, Err: broken})
	for _, err := range wholetable.Counted(t.Context(), faults,
		store.Scan{Table: "tsdb-uid", Family: "name"}, 1, func(int) { t.Error("progress of no row") }) {
		got = err
	}
	if !errors.Is(got, broken) {
		t.Errorf("got %v, want the store's error", got)
	}
}

// Lookup finds rows by keys in any order, also more than one read takes, repeated or missing ones
// included. An empty value is not the same as no cell.
func TestLookup(t *testing.T) {
	s, keys := filled(t, 2300)
	wanted := append(slices.Clone(keys), "none", keys[0], "")
	slices.Reverse(wanted)
	cells, err := wholetable.Lookup(t.Context(), s, "tsdb-uid", "name", wanted)
	if err != nil || len(cells) != 2*len(keys) {
		t.Fatalf("%d cells, %v; want %d", len(cells), err, 2*len(keys))
	}
	for _, k := range keys {
		if empty := cells.Value(k, "of "); string(cells.Value(k, "of "+k)) != k || empty == nil || len(empty) > 0 {
			t.Errorf("row %s: %q, %q", k, cells.Value(k, "of "+k), empty)
		}
	}
	if cells.Value("none", "of ") != nil || wanted[0] != "" || wanted[1] != keys[0] {
		t.Errorf("a row that is not there has a value, or the order of the keys was changed: %q", wanted[:2])
	}
}
