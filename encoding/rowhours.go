package encoding

import (
	"bytes"
	"encoding/binary"
)

// RowHours groups the row keys of a data table by their prefix, salt and metric, and by the hour of
// their base time. A store counts changes by these groups, so a write to one hour of a metric does
// not invalidate proofs of the others.
type RowHours struct {
	baseTimeAt int // where the base time begins in a key
	tagWidth   int // of a tag pair
}

// RowHours returns the grouping of this layout's row keys.
func (s Schema) RowHours() RowHours { return RowHours{s.BaseTimeAt(), s.TagWidth()} }

// Group returns the prefix of a row key, as a view of the key, and the number of its
// hour since 1970. ok is false for a key that is too short to have a base time.
func (h RowHours) Group(row []byte) (prefix []byte, hour uint32, ok bool) {
	if len(row) < h.baseTimeAt+BaseTimeWidth {
		return nil, 0, false
	}
	return row[:h.baseTimeAt], h.baseTime(row) / RowSeconds, true
}

// Groups returns the groups of all rows in [start, stop): a common prefix and the
// numbers of the first and the last hour. ok is false if a bound is too short to
// have a base time, or if the bounds differ in salt or metric.
func (h RowHours) Groups(start, stop []byte) (prefix []byte, first, last uint32, ok bool) {
	least := h.baseTimeAt + BaseTimeWidth
	if len(start) < least || len(stop) < least || !bytes.Equal(start[:h.baseTimeAt], stop[:h.baseTimeAt]) {
		return nil, 0, 0, false
	}

	from, to := h.baseTime(start), h.baseTime(stop)
	// A bound that ends with its base time excludes all rows of that base time: the
	// hour before it is the last one.
	if len(stop) == least && to > from {
		to--
	}
	return start[:h.baseTimeAt], from / RowSeconds, to / RowSeconds, true
}

// earliestBaseTime, in March 1973, is larger than most numbers that are no base time, such as small
// counters, and earlier than any point.
const earliestBaseTime = 100_000_000

// Time returns a row's base time in seconds. ok is false if the key does not look
// like that of a data row: too short, or no full hour after March 1973.
func (h RowHours) Time(row []byte) (seconds uint32, ok bool) {
	if len(row) < h.baseTimeAt+BaseTimeWidth {
		return 0, false
	}
	base := h.baseTime(row)
	return base, base%RowSeconds == 0 && base >= earliestBaseTime
}

// Elements returns where the tag pairs of row keys begin, and the length of a pair.
func (h RowHours) Elements() (head, width int) { return h.baseTimeAt + BaseTimeWidth, h.tagWidth }

func (h RowHours) baseTime(row []byte) uint32 {
	return binary.BigEndian.Uint32(row[h.baseTimeAt:])
}
