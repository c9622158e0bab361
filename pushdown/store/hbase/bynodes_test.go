package hbase

import (
	"context"
	"testing"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"

	"github.com/google/go-cmp/cmp"
)

// startByNodes starts a fake cluster without ZooKeeper and a store that asks its nodes.
func startByNodes(t *testing.T, opts hbasefake.Options, pick func(*hbasefake.Cluster) []string,
	change ...func(*Config)) *cluster {
	t.Helper()
	fake := hbasefake.For(t, opts)
	fake.StopZooKeeper()
	cfg := Config{Nodes: pick(fake), VersionTimeout: bound}
	if opts.Network != nil {
		cfg.Dial = fake.Dial
	}
	for _, f := range change {
		f(&cfg)
	}
	st, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	t.Cleanup(cancel)
	return &cluster{T: t, Cluster: fake, st: st, ctx: ctx}
}

// Rows are written and read, and tables made, with the addresses that nodes report: masters,
// region servers, or both.
func TestNodes_calls(t *testing.T) {
	master := func(c *hbasefake.Cluster) []string { return c.Nodes()[:1] }
	for name, tc := range map[string]struct {
		pick    func(*hbasefake.Cluster) []string
		version string
	}{
		"the master":        {pick: master},
		"a region server":   {pick: func(c *hbasefake.Cluster) []string { return c.Nodes()[2:] }},
		"all":               {pick: func(c *hbasefake.Cluster) []string { return c.Nodes() }},
		"the master of 1.7": {pick: master, version: "1.7.2"},
	} {
		t.Run(name, func(t *testing.T) {
			c := startByNodes(t, hbasefake.Options{Version: tc.version}, tc.pick)
			spec := store.TableSpec{Name: "t", Families: []store.FamilySpec{{Name: "t"}}}
			if err := c.st.CreateTable(c.ctx, spec); err != nil {
				t.Fatal(err)
			}
			ms := []store.Mutation{{Row: []byte("r"), Family: "t", Qualifier: []byte("q"), Value: []byte("v")}}
			if err := c.st.Apply(c.ctx, "t", ms); err != nil {
				t.Fatal(err)
			}
			rows, err := c.st.Get(c.ctx, "t", "t", [][]byte{[]byte("r")})
			if err != nil || len(rows) != 1 || string(rows[0].Cells[0].Value) != "v" {
				t.Errorf("got %v, %v", rows, err)
			}
		})
	}
}

func TestParseNodes(t *testing.T) {
	got, err := ParseNodes("//a:16000,[::1]:16020")
	if err != nil || cmp.Diff([]string{"a:16000", "[::1]:16020"}, got.Nodes) != "" || got.Quorum != "" {
		t.Errorf("got %v, %q, %v", got.Nodes, got.Quorum, err)
	}
	if got, err := ParseNodes("//a, b:16020 ,c:0,"); err != nil || cmp.Diff([]string{"b:16020"}, got.Nodes) != "" ||
		len(got.Unusable) != 2 {
		t.Errorf("got %v without %v, %v, want one that can be used", got.Nodes, got.Unusable, err)
	}
	for _, in := range []string{
		"", "a:1", "//", "// ,", "//a", "//a:1/hbase", "//a:0", "//a:1?x=y", "//a/b:1", "//a?b:1",
	} {
		if got, err := ParseNodes(in); err == nil {
			t.Errorf("%q: got %v, want an error", in, got.Nodes)
		}
	}
	for what, cfg := range map[string]Config{
		"both ZooKeeper and nodes": {Quorum: "a:1", Nodes: []string{"b:2"}},
		"a node without a port":    {Nodes: []string{"b"}},
		"a ZooKeeper with port 0":  {Quorum: "a:0"},
	} {
		if st, err := Open(cfg); err == nil {
			st.Close()
			t.Errorf("%s: got no error", what)
		}
	}
}
