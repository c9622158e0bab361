package column

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrDamaged is in every error about a block that cannot be read.
var ErrDamaged = errors.New("damaged block of columns")

// errCut is the error of a block that ends too early.
var errCut = fmt.Errorf("%w: it is cut short", ErrDamaged)

func errorOf(what string, got any) error { return fmt.Errorf("%w: %s is %v", ErrDamaged, what, got) }

// cutUvarint reads a number from the start of b.
func cutUvarint(b []byte) (v uint64, rest []byte, err error) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, b, errCut
	}
	return v, b[n:], nil
}

// cutVarint reads a number with a sign from the start of b.
func cutVarint(b []byte) (v int64, rest []byte, err error) {
	v, n := binary.Varint(b)
	if n <= 0 {
		return 0, b, errCut
	}
	return v, b[n:], nil
}

// cutByte reads a byte from the start of b.
func cutByte(b []byte) (v byte, rest []byte, err error) {
	if len(b) == 0 {
		return 0, b, errCut
	}
	return b[0], b[1:], nil
}
