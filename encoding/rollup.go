package encoding

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// RowSpan is the time that one row of a rollup table covers: a number of hours, counted
// from 1970, or a day, a month or a year of UTC. Source: RollupInterval, its rowSpan.
type RowSpan struct {
	Count int    // of hours: 1 or an even number; 1 for the others
	Unit  string // h, d, n (month) or y
}

// Seconds of spans. Those of a month and a year are the bounds that OpenTSDB counts
// with, not their lengths. Source: RollupInterval, its MAX_SECONDS_IN_*.
const (
	daySeconds   = 24 * RowSeconds
	monthSeconds = 32 * daySeconds
	yearSeconds  = 366 * daySeconds
)

// Validate returns an error for a span that OpenTSDB does not have.
func (s RowSpan) Validate() error {
	switch {
	case s.Unit == "h" && s.Count > 0 && s.Count <= yearSeconds/RowSeconds && (s.Count == 1 || s.Count%2 == 0):
		return nil
	case (s.Unit == "d" || s.Unit == "n" || s.Unit == "y") && s.Count == 1:
		return nil
	}
	return fmt.Errorf("encoding: row span %s, want 1h, an even number of hours, 1d, 1n or 1y", s)
}

// String is the span as a configuration has it, such as 6h.
func (s RowSpan) String() string { return fmt.Sprintf("%d%s", s.Count, s.Unit) }

// Seconds is the nominal length of a span. No row is longer.
func (s RowSpan) Seconds() int64 {
	switch s.Unit {
	case "h":
		return int64(s.Count) * RowSeconds
	case "d":
		return daySeconds
	case "n":
		return monthSeconds
	}
	return yearSeconds
}

// Alignment is the largest time in seconds that divides the base times of all rows.
func (s RowSpan) Alignment() int64 {
	if s.Unit == "h" {
		return int64(s.Count) * RowSeconds
	}
	return daySeconds
}

// BaseTime is the base time of the row that holds a time of at least 0, both in
// seconds. Source: RollupUtils.getRollupBasetime.
func (s RowSpan) BaseTime(seconds int64) int64 {
	if a := s.Alignment(); s.Unit == "h" || s.Unit == "d" {
		return seconds - seconds%a
	}

	t := time.Unix(seconds, 0).UTC()
	month := t.Month()
	if s.Unit == "y" {
		month = time.January
	}
	return time.Date(t.Year(), month, 1, 0, 0, 0, 0, time.UTC).Unix()
}

// Next is the base time of the row after the one with the given base time.
func (s RowSpan) Next(base int64) int64 {
	switch s.Unit {
	case "n":
		return time.Unix(base, 0).UTC().AddDate(0, 1, 0).Unix()
	case "y":
		return time.Unix(base, 0).UTC().AddDate(1, 0, 0).Unix()
	}
	return base + s.Alignment()
}

// RollupLayout is where the values of one rollup interval are in their table.
type RollupLayout struct {
	Interval int64 // seconds
	Span     RowSpan
}

// MaxRollupIntervals is how many intervals of a row the 12 bits of a qualifier count.
const MaxRollupIntervals = 1 << 12

// MinRollupIntervals is the fewest that OpenTSDB allows. Source: RollupInterval.
const MinRollupIntervals = 12

// Validate returns an error for a layout whose rows OpenTSDB would not write, or would
// write to wrong places because their intervals are more than a qualifier counts.
func (l RollupLayout) Validate() error {
	if err := l.Span.Validate(); err != nil {
		return err
	}
	if l.Interval <= 0 {
		return fmt.Errorf("encoding: rollup interval %d s, want at least 1", l.Interval)
	}
	if n := l.Intervals(); n < MinRollupIntervals || n > MaxRollupIntervals {
		return fmt.Errorf("encoding: a row span of %s has %d intervals of %d s, want %d to %d", l.Span, n, l.Interval,
			MinRollupIntervals, MaxRollupIntervals)
	}
	return nil
}

// Intervals is the number of intervals that a row has place for.
func (l RollupLayout) Intervals() int64 { return l.Span.Seconds() / l.Interval }

// Split divides a time in seconds into the base time of its row and the index of its
// interval. It fails for a time at the end of a span that is no whole number of
// intervals. Source: RollupUtils.buildRollupQualifier.
func (l RollupLayout) Split(seconds int64) (base int64, index int, err error) {
	base = l.Span.BaseTime(seconds)
	i := (seconds - base) / l.Interval
	if n := l.Intervals(); i >= n {
		return base, 0, fmt.Errorf("Offset of %d was greater than the configured intervals %d", i, n)
	}
	return base, int(i), nil
}

// RollupQualifierWidth is the length of a rollup qualifier, which names one value of a
// row: the column, which is the ID of the aggregator, the index of the interval, and
// type and length of the value as in a qualifier of raw data.
//
//	id (1 byte)  iiii iiii iiii fLLL
//
// 01 00 E0 is column 1, interval 14, an integer of 1 byte. Older versions of OpenTSDB
// wrote the aggregator's name and a colon in place of the ID: 73 75 6D 3A 00 0F is
// "sum:", interval 0, a float of 8 bytes. Source: RollupUtils.buildRollupQualifier.
const RollupQualifierWidth = 3

// AppendRollupQualifier appends the qualifier of a column, an index and a value of a
// type and width.
func AppendRollupQualifier(dst []byte, id byte, index int, float bool, width int) []byte {
	v := uint16(index)<<flagBits | uint16(valueFlags(float, width))
	return binary.BigEndian.AppendUint16(append(dst, id), v)
}

// RollupColumn is a column of rollup tables: the values of one aggregator.
type RollupColumn struct {
	ID   byte
	Name string // of the aggregator, lower case
}

// Prefixes are what the column's qualifiers begin with: the ID, and in old cells the
// name.
func (c RollupColumn) Prefixes() [2][]byte { return [2][]byte{{c.ID}, []byte(c.Name + ":")} }

// ParseQualifier parses a qualifier of the column. ok is false for one of another
// column, or of no column at all.
func (c RollupColumn) ParseQualifier(b []byte) (index int, float bool, width int, ok bool) {
	name, found := bytes.CutSuffix(b[:max(0, len(b)-2)], []byte(":"))
	switch {
	case len(b) == RollupQualifierWidth && b[0] == c.ID:
	// As older versions of OpenTSDB wrote it.
	case found && string(name) == c.Name:
	default:
		return 0, false, 0, false
	}

	index, float, width = splitRollup(b[len(b)-2:])
	return index, float, width, true
}

// splitRollup splits the two bytes behind a column's ID.
func splitRollup(b []byte) (index int, float bool, width int) {
	v := binary.BigEndian.Uint16(b)
	return int(v >> flagBits), v&floatFlag != 0, int(v&lengthMask) + 1
}

// RollupEntry splits the first cell from cells that are written one after another, each
// as its qualifier with an ID and then its value. slot is equal for two cells of one
// column and interval. There is at least one.
func RollupEntry(b []byte) (qualifier, value, rest []byte, slot uint32) {
	index, _, width := splitRollup(b[1:])
	end := RollupQualifierWidth + width
	return b[:RollupQualifierWidth:RollupQualifierWidth], b[RollupQualifierWidth:end:end], b[end:],
		uint32(b[0])<<16 | uint32(index)
}

// RollupDecoder turns the cells of one column of one rollup row into points in time
// order. It is reused from row to row and is for one goroutine.
//
// A value that was rewritten with another type or length is a second cell of its interval. The cell
// written last counts; if two have one timestamp, the one with the larger qualifier. (OpenTSDB
// fails each query of such a row.)
type RollupDecoder struct {
	Layout RollupLayout
	Column RollupColumn

	base  int64
	cells []rollupCell
}

// rollupCell is a value with what decides whether it counts.
type rollupCell struct {
	index int
	stamp int64
	value Value
}

// Reset starts a row. base is its base time in seconds.
func (d *RollupDecoder) Reset(base uint32) { d.base, d.cells = int64(base), d.cells[:0] }

// Add decodes one cell, in the order of qualifiers; timestamp is when it was written.
// Cells of other columns are skipped: ok is then false. An error means that the row is
// corrupt.
func (d *RollupDecoder) Add(qualifier, value []byte, timestamp int64) (ok bool, err error) {
	index, float, width, ok := d.Column.ParseQualifier(qualifier)
	if !ok {
		return false, nil
	}
	v, err := ParseValue(Qualifier{Float: float, Width: width}, value)
	if err != nil {
		return true, err
	}
	if at := d.base + int64(index)*d.Layout.Interval; at >= d.Layout.Span.Next(d.base) {
		return true, fmt.Errorf("encoding: qualifier % X is interval %d of %d s, which is beyond the row's span of %s",
			qualifier, index, d.Layout.Interval, d.Layout.Span)
	}
	d.cells = append(d.cells, rollupCell{index, timestamp, v})
	return true, nil
}

// Finish appends the points to dst, each at the start of its interval.
func (d *RollupDecoder) Finish(dst *Points) {
	// The newest cell of an interval comes last, so that it replaces those before it.
	slices.SortStableFunc(d.cells, func(a, b rollupCell) int {
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.stamp, b.stamp))
	})

	for i, c := range d.cells {
		if i+1 < len(d.cells) && d.cells[i+1].index == c.index {
			continue
		}
		dst.Append((d.base+int64(c.index)*d.Layout.Interval)*1000, c.value)
	}
}
