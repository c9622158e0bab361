// Package storetest is the conformance suite of store.Store. Both stores of Downpour
// pass Run. Code that uses the interface may rely on what is tested here, and on
// nothing else.
//
// The suite knows neither store. Each test creates its own table, with families t, id
// and name, under a name that no other run uses, so that the suite may run against a
// cluster that holds other tables.
package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/pushdown/store"
)

// patience bounds every test of the suite: a store that hangs fails it.
const patience = 5 * time.Minute

// families are the families of the tables that the suite creates.
var families = []string{"id", "name", "t"}

var whole = flag.Bool("whole", false, "run every part of the suite on every form of every store")

// Run tests the stores that open returns, one for each part, and closes them. A store
// must have a store.Versioner as well. If open fails, it must end its test.
func Run(t *testing.T, open func(t *testing.T) store.Store) { runEvery(t, 1, 0, open) }

// RunShare runs one part in three, another third for each of the shares 0, 1 and 2: for a
// form of a store whose other form passes Run. With the flag -whole it is Run.
func RunShare(t *testing.T, share int, open func(t *testing.T) store.Store) {
	if *whole {
		Run(t, open)
		return
	}
	runEvery(t, 3, share, open)
}

// runEvery runs each n-th part of the suite, from the one of that number on.
func runEvery(t *testing.T, n, from int, open func(t *testing.T) store.Store) {
	for i := from; i < len(parts); i += n {
		t.Run(parts[i].name, func(t *testing.T) { parts[i].test(newHarness(t, open(t))) })
	}
}

// parts are the parts of the suite, one behind the other.
var parts = []struct {
	name string
	test func(*harness)
}{
	{"Tables", testTables},
	{"MissingTable", testMissingTable},
	{"RowOrder", testRowOrder},
	{"CellOrder", testCellOrder},
	{"EveryByteInValues", testValues},
	{"WholeRows", testWholeRows},
	{"Bounds", testBounds},
	{"Regions", testRegions},
	{"Ranges", testRanges},
	{"Pattern", testPattern},
	{"RangesAndPattern", testRangesAndPattern},
	{"Columns", testColumns},
	{"ColumnPrefixes", testColumnPrefixes},
	{"Since", testSince},
	{"MaxRows", testMaxRows},
	{"KeysOnly", testKeysOnly},
	{"EmptyScan", testEmptyScan},
	{"Get", testGet},
	{"Put", testPut},
	{"Append", testAppend},
	{"DeleteCell", testDeleteCell},
	{"DeleteRow", testDeleteRow},
	{"OrderInOneApply", testOrderInOneApply},
	{"Increment", testIncrement},
	{"IncrementConcurrently", testIncrementConcurrently},
	{"CompareAndPut", testCompareAndPut},
	{"CompareAndPutConcurrently", testCompareAndPutConcurrently},
	{"IncrementAll", testIncrementAll},
	{"PutAbsent", testPutAbsent},
	{"PutAbsentConcurrently", testPutAbsentConcurrently},
	{"Replace", testReplace},
	{"ReplaceConcurrently", testReplaceConcurrently},
	{"CancelledScan", testCancelledScan},
	{"CloseScanner", testCloseScanner},
	{"ScansAndWrites", testScansAndWrites},
	{"Version", testVersion},
	{"VersionRanges", testVersionRanges},
	{"Model", testModel},
	{"Close", testClose},
}

// failer is what both *testing.T and *rapid.T are.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// harness is a store and a table for one test.
type harness struct {
	*testing.T
	store.Store
	ctx   context.Context
	table string
}

// newHarness creates the test's table. The store is closed after the test.
func newHarness(t *testing.T, s store.Store) *harness {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(func() {
		cancel()
		if err := s.Close(); err != nil {
			t.Errorf("close of the store: %v", err)
		}
	})

	h := &harness{T: t, Store: s, ctx: ctx, table: uniqueTable(t)}
	if err := h.CreateTable(ctx, h.spec(h.table)); err != nil {
		t.Fatalf("create table %q: %v", h.table, err)
	}
	return h
}

// uniqueTable names a table after the test, with a random end.
func uniqueTable(t *testing.T) string {
	name := t.Name()
	end := make([]byte, 6)
	rand.Read(end)
	return "storetest-" + strings.ToLower(name[strings.LastIndexByte(name, '/')+1:]) + "-" + hex.EncodeToString(end)
}

// spec returns a table with all families.
func (h *harness) spec(name string) store.TableSpec {
	spec := store.TableSpec{Name: name}
	for _, f := range families {
		spec.Families = append(spec.Families, store.FamilySpec{Name: f})
	}
	return spec
}

// apply writes mutations.
func (h *harness) apply(t failer, mutations ...store.Mutation) {
	t.Helper()
	if err := h.Apply(h.ctx, h.table, mutations); err != nil {
		t.Fatalf("apply of %d mutations: %v", len(mutations), err)
	}
}

// scan returns copies of the rows of s in the test's table that the filter admits: a
// store may return others.
func (h *harness) scan(t failer, s store.Scan) []store.Row {
	t.Helper()
	s.Table = h.table
	sc, err := h.Scan(h.ctx, s)
	if err != nil {
		t.Fatalf("scan: %v", err)
	}
	defer sc.Close()

	var rows []store.Row
	for {
		block, err := sc.Next()
		if err == io.EOF {
			return admitted(s.Filter, rows)
		}
		if err != nil {
			t.Fatalf("next after %d rows: %v", len(rows), err)
		}

		if len(block) == 0 {
			t.Fatalf("next after %d rows: a block without rows and no error", len(rows))
		}
		rows = append(rows, cloneRows(block)...)
	}
}

// admitted keeps the rows that f matches.
func admitted(f store.RowFilter, rows []store.Row) []store.Row {
	kept := rows[:0]
	for _, r := range rows {
		if f.Matches(r.Key) {
			kept = append(kept, r)
		}
	}
	return kept
}

// cloneRows copies rows, whose bytes are valid only as long as their block.
func cloneRows(rows []store.Row) []store.Row {
	out := make([]store.Row, len(rows))
	for i, r := range rows {
		out[i].Key = bytes.Clone(r.Key)
		for _, c := range r.Cells {
			out[i].Cells = append(out[i].Cells, store.Cell{
				Family:    bytes.Clone(c.Family),
				Qualifier: bytes.Clone(c.Qualifier),
				Value:     bytes.Clone(c.Value),
				Timestamp: c.Timestamp,
			})
		}
	}
	return out
}

// text prints rows for comparison, one line a cell, without times.
func text(rows []store.Row) []string {
	lines := []string{}
	for _, r := range rows {
		if len(r.Cells) == 0 {
			lines = append(lines, fmt.Sprintf("%x: no cell", r.Key))
		}
		for _, c := range r.Cells {
			lines = append(lines, fmt.Sprintf("%x %s:%x = %x", r.Key, c.Family, c.Qualifier, c.Value))
		}
	}
	return lines
}

// same fails unless rows print as want does.
func same(t failer, got, want []store.Row) {
	t.Helper()
	if diff := cmp.Diff(text(want), text(got)); diff != "" {
		t.Fatalf("rows (-want +got):\n%s", diff)
	}
}

// sameKeys fails unless rows have just these keys, in this order.
func sameKeys(t failer, got []store.Row, want [][]byte) {
	t.Helper()
	keys := make([]string, len(got))
	for i, r := range got {
		keys[i] = hex.EncodeToString(r.Key)
	}

	wanted := make([]string, len(want))
	for i, k := range want {
		wanted[i] = hex.EncodeToString(k)
	}

	if diff := cmp.Diff(wanted, keys); diff != "" {
		t.Fatalf("row keys (-want +got):\n%s", diff)
	}
}

// put is a Put of family t.
func put(row, qualifier, value string) store.Mutation {
	return mutation(store.Put, row, "t", qualifier, value)
}

// mutation makes any mutation from strings.
func mutation(kind store.MutationKind, row, family, qualifier, value string) store.Mutation {
	return store.Mutation{
		Kind:      kind,
		Row:       []byte(row),
		Family:    family,
		Qualifier: []byte(qualifier),
		Value:     []byte(value),
	}
}

// row makes a row of family t from alternating qualifiers and values.
func row(key string, qv ...string) store.Row {
	r := store.Row{Key: []byte(key)}
	for i := 0; i < len(qv); i += 2 {
		r.Cells = append(r.Cells, store.Cell{Family: []byte("t"), Qualifier: []byte(qv[i]), Value: []byte(qv[i+1])})
	}
	return r
}

// tick waits until a whole millisecond has passed. HBase orders a delete and a put of
// the same millisecond by their kind, not by their arrival.
func tick() {
	for start := time.Now().UnixMilli(); time.Now().UnixMilli() <= start+1; {
	}
}
