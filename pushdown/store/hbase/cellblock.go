package hbase

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"downpour/pushdown/store"
)

// Types of a cell, the byte behind its timestamp.
const (
	cellPut          = 4
	cellDeleteColumn = 12 // all versions of the column up to the timestamp
	cellDeleteFamily = 14
)

// latest is HBase's "the server's clock" as a timestamp.
const latest = math.MaxInt64

// fixed is what a cell takes besides its row, family, qualifier and value:
// lengths 4+4+4+2+1, timestamp 8, type 1.
const fixed = 24

// errCellBlock marks a reply whose cells cannot be read.
var errCellBlock = errors.New("malformed cell block")

// splitCell reads the first cell of block into views and returns its row and
// the bytes behind it. Package hbase shows the layout.
func splitCell(block []byte, cell *store.Cell) (row, rest []byte, err error) {
	if len(block) < fixed {
		return nil, nil, fmt.Errorf("%w: %d bytes left, want at least %d", errCellBlock, len(block), fixed)
	}
	total := uint64(binary.BigEndian.Uint32(block))
	keyLen := uint64(binary.BigEndian.Uint32(block[4:]))
	valueLen := uint64(binary.BigEndian.Uint32(block[8:]))
	rowLen := uint64(binary.BigEndian.Uint16(block[12:]))
	if total != 8+keyLen+valueLen || total+4 > uint64(len(block)) || keyLen < 12+rowLen {
		return nil, nil, fmt.Errorf("%w: total %d, key %d, value %d, row %d bytes of %d left",
			errCellBlock, total, keyLen, valueLen, rowLen, len(block))
	}
	key := block[14 : 12+keyLen : 12+keyLen]
	familyLen := uint64(key[rowLen])
	if keyLen < 12+rowLen+familyLen {
		return nil, nil, fmt.Errorf("%w: family of %d bytes in a key of %d", errCellBlock, familyLen, keyLen)
	}
	qualifier := rowLen + 1 + familyLen
	tail := uint64(len(key)) - 9
	cell.Family = key[rowLen+1 : qualifier : qualifier]
	cell.Qualifier = key[qualifier:tail:tail]
	cell.Timestamp = int64(binary.BigEndian.Uint64(key[tail:]))
	cell.Value = block[12+keyLen : 4+total : 4+total]
	return key[:rowLen:rowLen], block[4+total:], nil
}

// appendCell appends one cell of type kind to block.
func appendCell(block, row []byte, family string, qualifier, value []byte, timestamp int64, kind byte) []byte {
	keyLen := 2 + len(row) + 1 + len(family) + len(qualifier) + 8 + 1
	block = binary.BigEndian.AppendUint32(block, uint32(8+keyLen+len(value)))
	block = binary.BigEndian.AppendUint32(block, uint32(keyLen))
	block = binary.BigEndian.AppendUint32(block, uint32(len(value)))
	block = binary.BigEndian.AppendUint16(block, uint16(len(row)))
	block = append(block, row...)
	block = append(block, byte(len(family)))
	block = append(block, family...)
	block = append(block, qualifier...)
	block = binary.BigEndian.AppendUint64(block, uint64(timestamp))
	block = append(block, kind)
	return append(block, value...)
}
