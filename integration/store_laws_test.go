//go:build integration

package integration

import (
	"testing"

	"downpour/integration/e2e"
	"downpour/pushdown/store"
	storehbase "downpour/pushdown/store/hbase"
	"downpour/pushdown/store/storetest"
)

// TestStore_laws: what the suite of all stores demands of the fake HBase, and drawn operations against its model, holds on a real one, too:
// scans with ranges, patterns, columns, limits and key-only reads, gets, puts, appends, deletions, counters, conditions, versions.
// With -matrix each version of HBase from 2.4 on is asked; what older ones lack is in pushdown/docs/hbase.md.
func TestStore_laws(t *testing.T) {
	t.Parallel()
	t.Run("default", func(t *testing.T) { storeLaws(t, hbase(t)) })
	if !*matrixFlag {
		return
	}
	for _, version := range must[[]string](t)(e2e.HBaseVersions())[1:] {
		if version < "2.4" {
			continue
		}
		t.Run(version, func(t *testing.T) {
			h := must[*e2e.HBase](t)(e2e.StartHBase(within(t, patience), e2e.HBaseOptions{Version: version, RegionServers: 1, RegionServerMiB: 384, QuickStart: true}))
			closeAtEnd(t, h)
			storeLaws(t, h)
		})
	}
}

func storeLaws(t *testing.T, h *e2e.HBase) {
	cfg := must[storehbase.Config](t)(storehbase.ParseAddress(h.Quorum()))
	storetest.Run(t, func(t *testing.T) store.Store { return must[*storehbase.Store](t)(storehbase.Open(cfg)) })
}
