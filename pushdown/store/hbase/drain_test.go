package hbase

import (
	"testing"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

// Drain counts the rows, cells and bytes that a scan delivers, over all regions, and fails
// if a reply is lost. It leaves no scanner at the servers.
func TestDrain(t *testing.T) {
	c := start(t, hbasefake.Options{MaxReplyCells: 7, HeartbeatEvery: 3})
	want := c.fill(40, "r0013", "r0026")
	read := c.mustRead(store.Scan{}, want)
	drained, err := c.st.Drain(t.Context(), store.Scan{Table: "t"})
	if err != nil || drained.Cells != read.Cells || drained.Bytes != read.Bytes || drained.Cells == 0 {
		t.Errorf("Drain counts %+v, %v, want what a scan counts: %+v", drained, err, read)
	}

	// Without parts a row is counted once, and cells of other columns are not.
	c.await("open scanners", func() bool { return c.OpenScanners() == 0 })
	whole := start(t, hbasefake.Options{})
	whole.fill(40, "r0013")
	columns := []store.KeyRange{{Start: []byte("q0"), Stop: []byte("q1")}}
	s := store.Scan{Table: "t", MostInColumns: true, Columns: columns}
	if got, err := whole.st.Drain(t.Context(), s); err != nil || got.Rows != 40 || got.Cells != 40 {
		t.Errorf("of one column: %+v, %v, want 40 rows of a cell", got, err)
	}

	for _, fault := range []hbasefake.Fault{
		{Kind: hbasefake.Refuse, Exception: "java.io.IOException"}, {Kind: hbasefake.DropAfter},
	} {
		c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
			if call.Method == "Scan" && call.N == 4 {
				return fault
			}
			return hbasefake.Fault{}
		})
		if _, err := c.st.Drain(t.Context(), store.Scan{Table: "t"}); err == nil {
			t.Error("a lost reply went unseen")
		}
		if fault.Kind == hbasefake.Refuse {
			c.await("open scanners", func() bool { return c.OpenScanners() == 0 })
		}
	}
}
