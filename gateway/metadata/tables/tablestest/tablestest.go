// Package tablestest gives stores OpenTSDB's tables, for tests.
package tablestest

import (
	"testing"

	"downpour/encoding"
	"downpour/gateway/metadata/tables"
	"downpour/pushdown/store"
)

// Names are those of the tables.
var Names = tables.Names{Data: "tsdb", UID: "tsdb-uid", Meta: "tsdb-meta", Tree: "tsdb-tree"}

// In returns a function that takes what opening a store has returned, and makes the tables
// in it. The store is closed at the end of the test.
func In[S store.Store](t testing.TB, schema encoding.Schema) func(S, error) store.Store {
	return func(st S, err error) store.Store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
		if err := tables.Create(t.Context(), st, tables.Specs(Names, schema, "NONE")); err != nil {
			t.Fatal(err)
		}
		return st
	}
}
