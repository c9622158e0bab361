// Package settings is the configuration that gateway and pushdown server share: the
// environment variables, their meaning and their defaults. Only main packages read the
// environment; the structs here name the variable of each field in the tags of
// caarlos0/env.
package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"downpour/encoding"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/rollup"
)

// Common is the configuration that gateway and pushdown server have in common: store,
// tables, layout of row keys, memory, who may connect, and the log.
type Common struct {
	// Store is pebble:DIR, hbase:HOST:PORT[,HOST:PORT…][/znode] for the servers of ZooKeeper,
	// or hbase+rpc://HOST:PORT[,HOST:PORT…] for masters and region servers.
	Store string `env:"DOWNPOUR_STORE" envDefault:"pebble:data"`
	// The names of the tables, as in OpenTSDB's tsd.storage.hbase.*_table.
	TableData string `env:"DOWNPOUR_TABLE_DATA" envDefault:"tsdb"`
	TableUID  string `env:"DOWNPOUR_TABLE_UID" envDefault:"tsdb-uid"`
	TableMeta string `env:"DOWNPOUR_TABLE_META" envDefault:"tsdb-meta"`
	TableTree string `env:"DOWNPOUR_TABLE_TREE" envDefault:"tsdb-tree"`
	// Rollups is OpenTSDB's tsd.rollups.config: the path of a file that ends in .json, or
	// the JSON itself; empty for no rollups. After auto: it is of rollups that Downpour computes
	// ourselves.
	Rollups string `env:"DOWNPOUR_ROLLUPS"`
	// The layout of row keys; it must be that of the rows that exist.
	SaltWidth   int `env:"DOWNPOUR_SALT_WIDTH" envDefault:"0"`
	SaltBuckets int `env:"DOWNPOUR_SALT_BUCKETS" envDefault:"20"`
	MetricWidth int `env:"DOWNPOUR_UID_WIDTH_METRIC" envDefault:"3"`
	TagKWidth   int `env:"DOWNPOUR_UID_WIDTH_TAGK" envDefault:"3"`
	TagVWidth   int `env:"DOWNPOUR_UID_WIDTH_TAGV" envDefault:"3"`
	// Seek allows skip scans: queries for a few series learn which tags come before the wanted ones
	// in row keys, so that later queries seek to their rows.
	Seek bool `env:"DOWNPOUR_SEEK" envDefault:"true"`
	// ResultCache bounds the memory of the result cache, in bytes; "off" caches
	// nothing.
	ResultCache string `env:"DOWNPOUR_RESULT_CACHE" envDefault:"128MiB"`
	// ResultCacheProof is how it is proven on HBase that rows have not changed: exact or
	// timestamps.
	ResultCacheProof string `env:"DOWNPOUR_RESULT_CACHE_PROOF" envDefault:"exact"`

	HBaseSecurity

	// Memory bounds the bytes that the process may hold for queries, puts, live
	// queries and caches together. Empty means a quarter of the memory of the machine
	// or its cgroup. GOMEMLIMIT takes precedence if it is set.
	Memory string `env:"DOWNPOUR_MEMORY"`

	// TokenFile is the path of a file with SCOPE TOKEN in each line.
	TokenFile string `env:"DOWNPOUR_TOKEN_FILE"`
	// TLSCert and TLSKey are the paths of PEM files; both are set or none.
	TLSCert string `env:"DOWNPOUR_TLS_CERT"`
	TLSKey  string `env:"DOWNPOUR_TLS_KEY"`
	// PushdownCA is the path of a PEM file with the authority of the certificates of gateways
	// and pushdown servers: mutual TLS between them, in place of tokens or in addition to
	// them.
	PushdownCA string `env:"DOWNPOUR_PUSHDOWN_CA"`
	// Insecure allows listening beyond loopback without a token file.
	Insecure bool `env:"DOWNPOUR_INSECURE" envDefault:"false"`

	LogConfig
}

// Pushdown is the configuration of the pushdown server.
type Pushdown struct {
	Common
	// Listen is the Flight address.
	Listen string `env:"DOWNPOUR_PUSHDOWN_LISTEN" envDefault:"127.0.0.1:4280"`
	// Beside is the region server, HOST:PORT, on whose machine this server runs.
	Beside string `env:"DOWNPOUR_BESIDE"`
	// Announce is the address, HOST:PORT, at which gateways reach this server: it is announced to those that find
	// their servers. Empty announces nothing.
	Announce string `env:"DOWNPOUR_ANNOUNCE"`
	Compaction
	// FixDuplicates makes the newer of two values of one time count when rows are compacted.
	FixDuplicates bool `env:"DOWNPOUR_FIX_DUPLICATES" envDefault:"false"`
	// TableState is the table of Downpour's own data, such as leases of jobs and announcements.
	TableState string `env:"DOWNPOUR_TABLE_STATE" envDefault:"downpour-state"`
}

// Validate returns all faults together, each with the name of its variable.
func (c *Pushdown) Validate() error {
	err := c.Common.Validate(pushdownListen, c.Listen)
	if c.Beside != "" {
		err = errors.Join(err, CheckAddress("DOWNPOUR_BESIDE", c.Beside))
	}
	if c.Announce != "" {
		err = errors.Join(err, CheckAddress("DOWNPOUR_ANNOUNCE", c.Announce))
	}
	return errors.Join(err, c.Compaction.Validate(&c.Common), c.validateState())
}

// validateState checks our own table, which nothing but the compaction and announcements need here.
func (c *Pushdown) validateState() error {
	if rate, _ := c.CompactRate(); rate == 0 && c.Announce == "" {
		return nil
	}
	if other := append(c.RollupTables(), c.TableData, c.TableUID, c.TableMeta, c.TableTree); c.TableState == "" ||
		slices.Contains(other, c.TableState) {
		return fmt.Errorf("DOWNPOUR_TABLE_STATE: got %q, want a table of its own", c.TableState)
	}
	return nil
}

// Schema returns the layout of the tables.
func (c *Common) Schema() encoding.Schema {
	s := encoding.DefaultSchema()
	s.SaltWidth, s.SaltBuckets = c.SaltWidth, c.SaltBuckets
	s.MetricWidth, s.TagKWidth, s.TagVWidth = c.MetricWidth, c.TagKWidth, c.TagVWidth
	return s
}

// SeekMemory returns the place where queries keep the key prefixes that skip scans
// need, nil if there are to be none.
func (c *Common) SeekMemory() *access.PrefixCache {
	if !c.Seek {
		return nil
	}
	return access.NewPrefixCache()
}

// ResultCacheBytes returns the bound of the result cache in bytes, 0 if nothing is to
// be cached.
func (c *Common) ResultCacheBytes() (int64, error) {
	if c.ResultCache == "off" || c.ResultCache == "" {
		return 0, nil
	}

	n, err := ParseNumber(c.ResultCache)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("DOWNPOUR_RESULT_CACHE: got %q, want off or a number of bytes, such as 128MiB",
			c.ResultCache)
	}
	return n, nil
}

// ProofByTimestamps reports whether rows of HBase may be proven unchanged by the timestamps of
// changes.
func (c *Common) ProofByTimestamps() bool { return c.ResultCacheProof == "timestamps" }

// MemoryBytes returns the budget of memory that is set, 0 for the default.
func (c *Common) MemoryBytes() (int64, error) {
	if c.Memory == "" {
		return 0, nil
	}

	n, err := ParseNumber(c.Memory)
	if err != nil || n < memory.Least {
		return 0, fmt.Errorf("DOWNPOUR_MEMORY: got %q, want a number of bytes, such as 4GiB, of at least %d MiB",
			c.Memory, memory.Least>>20)
	}
	return n, nil
}

// MemoryPool returns a pool with the process's budget of memory, and logs the budget.
// It must be called only once, because each pool has the whole budget.
func (c *Common) MemoryPool(log *slog.Logger) (*memory.Pool, error) {
	asked, err := c.MemoryBytes()
	if err != nil {
		return nil, err
	}
	bytes, from := memory.Budget(asked)
	log.Info("memory limit of queries, puts, live queries and caches together", "bytes", bytes, "from", from)

	pool := memory.New(bytes)
	// The store's cache of blocks has as many bytes, see StoreCacheBytes.
	if c.Embedded() {
		pool.Cache(maxStoreCache)
	}
	return pool, nil
}

// StoreCacheBytes returns the bound of the embedded store's cache of blocks, 0 if the
// store is not embedded.
func (c *Common) StoreCacheBytes() int64 { return StoreCache(c.embeddedBudget()) }

// OutsideHeap returns how many bytes of the process's budget lie outside of Go's heap:
// the embedded store's cache of blocks and its memtables, which C's malloc allocates.
func (c *Common) OutsideHeap() int64 {
	return c.StoreCacheBytes() + c.StoreMemTablesBytes()
}

// StoreMemTablesBytes returns the bound of all memtables of the embedded store together, 0 if the store
// is not embedded.
func (c *Common) StoreMemTablesBytes() int64 { return min(maxStoreMemTables, c.embeddedBudget()/8) }

// embeddedBudget returns the process's budget if its store is embedded, otherwise 0.
func (c *Common) embeddedBudget() int64 {
	if !c.Embedded() {
		return 0
	}
	asked, err := c.MemoryBytes()
	if err != nil {
		return 0 // MemoryPool returns the error
	}
	bytes, _ := memory.Budget(asked)
	return bytes
}

// maxStoreMemTables bounds the embedded store's memtables where memory is not short: larger ones save
// little work.
const maxStoreMemTables = 128 << 20

// maxStoreCache bounds the embedded store's cache where memory is not short.
const maxStoreCache = 128 << 20

// StoreCache returns how much of a budget the embedded store's cache of blocks may hold.
func StoreCache(budget int64) int64 { return min(maxStoreCache, memory.CacheShare(budget)) }

// RollupConfig returns the rollups, nil if there are none. The error names what is wrong,
// also a rollup table that is one of OpenTSDB's four. (Raw pre-aggregates may be among raw
// data.)
func (c *Common) RollupConfig() (*rollup.Config, error) {
	if c.Rollups == "" {
		return nil, nil
	}
	config, err := rollup.Read(strings.TrimPrefix(c.Rollups, computedPrefix))
	if err != nil {
		return nil, err
	}
	if c.RollupsComputed() {
		if _, err := config.ComputedIntervals(); err != nil {
			return nil, err
		}
	}

	for _, t := range config.Tables() {
		if t == c.TableUID || t == c.TableMeta || t == c.TableTree || t == c.TableData && t != config.Raw().PreTable {
			return nil, fmt.Errorf("table %s holds no rollups", t)
		}
	}
	return config, nil
}

// computedPrefix is before a configuration of computed rollups.
const computedPrefix = "auto:"

// RollupsComputed reports whether Downpour computes the rollups of series, and nobody else writes any.
func (c *Common) RollupsComputed() bool { return strings.HasPrefix(c.Rollups, computedPrefix) }

// RollupTables returns the tables of a valid configuration's rollups and pre-aggregates, except the
// data table.
func (c *Common) RollupTables() (out []string) {
	config, err := c.RollupConfig()
	if config == nil || err != nil {
		return nil
	}
	for _, t := range config.Tables() {
		if t != c.TableData {
			out = append(out, t)
		}
	}
	return out
}

// RollupTablesRead returns those of RollupTables that must be readable: all, or only those of
// series if we make the rollups ourselves, because then there are no pre-aggregates.
func (c *Common) RollupTablesRead() []string {
	config, err := c.RollupConfig()
	if config == nil || err != nil || !c.RollupsComputed() {
		return c.RollupTables()
	}
	return config.SeriesTables()
}

// Embedded reports whether the store is the embedded store.
func (c *Common) Embedded() bool { return strings.HasPrefix(c.Store, "pebble:") }

// StoreAddress returns Store with the whole path of an embedded store, which means the same in any working directory,
// and is the same for all links to the directory.
func (c *Common) StoreAddress() string {
	dir, embedded := strings.CutPrefix(c.Store, "pebble:")
	path, err := filepath.Abs(dir)
	if !embedded || err != nil {
		return c.Store
	}

	// The end of the path may not exist yet.
	for there, rest := path, ""; ; there, rest = filepath.Dir(there), filepath.Join(filepath.Base(there), rest) {
		if real, err := filepath.EvalSymlinks(there); err == nil {
			return "pebble:" + filepath.Join(real, rest)
		}
		if there == filepath.Dir(there) {
			return "pebble:" + path
		}
	}
}

// Validate returns all faults together, each with the name of its variable. listen is
// the address to listen on, and variable the name of its variable.
func (c *Common) Validate(variable, listen string) error {
	var errs []error
	kind, where, _ := strings.Cut(c.Store, ":")
	if where == "" || kind != "pebble" && kind != "hbase" && kind != "hbase+rpc" {
		errs = append(
			errs, fmt.Errorf(
				"DOWNPOUR_STORE: got %q, want pebble:DIR, hbase:HOST:PORT[,HOST:PORT…][/znode] "+
					"or hbase+rpc://HOST:PORT[,HOST:PORT…]",
				c.Store))
	}

	if err := c.Schema().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("DOWNPOUR_SALT_*, DOWNPOUR_UID_WIDTH_*: %w", err))
	}
	if _, err := c.ResultCacheBytes(); err != nil {
		errs = append(errs, err)
	}
	if p := c.ResultCacheProof; p != "" && p != "exact" && p != "timestamps" {
		errs = append(errs, fmt.Errorf("DOWNPOUR_RESULT_CACHE_PROOF: got %q, want exact or timestamps", p))
	}
	if _, err := c.MemoryBytes(); err != nil {
		errs = append(errs, err)
	}

	if _, err := c.RollupConfig(); err != nil {
		errs = append(errs, fmt.Errorf("DOWNPOUR_ROLLUPS: %w", err))
	}

	errs = append(errs, c.LogConfig.validate()...)
	errs = append(errs, c.HBaseSecurity.validate()...)
	if (c.TLSCert == "") != (c.TLSKey == "") {
		errs = append(
			errs, errors.New("DOWNPOUR_TLS_CERT and DOWNPOUR_TLS_KEY: only one of them is set, want both or none"))
	}
	if c.PushdownCA != "" && (c.TLSCert == "" || c.TLSKey == "") {
		errs = append(
			errs, errors.New(
				"DOWNPOUR_PUSHDOWN_CA: is set without DOWNPOUR_TLS_CERT and DOWNPOUR_TLS_KEY, "+
					"want a certificate of that authority in these"))
	}
	return errors.Join(append(errs, c.checkListen(variable, listen))...)
}
