package batch

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// A narrow batch is a series batch on its way to another process, where integers take the bytes that they need. In the
// place of raw_bits it has
//
//	raw_narrow binary   nothing without points, else the least of the row's numbers, 8 bytes, and what each has
//	                    more, on 0, 1, 2 or 4 bytes; or, as with most doubles, 8 bytes of 0 and the numbers
//
// All are little-endian. The width is what the length leaves for each point of raw_float. 300, 301 and 556 are
//
//	2C 01 00 00 00 00 00 00   00 00   01 00   00 01
var narrowSchema = func() *arrow.Schema {
	fields := slices.Clone(seriesSchema.Fields())
	fields[colRawBits] = arrow.Field{Name: "raw_narrow", Type: arrow.BinaryTypes.Binary}
	return arrow.NewSchema(fields, metadata(Version))
}()

// NarrowSchema is the schema of narrow batches.
func NarrowSchema() *arrow.Schema { return narrowSchema }

// Narrow returns the narrow batch of a series batch, which it leaves as it is.
func Narrow(r Record, mem Allocator) Record {
	bits := lists(r, colRawBits, (*array.Int64).Int64Values)
	rows, size := make([]narrowRow, r.NumRows()), 0
	ends := make(offsets, 0, len(rows))
	for i := range rows {
		rows[i] = narrowRowOf(bits.at(i))
		size += rows[i].size()
		ends.end(size)
	}

	c := columns{mem: mem}
	b := memory.NewResizableBuffer(mem)
	b.Resize(size)
	rest := b.Bytes()
	for i := range rows {
		rest = rows[i].put(rest)
	}
	all := make([]arrow.ArrayData, r.NumCols())
	for i, column := range r.Columns() {
		all[i] = column.Data()
	}
	all[colRawBits] = c.data(arrow.BinaryTypes.Binary, len(rows), []*memory.Buffer{c.ends(ends), b})
	return c.record(narrowSchema, len(rows), all)
}

// narrowRow is a row of numbers, and how it is written.
type narrowRow struct {
	numbers []int64
	least   int64
	width   int // bytes of what each number has more
}

const (
	leastBytes = 8
	// mostNarrow is the most numbers of a row, as many as the largest message has if each takes 8 bytes: without it a
	// message of numbers without bytes would take any memory.
	mostNarrow = 8 << 20
)

// narrowRowOf returns how a row of numbers is written.
func narrowRowOf(numbers []int64) narrowRow {
	if len(numbers) == 0 {
		return narrowRow{}
	}

	least, most := numbers[0], numbers[0]
	more := uint64(0)
	for chunk := range slices.Chunk(numbers, 64) {
		for _, n := range chunk {
			least, most = min(least, n), max(most, n)
		}
		if more = uint64(most) - uint64(least); more >= 1<<32 {
			break // no width saves anything: so it is with most doubles, after a few of them
		}
	}

	row := narrowRow{numbers, least, 8}
	switch {
	case more == 0:
		row.width = 0
	case more < 1<<8:
		row.width = 1
	case more < 1<<16:
		row.width = 2
	case more < 1<<32:
		row.width = 4
	default:
		row.least = 0
	}
	return row
}

// size is the number of bytes that put writes.
func (r *narrowRow) size() int {
	if len(r.numbers) == 0 {
		return 0
	}
	return leastBytes + r.width*len(r.numbers)
}

// put writes the row to the start of b, and returns what follows it.
func (r *narrowRow) put(b []byte) (rest []byte) {
	if len(r.numbers) == 0 {
		return b
	}

	b, rest = b[:r.size()], b[r.size():]
	binary.LittleEndian.PutUint64(b, uint64(r.least))
	b = b[leastBytes:]
	switch r.width {
	case 1:
		for i, n := range r.numbers {
			b[i] = byte(n - r.least)
		}
	case 2:
		for i, n := range r.numbers {
			binary.LittleEndian.PutUint16(b[2*i:], uint16(n-r.least))
		}
	case 4:
		for i, n := range r.numbers {
			binary.LittleEndian.PutUint32(b[4*i:], uint32(n-r.least))
		}
	case 8:
		copy(b, arrow.Int64Traits.CastToBytes(r.numbers))
	}
	return rest
}

// widen returns the n numbers of a row, in the memory of dst. It returns an error for bytes that put does not write.
func widen(dst *[]uint64, b []byte, n int) ([]uint64, error) {
	if n == 0 && len(b) == 0 {
		return nil, nil
	}
	if n == 0 || n > mostNarrow || len(b) < leastBytes || (len(b)-leastBytes)%n != 0 {
		return nil, fmt.Errorf("%d bytes for %d numbers, want 8 and as many for each of at most %d", len(b), n,
			mostNarrow)
	}

	least, b := binary.LittleEndian.Uint64(b), b[leastBytes:]
	all := slices.Grow((*dst)[:0], n)[:n]
	*dst = all
	switch width := len(b) / n; width {
	case 0:
		for i := range all {
			all[i] = least
		}
	case 1:
		for i, more := range b {
			all[i] = least + uint64(more)
		}
	case 2:
		for i := range all {
			all[i] = least + uint64(binary.LittleEndian.Uint16(b[2*i:]))
		}
	case 4:
		for i := range all {
			all[i] = least + uint64(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case 8:
		copy(arrow.Uint64Traits.CastToBytes(all), b)
	default:
		return nil, fmt.Errorf("numbers of %d bytes, want 0, 1, 2, 4 or 8", width)
	}
	return all, nil
}
