// Package forest keeps trees: it reads and changes their definitions and rules in the tree
// table, puts series into the branches that the rules say, and reads branches. What rows and
// rules mean is said in package tree.
//
//	API, tools ──▶ definitions, rules, deletion ──▶ tree table
//	new TSMeta ──▶ Add ──▶ tree.Place ──▶ branches, leaf (or collision, not matched)
//	treesync ──▶ all TSMeta ──▶ the same
//
// Every definition, rule, branch and leaf is written by compare-and-set: a definition or
// rule against the bytes that were read, a branch or leaf against nothing. So gateways and
// TSDs may write the same trees at once, and what is written twice is there once. Deletions,
// ReplaceRules, and the lists of series that are left out look at nothing.
//
// What this process changes counts at once; what others change counts for new series within
// ReloadAfter.
// Source: TreeBuilder, Tree, TreeSync.
package forest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"downpour/encoding"
	"downpour/gateway/extra/trees/tree"
	"downpour/gateway/metadata/meta"
	"downpour/pushdown/store"
)

// Names is the dictionary of names, which gateway/uid implements.
type Names interface {
	meta.Names
	// Names returns the names of UIDs, or a *uid.NoSuchIDError.
	Names(ctx context.Context, kind encoding.UIDKind, uids []encoding.UID) ([]string, error)
}

// Config says where trees are kept.
type Config struct {
	Store     store.Cells
	TreeTable string
	UIDTable  string
	MetaTable string
	Schema    encoding.Schema
	Names     Names
	// Now is the clock; default time.Now.
	Now func() time.Time
	// Log takes what goes wrong with new series. Default slog.Default().
	Log *slog.Logger
}

// ReloadAfter is how long the trees that new series go through may be older than what
// other processes have made of them.
const ReloadAfter = 10 * time.Second

// Forest reads and changes the trees of a table. It may be used by several goroutines.
type Forest struct {
	cfg  Config
	meta *meta.Catalog

	current atomic.Pointer[snapshot] // the trees for new series; nil before the first
	changes atomic.Int64             // of this process
	told    sync.Map                 // ids of trees that cannot be applied, to why; to log it once

	// adding is held by those who add series, and taken by those who have deleted a tree, so
	// that nobody adds to it afterwards.
	adding sync.RWMutex
}

// New returns the trees of the configured table.
func New(cfg Config) *Forest {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	m := meta.New(meta.Config{
		Store:     cfg.Store,
		UIDTable:  cfg.UIDTable,
		MetaTable: cfg.MetaTable,
		Schema:    cfg.Schema,
		Names:     cfg.Names,
	})
	return &Forest{cfg: cfg, meta: m}
}

// NotFoundError is returned for a tree, rule or branch that is not there.
type NotFoundError struct{ What string }

// Error is OpenTSDB's text.
func (e *NotFoundError) Error() string { return "Unable to locate " + e.What }

// Errors of a change.
var (
	// ErrNoChange is returned for a change that says or changes nothing.
	ErrNoChange = errors.New("No changes detected in the tree")
	// ErrConflict is returned if others changed the same thing again and again.
	ErrConflict = errors.New("This may be caused by another process modifying storage data")
)

// TooManyError is returned for an answer that would hold more than MaxChildren things.
type TooManyError struct{ What string }

// Error names the bound.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("More than %d %s", MaxChildren, e.What)
}

// MaxChildren bounds what one answer holds: branches and leaves of a branch, collisions or
// series that are not matched.
const MaxChildren = 100_000

// MaxTrees bounds the trees that can be made.
const MaxTrees = 200

// attempts is how often a change is tried that others get in the way of.
const attempts = 8

// changed says that this process has changed a tree, or deleted its branches: series that come
// from now on go where it says now.
func (f *Forest) changed() { f.changes.Add(1) }

// Drop makes the next new series go through the trees as they are in the table then.
func (f *Forest) Drop() { f.changed() }

// settle waits until nobody adds series by what the trees were, and forgets these.
func (f *Forest) settle() {
	f.adding.Lock()
	defer f.adding.Unlock()
	f.current.Store(nil)
}

// exactly is the range of one key or qualifier.
func exactly(key []byte) store.KeyRange {
	return store.KeyRange{Start: key, Stop: append(bytes.Clone(key), 0)}
}

// beginning is the range of the keys or qualifiers that begin with a prefix.
func beginning(prefix string) store.KeyRange {
	return store.KeyRange{Start: []byte(prefix), Stop: encoding.PrefixEnd([]byte(prefix))}
}

// row reads columns of one row, nil for a row without them. Get would read all of the row,
// which may have very many leaves.
func (f *Forest) row(ctx context.Context, key []byte, columns ...store.KeyRange) (cells []store.Cell, err error) {
	r := exactly(key)
	for x, err := range store.Rows(ctx, f.cfg.Store, store.Scan{
		Table:   f.cfg.TreeTable,
		Family:  encoding.FamilyData,
		Start:   r.Start,
		Stop:    r.Stop,
		Columns: columns,
	}) {
		if err != nil {
			return nil, err
		}
		for _, c := range x.Cells {
			cells = append(cells, store.Cell{Qualifier: bytes.Clone(c.Qualifier), Value: bytes.Clone(c.Value)})
		}
	}
	return cells, nil
}

// cell reads one cell, nil if it is not there.
func (f *Forest) cell(ctx context.Context, key, qualifier []byte) ([]byte, error) {
	cells, err := f.row(ctx, key, exactly(qualifier))
	if err != nil || len(cells) == 0 {
		return nil, err
	}
	return cells[0].Value, nil
}

// exchange writes a cell if its value is still old, nil for none. It reports whether it did.
func (f *Forest) exchange(ctx context.Context, key, qualifier, old, value []byte) (bool, error) {
	at := store.CellKey{Row: key, Family: encoding.FamilyData, Qualifier: qualifier}
	return f.cfg.Store.CompareAndPut(ctx, f.cfg.TreeTable, at, old, value)
}

// mutation is a change of one cell of the tree table.
func mutation(kind store.MutationKind, key, qualifier, value []byte) store.Mutation {
	return store.Mutation{Kind: kind, Row: key, Family: encoding.FamilyData, Qualifier: qualifier, Value: value}
}

func (f *Forest) apply(ctx context.Context, mutations []store.Mutation) error {
	if len(mutations) == 0 {
		return nil
	}
	return f.cfg.Store.Apply(ctx, f.cfg.TreeTable, mutations)
}

// noTree is the error for a tree that is not there.
func noTree(id int) error { return &NotFoundError{fmt.Sprintf("tree: %d", id)} }

// noRule is the error for a rule that is not there.
func noRule(r *tree.Rule) error { return &NotFoundError{"rule: " + r.String()} }
