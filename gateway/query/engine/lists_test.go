package engine

import (
	"bytes"
	"fmt"
	"testing"

	"downpour/encoding"
	"downpour/gateway/query/plan"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

// The lists of names for the filters of one sub-query are bounded together: a list beyond the bound
// is incomplete, or empty.
func TestLookUpNames_listsBounded(t *testing.T) {
	long := bytes.Repeat([]byte("x"), uid.MostName-9)
	from := &faultstore.Endless{Rows: 10, Row: func(n int) store.Row {
		return store.Row{Key: fmt.Appendf(bytes.Clone(long), "%09d", n),
			Cells: []store.Cell{{Qualifier: encoding.UIDTagV.Qualifier(), Value: []byte{0, byte(n >> 8), byte(n)}}}}
	}}
	e := New(Config{Names: uid.New(uid.Config{Store: from, Table: "tsdb-uid", Schema: encoding.DefaultSchema()})})
	const blocks = uid.MaxListed/uid.MostName/10 + 2 // of the longest possible list, in blocks of 10 names
	names, err := e.lookUpNames(t.Context(), plan.Needs{Prefixes: []string{"x", "y", "z"}, Limit: 1 << 20})
	if err != nil || from.Blocks() > 2*blocks {
		t.Errorf("%v after %d blocks, want %d at most", err, from.Blocks(), 2*blocks)
	}
	if l := names.Lists["x"]; l.Complete || len(l.Values) == 0 {
		t.Errorf("%d names in the first list, complete %t, want some and not", len(l.Values), l.Complete)
	}
	if l := names.Lists["z"]; l.Complete || len(l.Values) > 0 {
		t.Errorf("%d names in the last list, complete %t, want none and not", len(l.Values), l.Complete)
	}
}
