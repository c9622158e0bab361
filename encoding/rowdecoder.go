package encoding

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"downpour/encoding/column"
)

// RowDecoder turns the cells of one row into points in time order. It decodes
// single, compacted and appended cells and merges them as OpenTSDB does. It is
// reused from row to row and is for one goroutine.
//
//	d.Reset(baseTime)
//	for each cell: d.Add(qualifier, value, timestamp)
//	d.Finish(&points)
//
// Duplicates: two cells with a point at one offset, in milliseconds, are one
// point if their value bytes are equal. If they differ the query fails, unless
// FixDuplicates is set; then the cell written last wins. Inside an append
// column the later entry always wins.
//
// Damage: the value of a single cell is read by its real length, and a float
// with OpenTSDB's old 8-byte error by its last four bytes (see ParseValue). A
// compacted cell or append column whose lengths do not add up is refused, because
// its points would be read from other points' bytes. An offset beyond the hour is
// refused too.
//
// Source: CompactionQueue.Compaction, Internal.extractDataPoints,
// AppendDataPoints.parseKeyValue.
type RowDecoder struct {
	FixDuplicates bool // tsd.storage.fix_duplicates

	base    uint32
	ordered bool // offsets strictly ascending so far
	// The points as columns, in the order of their cells.
	offset []int32  // ms from the base time
	raw    []uint64 // the value's bytes as a number
	flags  []uint8  // floatFlag and length, as in a qualifier
	cells  []cellStart

	// The qualifiers of the last row that OnlyCell accepted, whose offsets are
	// still in offset; empty if offset holds something else.
	cachedQualifiers []byte
	cachedUniform    bool // their values have one type and length

	order       []pointOrder // scratch of sortFrom
	blocks      column.Scratch
	block       column.Block // the last one that was read as a whole
	words       []uint64     // its values
	annotations [][]byte
	skipped     int
}

// cellStart is where a cell's points begin and when the cell was written.
type cellStart struct {
	first int   // index of its first point
	stamp int64 // the cell's timestamp
}

// Reset starts a row. baseTime is in seconds.
func (d *RowDecoder) Reset(baseTime uint32) {
	d.base, d.ordered, d.skipped = baseTime, true, 0
	d.cells, d.annotations, d.cachedQualifiers = d.cells[:0], d.annotations[:0], d.cachedQualifiers[:0]
	d.truncate(0)
}

// Add decodes one cell. timestamp is the time at which the cell was written.
// Cells without points are kept for Annotations, as views of value, or skipped
// if their prefix is unknown, as OpenTSDB does. An error means that the row is
// corrupt; it does not name the row, which the caller knows.
func (d *RowDecoder) Add(qualifier, value []byte, timestamp int64) error {
	switch {
	case len(qualifier) == 0:
		return fmt.Errorf("encoding: a data cell has an empty qualifier")
	case len(qualifier)%2 != 0:
		return d.addSpecial(qualifier, value, timestamp)
	}

	// One qualifier is as long as its first byte says; a longer even one is a
	// sequence of qualifiers.
	d.cells = append(d.cells, cellStart{len(d.offset), timestamp})
	if len(qualifier) == QualifierWidth(qualifier[0]) {
		return d.addSingle(qualifier, value)
	}
	return d.addCompacted(qualifier, value)
}

// addSpecial adds a cell whose qualifier has an odd length: its first byte is a prefix that gives
// the kind of the cell.
func (d *RowDecoder) addSpecial(qualifier, value []byte, timestamp int64) error {
	switch qualifier[0] {
	case PrefixAppend:
		// Refused and not skipped: it may hold points, in a form that is not known.
		if len(qualifier) != len(AppendColumn) {
			return fmt.Errorf("encoding: append column % X has %d bytes, want %d", qualifier, len(qualifier),
				len(AppendColumn))
		}
		d.cells = append(d.cells, cellStart{len(d.offset), timestamp})
		return d.addAppended(value)
	case PrefixAnnotation:
		d.annotations = append(d.annotations, value)
	default:
		// Histograms, which are no points, and cells of a later OpenTSDB.
		d.skipped++
	}
	return nil
}

// addSingle takes a cell of one point.
func (d *RowDecoder) addSingle(qualifier, value []byte) error {
	q, _, err := ParseQualifier(qualifier)
	if err != nil {
		return err
	}
	raw, width, err := readSingle(q, value)
	if err != nil {
		return err
	}

	// HBase returns cells in the order of their qualifiers, which is that of time
	// unless seconds and milliseconds are mixed: most rows need no sorting. Equal
	// offsets are duplicates, which only the sort merges.
	if n := len(d.offset); n > 0 && q.OffsetMS <= d.offset[n-1] {
		d.ordered = false
	}

	d.offset = append(d.offset, q.OffsetMS)
	d.raw = append(d.raw, raw)
	d.flags = append(d.flags, valueFlags(q.Float, width))
	return nil
}

// grow extends the columns by n points, which the caller fills by index, and
// returns the index of the first. The caller truncates to what it has filled.
func (d *RowDecoder) grow(n int) (first int) {
	first = len(d.offset)
	d.offset = slices.Grow(d.offset, n)[:first+n]
	d.raw = slices.Grow(d.raw, n)[:first+n]
	d.flags = slices.Grow(d.flags, n)[:first+n]
	return first
}

// truncate shortens the columns to n points.
func (d *RowDecoder) truncate(n int) {
	d.offset, d.raw, d.flags = d.offset[:n], d.raw[:n], d.flags[:n]
}

// addCompacted decodes a compacted cell: all qualifiers, then all values and one last
// byte, the trailer. It is 0 if all qualifiers have one form, and 1 if seconds and
// milliseconds are mixed. If a qualifier or value cannot be read, none of the cell's
// points is kept.
func (d *RowDecoder) addCompacted(qualifier, value []byte) error {
	// A qualifier has at least two bytes.
	first := d.grow(len(qualifier) / 2)
	points, rest, err := d.walkCompacted(first, qualifier, value)
	if err != nil {
		d.truncate(first)
		return err
	}

	d.truncate(first + points)
	d.checkOrder(first)
	return checkTrailer(qualifier, value, rest)
}

// walkCompacted fills the columns from index first on. It returns the number of
// points and the value bytes that follow the points' values: the trailer.
func (d *RowDecoder) walkCompacted(first int, qualifier, value []byte) (points int, rest []byte, err error) {
	// All but the last few points of most cells are read by walkSeconds. From the first point that
	// it does not read, points are read one by one.
	points, rest = d.walkSeconds(first, qualifier, value)
	for left := qualifier[2*points:]; len(left) > 0; points++ {
		q, more, err := ParseQualifier(left)
		if err != nil {
			return points, rest,
				fmt.Errorf("encoding: compacted cell at qualifier byte %d: %w", len(qualifier)-len(left), err)
		}
		if len(rest) < q.Width || !validWidth(q.Width, q.Float) {
			return points, rest,
				fmt.Errorf(
					"encoding: compacted cell of %d qualifier bytes: value at byte %d is said to have %d bytes, "+
						"want %s and at most the %d left",
					len(qualifier), len(value)-len(rest), q.Width, widthsWanted(q.Float), len(rest))
		}

		i := first + points
		d.offset[i], d.raw[i], d.flags[i] = q.OffsetMS, readRaw(rest, q.Width), valueFlags(q.Float, q.Width)
		left, rest = more, rest[q.Width:]
	}

	return points, rest, nil
}

// walkSeconds does the work of walkCompacted for leading points in the seconds
// form, as long as at least 8 value bytes are left, so that any value is one
// load and a shift. A scan of old rows spends its time here. It stops before the
// first point that is not of this kind, which includes every error, and leaves it
// to its caller.
func (d *RowDecoder) walkSeconds(first int, qualifier, value []byte) (points int, rest []byte) {
	offset, raws, flags := d.offset[first:], d.raw[first:], d.flags[first:]
	raws, flags = raws[:len(offset)], flags[:len(offset)] // one bounds check for three columns

	at := 0
	for i := range offset {
		// v is a complete qualifier. As a number, all of the milliseconds form are larger than
		// those of the seconds form within the hour.
		v := uint32(qualifier[2*i])<<8 | uint32(qualifier[2*i+1])
		f := uint8(v) & flagMask
		if at+8 > len(value) || v >= maxSecondsQualifier || validFlags>>f&1 == 0 {
			return i, value[at:]
		}

		// The first width bytes of the load are the value; the shift drops the bytes of
		// the values after it. The mask avoids a test for larger shifts.
		width := uint(f&lengthMask) + 1
		raw := binary.BigEndian.Uint64(value[at:at+8]) >> ((64 - 8*width) & 63)
		offset[i], raws[i], flags[i] = int32(v>>flagBits*1000), raw, f
		at += int(width)
	}

	return len(offset), value[at:]
}

// checkTrailer returns an error unless rest, what is left of a compacted cell's
// value, is the trailer.
func checkTrailer(qualifier, value, rest []byte) error {
	if len(rest) != 1 {
		return fmt.Errorf(
			"encoding: compacted cell of %d qualifier bytes has %d value bytes, %d after its points, want 1",
			len(qualifier), len(value), len(rest))
	}
	if rest[0] > 1 {
		return fmt.Errorf("encoding: compacted cell ends with %02X, want 00 or 01", rest[0])
	}
	return nil
}

// checkOrder clears ordered if the offsets from index first on do not ascend, or
// do not begin after those before them.
func (d *RowDecoder) checkOrder(first int) {
	if d.ordered && !ascending(d.offset[max(first-1, 0):]) {
		d.ordered = false
	}
}

// ascending reports whether each offset is larger than the one before it.
func ascending(offset []int32) bool {
	for i := 1; i < len(offset); i++ {
		if offset[i] <= offset[i-1] {
			return false
		}
	}
	return true
}

// move copies a point to another index.
func (d *RowDecoder) move(to, from int) {
	d.offset[to], d.raw[to], d.flags[to] = d.offset[from], d.raw[from], d.flags[from]
}

// Finish appends the row's points to dst in time order. It returns a
// *DuplicateError if the row has two different values at one time.
func (d *RowDecoder) Finish(dst *Points) error {
	if err := d.sort(); err != nil {
		return err
	}

	offset := d.offset
	times, bits, floats := dst.extend(len(offset))
	// All columns are as long as offset. The slicing lets the compiler check bounds here and not in
	// the loop.
	raws, flags := d.raw[:len(offset)], d.flags[:len(offset)]
	times, bits, floats = times[:len(offset)], bits[:len(offset)], floats[:len(offset)]

	base := int64(d.base) * 1000
	for i, off := range offset {
		f := flags[i]
		v := widen(raws[i], int(f&lengthMask)+1, f&floatFlag != 0)
		times[i], bits[i], floats[i] = base+int64(off), v.Bits, v.Float
	}
	return nil
}

// FinishDoubles is Finish for callers that need the values as doubles only. It
// returns the points' offsets in ms from the base time, a view that is valid
// until Reset, and their values in dst's memory, which is used from its beginning.
func (d *RowDecoder) FinishDoubles(dst []float64) (offsets []int32, values []float64, err error) {
	if err := d.sort(); err != nil {
		return nil, dst, err
	}

	n := len(d.offset)
	values = slices.Grow(dst[:0], n)[:n]
	raws, flags := d.raw[:n], d.flags[:n]
	for i, raw := range raws {
		width := uint(flags[i]&lengthMask) + 1
		switch {
		case flags[i]&floatFlag == 0:
			// raw has the value's bytes at its low end: shifting up and back
			// extends the sign.
			shift := (64 - 8*width) & 63
			values[i] = float64(int64(raw<<shift) >> shift)
		case width == 4:
			values[i] = float64(math.Float32frombits(uint32(raw)))
		default:
			values[i] = math.Float64frombits(raw)
		}
	}

	return d.offset, values, nil
}

// sort puts the points in time order and merges duplicates.
func (d *RowDecoder) sort() error {
	if d.ordered {
		return nil
	}
	d.sortFrom(0)
	if err := d.mergeDuplicates(); err != nil {
		return err
	}
	d.ordered = true
	return nil
}

// Annotations returns the values of the row's annotation cells: JSON, see
// ParseAnnotation. The slice is used again for the next row.
func (d *RowDecoder) Annotations() [][]byte { return d.annotations }

// Skipped is the number of the row's cells whose prefix is not known.
func (d *RowDecoder) Skipped() int { return d.skipped }
