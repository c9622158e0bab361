package changefeed

import (
	"cmp"
	"encoding/binary"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// keptCell is a copy of a stored cell that holds one point. Rows of such cells are
// kept in memory, so that a change of their end needs no reading.
type keptCell struct {
	timestamp int64
	qualifier [4]byte // 2 or 4 bytes, zeros after them
	value     [8]byte
	width     uint8 // bytes of the qualifier
	size      uint8 // bytes of the value
}

// keptBytes is the memory of a kept cell.
const keptBytes = 24

// order returns the cell's place in its row, which is that of the qualifier's
// bytes. Qualifiers of two and of four bytes never begin alike, so the zeros after
// a short one do not matter.
func (c *keptCell) order() uint32 { return binary.BigEndian.Uint32(c.qualifier[:]) }

// offset returns the time of the cell's point, ms from the base time.
func (c *keptCell) offset() int32 {
	if c.width == 2 {
		return int32(binary.BigEndian.Uint16(c.qualifier[:])>>4) * 1000
	}
	return int32(c.order() & 0x0FFFFFFF >> 6)
}

// appendKept appends copies of cells to dst. ok is false if any of them is not a
// cell with a single point.
func appendKept(dst []keptCell, cells []store.Cell) (_ []keptCell, ok bool) {
	for i := range cells {
		c := &cells[i]
		if offsetOf(c.Qualifier) == everywhere || len(c.Value) > len(keptCell{}.value) {
			return dst, false
		}
		k := keptCell{timestamp: c.Timestamp, width: uint8(len(c.Qualifier)), size: uint8(len(c.Value))}
		copy(k.qualifier[:], c.Qualifier)
		copy(k.value[:], c.Value)
		dst = append(dst, k)
	}
	return dst, true
}

// appendCells appends kept cells to dst as the store returned them. Their bytes are
// views of kept.
func appendCells(dst []store.Cell, kept []keptCell) []store.Cell {
	for i := range kept {
		k := &kept[i]
		dst = append(dst, store.Cell{
			Family:    familyData,
			Qualifier: k.qualifier[:k.width:k.width],
			Value:     k.value[:k.size:k.size],
			Timestamp: k.timestamp,
		})
	}
	return dst
}

var familyData = []byte(encoding.FamilyData)

// splice replaces a row's cells from offset cut (ms) on by tail, the present ones.
// changed reports whether they differ. lost is set if a cell of row is missing in tail:
// a compaction may have put its point into another cell, so the row must be read. Both
// slices are in order.
func splice(row, tail []keptCell, cut int32) (now []keptCell, changed, lost bool) {
	i, j := 0, 0 // places in row and in tail
	for i < len(row) || j < len(tail) {
		switch {
		case j == len(tail) || i < len(row) && row[i].order() < tail[j].order():
			// The cell is not in tail. Before the cut it need not be.
			if row[i].offset() >= cut {
				return row, true, true
			}
			i++
		case i == len(row) || tail[j].order() < row[i].order():
			// A new cell. The rest of tail is inserted by search, because nearly always it is the
			// end.
			return overlay(row, tail), true, lostAny(row[i:], tail[j:], cut)
		default:
			changed = changed || row[i] != tail[j]
			row[i] = tail[j]
			i++
			j++
		}
	}
	return row, changed, false
}

// lostAny reports whether row has a cell from offset cut on that tail does not have.
func lostAny(row, tail []keptCell, cut int32) bool {
	for i := range row {
		if row[i].offset() < cut {
			continue
		}
		if _, found := searchKept(tail, row[i].order()); !found {
			return true
		}
	}
	return false
}

// searchKept returns the place of a cell among cells in order, and whether it is
// there.
func searchKept(cells []keptCell, order uint32) (int, bool) {
	return slices.BinarySearchFunc(cells, order,
		func(c keptCell, order uint32) int { return cmp.Compare(c.order(), order) })
}

// overlay returns row with the cells of tail, which replace those with the same
// qualifier.
func overlay(row, tail []keptCell) []keptCell {
	for _, c := range tail {
		i, found := searchKept(row, c.order())
		if found {
			row[i] = c
		} else {
			row = slices.Insert(row, i, c) // nearly always at the end
		}
	}
	return row
}
