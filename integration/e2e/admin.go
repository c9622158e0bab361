package e2e

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Admin does administration that gohbase has no calls for, and reads cells with
// HBase's own client, through one long-lived Java program, java/Admin.java. Its methods may be called
// from several goroutines; they run one after the other.
type Admin struct{ *JavaProgram }

// newAdmin starts the program, which waits until the cluster serves.
func newAdmin(ctx context.Context, h *HBase) (*Admin, error) {
	program := "Admin.java"
	if strings.HasPrefix(h.options.Version, "1.") {
		program = "Admin1.java" // its client has other classes, and knows a few commands
	}
	p, err := h.StartJava(ctx, "admin", filepath.Join("integration", "e2e", "java", program), 192, sparing...)
	if err != nil {
		return nil, err
	}
	return &Admin{p}, nil
}

func (a *Admin) do(ctx context.Context, words ...string) error {
	_, err := a.Call(ctx, words...)
	return err
}

// Ready reports nil when exactly n region servers are live, the master is
// initialised and no region is in transition.
func (a *Admin) Ready(ctx context.Context, n int) error {
	return a.do(ctx, "ready", strconv.Itoa(n))
}

// CreateTable creates a table with the given families and split keys. Every
// family gets bloom filter ROW, one version, the encoding DIFF and the named
// compression (NONE, SNAPPY, …), as OpenTSDB's create_table.sh sets them.
func (a *Admin) CreateTable(ctx context.Context, table, compression string, families []string, splits ...[]byte) error {
	words := []string{"create", table, compression, strings.Join(families, ",")}
	for _, key := range splits {
		words = append(words, hex.EncodeToString(key))
	}
	return a.do(ctx, words...)
}

// CreateTableWith creates a table with family t as OpenTSDB has it, with so many replicas of each region and
// further values of the family, NAME=VALUE.
func (a *Admin) CreateTableWith(ctx context.Context, table string, replicas int, values ...string) error {
	return a.do(ctx, append([]string{"create with", table, strconv.Itoa(replicas)}, values...)...)
}

// Tables names the four tables of one OpenTSDB.
type Tables struct{ Data, UID, Meta, Tree string }

// All returns the four names.
func (t Tables) All() []string { return []string{t.Data, t.UID, t.Meta, t.Tree} }

// TablesWithPrefix returns the tables PREFIX, PREFIX-uid, PREFIX-meta and
// PREFIX-tree; with prefix "tsdb" these are OpenTSDB's defaults.
func TablesWithPrefix(prefix string) Tables {
	return Tables{Data: prefix, UID: prefix + "-uid", Meta: prefix + "-meta", Tree: prefix + "-tree"}
}

// CreateOpenTSDBTables creates the four tables as create_table.sh of OpenTSDB
// does, without compression; splits cut the data table.
func (a *Admin) CreateOpenTSDBTables(ctx context.Context, t Tables, splits ...[]byte) error {
	return errors.Join(
		a.CreateTable(ctx, t.UID, "NONE", []string{"id", "name"}),
		a.CreateTable(ctx, t.Data, "NONE", []string{"t"}, splits...),
		a.CreateTable(ctx, t.Tree, "NONE", []string{"t"}),
		a.CreateTable(ctx, t.Meta, "NONE", []string{"name"}),
	)
}

// DropTable disables and deletes a table.
func (a *Admin) DropTable(ctx context.Context, table string) error {
	return a.do(ctx, "drop", table)
}

// Tables lists the user tables.
func (a *Admin) Tables(ctx context.Context) ([]string, error) { return a.Call(ctx, "tables") }

// Describe returns the attributes of each family, FAMILY<tab>KEY<tab>VALUE a
// line, as HBase reports them.
func (a *Admin) Describe(ctx context.Context, table string) ([]string, error) {
	return a.Call(ctx, "describe", table)
}

// Flush writes the table's memory stores to files.
func (a *Admin) Flush(ctx context.Context, table string) error { return a.do(ctx, "flush", table) }

// Compact rewrites each region's files into one (a major compaction) and waits
// for the end.
func (a *Admin) Compact(ctx context.Context, table string) error {
	return a.do(ctx, "compact", table)
}

// Split cuts the region that holds key at key and waits until both halves are
// served.
func (a *Admin) Split(ctx context.Context, table string, key []byte) error {
	return a.do(ctx, "split", table, hex.EncodeToString(key))
}

// Merge joins two neighbouring regions, given by encoded name, and waits until
// the new one is served.
func (a *Admin) Merge(ctx context.Context, table, left, right string) error {
	return a.do(ctx, "merge", table, left, right)
}

// Move moves a region, given by encoded name, to the region server at
// host:port and waits until it is served there.
func (a *Admin) Move(ctx context.Context, table, encodedName, server string) error {
	return a.do(ctx, "move", table, encodedName, server)
}

// Region is one region of a table, in key order.
type Region struct {
	EncodedName string
	Start, Stop []byte // Stop is exclusive; empty means the end of the table
	Server      string // host:port
}

// Regions lists the regions of a table by start key.
func (a *Admin) Regions(ctx context.Context, table string) ([]Region, error) {
	lines, err := a.Call(ctx, "regions", table)
	if err != nil {
		return nil, err
	}
	regions := make([]Region, len(lines))
	for i, line := range lines {
		f := strings.Split(line, "\t")
		if len(f) != 4 {
			return nil, fmt.Errorf("regions of %s: line %q has %d fields, want 4", table, line, len(f))
		}
		start, err1 := hex.DecodeString(f[1])
		stop, err2 := hex.DecodeString(f[2])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("regions of %s: %w", table, err)
		}
		regions[i] = Region{EncodedName: f[0], Start: start, Stop: stop, Server: f[3]}
	}
	return regions, nil
}

// Cell is one cell as HBase's own client reads it.
type Cell struct {
	Row       []byte
	Family    string
	Qualifier []byte
	Value     []byte
}

// Scan returns every cell of a table in order, newest version only.
func (a *Admin) Scan(ctx context.Context, table string) ([]Cell, error) {
	lines, err := a.Call(ctx, "scan", table)
	if err != nil {
		return nil, err
	}
	cells := make([]Cell, len(lines))
	for i, line := range lines {
		if cells[i], err = parseCell(line); err != nil {
			return nil, fmt.Errorf("scan of %s: %w", table, err)
		}
	}
	return cells, nil
}

// parseCell reads ROW<tab>FAMILY<tab>QUALIFIER<tab>VALUE, hex but the family.
func parseCell(line string) (Cell, error) {
	f := strings.Split(line, "\t")
	if len(f) != 4 {
		return Cell{}, fmt.Errorf("cell %q has %d fields, want 4", line, len(f))
	}
	row, err1 := hex.DecodeString(f[0])
	qualifier, err2 := hex.DecodeString(f[2])
	value, err3 := hex.DecodeString(f[3])
	if err := errors.Join(err1, err2, err3); err != nil {
		return Cell{}, fmt.Errorf("cell %q: %w", line, err)
	}
	return Cell{Row: row, Family: f[1], Qualifier: qualifier, Value: value}, nil
}

// Put writes one cell through HBase's own client.
func (a *Admin) Put(ctx context.Context, table string, c Cell) error {
	return a.do(ctx, "put", table, hex.EncodeToString(c.Row), c.Family,
		hex.EncodeToString(c.Qualifier), hex.EncodeToString(c.Value))
}

// ReadRequests returns what the region servers count for a table: rows read
// for clients and rows dropped by filters.
func (a *Admin) ReadRequests(ctx context.Context, table string) (read, filtered int64, err error) {
	lines, err := a.Call(ctx, "reads", table)
	if err != nil {
		return 0, 0, err
	}
	if _, err := fmt.Sscan(strings.Join(lines, " "), &read, &filtered); err != nil {
		return 0, 0, fmt.Errorf("reads of %s: answer %q: %w", table, lines, err)
	}
	return read, filtered, nil
}

// StoreFiles returns how many files the regions of a table have: 0 means that
// all of its points are in memory and in the log.
func (a *Admin) StoreFiles(ctx context.Context, table string) (n int, err error) {
	lines, err := a.Call(ctx, "files", table)
	if err != nil {
		return 0, err
	}

	if _, err := fmt.Sscan(strings.Join(lines, " "), &n); err != nil {
		return 0, fmt.Errorf("files of %s: answer %q: %w", table, lines, err)
	}
	return n, nil
}

// SetDurability says how edits of a table are logged, in HBase's words:
// USE_DEFAULT (as SYNC_WAL), SKIP_WAL, ASYNC_WAL, SYNC_WAL or FSYNC_WAL.
func (a *Admin) SetDurability(ctx context.Context, table, durability string) error {
	return a.do(ctx, "durability", table, durability)
}
