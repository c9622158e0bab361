package pebble

import (
	"bytes"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"downpour/encoding"
)

// Every block of a table carries the range of the hours of its rows whose append columns have much that is not
// sealed, in the entry that the table's index has for the block. So rows that are to be sealed are found by
// looking at indexes, and where all is sealed nothing is read. As with elements, the range is made of what the
// block holds. Where it is missing the block is read.

// unsealedName names the property of blocks. It is on disk and never changes.
const unsealedName = "downpour.unsealed.v1"

// leastUnsealed is the fewest bytes of entries for which a row is sealed, or sealed again: fewer take no less as
// columns, or too little less for a row to be written again.
const leastUnsealed = 64

// unsealed tells how many bytes of a value were never sealed.
func (v cellValue) unsealed() int {
	switch v.tag {
	case tagAppend:
		return len(v.bytes)
	case tagSealed:
		return len(v.bytes) - v.sealed
	}
	return 0 // a put has a time, which a sealed column would lose
}

// unsealedHour returns the hour since 1970 of a row of which a key is, if its cell is an append column.
func unsealedHour(g Grouping, key []byte) (hour uint64, ok bool) {
	at := split(key)
	_, qualifier, ok := parseSuffix(key[at:])
	if !ok || !bytes.Equal(qualifier, encoding.AppendColumn) {
		return 0, false
	}
	_, row, ok := bytes.Cut(key[:at], []byte{0})
	if !ok || len(row) == 0 {
		return 0, false
	}
	seconds, ok := g.Time(row[:len(row)-1]) // without the 00 that ends the row
	return uint64(seconds) / encoding.RowSeconds, ok
}

// unsealedHours makes the ranges. It implements sstable.IntervalMapper.
type unsealedHours struct{ grouping Grouping }

// MapPointKey returns the hour of a cell that has much that is not sealed, and else nothing.
func (u unsealedHours) MapPointKey(key pebble.InternalKey, value []byte) (none sstable.BlockInterval, err error) {
	switch key.Kind() {
	case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete, pebble.InternalKeyKindMerge:
	default:
		return none, nil
	}
	hour, ok := unsealedHour(u.grouping, key.UserKey)
	if !ok {
		return none, nil
	}
	if v, err := parseValue(value); err != nil || v.unsealed() < leastUnsealed {
		return none, nil // a value that nobody can read is for those who read it
	}
	return sstable.BlockInterval{Lower: hour, Upper: hour + 1}, nil
}

// MapRangeKeys returns nothing: there are none.
func (unsealedHours) MapRangeKeys(sstable.Span) (none sstable.BlockInterval, err error) {
	return none, nil
}

// newUnsealedCollector returns what makes the ranges of one table.
func newUnsealedCollector(g Grouping) pebble.BlockPropertyCollector {
	return sstable.NewBlockIntervalCollector(unsealedName, unsealedHours{g}, nil)
}

// hourBefore is the first hour whose rows are not all older than a time, by their end.
func hourBefore(t time.Time) uint64 { return uint64(max(0, t.Unix()) / encoding.RowSeconds) }
