package gateway_test

import (
	"strings"
	"testing"

	"downpour/pushdown/store/hbase/hbasefake"
)

// explain shows the filter that the region servers get: key ranges and the regular expression over
// the row key where a tag value is asked for, none where every row is wanted.
func TestExplain_filter(t *testing.T) {
	cluster, err := hbasefake.Start(hbasefake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	cluster.CreateTable("tsdb", []string{"t"})
	cluster.CreateTable("tsdb-uid", []string{"id", "name"})
	cfg, st := hbaseConfig(t, cluster.Address())
	b := &bench{T: t, cfg: cfg, g: start(t, cfg, st)}
	b.put("m 1356998400 1 dc=x host=a")
	f := func(tags, want string) {
		t.Helper()
		a := b.get("/api/query?explain=true&start=1356998400&end=1356998500&m=sum:m" + tags)
		if !strings.Contains(a.body, `"filter":"`+want) {
			t.Errorf("m%s: %d %s, want a filter that begins with %q", tags, a.status, a.body, want)
		}
	}
	f("", "none")
	f("%7Bhost=a%7D", `ranges(3) and regex((?s)^.{7}(?:.{6})*?`)
}
