package pebble

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
)

// checkEvery is after how many rows a call looks at its context.
const checkEvery = 1024

// Get returns the rows of keys that exist, in the order of keys, all as of one
// moment.
func (s *Store) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.life.RUnlock()
	if err := s.tables.check(table, family); err != nil {
		return nil, err
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: appendHead(nil, table, nil), UpperBound: appendTableEnd(nil, table)})
	if err != nil {
		return nil, fmt.Errorf("table %q: %w", table, unreadable(err))
	}
	g := getter{it: it, table: table, want: columns{family: family}}
	err = errors.Join(g.rows(ctx, keys), it.Close())
	if err != nil {
		return nil, fmt.Errorf("table %q: %w", table, err)
	}
	return g.block.rows, nil
}

// getter reads single rows through one iterator.
type getter struct {
	it    *pebble.Iterator
	table string
	want  columns
	head  []byte
	block block
}

// rows reads all keys.
func (g *getter) rows(ctx context.Context, keys [][]byte) error {
	for i, key := range keys {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := g.row(key); err != nil {
			return err
		}
	}
	return nil
}

// row reads one; the table's filters answer for most missing rows.
func (g *getter) row(key []byte) error {
	g.head = appendHead(g.head[:0], g.table, key)
	if !g.it.SeekPrefixGE(g.head) {
		return unreadable(g.it.Error())
	}
	g.block.openRow(key)
	for ; g.it.Valid(); g.it.Next() {
		if _, err := g.want.appendCells(g.it, len(g.head), &g.block); err != nil {
			return err
		}
	}
	g.block.closeRow()
	return unreadable(g.it.Error())
}

// columns says which cells of a row are wanted.
type columns struct {
	family   string
	ranges   []store.KeyRange
	since    int64
	keysOnly bool
}

// appendCells copies the cell under the iterator, whose tail begins at, if it is
// wanted. The value is not read before that is known.
func (c *columns) appendCells(it *pebble.Iterator, at int, to *block) (bool, error) {
	family, qualifier, ok := parseTail(it.Key()[at:])
	if !ok {
		return false, fmt.Errorf("key %v has no family", keyFormat(it.Key()))
	}
	if c.family != "" && string(family) != c.family || !c.wants(qualifier) {
		return false, nil
	}
	if c.keysOnly && c.since == 0 {
		to.cell(family, qualifier, nil, 0)
		return true, nil
	}
	stored, err := it.ValueAndErr()
	if err != nil {
		return false, fmt.Errorf("key %v: %w", keyFormat(it.Key()), unreadable(err))
	}
	ms, value, err := parseValue(stored)
	if err != nil {
		return false, fmt.Errorf("key %v: %w", keyFormat(it.Key()), err)
	}
	if ms != 0 && ms < c.since { // appended cells have no time: never too old
		return false, nil
	}
	if c.keysOnly {
		value = nil
	}
	to.cell(family, qualifier, value, ms)
	return true, nil
}

// wants tells whether a qualifier lies in a wanted range.
func (c *columns) wants(qualifier []byte) bool {
	for i := range c.ranges {
		if c.ranges[i].Contains(qualifier) {
			return true
		}
	}
	return len(c.ranges) == 0
}
