// Package store is the interface of Downpour's storage of rows: ordered byte keys,
// cells inside a row, scans that return complete rows, durable writes and two atomic
// operations on cells. It knows bytes only: no metric, no UID, no hour. Two stores
// implement it, pushdown/store/hbase and pushdown/store/pebble, and both pass the tests
// of pushdown/store/storetest.
//
// The data model is HBase's. A table holds rows in unsigned byte order of
// their keys (a key that is a prefix of another comes first); a row holds
// cells ordered by family, then qualifier; each cell keeps its latest version
// with the time of its write in milliseconds.
package store

import (
	"bytes"
	"context"
)

// Store is one HBase cluster or one embedded database. All methods may be called concurrently. No
// method waits for a server beyond its context's deadline.
type Store interface {
	Cells
	Admin
	// Close releases connections and files. Scanners must be closed before.
	Close() error
}

// Cells reads and changes the cells of all tables: a store without Close, for users that neither
// open nor close it.
type Cells interface {
	Reader
	Writer
	Atomic
	// Replace carries out changes of rows, each of another row, on the condition that they
	// are as they were read, and returns the outcome of each. Concurrent writes are never
	// lost: a row in which anything has changed since it was read keeps every cell that is
	// not in Read unchanged, and loses no value. It returns once everything is durable.
	// After an error any of the changes may have been carried out in part; cells in Delete
	// are deleted only after those in Put exist.
	Replace(ctx context.Context, table, family string, changes []Replacement) ([]Outcome, error)
}

// Reader reads rows.
type Reader interface {
	// Scan opens a scanner. The context bounds the scan until it is closed, not
	// only its opening. A scan returns every row that s.Filter admits, and may return
	// others: what a server cannot filter it returns.
	Scan(ctx context.Context, s Scan) (Scanner, error)
	// Get returns the rows of keys that exist, in the order of keys, with all cells or,
	// if a family is named, with its cells only. Missing rows are left out. The result
	// for a key that is given twice is undefined.
	Get(ctx context.Context, table, family string, keys [][]byte) ([]Row, error)
	// Regions returns the regions that overlap [start, stop), in the order of their
	// keys and without a hole between them. An empty stop is the table's end. The
	// embedded store has one region with an empty server.
	Regions(ctx context.Context, table string, start, stop []byte) ([]Region, error)
	// Features returns what the store can do beyond these interfaces. It is the same at each call.
	Features() Features
}

// Writer writes cells.
type Writer interface {
	// Apply writes all mutations and returns once they are durable: on HBase as
	// durable as the table's write-ahead log makes them, embedded after fsync.
	// Mutations of one row in one call are applied together. After an error any part
	// of them may have been applied; an *ApplyError names the ones that certainly
	// were not acknowledged. Puts and deletes may be applied again without harm. Once
	// Apply has returned nil, the caller may use the mutations' memory again, except
	// that of the row keys, which must never change.
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

// Staged are atomic operations that can return before they are durable. Their writes are visible
// when they return, and durable soon: before any later write.
type Staged interface {
	Atomic
	// PutAbsent is Features.PutAbsent.
	PutAbsent(ctx context.Context, table string, cells []CellKey, values [][]byte) ([]bool, error)
	// Sync returns once everything is durable that was visible when it was
	// called.
	Sync(ctx context.Context) error
}

// Admin creates and describes tables. Gateway processes
// use it only for -create-tables and for checks at start.
type Admin interface {
	// CreateTable creates a table and reads its attributes back; an attribute that
	// the server has not taken over is an error. It returns ErrTableExists if the
	// table exists.
	CreateTable(ctx context.Context, spec TableSpec) error
	// TableExists reports whether a table exists and can be read.
	TableExists(ctx context.Context, name string) (bool, error)
}

// CellKey names one cell of a table.
type CellKey struct {
	Row       []byte
	Family    string
	Qualifier []byte
}

// Cell is one cell of a row. Its slices are views, which are valid as long as the block
// of Next, or the result of Get, that they came in.
type Cell struct {
	Family    []byte
	Qualifier []byte
	Value     []byte
	Timestamp int64 // time of the write, ms since 1970; 0 if the store keeps none
}

// Clone returns a copy that is valid for ever.
func (c Cell) Clone() Cell {
	return Cell{
		Family:    bytes.Clone(c.Family),
		Qualifier: bytes.Clone(c.Qualifier),
		Value:     bytes.Clone(c.Value),
		Timestamp: c.Timestamp,
	}
}

// Row is a row with every requested cell, ordered by family and qualifier.
type Row struct {
	Key   []byte
	Cells []Cell
}

// Scanner returns a scan's rows. It is for one goroutine.
type Scanner interface {
	// Next returns a block of the next rows in key order, at least one; no row is split
	// between two blocks. The rows stay valid until the next call of Next or Close. The
	// error io.EOF itself ends the scan. Any other error means that rows are missing, and that
	// the scan cannot continue, even one that wraps io.EOF: a server that closes its connection
	// causes such a one.
	Next() ([]Row, error)
	// NextBytes returns about the most bytes that the next block takes, with references
	// to them, so that callers with a budget can reserve it; 0 if that is unknown. A
	// block of one large row may take more.
	NextBytes() int64
	// Stats returns what the scan has cost so far.
	Stats() ScanStats
	// Close ends the scan, also at the server. It may be called at any time, any number
	// of times.
	Close() error
}

// ScanStats counts a scan's work.
type ScanStats struct {
	Rows, Cells, Bytes int64 // returned to the caller; bytes as on the wire
	RowsScanned        int64 // read by the server; if unknown, the rows returned
	RPCs, Resumes      int64 // calls made; times the scan was opened again after a fault
}

// Region is a key interval that one server holds.
type Region struct {
	Start, Stop []byte // half-open; an empty Stop is the table's end
	Server      string // host:port, empty for the embedded store
	Name        string
}

// MutationKind is what a Mutation does to its cell.
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
