// Package store is what Downpour asks of a place that keeps rows: ordered
// byte keys, cells inside a row, scans that return whole rows, durable writes
// and two atomic cell operations. It knows bytes only: no metric, no UID, no
// hour. Two stores implement it, pushdown/store/hbase and
// pushdown/store/pebble, and both pass pushdown/store/storetest.
//
// The data model is HBase's. A table holds rows in unsigned byte order of
// their keys (a key that is a prefix of another comes first); a row holds
// cells ordered by family, then qualifier; each cell keeps its latest version
// with the time of its write in milliseconds.
package store

import "context"

// Store is one HBase cluster or one embedded database. All methods may be
// called from many goroutines at once. Every method honours its context's
// deadline; against an unreachable server nothing waits longer.
type Store interface {
	Reader
	Writer
	Atomic
	// Close releases connections and files. Scanners must be closed before.
	Close() error
}

// Reader reads rows.
type Reader interface {
	// Scan opens a scanner over s. The context bounds the whole scan, not
	// the opening alone. What a server cannot filter it returns: a scan may
	// deliver rows that s.Filter would reject, never fewer than it admits.
	Scan(ctx context.Context, s Scan) (Scanner, error)
	// Get returns the rows of keys that exist, in the order of keys, whole
	// or, with a family, only its cells. Missing rows are left out.
	Get(ctx context.Context, table, family string, keys [][]byte) ([]Row, error)
	// Regions lists the regions that touch [start, stop) in key order,
	// without a hole between them. An empty stop is the table's end. The
	// embedded store has one region with an empty server.
	Regions(ctx context.Context, table string, start, stop []byte) ([]Region, error)
}

// Writer writes cells.
type Writer interface {
	// Apply writes all mutations and returns once they are durable: on HBase
	// as durable as the table's write-ahead log makes them, embedded after
	// fsync. Mutations of one row in one call are applied together. After an
	// error any part of them may have been applied; a *ApplyError tells
	// which ones certainly were not acknowledged. Applying puts and deletes
	// again is harmless. Once it has returned nil, the mutations' memory is
	// the caller's again, but for the row keys, which must never change.
	Apply(ctx context.Context, table string, mutations []Mutation) error
}

// Atomic changes one cell atomically.
type Atomic interface {
	// Increment adds delta to the 8-byte big-endian counter of a cell (0 if
	// absent) and returns the new value. After an error the increment may
	// have happened.
	Increment(ctx context.Context, table string, cell CellKey, delta int64) (int64, error)
	// CompareAndPut writes value if the cell holds expected; a nil or empty
	// expected means that the cell must not exist. It reports whether it
	// wrote. After an error the write may have happened.
	CompareAndPut(ctx context.Context, table string, cell CellKey, expected, value []byte) (bool, error)
}

// Stager is a store that can let atomic operations return before the disk has
// them. The embedded store is one.
type Stager interface {
	// Staged are the same operations; what they wrote is visible when they
	// return, soon durable, and durable before anything is that is written
	// later.
	Staged() Atomic
	// Sync returns once everything is durable that was visible when it was
	// called.
	Sync(ctx context.Context) error
}

// Gauge is a store that knows beforehand whether it refuses writes. The embedded
// store is one.
type Gauge interface {
	// Writable tells why a write would be refused now, nil if it would not.
	Writable() error
}

// Admin creates and describes tables. Both stores have it; gateway processes
// use it only for -create-tables and for checks at start.
type Admin interface {
	// CreateTable creates a table and reads its attributes back; an attribute
	// that the server did not take is an error. ErrTableExists if it exists.
	CreateTable(ctx context.Context, spec TableSpec) error
	// TableExists tells whether a table is there to be read.
	TableExists(ctx context.Context, name string) (bool, error)
}

// CellKey names one cell of a table.
type CellKey struct {
	Row       []byte
	Family    string
	Qualifier []byte
}

// Cell is one cell of a row. Its slices are views, valid as long as the block
// or answer that they came in.
type Cell struct {
	Family    []byte
	Qualifier []byte
	Value     []byte
	Timestamp int64 // time of the write, ms since 1970; 0 where the store keeps none
}

// Row is a whole row: every cell that the scan asked for, ordered by family
// and qualifier.
type Row struct {
	Key   []byte
	Cells []Cell
}

// Scanner returns a scan's rows. It is for one goroutine.
type Scanner interface {
	// Next returns the next rows in key order, at least one, all whole: no
	// row is ever split between two blocks. The rows stay valid until the
	// next call of Next or Close. io.EOF ends the scan; any other error means
	// that rows are missing, and the scan cannot be continued.
	Next() ([]Row, error)
	// Stats tells what the scan has cost so far.
	Stats() ScanStats
	// Close ends the scan, at the server too. It may be called at any time,
	// any number of times.
	Close() error
}

// ScanStats counts a scan's work. Scanned counts are the server's own where it
// tells them, else those of rows returned.
type ScanStats struct {
	Rows, Cells, Bytes int64 // delivered to the caller; bytes as on the wire
	RowsScanned        int64 // looked at by the server
	RPCs, Resumes      int64 // calls made; reopenings after a fault
}

// Region is a key interval that one server holds.
type Region struct {
	Start, Stop []byte // half-open; an empty Stop is the table's end
	Server      string // host:port, empty for the embedded store
	Name        string
}

// MutationKind says what a Mutation does to its cell.
type MutationKind uint8

const (
	Put        MutationKind = iota // set the cell's value
	Append                         // add bytes to the end of the cell's value
	DeleteCell                     // remove the cell
	DeleteRow                      // remove every cell of the row's family
)

// Mutation is one change of one cell. Timestamp 0 means the store's clock.
type Mutation struct {
	Kind      MutationKind
	Row       []byte
	Family    string
	Qualifier []byte
	Value     []byte
	Timestamp int64
}

// TableSpec describes a table to create.
type TableSpec struct {
	Name     string
	Families []FamilySpec
	Splits   [][]byte // first keys of the second, third, … region
}

// FamilySpec describes a column family. Attribute names are HBase's:
// BLOOMFILTER, VERSIONS, COMPRESSION, DATA_BLOCK_ENCODING, TTL, ….
type FamilySpec struct {
	Name       string
	Attributes map[string]string
}
