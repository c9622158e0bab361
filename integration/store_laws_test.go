//go:build integration

package integration

import (
	"testing"

	"downpour/integration/e2e"
	"downpour/pushdown/store"
	storehbase "downpour/pushdown/store/hbase"
	"downpour/pushdown/store/storetest"
)

// TestStore_laws: what the suite of all stores demands of the fake HBase, and drawn operations
// against its model, holds on a real one, too: scans with ranges, patterns, columns, limits and
// key-only reads, gets, puts, appends, deletions, counters, conditions, versions. With -matrix each
// version of HBase from 2.4 on is tried; what older ones lack is in pushdown/docs/hbase.md.
func TestStore_laws(t *testing.T) {
	t.Parallel()
	onEachHBase(t, func(t *testing.T, h *e2e.HBase) {
		cfg := must[storehbase.Config](t)(storehbase.ParseAddress(h.Quorum()))
		storetest.Run(t, func(t *testing.T) store.Store { return must[*storehbase.Store](t)(storehbase.Open(cfg)) })
	})
}
