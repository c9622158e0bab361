package settings

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/pushdown/process/certificates/certificatestest"
)

func valid() Common {
	return Common{Store: "pebble:data", SaltBuckets: 20, MetricWidth: 3, TagKWidth: 3, TagVWidth: 3}
}

func TestCommon_Validate(t *testing.T) {
	f := func(change func(*Common), listen, want string) {
		t.Helper()
		c := valid()
		change(&c)
		err := c.Validate("DOWNPOUR_LISTEN", listen)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	same := func(*Common) {}
	f(same, "127.0.0.1:4242", "")
	f(same, "localhost:4242", "")
	f(same, "[::1]:4242", "")
	f(same, "0.0.0.0:4242", "DOWNPOUR_TOKEN_FILE")
	f(same, ":4242", "DOWNPOUR_TOKEN_FILE")
	f(func(c *Common) { c.Insecure = true }, "0.0.0.0:4242", "")
	f(func(c *Common) { c.TokenFile = "tokens" }, "0.0.0.0:4242", "")
	f(same, "4242", "HOST:PORT")
	f(func(c *Common) { c.Store = "mysql:x" }, "127.0.0.1:1", "DOWNPOUR_STORE")
	f(func(c *Common) { c.Store = "pebble:" }, "127.0.0.1:1", "DOWNPOUR_STORE")
	f(func(c *Common) { c.Store = "hbase+rpc://a:16000" }, "127.0.0.1:1", "")
	f(func(c *Common) { c.PushdownCA = "ca" }, "127.0.0.1:1", "DOWNPOUR_PUSHDOWN_CA")
	certified := func(c *Common) { c.PushdownCA, c.TLSCert, c.TLSKey = "ca", "cert", "key" }
	f(certified, "127.0.0.1:1", "")
	f(certified, "0.0.0.0:4242", "DOWNPOUR_TOKEN_FILE") // a gateway's clients show none
	f(func(c *Common) { c.Kerberos = "keytab:/k" }, "127.0.0.1:1", "want keytab:FILE:PRINCIPAL")
	f(func(c *Common) { c.Kerberos, c.JAAS = "keytab:/k:p", "/jaas" }, "127.0.0.1:1", "want only one of both")
	f(func(c *Common) { c.JAAS = "/jaas" }, "127.0.0.1:1", "")
	f(func(c *Common) { c.TLS, c.ClientCert = "on", "cert" }, "127.0.0.1:1", "DOWNPOUR_HBASE_TLS_KEY")
	f(func(c *Common) { c.TLS, c.ClientCert, c.ClientKey = "off", "cert", "key" }, "127.0.0.1:1",
		"DOWNPOUR_HBASE_TLS: got off")
	f(func(c *Common) { c.TLS, c.ClientCert, c.ClientKey = "/ca.pem", "cert", "key" }, "127.0.0.1:1", "")
	f(func(c *Common) { c.TLS, c.VerifyHost = "on", false }, "127.0.0.1:1", "DOWNPOUR_HBASE_TLS_VERIFY_HOST")
	f(func(c *Common) { c.TLS, c.VerifyHost = "on", true }, "127.0.0.1:1", "")
	f(func(c *Common) { c.TLS, c.VerifyHost = "/ca.pem", false }, "127.0.0.1:1", "")
	f(func(c *Common) { c.TLSCert = "x" }, "127.0.0.1:1", "DOWNPOUR_TLS_KEY")
	f(func(c *Common) { c.ResultCache = "off" }, "127.0.0.1:1", "")
	f(func(c *Common) { c.ResultCache = "64MiB" }, "127.0.0.1:1", "")
	f(func(c *Common) { c.ResultCache = "1mb" }, "127.0.0.1:1", "DOWNPOUR_RESULT_CACHE")
	f(func(c *Common) { c.ResultCache = "-1M" }, "127.0.0.1:1", "DOWNPOUR_RESULT_CACHE")
	f(func(c *Common) { c.ResultCacheProof = "timestamps" }, "127.0.0.1:1", "")
	f(func(c *Common) { c.LogLevel = "loud" }, "127.0.0.1:1", "DOWNPOUR_LOG_LEVEL")
	f(func(c *Common) { c.LogFormat = "xml" }, "127.0.0.1:1", "DOWNPOUR_LOG_FORMAT")
	f(func(c *Common) { c.ResultCacheProof = "clocks" }, "127.0.0.1:1", "DOWNPOUR_RESULT_CACHE_PROOF")
	f(func(c *Common) { c.Memory = "1GiB" }, "127.0.0.1:1", "")
	f(func(c *Common) { c.Memory = "1MiB" }, "127.0.0.1:1", "DOWNPOUR_MEMORY")
	f(func(c *Common) { c.SaltWidth = 9 }, "127.0.0.1:1", "salt width 9")
}

//fault:number-of-decimal-bytes binary*1024 => decimal
func TestParseNumber(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "17": 17, "-1": -1, "-2K": -2000, "0B": 0, "7B": 7,
		"1K": 1000, "1KB": 1000, "1Ki": 1024, "3KiB": 3 << 10, "1M": 1_000_000, "2 MiB": 2 << 20, "2Mi": 2 << 20,
		"4GB": 4_000_000_000, "4GiB": 4 << 30,
		"1T": 1_000_000_000_000, "8388607TiB": 8388607 << 40, "9223372036854775807": math.MaxInt64,
		"-9223372036854775808": math.MinInt64} {
		if got, err := ParseNumber(text); got != want || err != nil {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", " ", "x", "1.5GiB", "GiB", "M", "8388608TiB", "-8388609TiB",
		"9223372036854775808", "4 4", "1m", "1k", "1MM", "1i", "1Bi", "1iB", "1M1", "1 ", "0x1", "1_0", "1e6"} {
		if got, err := ParseNumber(text); err == nil || !strings.Contains(err.Error(), strconv.Quote(text)) {
			t.Errorf("%q: got %d, %v, want an error that quotes it", text, got, err)
		}
	}
}

func TestCheckAddress(t *testing.T) {
	for address, ok := range map[string]bool{"host:16020": true, "127.0.0.1:1": true, "[::1]:65535": true,
		"host": false, ":4280": false, "host:": false, "host:0": false, "host:65536": false, "host:http": false,
		"::1": false, "hbase:host:2181": false} {
		if err := CheckAddress("X", address); (err == nil) != ok {
			t.Errorf("%q: got %v, want accepted %t", address, err, ok)
		}
	}
}

func TestUnknown(t *testing.T) {
	if err := Unknown([]string{"PATH=/bin", "DOWNPOUR_STORE=x", "DOWNPOUR_BESIDE=y"}); err != nil {
		t.Error(err)
	}
	err := Unknown([]string{"DOWNPOUR_STOER=x", "DOWNPOUR_LISTENS=y"})
	if err == nil || !strings.Contains(err.Error(), "DOWNPOUR_STOER") ||
		!strings.Contains(err.Error(), "DOWNPOUR_LISTENS") {
		t.Errorf("got %v, want both names", err)
	}
	if err := Unknown([]string{"DOWNPOUR_HBASE_TLS="}); err == nil ||
		!strings.Contains(err.Error(), "DOWNPOUR_HBASE_TLS: got nothing") {
		t.Errorf("got %v, want that an empty DOWNPOUR_HBASE_TLS is refused", err)
	}
	if err := Unknown([]string{"DOWNPOUR_HBASE_TLS=off", "DOWNPOUR_HBASE_KERBEROS="}); err != nil {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	c := struct {
		Common
		Peers []string `env:"X_PEERS"`
	}{Common: valid(), Peers: []string{"a:1", "b:2"}}
	got := List(&c)
	if diff := cmp.Diff([]Value{{"DOWNPOUR_STORE", "pebble:data"}, {"X_PEERS", "a:1,b:2"}},
		[]Value{got[0], got[len(got)-1]}); diff != "" {
		t.Error(diff)
	}
}

// OutsideHeap is the part of the budget that Go's heap cannot have: the embedded store's cache
// and memtables.
func TestCommon_OutsideHeap(t *testing.T) {
	f := func(store, budget string, cache, memTables int64) {
		t.Helper()
		c := Common{Store: store, Memory: budget}
		if got := c.StoreCacheBytes(); got != cache {
			t.Errorf("%s, %s: got a cache of %d bytes, want %d", store, budget, got, cache)
		}
		if got := c.OutsideHeap(); got != cache+memTables {
			t.Errorf("%s, %s: got %d bytes, want %d", store, budget, got, cache+memTables)
		}
	}
	f("pebble:data", "64MiB", 64<<20/20, 8<<20) // a cache has a twentieth, see memory.CacheShare
	f("pebble:data", "256MiB", 256<<20/20, 32<<20)
	f("pebble:data", "16GiB", 128<<20, 128<<20)
	f("hbase:localhost:2181", "256MiB", 0, 0)
}

// Certificates of gateways guard a pushdown server as tokens do.
func TestPushdown_certificates(t *testing.T) {
	c := Pushdown{Common: valid(), Listen: "0.0.0.0:4280", Compaction: Compaction{Compact: "off"}}
	if err := c.Validate(); err == nil {
		t.Error("an unguarded server may listen for other machines")
	}
	c.PushdownCA, c.TLSCert, c.TLSKey = "ca", "cert", "key"
	if err := c.Validate(); err != nil {
		t.Errorf("with an authority: %v", err)
	}
}

// TestPushdown_compaction: the rate is off or a number of rows a second, on HBase alone, with a
// margin and a table of its own.
func TestPushdown_compaction(t *testing.T) {
	f := func(want string, rate float64, change func(*Pushdown)) {
		t.Helper()
		c := Pushdown{
			Common:     valid(),
			Listen:     "127.0.0.1:4280",
			Compaction: Compaction{Compact: "500", CompactMargin: time.Minute},
			TableState: "state",
		}
		c.Store = "hbase:localhost:2181"
		change(&c)
		err := c.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
		if got, _ := c.CompactRate(); got != rate {
			t.Errorf("got rate %v, want %v", got, rate)
		}
	}
	f("", 500, func(*Pushdown) {})
	f("", 0, func(c *Pushdown) { c.Compact = "off" })
	f("", 0, func(c *Pushdown) { c.Compact, c.Store = "", "pebble:data" })
	for _, rate := range []string{"0", "-1", "1.5", "500/s", "1000001"} {
		f("DOWNPOUR_COMPACT: got \""+rate, 0, func(c *Pushdown) { c.Compact = rate })
	}
	f("keeps the points of a row in one cell by itself", 500, func(c *Pushdown) { c.Store = "pebble:data" })
	f("DOWNPOUR_COMPACT_MARGIN: got 0s", 500, func(c *Pushdown) { c.CompactMargin = 0 })
	f("DOWNPOUR_TABLE_STATE", 500, func(c *Pushdown) { c.TableState = c.TableData })
	f("DOWNPOUR_TABLE_STATE", 500, func(c *Pushdown) { c.TableState = "" })
	f("DOWNPOUR_TABLE_STATE", 0, func(c *Pushdown) { c.Compact, c.TableState, c.Announce = "off", "", "rs1:4280" })
}

// The certificate that servers of an installation share is read again for each connection, so that
// one that is replaced locks nobody out; servers of the system's authorities stay trusted.
func TestPushdownTLS_shared(t *testing.T) {
	first, second := certificatestest.NewCA(t), certificatestest.NewCA(t)
	c := Common{TLSCert: first.File, TLSKey: "unused"}
	now, err := c.PushdownTLS(nil)
	if err != nil {
		t.Fatal(err)
	}
	before := now().RootCAs
	text, err := os.ReadFile(second.File)
	if err == nil {
		err = os.WriteFile(first.File, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if now().RootCAs.Equal(before) {
		t.Error("the certificate of before is trusted after it was replaced")
	}
}

// Pre-aggregates need not be readable where rollups are made by ourselves, who make none of them.
func TestRollupTablesRead(t *testing.T) {
	const rollups = `{"aggregationIds":{"sum":0,"count":1},"intervals":[
		{"table":"tsdb","preAggregationTable":"pre","interval":"1m","rowSpan":"1h","defaultInterval":true},
		{"table":"r1h","preAggregationTable":"r1h-pre","interval":"1h","rowSpan":"1d"},
		{"table":"r1d","preAggregationTable":"r1d-pre","interval":"1d","rowSpan":"1n"}]}`
	for text, want := range map[string][]string{
		"":                nil,
		rollups:           {"pre", "r1d", "r1d-pre", "r1h", "r1h-pre"},
		"auto:" + rollups: {"r1d", "r1h"},
		"auto:{":          nil,
	} {
		c := &Common{TableData: "tsdb", TableUID: "tsdb-uid", Rollups: text}
		if got := c.RollupTablesRead(); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
