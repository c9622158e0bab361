// Package settings is the configuration that gateway and pushdown server share:
// the variables of the environment, what they mean and what they default to.
// Only a main reads the environment; the structs here say which variable goes
// where, in the tags of caarlos0/env.
package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"

	"downpour/encoding"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/process/memory"
)

// Common holds for gateway and pushdown server alike: store, tables, layout,
// and who may connect.
type Common struct {
	// Store is pebble:DIR or hbase:HOST:PORT[,HOST:PORT…][/znode].
	Store string `env:"DOWNPOUR_STORE" envDefault:"pebble:data"`
	// Tables, as OpenTSDB's tsd.storage.hbase.*_table.
	TableData string `env:"DOWNPOUR_TABLE_DATA" envDefault:"tsdb"`
	TableUID  string `env:"DOWNPOUR_TABLE_UID" envDefault:"tsdb-uid"`
	TableMeta string `env:"DOWNPOUR_TABLE_META" envDefault:"tsdb-meta"`
	TableTree string `env:"DOWNPOUR_TABLE_TREE" envDefault:"tsdb-tree"`
	// Layout of row keys; it must be that of the rows there are.
	SaltWidth   int `env:"DOWNPOUR_SALT_WIDTH" envDefault:"0"`
	SaltBuckets int `env:"DOWNPOUR_SALT_BUCKETS" envDefault:"20"`
	MetricWidth int `env:"DOWNPOUR_UID_WIDTH_METRIC" envDefault:"3"`
	TagKWidth   int `env:"DOWNPOUR_UID_WIDTH_TAGK" envDefault:"3"`
	TagVWidth   int `env:"DOWNPOUR_UID_WIDTH_TAGV" envDefault:"3"`
	// Seek lets queries for some series remember which tags come before the
	// wanted ones in row keys, so that later ones seek to their rows.
	Seek bool `env:"DOWNPOUR_SEEK" envDefault:"true"`
	// ResultCache bounds the memory of the result cache, in
	// bytes; "off" remembers none.
	ResultCache string `env:"DOWNPOUR_RESULT_CACHE" envDefault:"128MiB"`

	// Memory bounds the bytes that the process may hold for queries, puts, live
	// queries and caches together; empty is a quarter of the machine's or cgroup's.
	// A GOMEMLIMIT that is set counts instead.
	Memory string `env:"DOWNPOUR_MEMORY"`

	// TokenFile holds one SCOPE TOKEN a line.
	TokenFile string `env:"DOWNPOUR_TOKEN_FILE"`
	// TLSCert and TLSKey are PEM files; both or none.
	TLSCert string `env:"DOWNPOUR_TLS_CERT"`
	TLSKey  string `env:"DOWNPOUR_TLS_KEY"`
	// Insecure allows listening beyond loopback without a token file.
	Insecure bool `env:"DOWNPOUR_INSECURE" envDefault:"false"`
}

// Pushdown is the configuration of the pushdown server.
type Pushdown struct {
	Common
	// Listen is the Flight address.
	Listen string `env:"DOWNPOUR_PUSHDOWN_LISTEN" envDefault:"127.0.0.1:4280"`
	// Beside is the region server, host:port, on whose machine this runs.
	Beside string `env:"DOWNPOUR_BESIDE"`
}

// Validate returns every fault at once, each naming its variable.
func (c *Pushdown) Validate() error {
	err := c.Common.Validate("DOWNPOUR_PUSHDOWN_LISTEN", c.Listen)
	if c.Beside != "" {
		err = errors.Join(err, CheckAddress("DOWNPOUR_BESIDE", c.Beside))
	}
	return err
}

// Schema is the layout of the tables.
func (c *Common) Schema() encoding.Schema {
	s := encoding.DefaultSchema()
	s.SaltWidth, s.SaltBuckets = c.SaltWidth, c.SaltBuckets
	s.MetricWidth, s.TagKWidth, s.TagVWidth = c.MetricWidth, c.TagKWidth, c.TagVWidth
	return s
}

// SeekMemory is what queries remember by, nil if they shall not.
func (c *Common) SeekMemory() *access.PrefixCache {
	if !c.Seek {
		return nil
	}
	return access.NewPrefixCache()
}

// ResultCacheBytes is the bound of the result cache in bytes, 0 for none.
func (c *Common) ResultCacheBytes() (int64, error) {
	if c.ResultCache == "off" || c.ResultCache == "" {
		return 0, nil
	}

	n, err := ParseBytes(c.ResultCache)
	if err != nil {
		return 0, fmt.Errorf("DOWNPOUR_RESULT_CACHE: got %q, want off or a number of bytes, such as 128MiB", c.ResultCache)
	}
	return n, nil
}

// MemoryBytes is what the operator asks for, 0 for the default.
func (c *Common) MemoryBytes() (int64, error) {
	if c.Memory == "" {
		return 0, nil
	}
	n, err := ParseBytes(c.Memory)
	if err != nil || n < memory.Least {
		return 0, fmt.Errorf("DOWNPOUR_MEMORY: got %q, want a number of bytes, such as 4GiB, of at least %d MiB", c.Memory, memory.Least>>20)
	}
	return n, nil
}

// MemoryPool is the process's budget of memory, which it tells in the log. It is
// made once.
func (c *Common) MemoryPool(log *slog.Logger) (*memory.Pool, error) {
	asked, err := c.MemoryBytes()
	if err != nil {
		return nil, err
	}
	bytes, from := memory.Budget(asked)
	log.Info("memory that queries, puts, live queries and caches may hold together", "bytes", bytes, "from", from)
	pool := memory.New(bytes)
	if c.Embedded() {
		pool.Cache(storeCacheUsual)
	}
	return pool, nil
}

// StoreCacheBytes is what the embedded store's cache of blocks may hold; 0 if the
// store is not embedded.
func (c *Common) StoreCacheBytes() int64 { return StoreCache(c.embeddedBudget()) }

// OutsideHeap is what of the process's budget lies outside of Go's heap, in bytes:
// the embedded store's cache of blocks and its memtables, which C's allocator has.
// 0 is none.
func (c *Common) OutsideHeap() int64 {
	budget := c.embeddedBudget()
	return StoreCache(budget) + min(storeMemTables, budget/8)
}

// embeddedBudget is the process's budget if its store is embedded, else 0.
func (c *Common) embeddedBudget() int64 {
	if !c.Embedded() {
		return 0
	}
	asked, err := c.MemoryBytes()
	if err != nil {
		return 0 // MemoryPool tells it
	}
	bytes, _ := memory.Budget(asked)
	return bytes
}

// storeMemTables is what all memtables of the embedded store hold at most: eight of
// 4 MiB.
const storeMemTables = 32 << 20

// storeCacheUsual is the embedded store's cache where memory is not short.
const storeCacheUsual = 128 << 20

// StoreCache is what the embedded store's cache of blocks may hold of a budget.
func StoreCache(budget int64) int64 { return min(storeCacheUsual, memory.CacheShare(budget)) }

// ParseBytes reads a number of bytes with or without KiB, MiB or GiB behind it.
func ParseBytes(text string) (int64, error) {
	digits, shift := text, 0
	for _, unit := range []struct {
		name  string
		shift int
	}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}} {
		if d, ok := strings.CutSuffix(text, unit.name); ok {
			digits, shift = strings.TrimSpace(d), unit.shift
		}
	}
	n, err := strconv.ParseUint(digits, 10, 62)
	if err != nil || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("cannot read %q as a number of bytes, want digits, or digits with KiB, MiB or GiB", text)
	}
	return int64(n) << shift, nil
}

// Embedded tells whether the store is the embedded one.
func (c *Common) Embedded() bool { return strings.HasPrefix(c.Store, "pebble:") }

// Validate returns every fault at once, each naming its variable. listen is the
// address to listen on, which the variable of the given name holds.
func (c *Common) Validate(variable, listen string) error {
	var errs []error
	kind, where, _ := strings.Cut(c.Store, ":")
	if where == "" || kind != "pebble" && kind != "hbase" {
		errs = append(errs, fmt.Errorf("DOWNPOUR_STORE: got %q, want pebble:DIR or hbase:HOST:PORT[,HOST:PORT…][/znode]", c.Store))
	}
	if err := c.Schema().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("DOWNPOUR_SALT_*, DOWNPOUR_UID_WIDTH_*: %w", err))
	}
	if _, err := c.ResultCacheBytes(); err != nil {
		errs = append(errs, err)
	}
	if _, err := c.MemoryBytes(); err != nil {
		errs = append(errs, err)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		errs = append(errs, errors.New("DOWNPOUR_TLS_CERT and DOWNPOUR_TLS_KEY: only one of them is set, want both or none"))
	}
	return errors.Join(append(errs, c.checkListen(variable, listen))...)
}
