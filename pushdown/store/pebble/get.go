package pebble

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// checkEvery is the number of rows after which a call looks at its context.
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

	it, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound:   appendPrefix(nil, table, nil),
		UpperBound:   appendTableEnd(nil, table),
		UseL6Filters: true,
	})
	if err != nil {
		return nil, fmt.Errorf("get from table %q: %w", table, unreadable(err))
	}
	g := getter{it: it, table: table, columns: columns{family: family}}
	err = errors.Join(g.readRows(ctx, keys), it.Close())
	if err != nil {
		return nil, fmt.Errorf("get from table %q: %w", table, err)
	}
	return g.block.rows, nil
}

// getter reads single rows through one iterator.
type getter struct {
	it      *pebble.Iterator
	table   string
	columns columns
	prefix  []byte // buffer for the prefix of a row's keys
	block   block
}

func (g *getter) readRows(ctx context.Context, keys [][]byte) error {
	for i, key := range keys {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := g.readRow(key); err != nil {
			return err
		}
	}
	return nil
}

// readRow copies one row, if it exists. The bloom filters of the tables answer for
// most rows that do not: names that get a UID now, above all.
func (g *getter) readRow(key []byte) error {
	g.prefix = appendPrefix(g.prefix[:0], g.table, key)
	g.block.openRow(key)
	// After SeekPrefixGE the iterator ends with the row.
	for g.it.SeekPrefixGE(g.prefix); g.it.Valid(); g.it.Next() {
		if _, err := g.columns.appendCell(g.it, len(g.prefix), &g.block); err != nil {
			return err
		}
	}
	g.block.closeRow()
	return unreadable(g.it.Error())
}

// columns selects cells of a row. Its first fields are those of store.Scan.
type columns struct {
	family   string
	ranges   []store.KeyRange
	since    int64
	keysOnly bool
	sealed   bool

	unsealer encoding.Unsealer
	entries  []byte // of the last sealed value
}

// appendCell copies the cell under the iterator to a block, if it is wanted, and
// reports whether it was. The suffix of its key begins at offset at.
func (c *columns) appendCell(it *pebble.Iterator, at int, to *block) (bool, error) {
	family, qualifier, ok := parseSuffix(it.Key()[at:])
	if !ok {
		return false, fmt.Errorf("key %v has no family", keyFormat(it.Key()))
	}
	if c.family != "" && string(family) != c.family || !c.wants(qualifier) {
		return false, nil
	}
	// Reading a value may load another block of the table: it is left alone unless
	// it, or the time in it, is needed.
	if c.keysOnly && c.since == 0 {
		to.addCell(family, qualifier, nil, 0)
		return true, nil
	}

	stored, err := it.ValueAndErr()
	if err != nil {
		return false, fmt.Errorf("key %v: %w", keyFormat(it.Key()), unreadable(err))
	}
	v, err := parseValue(stored)
	if err != nil {
		return false, fmt.Errorf("key %v: %w", keyFormat(it.Key()), err)
	}
	if v.ms != 0 && v.ms < c.since { // appended cells have no time: never too old
		return false, nil
	}
	switch {
	case c.keysOnly:
		v.bytes = nil
	case v.tag == tagSealed && c.sealed:
		to.unsealed += encoding.SealedPoints(v.bytes) * leastEntry //fault:sealed-rows-fill-no-block TestSeal_blocks
	case v.tag == tagSealed:
		if c.entries, err = v.entries(c.entries, &c.unsealer); err != nil {
			return false, fmt.Errorf("key %v: %w", keyFormat(it.Key()), err)
		}
		v.bytes = c.entries
	}
	to.addCell(family, qualifier, v.bytes, v.ms)
	return true, nil
}

// leastEntry is the bytes of the shortest entry of an append column.
const leastEntry = 3

// wants reports whether a qualifier is in a wanted range.
func (c *columns) wants(qualifier []byte) bool {
	for i := range c.ranges {
		if c.ranges[i].Contains(qualifier) {
			return true
		}
	}
	return len(c.ranges) == 0
}
