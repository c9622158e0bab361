//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"downpour/encoding/seedtest"
	"downpour/integration/chaos"
	"downpour/integration/e2e"
)

// Clients ask the recorded questions while regions split, merge and move, and
// region servers, pushdown servers, the master and ZooKeeper are killed, hung
// and brought back: every answer is the recorded one or a clear refusal, hardly
// any is refused where only regions and pushdown servers are harmed, and
// everything is whole again soon after each healing. In the long form HBase lies
// on HDFS, and nothing is flushed before a region server is killed. Of half of the
// gateways the pushdown servers are found, of the others listed.
func TestChaos(t *testing.T) {
	seed, lasts, names := seedtest.Of(t), 3*time.Minute, []string{"seed1", "seed3_salted"}
	if *soak {
		lasts, names = time.Hour, append(names, "seed2", "edges")
	}
	ctx := within(t, lasts+14*time.Minute)

	options := chaos.HBaseOptions()
	if *soak {
		options.HDFS = must[*e2e.HDFS](t)(e2e.StartHDFS(ctx, e2e.HDFSOptions{}))
		closeAtEnd(t, options.HDFS)
	}
	h := must[*e2e.HBase](t)(e2e.StartHBase(ctx, options))
	closeAtEnd(t, h)
	var sites []*chaos.Site
	for i, name := range names {
		var tokens chaos.Tokens // every other site finds its pushdown servers
		if uint64(i)%2 == seed%2 {
			tokens.Admin = "0123456789abcdef-admin"
			tokens.File = writeFile(t, "tokens", "admin "+tokens.Admin+"\nread 0123456789abcdef-read\n")
		}
		t.Logf("site %s finds its pushdown servers: %t", name, tokens.File != "")
		r := must[*chaos.Recording](t)(chaos.LoadRecording(name))
		s, err := chaos.OpenSite(ctx, h, r, tokens, cuts(name)...)
		t.Cleanup(func() {
			files, err := s.Close(t.Failed())
			if len(files) > 0 || err != nil {
				t.Logf("files kept in %q, error %v", files, err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		sites = append(sites, s)
	}
	report, err := chaos.Run(ctx, chaos.Config{Cluster: h, Sites: sites, Seed: seed, For: lasts, Logf: t.Logf})
	t.Logf("%s", report.Text())
	keepReport(t, seed, report)
	if err != nil {
		t.Error(err)
	}
	for i, b := range report.Breaches() {
		if i < 10 {
			t.Error(b)
		}
	}
}

// cuts are the regions that a site begins with: by metric, or by salt.
func cuts(name string) (keys [][]byte) {
	if strings.HasSuffix(name, "_salted") {
		return [][]byte{{5}, {10}, {15}}
	}
	return [][]byte{{0, 0, 2}, {0, 0, 4}, {0, 0, 6}}
}

// keepReport writes the report into build/chaos.
func keepReport(t *testing.T, seed uint64, r *chaos.Report) {
	t.Helper()
	root := must[string](t)(e2e.Root())
	dir := filepath.Join(root, "build", "chaos")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, time.Now().UTC().Format("20060102-150405")+".txt")
	if err := os.WriteFile(name, []byte(r.Text()), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("report of seed %d kept in %s", seed, name)
}
