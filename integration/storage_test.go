//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"downpour/integration/conformance"
	"downpour/integration/e2e"
)

// storageVariant is what an operator may have made of the data table.
type storageVariant struct {
	name     string
	replicas int
	values   []string // of the family
	every    int      // one of so many recorded questions is asked
	// is returns an error unless the table is what it should be, once its cells lie in files.
	is func(ctx context.Context, h *e2e.HBase, table string) error
}

var storageVariants = []storageVariant{
	// Replicas learn of nothing here, so a client that read one would miss everything.
	{name: "replicas", replicas: 2, every: 1, is: func(ctx context.Context, h *e2e.HBase, table string) error {
		cells, err := h.Admin.Scan(ctx, "hbase:meta")
		for _, c := range cells {
			if strings.HasPrefix(string(c.Row), table+",") && string(c.Qualifier) == "server_0001" {
				return err
			}
		}
		return errors.Join(err, errors.New("no replica has a server"))
	}},
	// Each value of more than one byte lies in a file of its own kind, and is looked up there: that is slow.
	{name: "mob", replicas: 1, every: 12, values: []string{"IS_MOB=true", "MOB_THRESHOLD=1"},
		is: func(_ context.Context, h *e2e.HBase, table string) error {
			files, err := filepath.Glob(filepath.Join(h.Dir(), "root", "mobdir", "data", "default",
				table, "*", "t", "*"))
			if err == nil && len(files) == 0 {
				err = errors.New("no MOB file")
			}
			return err
		}},
	{
		name:     "encrypted",
		replicas: 1,
		every:    1,
		values:   []string{"ENCRYPTION=AES"},
		is: func(ctx context.Context, h *e2e.HBase, table string) error {
			lines, err := h.Admin.Describe(ctx, table)
			if err == nil && !strings.Contains(strings.Join(lines, "\n"), "ENCRYPTION\tAES") {
				err = fmt.Errorf("got %q, want it to be encrypted", lines)
			}
			return err
		},
	},
}

// What operators can make of tables changes no answer: region replicas, MOB and encryption, with cells in memory,
// in files and compacted. Requests that a quota holds up are answered late, and none is refused.
func TestStorage(t *testing.T) {
	t.Parallel()
	ctx := within(t, 40*time.Minute)
	keys := filepath.Join(t.TempDir(), "keys.jceks")
	out, err := exec.CommandContext(ctx, "keytool", "-genseckey", "-storetype", "jceks", "-keystore", keys,
		"-storepass", "secret", "-keypass", "secret", "-alias", "hbase", "-keyalg", "AES", "-keysize", "128").
		CombinedOutput()
	if err != nil {
		t.Fatalf("keytool: %v: %s", err, out)
	}
	h := must[*e2e.HBase](t)(e2e.StartHBase(ctx, e2e.HBaseOptions{
		RegionServers:   2,
		RegionServerMiB: 384,
		QuickStart:      true,
		Site: map[string]string{
			"hbase.crypto.keyprovider":            "org.apache.hadoop.hbase.io.crypto.KeyStoreKeyProvider",
			"hbase.crypto.keyprovider.parameters": "jceks://" + keys + "?password=secret",
			"hbase.crypto.master.key.name":        "hbase",
			"hbase.quota.enabled":                 "true",
			"hbase.quota.refresh.period":          "500",
		},
	}))
	closeAtEnd(t, h)
	for _, v := range storageVariants {
		t.Run(v.name, func(t *testing.T) { v.try(t, h) })
	}
	t.Run("quota", func(t *testing.T) { throttled(t, h) })
}

// startOn starts a gateway with a pushdown server on tables, whose data table must be there.
func startOn(ctx context.Context, t *testing.T, h *e2e.HBase, tables e2e.Tables) (gateway, pushdown *e2e.Program) {
	t.Helper()
	err := errors.Join(
		h.Admin.CreateTable(ctx, tables.UID, "NONE", []string{"id", "name"}),
		h.Admin.CreateTable(ctx, tables.Tree, "NONE", []string{"t"}),
		h.Admin.CreateTable(ctx, tables.Meta, "NONE", []string{"name"}),
	)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"DOWNPOUR_STORE": "hbase:" + h.Quorum(), "DOWNPOUR_TABLE_DATA": tables.Data, "DOWNPOUR_TABLE_UID": tables.UID,
		"DOWNPOUR_TABLE_META": tables.Meta, "DOWNPOUR_TABLE_TREE": tables.Tree, "DOWNPOUR_LOG_LEVEL": "debug",
	}
	p := must[*e2e.Program](t)(e2e.StartPushdown(ctx, e2e.ProgramOptions{Env: env}))
	closeAtEnd(t, p)
	env["DOWNPOUR_PUSHDOWN"], env["DOWNPOUR_AUTO_METRICS"], env["DOWNPOUR_RESULT_CACHE"] = p.Addr, "true", "off"
	return startGateway(t, e2e.ProgramOptions{Env: env}), p
}

// try puts the recorded points and asks the recorded questions.
func (v storageVariant) try(t *testing.T, h *e2e.HBase) {
	ctx := within(t, 15*time.Minute)
	tables := e2e.TablesWithPrefix(v.name)
	if err := h.Admin.CreateTableWith(ctx, tables.Data, v.replicas, v.values...); err != nil {
		t.Fatal(err)
	}
	g, _ := startOn(ctx, t, h, tables)
	r := must[*conformance.Data](t)(conformance.Load("seed1"))
	if err := errors.Join(assignRecorded(ctx, g, r), putRecorded(ctx, g, r)); err != nil {
		t.Fatal(err)
	}
	some := *r
	some.Queries = nil
	for i := 0; i < len(r.Queries); i += v.every {
		some.Queries = append(some.Queries, r.Queries[i])
	}
	mustBeRecorded(ctx, t, g, &some, "in memory")
	if err := h.Admin.Flush(ctx, tables.Data); err != nil {
		t.Fatal(err)
	}
	if err := v.is(ctx, h, tables.Data); err != nil {
		t.Errorf("the table is not what is to be tried: %v", err)
	}
	mustBeRecorded(ctx, t, g, &some, "in files")
	// The second part lies in memory again, next to files.
	if err := putRecorded(ctx, g, r); err != nil {
		t.Fatal(err)
	}
	mustBeRecorded(ctx, t, g, &some, "put twice")
	if err := h.Admin.Compact(ctx, tables.Data); err != nil {
		t.Fatal(err)
	}
	mustBeRecorded(ctx, t, g, &some, "compacted")
}

// throttled puts and queries more often than a quota allows, from before servers know of the quota until it has
// held up several requests.
func throttled(t *testing.T, h *e2e.HBase) {
	const perSecond, most = 2, 10 // requests, and refusals of each kind until it ends
	ctx := within(t, 15*time.Minute)
	tables := e2e.TablesWithPrefix("throttled")
	if err := h.Admin.CreateTable(ctx, tables.Data, "NONE", []string{"t"}); err != nil {
		t.Fatal(err)
	}
	g, p := startOn(ctx, t, h, tables)
	put(ctx, t, g.URL, []e2e.Point{robinPoint("quota.m", "a", 0)})
	if err := h.Admin.Throttle(ctx, tables.Data, perSecond); err != nil {
		t.Fatal(err)
	}

	// What HBase holds up, our programs ask again and log.
	heldUp := func(p *e2e.Program) int {
		return strings.Count(string(must[[]byte](t)(os.ReadFile(p.Process.Log))), "RpcThrottlingException")
	}
	for n := int64(1); ; n++ {
		a, err := e2e.Post(ctx, g.URL+"/api/put", []e2e.Point{robinPoint("quota.m", "a", n)})
		if err != nil || a.Status != http.StatusNoContent {
			t.Fatalf("put %d: %v, %d %s", n, err, a.Status, a.Body)
		}
		from := max(0, n-ticketWindow+1)
		a, err = e2e.Get(ctx, fmt.Sprintf("%s/api/query?start=%d&end=%d&arrays=true&m=none:quota.m%%7Bseries=a%%7D",
			g.URL, dataStart+from, dataStart+n))
		if err == nil {
			err = stretchOf(a, from, n+1-from, n+1-from)
		}
		if err != nil {
			t.Fatalf("query %d: %v", n, err)
		}
		if puts, queries := heldUp(g), heldUp(p); puts >= most && queries >= most {
			t.Logf("%d puts and %d queries at %d a second: held up %d and %d times, none refused",
				n, n, perSecond, puts, queries)
			return
		}
	}
}
