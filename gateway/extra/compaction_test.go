package extra_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/extra/compaction"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store/hbase/hbasefake"
)

// compactingGateway is a gateway on a fake HBase that is set to compact rows.
func compactingGateway(t *testing.T, cluster *hbasefake.Cluster, change func(*gateway.Config)) *bench {
	t.Helper()
	cfg, st := gatewaytest.HBase(t, cluster.Address())
	gateway.SettingsOf[compaction.Settings](cfg).Compact = "1000"
	gateway.SettingsOf[compaction.Settings](cfg).CompactMargin = time.Second
	if change != nil {
		change(cfg)
	}
	return serve(t, cfg, st)
}

// compactedRows is how many rows a gateway has compacted, -1 if its /metrics do not say.
func compactedRows(b *bench) int {
	m := regexp.MustCompile(`(?m)^downpour_compaction_compacted_total (\S+)$`).
		FindStringSubmatch(b.Get("/metrics").Body)
	if m == nil {
		return -1
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return int(n)
}

// Gateways without pushdown servers compact the rows of all regions side by side, each row once, and answer as
// before. TestMain makes sure that the compactions end with the gateways.
func TestCompaction_background(t *testing.T) {
	cluster := hbasefake.For(t, hbasefake.Options{})
	for name, families := range map[string][]string{
		"tsdb-uid": {"id", "name"}, "tsdb-meta": {"name"}, "tsdb-tree": {"t"},
	} {
		cluster.CreateTable(name, families)
	}
	const rows = 6
	schema := encoding.DefaultSchema()
	base := uint32(time.Now().Add(-3*time.Hour).Unix()) / encoding.RowSeconds * encoding.RowSeconds
	key := func(row int) []byte {
		return schema.AppendRowKey(nil, encoding.UID{0, 0, 1},
			base-uint32(row)*encoding.RowSeconds, []byte{0, 0, 1, 0, 0, 1})
	}
	cluster.CreateTable("tsdb", []string{"t"}, key(rows/2)) // two regions
	cluster.KeepVersions("tsdb")

	first := compactingGateway(t, cluster, func(cfg *gateway.Config) {
		gateway.SettingsOf[compaction.Settings](cfg).Compact = "off"
	})
	first.Put(fmt.Sprintf("m %d 1 host=a", time.Now().Unix())) // gets UIDs 1
	for row := range rows {
		for second := range int32(3) {
			q := encoding.AppendQualifier(nil, encoding.Qualifier{OffsetMS: second * 1000, Width: 1})
			cluster.PutAt("tsdb", string(key(row)), "t", string(q), string(rune('1'+row)),
				int64(base)*1000+3_500_000+int64(second))
		}
	}
	query := fmt.Sprintf("/api/query?start=%d&end=%d&m=none:m", base-rows*encoding.RowSeconds, base+encoding.RowSeconds)
	before := first.Get(query).Body
	if n := strings.Count(before, `":49`); n != 3 { // of the row whose values are '1'
		t.Fatalf("got %s, want the points of %d rows", before, rows)
	}
	if compactedRows(first) != -1 {
		t.Error("a gateway that compacts nothing counts what it compacts")
	}

	second, third := compactingGateway(t, cluster, nil), compactingGateway(t, cluster, nil)
	eventually(t, "all rows are compacted", func() bool { return compactedRows(second)+compactedRows(third) == rows })
	for _, b := range []*bench{first, second} {
		if got := b.Get(query).Body; got != before {
			t.Errorf("got %s, want %s as before", got, before)
		}
	}
	// Each of the rows has one cell, and the point that was put has one.
	if dump := cluster.Dump("tsdb"); strings.Count(dump, ` t:"`) != rows+1 {
		t.Errorf("table tsdb has\n%s, want %d cells", dump, rows+1)
	}
	if dump := cluster.Dump(second.Config.TableState); !strings.Contains(dump, `"lease/compact/tsdb/`) {
		t.Errorf("the state table has\n%s, want leases", dump)
	}
}

// A gateway that is set to compact and does not says why, once; the embedded store refuses the setting.
func TestCompaction_refused(t *testing.T) {
	cluster := hbasefake.For(t, hbasefake.Options{})
	for name, families := range map[string][]string{
		"tsdb": {"t"}, "tsdb-uid": {"id", "name"}, "tsdb-meta": {"name"}, "tsdb-tree": {"t"},
	} {
		cluster.CreateTable(name, families)
	}
	for why, change := range map[string]func(*gateway.Config){
		"set DOWNPOUR_COMPACT in their settings": func(cfg *gateway.Config) { cfg.Pushdown = []string{"127.0.0.1:1"} },
		"DOWNPOUR_MODE=ro writes nothing":        func(cfg *gateway.Config) { cfg.Mode = "ro" },
	} {
		b := compactingGateway(t, cluster, change)
		log := b.Get("/logs").Body
		if strings.Count(log, "compacts no rows in the background") != 1 || !strings.Contains(log, why) {
			t.Errorf("got the log %s, want one line with %q", log, why)
		}
		if compactedRows(b) != -1 {
			t.Errorf("%s: there is a worker", why)
		}
		if strings.Contains(cluster.Dump("tsdb"), "lease") {
			t.Errorf("%s: a lease was taken", why)
		}
	}

	for want, change := range map[string]func(*gateway.Config){
		"keeps the points of a row in one cell by itself": func(cfg *gateway.Config) { cfg.Store = "pebble:data" },
		`DOWNPOUR_COMPACT: got "fast"`: func(cfg *gateway.Config) {
			gateway.SettingsOf[compaction.Settings](cfg).Compact = "fast"
		},
		"DOWNPOUR_COMPACT_MARGIN: got 0s": func(cfg *gateway.Config) {
			gateway.SettingsOf[compaction.Settings](cfg).CompactMargin = 0
		},
	} {
		cfg := config(0)
		cfg.Store = "hbase:127.0.0.1:2181"
		gateway.SettingsOf[compaction.Settings](cfg).Compact = "500"
		gateway.SettingsOf[compaction.Settings](cfg).CompactMargin = time.Minute
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}
		change(cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
