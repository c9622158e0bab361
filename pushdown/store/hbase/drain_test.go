package hbase

import (
	"testing"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

// Drain counts the cells and bytes that a scan delivers, over all regions, and fails
// if a reply is lost.
func TestDrain(t *testing.T) {
	c := start(t, hbasefake.Options{MaxReplyCells: 7, HeartbeatEvery: 3})
	want := c.fill(40, "r0013", "r0026")
	read := c.mustRead(store.Scan{}, want)
	drained, err := c.st.Drain(t.Context(), store.Scan{Table: "t"})
	if err != nil || drained.Cells != read.Cells || drained.Bytes != read.Bytes || drained.Cells == 0 {
		t.Errorf("Drain counts %+v, %v, want what a scan counts: %+v", drained, err, read)
	}

	c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
		if call.Method == "Scan" && call.N == 4 {
			return hbasefake.Fault{Kind: hbasefake.DropAfter}
		}
		return hbasefake.Fault{}
	})

	if _, err := c.st.Drain(t.Context(), store.Scan{Table: "t"}); err == nil {
		t.Error("a lost reply went unseen")
	}
}
