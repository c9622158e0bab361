package gateway_test

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"
	"time"

	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store/hbase/hbasefake"
)

// On an HBase where nobody tracks series, salted or not, the values of a tag are those of a metric's recent rows, with
// the filters that are given; names of other metrics and old ones are not among them.
func TestValues_untracked(t *testing.T) {
	for _, salt := range []int{0, 1} {
		cluster := hbasefake.For(t, hbasefake.Options{})
		cluster.CreateTable("tsdb", []string{"t"})
		cluster.CreateTable("tsdb-uid", []string{"id", "name"})
		if salt == 0 { // without the table it is the same
			cluster.CreateTable("tsdb-meta", []string{"name"})
		}
		cfg, st := gatewaytest.HBase(t, cluster.Address())
		cfg.SaltWidth, cfg.SaltBuckets, cfg.MetaTracking = salt, 3, "false"
		b := serve(t, cfg, st)
		now := time.Now().Unix()
		b.Put(fmt.Sprintf("cpu %d 1 host=a dc=x", now), fmt.Sprintf("cpu %d 1 host=b dc=y", now),
			fmt.Sprintf("cpu %d 1 host=old dc=x", now-30*3600), fmt.Sprintf("mem %d 1 host=c dc=x", now),
			fmt.Sprintf("idle %d 1 host=e", now-30*3600), fmt.Sprintf("disk %d 1 host=d", now-1000*3600))
		wants := map[string]string{
			"tagk=host&m=cpu":                  `^{"values":\["a","b"\],"more":false,"since":[0-9]+}$`,
			"tagk=host&m=cpu%7Bdc=x%7D":        `^{"values":\["a"\],"more":false,"since":[0-9]+}$`,
			"tagk=host&m=cpu%7Bhost=old%7D":    `^{"values":\[\],"more":false,"since":[0-9]+}$`,
			"tagk=host&m=idle":                 `^{"values":\["e"\],"more":false,"since":[0-9]+}$`,
			"tagk=host&m=cpu&limit=1":          `^{"values":\["[ab]"\],"more":true,"since":[0-9]+}$`,
			"tagk=host&m=disk":                 `^{"values":\[\],"more":false}$`,
			"tagk=dc&m=disk":                   `^{"values":\[\],"more":false}$`,
			"tagk=dc&m=cpu%7Bhost=a,host=b%7D": `^{"values":\["x","y"\],"more":false,"since":[0-9]+}$`,
		}
		if salt == 0 {
			wants["tagk=host&m=*%7Bhost=a,dc=x%7D"] = `^{"values":\[\],"more":false}$`
		}
		for query, want := range wants {
			a := b.Get("/api/search/values?" + query)
			if a.Status != http.StatusOK || !regexp.MustCompile(want).MatchString(a.Body) {
				t.Errorf("salt %d, %s: got %d %s, want %s", salt, query, a.Status, a.Body, want)
			}
		}
	}
}
