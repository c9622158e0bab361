package pebble

import (
	"encoding/binary"
	"fmt"
)

const (
	// suffixFixed is the length of what every suffix ends with: length (3 bytes) and
	// suffixMark.
	suffixFixed = 4
	// suffixMark is the last byte of a key with a suffix. A key without one ends
	// with its row's 00.
	suffixMark = 0x01
	// minSuffix is the length of the shortest suffix: no family, its 00, the end.
	minSuffix = 1 + suffixFixed
	// maxSuffix bounds family and qualifier, because the length has three bytes.
	maxSuffix = 1<<24 - 1
	// maxRow is the longest row key that HBase takes.
	maxRow = 1<<15 - 1
)

// prefixLen returns the length of the prefix of a row's keys.
func prefixLen(table string, row []byte) int { return len(table) + len(row) + 2 }

// suffixLen returns the length of a cell's suffix.
func suffixLen(family string, qualifier []byte) int {
	return len(family) + 1 + len(qualifier) + suffixFixed
}

// appendPrefix appends the prefix of a row's keys. It sorts before all of them, and so
// bounds scans.
func appendPrefix(dst []byte, table string, row []byte) []byte {
	dst = append(dst, table...)
	dst = append(dst, 0)
	dst = append(dst, row...)
	return append(dst, 0)
}

// appendSuffix appends the suffix of a cell.
func appendSuffix(dst []byte, family string, qualifier []byte) []byte {
	dst = append(dst, family...)
	dst = append(dst, 0)
	dst = append(dst, qualifier...)
	return appendSuffixEnd(dst, uint32(suffixLen(family, qualifier)))
}

// appendSuffixEnd appends the fixed end of a suffix of n bytes, the end included.
func appendSuffixEnd(dst []byte, n uint32) []byte {
	return binary.BigEndian.AppendUint32(dst, n<<8|suffixMark)
}

// appendKey appends the key of a cell.
func appendKey(dst []byte, table string, row []byte, family string, qualifier []byte) []byte {
	return appendSuffix(appendPrefix(dst, table, row), family, qualifier)
}

// appendFamilyEnd appends a key that sorts after every cell of one family of a row and
// before the next family. No family is between, because names hold no byte as low
// as the 01 that follows the name here.
func appendFamilyEnd(dst []byte, table string, row []byte, family string) []byte {
	dst = appendPrefix(dst, table, row)
	dst = append(dst, family...)
	dst = append(dst, 0x01)
	return appendSuffixEnd(dst, uint32(len(family)+1+suffixFixed))
}

// appendTableEnd appends a key that sorts after every row of a table and before the
// next table.
func appendTableEnd(dst []byte, table string) []byte {
	return append(append(dst, table...), 0x01, 0x00)
}

// split returns the offset of a key's suffix, len(key) if it has none.
func split(key []byte) int {
	n := len(key)
	if n < minSuffix || key[n-1] != suffixMark {
		return n
	}
	suffix := int(binary.BigEndian.Uint32(key[n-suffixFixed:]) >> 8) // without suffixMark
	// Only a key of a damaged batch claims such a length.
	if suffix < minSuffix || suffix > n {
		return n
	}
	return n - suffix
}

// suffixBody returns the part of a suffix that takes part in the order: all but its
// fixed end.
func suffixBody(suffix []byte) []byte {
	if len(suffix) < suffixFixed {
		return suffix
	}
	return suffix[:len(suffix)-suffixFixed]
}

// parseSuffix splits a suffix into family and qualifier.
func parseSuffix(suffix []byte) (family, qualifier []byte, ok bool) {
	body := suffixBody(suffix)
	for i, c := range body {
		if c == 0 {
			return body[:i:i], body[i+1:], true
		}
	}
	return nil, nil, false
}

// checkName returns an error for a name that a key cannot hold. HBase has the same
// rules for tables, and looser ones for families.
func checkName(what, name string) error {
	if name == "" {
		return fmt.Errorf("%s name is empty", what)
	}
	for i := range len(name) {
		if !nameByte(name[i]) {
			return fmt.Errorf("%s name %q: byte %d is %#02x, want letters, digits, '_', '.', '-' or ':'",
				what, name, i, name[i])
		}
	}
	return nil
}

// nameByte reports whether a name may contain c.
func nameByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c == '_' || c == '.' || c == '-' || c == ':'
}

// checkCell returns an error for the empty row, and for rows and qualifiers that are
// too long, as HBase does.
func checkCell(row []byte, family string, qualifier []byte) error {
	switch {
	case len(row) == 0:
		return fmt.Errorf("row key is empty")
	case len(row) > maxRow:
		return fmt.Errorf("row key has %d bytes, want at most %d", len(row), maxRow)
	case suffixLen(family, qualifier) > maxSuffix:
		return fmt.Errorf("row %x: qualifier has %d bytes, want at most %d",
			row, len(qualifier), maxSuffix-minSuffix-len(family))
	}
	return nil
}
