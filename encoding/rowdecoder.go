package encoding

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// RowDecoder turns the cells of one row into points in time order: single,
// compacted and appended cells, merged as OpenTSDB merges them. It is reused
// from row to row and is for one goroutine.
//
//	d.Reset(baseTime)
//	for each cell: d.Add(qualifier, value, timestamp)
//	d.Finish(&points)
//
// Two cells at one offset in milliseconds are a duplicate: with equal value
// bytes they are one point, otherwise the query fails unless FixDuplicates,
// when the cell written last wins. Inside an append column the later entry
// wins.
//
// What is damaged: a single cell is read by its value's real length, and a float
// of the old 8-byte error by its last four bytes (see ParseValue). A compacted
// cell or append column whose lengths do not add up is refused, as is an offset
// beyond the hour, because its points would be read from other points' bytes.
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
	cells  []cellMark

	wide  []byte // qualifiers that OnlyCell has read offset from, empty for none
	alike bool   // their values have one type and length

	order   []pointOrder // scratch of sortFrom
	notes   [][]byte
	skipped int
}

// cellMark says where a cell's points begin and when it was written.
type cellMark struct {
	first int
	stamp int64
}

// Reset starts a row.
func (d *RowDecoder) Reset(baseTime uint32) {
	d.base, d.ordered, d.skipped = baseTime, true, 0
	d.cells, d.notes, d.wide = d.cells[:0], d.notes[:0], d.wide[:0]
	d.truncate(0)
}

// Add decodes one cell. timestamp is the time of the cell's write. Cells that
// are no points are set aside (annotations, as views of value) or skipped
// (unknown prefixes), as OpenTSDB does. An error means that the row is corrupt;
// the caller names it.
func (d *RowDecoder) Add(qualifier, value []byte, timestamp int64) error {
	switch {
	case len(qualifier) == 0:
		return fmt.Errorf("encoding: a data cell has an empty qualifier")
	case len(qualifier)%2 != 0:
		return d.addSpecial(qualifier, value, timestamp)
	}
	d.cells = append(d.cells, cellMark{len(d.offset), timestamp})
	if len(qualifier) == QualifierWidth(qualifier[0]) {
		return d.addSingle(qualifier, value)
	}
	return d.addCompacted(qualifier, value)
}

func (d *RowDecoder) addSpecial(qualifier, value []byte, timestamp int64) error {
	switch qualifier[0] {
	case PrefixAppend:
		if len(qualifier) != len(AppendColumn) {
			return fmt.Errorf("encoding: append column % X has %d bytes, want %d", qualifier, len(qualifier), len(AppendColumn))
		}
		d.cells = append(d.cells, cellMark{len(d.offset), timestamp})
		return d.addAppended(value)
	case PrefixAnnotation:
		d.notes = append(d.notes, value)
	default:
		d.skipped++
	}
	return nil
}

func (d *RowDecoder) addSingle(qualifier, value []byte) error {
	q, _, err := ParseQualifier(qualifier)
	if err != nil {
		return err
	}
	raw, width, err := readSingle(q, value)
	if err != nil {
		return err
	}
	if n := len(d.offset); n > 0 && q.OffsetMS <= d.offset[n-1] {
		d.ordered = false
	}
	d.offset = append(d.offset, q.OffsetMS)
	d.raw = append(d.raw, raw)
	d.flags = append(d.flags, valueFlags(q.Float, width))
	return nil
}

// grow makes room for n points behind the present ones, for a loop to fill by
// index, and returns the index of the first. The caller truncates afterwards.
func (d *RowDecoder) grow(n int) (first int) {
	first = len(d.offset)
	d.offset = slices.Grow(d.offset, n)[:first+n]
	d.raw = slices.Grow(d.raw, n)[:first+n]
	d.flags = slices.Grow(d.flags, n)[:first+n]
	return first
}

func (d *RowDecoder) truncate(n int) {
	d.offset, d.raw, d.flags = d.offset[:n], d.raw[:n], d.flags[:n]
}

// addCompacted walks the qualifiers and values of a compacted cell. The value
// ends with one byte: 0 where all qualifiers have one form, 1 where seconds and
// milliseconds are mixed. Of a cell with an error no point stays.
func (d *RowDecoder) addCompacted(qualifier, value []byte) error {
	first := d.grow(len(qualifier) / 2)
	points, rest, err := d.walkCompacted(first, qualifier, value)
	if err != nil {
		d.truncate(first)
		return err
	}
	d.truncate(first + points)
	d.noteOrder(first)
	return checkTrailer(qualifier, value, rest)
}

// walkCompacted fills the columns from index first on and returns the number of
// points and the value bytes behind them.
func (d *RowDecoder) walkCompacted(first int, qualifier, value []byte) (points int, rest []byte, err error) {
	points, rest = d.walkSeconds(first, qualifier, value)
	for left := qualifier[2*points:]; len(left) > 0; points++ {
		q, more, err := ParseQualifier(left)
		if err != nil {
			return points, rest, fmt.Errorf("encoding: compacted cell at qualifier byte %d: %w", len(qualifier)-len(left), err)
		}
		if len(rest) < q.Width || !validWidth(q.Width, q.Float) {
			return points, rest, fmt.Errorf("encoding: compacted cell of %d qualifier bytes: value at byte %d is said to have %d bytes, want %s and at most the %d left",
				len(qualifier), len(value)-len(rest), q.Width, widthsWanted(q.Float), len(rest))
		}
		i := first + points
		d.offset[i], d.raw[i], d.flags[i] = q.OffsetMS, readRaw(rest, q.Width), valueFlags(q.Float, q.Width)
		left, rest = more, rest[q.Width:]
	}
	return points, rest, nil
}

// walkSeconds does as much of walkCompacted as the plainest points make up: in
// the seconds form, in order, with at least 8 value bytes left, so that any
// value is one load and a shift. A scan of old rows spends its time here. It
// stops before whatever is not plain, errors too.
func (d *RowDecoder) walkSeconds(first int, qualifier, value []byte) (points int, rest []byte) {
	offset, raws, flags := d.offset[first:], d.raw[first:], d.flags[first:]
	raws, flags = raws[:len(offset)], flags[:len(offset)] // one bounds check for three columns
	at := 0
	for i := range offset {
		v := uint32(qualifier[2*i])<<8 | uint32(qualifier[2*i+1])
		f := uint8(v) & flagMask
		if at+8 > len(value) || v >= maxSecondsQualifier || validFlags>>f&1 == 0 {
			return i, value[at:]
		}
		width := uint(f&lengthMask) + 1
		raw := binary.BigEndian.Uint64(value[at:at+8]) >> ((64 - 8*width) & 63)
		offset[i], raws[i], flags[i] = int32(v>>flagBits*1000), raw, f
		at += int(width)
	}
	return len(offset), value[at:]
}

func checkTrailer(qualifier, value, rest []byte) error {
	if len(rest) != 1 {
		return fmt.Errorf("encoding: compacted cell of %d qualifier bytes has %d value bytes, %d after its points, want 1", len(qualifier), len(value), len(rest))
	}
	if rest[0] > 1 {
		return fmt.Errorf("encoding: compacted cell ends with %02X, want 00 or 01", rest[0])
	}
	return nil
}

// noteOrder clears ordered when the offsets from index first on do not ascend
// beyond those before.
func (d *RowDecoder) noteOrder(first int) {
	if d.ordered && !ascending(d.offset[max(first-1, 0):]) {
		d.ordered = false
	}
}

func ascending(offset []int32) bool {
	for i := 1; i < len(offset); i++ {
		if offset[i] <= offset[i-1] {
			return false
		}
	}
	return true
}

func (d *RowDecoder) move(to, from int) {
	d.offset[to], d.raw[to], d.flags[to] = d.offset[from], d.raw[from], d.flags[from]
}

// Finish appends the row's points to dst in time order. A *DuplicateError
// means two different values at one time.
func (d *RowDecoder) Finish(dst *Points) error {
	if err := d.sorted(); err != nil {
		return err
	}
	offset := d.offset
	times, bits, floats := dst.extend(len(offset))
	// Equal lengths, said so that the compiler checks bounds here and not below.
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

// FinishDoubles is Finish for who needs the values as doubles only: it returns
// the points' offsets in ms from the base time, a view until Reset, and their
// values in dst's memory, which is used from its beginning.
func (d *RowDecoder) FinishDoubles(dst []float64) (offsets []int32, values []float64, err error) {
	if err := d.sorted(); err != nil {
		return nil, dst, err
	}
	n := len(d.offset)
	values = slices.Grow(dst[:0], n)[:n]
	raws, flags := d.raw[:n], d.flags[:n]
	for i, raw := range raws {
		width := uint(flags[i]&lengthMask) + 1
		switch {
		case flags[i]&floatFlag == 0:
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

// sorted brings the points in time order, each time once.
func (d *RowDecoder) sorted() error {
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

// Annotations returns the values, JSON, of the row's annotation cells.
func (d *RowDecoder) Annotations() [][]byte { return d.notes }

// Skipped counts cells of unknown kinds in the row.
func (d *RowDecoder) Skipped() int { return d.skipped }
