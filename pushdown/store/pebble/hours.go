package pebble

import (
	"bytes"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"downpour/encoding"
)

// Every block of a table carries the range of the hours of its rows that have append columns, in the entry that
// the table's index has for the block. So the rows of some hours, of all series, are found by looking at
// indexes. As with elements, the range is made of what the block holds. Where it is missing the block is read.
//
// It cannot say what of the columns is sealed: pebble does not show the values of sets to those who make
// properties.

// hoursName names the property of blocks. It is on disk and never changes.
const hoursName = "downpour.hours.v1"

// leastUnsealed is the fewest bytes of entries for which a row is sealed, or sealed again: fewer take no less as
// columns, or too little less for a row to be written again.
const leastUnsealed = 64

// unsealed is how many bytes of a value were never sealed.
func (v cellValue) unsealed() int {
	switch v.tag {
	case tagAppend:
		return len(v.bytes)
	case tagSealed:
		return len(v.bytes) - v.sealed
	}
	return 0 // a put has a time, which a sealed column would lose
}

// appendHour returns the hour since 1970 of the row of a key, if its cell is an append column.
func appendHour(g Grouping, key []byte) (hour uint64, ok bool) {
	at := split(key)
	if _, qualifier, _ := parseSuffix(key[at:]); !bytes.Equal(qualifier, encoding.AppendColumn) {
		return 0, false
	}
	_, row, _ := bytes.Cut(key[:at], []byte{0})
	if len(row) == 0 {
		return 0, false
	}
	seconds, ok := g.Time(row[:len(row)-1]) // without the 00 that ends the row
	return uint64(seconds) / encoding.RowSeconds, ok
}

// hours makes the ranges. It implements sstable.IntervalMapper.
type hours struct{ grouping Grouping }

// MapPointKey returns the hour of a cell that is an append column, and else nothing.
func (h hours) MapPointKey(key pebble.InternalKey, _ []byte) (none sstable.BlockInterval, err error) {
	switch key.Kind() {
	case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete, pebble.InternalKeyKindMerge:
		if hour, ok := appendHour(h.grouping, key.UserKey); ok {
			return sstable.BlockInterval{Lower: hour, Upper: hour + 1}, nil
		}
	}
	return none, nil
}

// MapRangeKeys returns nothing: there are none.
func (hours) MapRangeKeys(sstable.Span) (none sstable.BlockInterval, err error) { return none, nil }

// newHoursCollector returns what makes the ranges of one table.
func newHoursCollector(g Grouping) pebble.BlockPropertyCollector {
	return sstable.NewBlockIntervalCollector(hoursName, hours{g}, nil)
}

// hourAt is the hour that a time is in, which is the first one that does not end before it or with it.
func hourAt(t time.Time) uint64 { return uint64(max(0, t.Unix()) / encoding.RowSeconds) }
