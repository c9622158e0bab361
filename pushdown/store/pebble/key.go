package pebble

import (
	"encoding/binary"
	"fmt"
)

const (
	// tailFixed is what every tail ends with: length (3 bytes) and mark.
	tailFixed = 4
	// tailMark tells a key with a tail from one that ends with its row's 00.
	tailMark = 0x01
	// tailLeast is the shortest tail: no family, the 00 behind it, the end.
	tailLeast = 1 + tailFixed
	// maxTail bounds family and qualifier: the length has three bytes.
	maxTail = 1<<24 - 1
	// maxRow is HBase's own limit of a row key.
	maxRow = 1<<15 - 1
)

// headLen is the length of the head of row in table.
func headLen(table string, row []byte) int { return len(table) + len(row) + 2 }

// tailLen is the length of a whole tail.
func tailLen(family string, qualifier []byte) int {
	return len(family) + 1 + len(qualifier) + tailFixed
}

// appendHead appends the head of row: the least key of the row, which bounds
// scans.
func appendHead(dst []byte, table string, row []byte) []byte {
	dst = append(dst, table...)
	dst = append(dst, 0)
	dst = append(dst, row...)
	return append(dst, 0)
}

// appendTail appends the tail of a cell.
func appendTail(dst []byte, family string, qualifier []byte) []byte {
	dst = append(dst, family...)
	dst = append(dst, 0)
	dst = append(dst, qualifier...)
	return appendTailEnd(dst, uint32(tailLen(family, qualifier)))
}

// appendTailEnd appends the fixed end of a tail that is n bytes long with it.
func appendTailEnd(dst []byte, n uint32) []byte {
	return binary.BigEndian.AppendUint32(dst, n<<8|tailMark)
}

// appendKey appends the whole key of a cell.
func appendKey(dst []byte, table string, row []byte, family string, qualifier []byte) []byte {
	return appendTail(appendHead(dst, table, row), family, qualifier)
}

// appendFamilyEnd appends a key behind every cell of one family of a row and
// before the next family: names hold no byte below 20, so none lies between.
func appendFamilyEnd(dst []byte, table string, row []byte, family string) []byte {
	dst = appendHead(dst, table, row)
	dst = append(dst, family...)
	dst = append(dst, 0x01)
	return appendTailEnd(dst, uint32(len(family)+1+tailFixed))
}

// appendTableEnd appends a key behind every row of table and before the next
// table.
func appendTableEnd(dst []byte, table string) []byte {
	return append(append(dst, table...), 0x01, 0x00)
}

// split returns where key's tail begins; len(key) where it has none.
func split(key []byte) int {
	n := len(key)
	if n < tailLeast || key[n-1] != tailMark {
		return n
	}
	tail := int(binary.BigEndian.Uint32(key[n-tailFixed:]) >> 8)
	if tail < tailLeast || tail > n {
		return n
	}
	return n - tail
}

// tailBody is what of a tail takes part in the order.
func tailBody(tail []byte) []byte {
	if len(tail) < tailFixed {
		return tail
	}
	return tail[:len(tail)-tailFixed]
}

// parseTail splits a tail into family and qualifier.
func parseTail(tail []byte) (family, qualifier []byte, ok bool) {
	body := tailBody(tail)
	for i, c := range body {
		if c == 0 {
			return body[:i:i], body[i+1:], true
		}
	}
	return nil, nil, false
}

// checkName refuses names that the key cannot carry. HBase has the same rules
// for tables, and looser ones for families.
func checkName(what, name string) error {
	if name == "" {
		return fmt.Errorf("%s name is empty", what)
	}
	for i := range len(name) {
		if !nameByte(name[i]) {
			return fmt.Errorf("%s name %q: byte %d is %#02x, want letters, digits, '_', '.', '-' or ':'", what, name, i, name[i])
		}
	}
	return nil
}

// nameByte tells whether c may stand in a name.
func nameByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.' || c == '-' || c == ':'
}

// checkCell refuses rows and qualifiers that are too long, as HBase does, and
// the empty row.
func checkCell(row []byte, family string, qualifier []byte) error {
	switch {
	case len(row) == 0:
		return fmt.Errorf("row key is empty")
	case len(row) > maxRow:
		return fmt.Errorf("row key has %d bytes, want at most %d", len(row), maxRow)
	case tailLen(family, qualifier) > maxTail:
		return fmt.Errorf("row %x: qualifier has %d bytes, want at most %d", row, len(qualifier), maxTail-tailLeast-len(family))
	}
	return nil
}
