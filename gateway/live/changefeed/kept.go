package changefeed

import (
	"cmp"
	"encoding/binary"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// keptCell is a cell with one point, as it is stored.
type keptCell struct {
	stamp     int64
	qualifier [4]byte // of 2 or 4 bytes, zeros behind
	value     [8]byte
	width     uint8 // of the qualifier
	size      uint8 // of the value
}

// keptBytes is what a kept cell takes.
const keptBytes = 24

// order is the cell's place in its row: that of the qualifier's bytes, as those
// of two bytes begin otherwise than those of four.
func (c *keptCell) order() uint32 { return binary.BigEndian.Uint32(c.qualifier[:]) }

// offset is the time of the cell's point, ms from the base time.
func (c *keptCell) offset() int32 {
	if c.width == 2 {
		return int32(binary.BigEndian.Uint16(c.qualifier[:])>>4) * 1000
	}
	return int32(c.order() & 0x0FFFFFFF >> 6)
}

// keep appends the cells to dst, false if any is not one with a single point.
func keep(dst []keptCell, cells []store.Cell) ([]keptCell, bool) {
	for i := range cells {
		c := &cells[i]
		if offsetOf(c.Qualifier) == everywhere || len(c.Value) > len(keptCell{}.value) {
			return dst, false
		}
		k := keptCell{stamp: c.Timestamp, width: uint8(len(c.Qualifier)), size: uint8(len(c.Value))}
		copy(k.qualifier[:], c.Qualifier)
		copy(k.value[:], c.Value)
		dst = append(dst, k)
	}
	return dst, true
}

// asStored appends the cells as the store returned them; they are views.
func asStored(dst []store.Cell, kept []keptCell) []store.Cell {
	for i := range kept {
		k := &kept[i]
		dst = append(dst, store.Cell{Family: familyData, Qualifier: k.qualifier[:k.width:k.width], Value: k.value[:k.size:k.size], Timestamp: k.stamp})
	}
	return dst
}

var familyData = []byte(encoding.FamilyData)

// splice puts tail, the row's cells from offset cut on as they are now, in the
// place of those that were there. lost tells that one of those is missing now:
// what became of it cannot be told from the tail.
func splice(row, tail []keptCell, cut int32) (now []keptCell, changed, lost bool) {
	i, j := 0, 0 // of row and of tail
	for i < len(row) || j < len(tail) {
		switch {
		case j == len(tail) || i < len(row) && row[i].order() < tail[j].order():
			if row[i].offset() >= cut {
				return row, true, true
			}
			i++
		case i == len(row) || tail[j].order() < row[i].order():
			return merged(row, tail), true, lostAny(row[i:], tail[j:], cut)
		default:
			changed = changed || row[i] != tail[j]
			row[i] = tail[j]
			i++
			j++
		}
	}
	return row, changed, false
}

// lostAny tells whether row has a cell from offset cut on that tail has not.
func lostAny(row, tail []keptCell, cut int32) bool {
	for i := range row {
		if row[i].offset() < cut {
			continue
		}
		if _, there := find(tail, row[i].order()); !there {
			return true
		}
	}
	return false
}

func find(cells []keptCell, order uint32) (int, bool) {
	return slices.BinarySearchFunc(cells, order, func(c keptCell, order uint32) int { return cmp.Compare(c.order(), order) })
}

// merged is row with the cells of tail, which stand for those of the same place.
func merged(row, tail []keptCell) []keptCell {
	for _, c := range tail {
		i, there := find(row, c.order())
		if there {
			row[i] = c
		} else {
			row = slices.Insert(row, i, c) // nearly always the end
		}
	}
	return row
}
