package cellblock

import (
	"bytes"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// A scan whose caller expects most cells to be of its columns (store.Scan.MostInColumns)
// begins without a column filter: a region server takes a quarter longer for each cell
// that a filter of it admits. The assembler then drops the cells of other columns. If
// there are too many of them, the scan continues with the filter, so that they are not
// sent.

// SampleRows is how many rows the first reply of such a scan has: enough to see the composition of
// rows, few enough to cost nothing.
const SampleRows = 32

// maxDropped is the share of dropped bytes, one in so many, above which the filter is
// cheaper: the server reads all cells in either case, but it also sends those that are
// dropped here.
const maxDropped = 4

// recentBytes is about how many bytes of cells the share is of: rows that come later in a
// table may have other columns than the many before them.
const recentBytes = 256 << 10

// ColumnSet drops the cells of a scan that are of other columns, and counts them.
type ColumnSet struct {
	ranges  []store.KeyRange
	byFirst [256]firstByte

	seen, dropped int64 // bytes of recent cells, as they come from the server
	droppedAll    int64 // bytes of all cells dropped
}

// firstByte is what is known of a column by the first byte of its qualifier.
type firstByte uint8

const (
	isOther firstByte = iota
	isWanted
	isUndecided
)

// NewColumnSet returns a set of ranges, which are ascending and disjoint.
func NewColumnSet(ranges []store.KeyRange) *ColumnSet {
	c := &ColumnSet{ranges: ranges}
	for _, r := range ranges {
		// Qualifiers of the range begin with one of these bytes. If the stop is one byte alone,
		// none begins with it; as an undecided byte it costs only a comparison with the ranges.
		first, last := 0, 255
		if len(r.Start) > 0 {
			first = int(r.Start[0])
		}
		if len(r.Stop) > 0 {
			last = int(r.Stop[0])
		}
		for b := first; b <= last; b++ {
			c.byFirst[b] = isUndecided
		}

		// A range of all that begins with one byte: that byte decides. No later range
		// touches it, because they ascend.
		if len(r.Start) == 1 && bytes.Equal(r.Stop, encoding.PrefixEnd(r.Start)) {
			c.byFirst[first] = isWanted
		}
	}
	return c
}

// contains reports whether a qualifier is in the set.
func (c *ColumnSet) contains(qualifier []byte) bool {
	if len(qualifier) > 0 {
		if first := c.byFirst[qualifier[0]]; first != isUndecided {
			return first == isWanted
		}
	}
	for _, r := range c.ranges {
		if r.Contains(qualifier) {
			return true
		}
	}
	return false
}

// drops counts a cell of so many bytes and reports whether it is of another column.
func (c *ColumnSet) drops(qualifier []byte, bytes int) bool {
	c.seen += int64(bytes)
	if c.contains(qualifier) {
		return false
	}
	c.dropped += int64(bytes)
	c.droppedAll += int64(bytes)
	return true
}

// DroppedBytes returns the bytes of all cells that were dropped.
func (c *ColumnSet) DroppedBytes() int64 { return c.droppedAll }

// Sampled reports whether a reply has come.
func (c *ColumnSet) Sampled() bool { return c.seen > 0 }

// EndReply reports, after each reply, whether dropping is still cheaper than a filter.
func (c *ColumnSet) EndReply() (pays bool) {
	// At most one byte in maxDropped was dropped.
	pays = c.dropped*maxDropped <= c.seen
	// Older bytes count less and less.
	for c.seen > recentBytes {
		c.seen, c.dropped = c.seen/2, c.dropped/2
	}
	return pays
}
