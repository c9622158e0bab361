package hbase

import (
	"encoding/binary"
	"fmt"
	"math"

	"downpour/pushdown/store"
)

// Types of a cell: the byte after its timestamp.
const (
	cellPut                 = 4
	cellDelete              = 8  // the version of the column with the timestamp
	cellDeleteFamilyVersion = 10 // all cells of the row's family with the timestamp
	cellDeleteColumn        = 12 // all versions of the column up to the timestamp
	cellDeleteFamily        = 14 // all cells of the row's family up to the timestamp
)

// serverTime is the timestamp in place of which a server sets its clock's time
// (HConstants.LATEST_TIMESTAMP).
const serverTime = math.MaxInt64

// cellOverhead is the bytes of a cell besides its row, family, qualifier and value:
// lengths 4+4+4+2+1, timestamp 8, type 1.
const cellOverhead = 24

// splitCell decodes the first cell of block into cell and returns its row and
// the rest of block. Row and cell are views of block. The package comment shows the
// layout.
func splitCell(block []byte, cell *store.Cell) (row, rest []byte, err error) {
	if len(block) < cellOverhead {
		return nil, nil, fmt.Errorf("%w: %d bytes left, want at least %d", errCellBlock, len(block), cellOverhead)
	}

	total := uint64(binary.BigEndian.Uint32(block))
	keyLen := uint64(binary.BigEndian.Uint32(block[4:]))
	valueLen := uint64(binary.BigEndian.Uint32(block[8:]))
	rowLen := uint64(binary.BigEndian.Uint16(block[12:]))
	// keyLen holds the row's length (2), the family's (1), timestamp (8) and type (1).
	if total != 8+keyLen+valueLen || total+4 > uint64(len(block)) || keyLen < 12+rowLen {
		return nil, nil, fmt.Errorf("%w: total %d, key %d, value %d, row %d bytes of %d left",
			errCellBlock, total, keyLen, valueLen, rowLen, len(block))
	}

	key := block[14 : 12+keyLen : 12+keyLen] // after the row's length
	familyLen := uint64(key[rowLen])
	if keyLen < 12+rowLen+familyLen {
		return nil, nil, fmt.Errorf("%w: family of %d bytes in a key of %d", errCellBlock, familyLen, keyLen)
	}

	qualifier := rowLen + 1 + familyLen
	tail := uint64(len(key)) - 9 // timestamp and type
	cell.Family = key[rowLen+1 : qualifier : qualifier]
	cell.Qualifier = key[qualifier:tail:tail]
	cell.Timestamp = int64(binary.BigEndian.Uint64(key[tail:]))
	cell.Value = block[12+keyLen : 4+total : 4+total]
	return key[:rowLen:rowLen], block[4+total:], nil
}

// cellType returns the type of the first cell of a block, which splitCell has accepted.
func cellType(block []byte) byte {
	keyLen := binary.BigEndian.Uint32(block[4:])
	return block[12+keyLen-1]
}

// appendCell appends one cell to block; kind is its type.
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
