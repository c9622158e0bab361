package regions

import (
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"downpour/pushdown/process/network/networktest"
	"downpour/pushdown/store/hbase/hbasefake"
)

// conn counts how often it is closed.
type conn struct {
	net.Conn
	closed int
}

func (c *conn) Close() error {
	c.closed++
	return c.Conn.Close()
}

// A router closes the connections to all kinds of servers, even those that its look-ups have made.
func TestCloseAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conns []*conn
		c := startByNodes(t, hbasefake.Options{Network: new(networktest.Memory)},
			func(c *hbasefake.Cluster) []string { return c.Nodes()[1:] },
			func(cfg *Config) {
				dial := cfg.Calls.Dial
				cfg.Calls.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					nc, err := dial(ctx, network, addr)
					counted := &conn{Conn: nc}
					conns = append(conns, counted)
					return counted, err
				}
			})
		c.CreateTable("t", []string{"t"})
		if err := c.r.get(c.ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := c.r.Describe(c.ctx, "t"); err != nil {
			t.Fatal(err)
		}
		loc, err := c.r.Locate(c.ctx, "t", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.r.admins.Get(c.ctx, loc.Addr); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.r.CloseAll()
		if len(conns) < 4 {
			t.Errorf("%d connections, want one at least of each kind", len(conns))
		}
		for i, nc := range conns {
			if nc.closed == 0 {
				t.Errorf("connection %d of %d is open", i, len(conns))
			}
		}
	})
}

// A region whose server is gone is looked up again, and found at its new one.
func TestConnect_gone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, hbasefake.Options{Network: new(networktest.Memory)})
		c.CreateTable("t", []string{"t"})
		if err := c.r.get(c.ctx); err != nil {
			t.Fatal(err)
		}
		at, err := c.r.Locate(c.ctx, "t", nil)
		if err != nil {
			t.Fatal(err)
		}
		c.MoveRegion("t", nil)
		gone := slices.Index(c.Nodes(), at.Addr) - 1
		c.StopServer(gone)
		c.MoveMeta(1 - gone)
		if err := c.r.get(c.ctx); err != nil {
			t.Errorf("after its server has gone: %v", err)
		}
	})
}

// A server that cannot serve now is connected to again for the next call.
func TestInvalidate_reconnects(t *testing.T) {
	dials := 0
	c := start(t, hbasefake.Options{Servers: 1}, func(cfg *Config) {
		dial := cfg.Calls.Dial
		cfg.Calls.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials++
			return dial(ctx, network, addr)
		}
	})
	c.CreateTable("t", []string{"t"})
	if err := c.r.get(c.ctx); err != nil {
		t.Fatal(err)
	}
	before := dials
	c.SetHook(func(call hbasefake.Call) (f hbasefake.Fault) {
		if call.N == 0 {
			f = hbasefake.Fault{
				Kind: hbasefake.Refuse, Exception: "org.apache.hadoop.hbase.NotAllMetaRegionsOnlineException",
			}
		}
		return f
	})
	if err := c.r.get(c.ctx); err != nil || dials <= before {
		t.Errorf("%v after %d dials, want more than %d", err, dials, before)
	}
}
