package e2e

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// CellChange is a change of a row of family t, in one of the ways of HBase's own client: put, put
// without log, append, increment, check and put, delete column, delete version, delete family, delete row.
type CellChange struct {
	Kind           string
	Row, Qualifier []byte
	Value          []byte // of those that have one; increments are by 1
	At             int64  // of a put and the deletion of a column, ms since 1970; -1 is the server's
}

// Change changes a row.
func (a *Admin) Change(ctx context.Context, table string, c CellChange) error {
	return a.do(ctx, "change", table, c.Kind, hex.EncodeToString(c.Row), hex.EncodeToString(c.Qualifier),
		hex.EncodeToString(c.Value), strconv.FormatInt(c.At, 10))
}

// BulkLoad loads a file with one cell into a table.
func (a *Admin) BulkLoad(ctx context.Context, table string, c CellChange) error {
	return a.do(ctx, "bulk load", table, hex.EncodeToString(c.Row), hex.EncodeToString(c.Qualifier),
		hex.EncodeToString(c.Value), strconv.FormatInt(c.At, 10))
}

// Region does something to a region, given by encoded name: flush, minor compaction, major
// compaction, or files for nothing. It waits until nothing of the region is being compacted, and
// returns the number of its files. HBase need not find anything to compact.
func (a *Admin) Region(ctx context.Context, table, what, encodedName string) (files int, err error) {
	lines, err := a.Call(ctx, "region", table, what, encodedName)
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscan(strings.Join(lines, " "), &files); err != nil {
		return 0, fmt.Errorf("%s of region %s: answer %q: %w", what, encodedName, lines, err)
	}
	return files, nil
}

// Configure sets a value of a table's description, and opens its regions again.
func (a *Admin) Configure(ctx context.Context, table, key, value string) error {
	return a.do(ctx, "configure", table, key, value)
}

// Version returns the version of the master.
func (a *Admin) Version(ctx context.Context) (string, error) {
	lines, err := a.Call(ctx, "version")
	if err == nil && len(lines) != 1 {
		err = fmt.Errorf("version of the master: got %d lines, want 1", len(lines))
	}
	if err != nil {
		return "", err
	}
	return lines[0], nil
}
