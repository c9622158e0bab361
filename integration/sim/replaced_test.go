package sim

import (
	"fmt"
	"time"
)

// replacements are the ways to put a snapshot into the place of a table. Each may leave regions
// with the names, and the numbers, that they had before.
var replacements = []struct {
	name string
	do   func(k *cluster, table, snapshot string)
}{
	{"table restored", func(k *cluster, table, snapshot string) { k.hbase.RestoreSnapshot(table, snapshot) }},
	{"table cloned", func(k *cluster, table, snapshot string) { k.hbase.CloneSnapshot(table, snapshot) }},
	{"table cloned twice", func(k *cluster, table, snapshot string) {
		k.hbase.CloneSnapshot(table, snapshot)
		k.hbase.CloneSnapshot(table, snapshot)
	}},
	{"table split and restored", func(k *cluster, table, snapshot string) {
		k.hbase.SplitRegion(table, []byte{0, 0, 1, 7})
		k.hbase.RestoreSnapshot(table, snapshot)
	}},
	{"table moved, restored and moved", func(k *cluster, table, snapshot string) {
		k.hbase.MoveRegion(table, []byte{0, 0, 1})
		k.hbase.RestoreSnapshot(table, snapshot)
		k.hbase.MoveRegion(table, []byte{0, 0, 1})
	}},
}

// replaceTable takes snapshots of the data table, and puts them into its place while it is
// disabled, as HBase demands. All points are then what they were. So it happens only where no job
// has derived something from them.
func (k *cluster) replaceTable() {
	w, r := k.w, k.w.rand("snapshots")
	for n := 0; w.pause(r, 2*time.Minute); n++ {
		name := fmt.Sprint("snapshot", n)
		before := w.model.snapshot()
		k.hbase.Snapshot("tsdb", name)
		was := w.model.all(before, w.model.snapshot())
		w.note("%s is taken", name)
		if !w.pause(r, 90*time.Second) {
			return
		}
		way := replacements[r.IntN(len(replacements))]
		k.hbase.Disable("tsdb")
		w.rest(time.Duration(r.Int64N(int64(20 * time.Second))))
		w.model.beginReplacing()
		w.broke(way.name, "%s of %s", way.name, name)
		way.do(k, "tsdb", name)
		w.model.endReplacing(was)
		k.hbase.Enable("tsdb")
	}
}
