package cellblock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"downpour/pushdown/store"
)

// ErrMalformed is returned when the cells of a reply cannot be decoded.
var ErrMalformed = errors.New("malformed cell block")

// Types of a cell: the byte after its timestamp.
const (
	Put                 = 4
	Delete              = 8  // the version of the column with the timestamp
	DeleteFamilyVersion = 10 // all cells of the row's family with the timestamp
	DeleteColumn        = 12 // all versions of the column up to the timestamp
	DeleteFamily        = 14 // all cells of the row's family up to the timestamp
)

// ServerTime is the timestamp that a server replaces by the time of its clock
// (HConstants.LATEST_TIMESTAMP).
const ServerTime = math.MaxInt64

// Overhead is the bytes of a cell other than its row, family, qualifier and value:
// lengths 4+4+4+2+1, timestamp 8, type 1.
const Overhead = 24

// Split decodes the first cell of block into cell and returns its row and
// the rest of block. Row and cell are views of block. The package comment shows the
// layout.
func Split(block []byte, cell *store.Cell) (row, rest []byte, err error) {
	if len(block) < Overhead {
		return nil, nil, fmt.Errorf("%w: %d bytes left, want at least %d", ErrMalformed, len(block), Overhead)
	}

	total := uint64(binary.BigEndian.Uint32(block))
	keyLen := uint64(binary.BigEndian.Uint32(block[4:]))
	valueLen := uint64(binary.BigEndian.Uint32(block[8:]))
	rowLen := uint64(binary.BigEndian.Uint16(block[12:]))
	// keyLen holds the row's length (2), the family's (1), timestamp (8) and type (1).
	if total != 8+keyLen+valueLen || total+4 > uint64(len(block)) || keyLen < 12+rowLen {
		return nil, nil, fmt.Errorf("%w: total %d, key %d, value %d, row %d bytes of %d left",
			ErrMalformed, total, keyLen, valueLen, rowLen, len(block))
	}

	key := block[14 : 12+keyLen : 12+keyLen] // after the row's length
	familyLen := uint64(key[rowLen])
	if keyLen < 12+rowLen+familyLen {
		return nil, nil, fmt.Errorf("%w: family of %d bytes in a key of %d", ErrMalformed, familyLen, keyLen)
	}

	qualifier := rowLen + 1 + familyLen
	tail := uint64(len(key)) - 9 // timestamp and type
	cell.Family = key[rowLen+1 : qualifier : qualifier]
	cell.Qualifier = key[qualifier:tail:tail]
	cell.Timestamp = int64(binary.BigEndian.Uint64(key[tail:]))
	cell.Value = block[12+keyLen : 4+total : 4+total]
	return key[:rowLen:rowLen], block[4+total:], nil
}

// Type returns the type of the first cell of a block, which Split has accepted.
func Type(block []byte) byte {
	keyLen := binary.BigEndian.Uint32(block[4:])
	return block[12+keyLen-1]
}

// Append appends one cell to block; kind is its type.
func Append(block, row []byte, family string, qualifier, value []byte, timestamp int64, kind byte) []byte {
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
