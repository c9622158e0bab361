//go:build integration

package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"downpour/integration/e2e"
)

// Master and region servers of a cluster are exchanged one by one for those of a later version, while
// clients put and query through a gateway and a pushdown server. In the meantime regions lie on servers of
// both versions. No answer is wrong, and in the end each acknowledged point is there; requests
// that need a region which is served nowhere may be refused, and are sent again.
func TestUpgrade_hbase(t *testing.T) {
	ctx := within(t, 12*time.Minute)
	versions := must[[]string](t)(e2e.HBaseVersions())
	from, to := versions[0], versions[len(versions)-1]
	servers := 2
	if *soak {
		servers = 3
	}
	h := must[*e2e.HBase](t)(e2e.StartHBase(ctx, e2e.HBaseOptions{
		RegionServers:   servers,
		RegionServerMiB: 384,
		QuickStart:      true,
	}))
	closeAtEnd(t, h)
	tables := e2e.TablesWithPrefix("tsdb")
	if err := h.Admin.CreateOpenTSDBTables(ctx, tables, []byte{1}, []byte{2}, []byte{3}); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"DOWNPOUR_STORE":        "hbase:" + h.Quorum(),
		"DOWNPOUR_SALT_WIDTH":   "1",
		"DOWNPOUR_SALT_BUCKETS": "4",
	}
	p := must[*e2e.Program](t)(e2e.StartPushdown(ctx, e2e.ProgramOptions{Env: env}))
	closeAtEnd(t, p)
	env["DOWNPOUR_PUSHDOWN"], env["DOWNPOUR_AUTO_METRICS"], env["DOWNPOUR_SELF_METRICS"] = p.Addr, "true", "0"
	g := startGateway(t, e2e.ProgramOptions{Env: env})
	work := newBalanced(ctx, t, g.URL).start(ctx, g.URL, &load{outages: true})

	if err := h.UseVersion(to); err != nil {
		t.Fatal(err)
	}
	// next waits until so many region servers and the master serve, and much was answered.
	next := func(live int, err error) {
		t.Helper()
		if err == nil {
			err = h.WaitReady(ctx, live)
		}
		if err != nil {
			t.Fatal(err)
		}
		work.await(ctx, 10, 10)
	}
	if err := h.StopMaster(ctx); err != nil {
		t.Fatal(err)
	}
	work.await(ctx, 5, 5) // without a master
	next(servers, h.StartMaster(ctx))
	for i := range servers {
		next(servers-1, h.StopRegionServer(ctx, i))
		next(servers, h.StartRegionServer(ctx, i))
		next(servers, moveHalf(ctx, h, tables, i))
		t.Logf("after server %d: %d requests were sent again", i, work.refused.Load())
	}
	work.end()

	if v := must[string](t)(h.Admin.Version(ctx)); v != to {
		t.Errorf("the master is of version %s, want %s", v, to)
	}
	work.check(ctx, g.URL)
	work.check(ctx, startGateway(t, e2e.ProgramOptions{Env: env}).URL)
	t.Logf("%s to %s: %d batches and %d queries answered, %d refusals",
		from, to, work.batches.Load(), work.queries.Load(), work.refused.Load())
}

// moveHalf moves every other region to a server that was exchanged. One that has just started may refuse
// its first regions, and hbase:meta may be away for a while, so it is tried again.
func moveHalf(ctx context.Context, h *e2e.HBase, tables e2e.Tables, server int) error {
	to := h.RegionServerAddr(server)
	for _, table := range []string{tables.Data, tables.UID} {
		err := e2e.Until(ctx, time.Second, func(ctx context.Context) error {
			regions, err := h.Admin.Regions(ctx, table)
			for i := 0; err == nil && i < len(regions); i += 2 {
				if r := regions[i]; r.Server != to {
					err = h.Admin.Move(ctx, table, r.EncodedName, to)
				}
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("move half of the regions of %s to %s: %w", table, to, err)
		}
	}
	return nil
}
