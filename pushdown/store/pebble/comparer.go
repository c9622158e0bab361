package pebble

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// comparerName is written into every database. It never changes: a new order
// would need a new name and a migration.
const comparerName = "downpour.cells.v1"

// cells orders keys as HBase orders cells; the package comment shows how. Pebble's
// columnar blocks need three things of it: prefixes compare as bytes, suffixes only
// break ties, and what is left of a prefix when leading bytes are cut off is a
// prefix again.
var cells = &pebble.Comparer{
	Name:                 comparerName,
	Compare:              compareKeys,
	Equal:                bytes.Equal,
	ComparePointSuffixes: compareSuffixes,
	CompareRangeSuffixes: compareSuffixes,
	Split:                split,
	AbbreviatedKey:       abbreviate,
	Separator:            separator,
	Successor:            successor,
	ImmediateSuccessor:   immediateSuccessor,
	FormatKey:            func(key []byte) fmt.Formatter { return keyFormat(key) },
	ValidateKey:          validateKey,
}

// compareKeys orders by prefix, then by suffix.
func compareKeys(a, b []byte) int {
	i := split(a)
	// Keys of one length whose suffixes have one length, as cells of two points have, differ
	// at the same place in both orders. Memtables compare little else.
	if n := len(a) - suffixFixed; len(a) == len(b) && i < len(a) &&
		binary.BigEndian.Uint32(a[n:]) == binary.BigEndian.Uint32(b[n:]) {
		return bytes.Compare(a[:n], b[:n])
	}

	j := split(b)
	if c := bytes.Compare(a[:i], b[:j]); c != 0 {
		return c
	}
	return bytes.Compare(suffixBody(a[i:]), suffixBody(b[j:]))
}

// compareSuffixes orders the cells of one row; no suffix comes first.
func compareSuffixes(a, b []byte) int { return bytes.Compare(suffixBody(a), suffixBody(b)) }

// abbreviate packs the prefix's first eight bytes into a number. A shorter prefix is
// filled with zeros, so that its number is no greater than that of any prefix that
// begins with it.
func abbreviate(key []byte) uint64 {
	prefix := key[:split(key)]
	if len(prefix) >= 8 {
		return binary.BigEndian.Uint64(prefix)
	}
	var eight [8]byte
	copy(eight[:], prefix)
	return binary.BigEndian.Uint64(eight[:])
}

// openPrefix returns a key's prefix without its closing 00: the part that may be
// shortened.
func openPrefix(key []byte) []byte { return bytes.TrimSuffix(key[:split(key)], []byte{0}) }

// separator appends a short key k with a <= k < b. Only prefixes are shortened; what
// separates two cells of one row is the first of them.
func separator(dst, a, b []byte) []byte {
	x, y := openPrefix(a), openPrefix(b)
	if len(x) == 0 || len(y) == 0 || bytes.Equal(x, y) {
		return append(dst, a...)
	}

	n := len(dst)
	dst = pebble.DefaultComparer.Separator(dst, x, y)
	// There is nothing shorter.
	if bytes.Equal(dst[n:], x) {
		return append(dst[:n], a...)
	}
	// It is greater than x in some byte, so it is greater than all cells of a's row. As a
	// prefix it ends with 00.
	return append(dst, 0)
}

// successor appends a short key that is not less than a.
func successor(dst, a []byte) []byte {
	n := len(dst)
	dst = pebble.DefaultComparer.Successor(dst, openPrefix(a))
	if bytes.Equal(dst[n:], openPrefix(a)) { // all bytes are ff: it has no short successor
		dst = append(dst[:n], a...)
		if len(a) == 0 {
			dst = append(dst, 0) // the empty key is none
		}
		return dst
	}
	// As a prefix it ends with 00.
	return append(dst, 0)
}

// immediateSuccessor appends the least prefix that is greater than prefix a: a and 00.
func immediateSuccessor(dst, a []byte) []byte { return append(append(dst, a...), 0) }

// validateKey returns an error for a key that ends neither as a prefix nor as a suffix.
func validateKey(key []byte) error {
	if n := len(key); n > 0 && key[n-1] != 0 && split(key) == n {
		return fmt.Errorf("key %x: ends neither with 00 nor with a suffix's length and 01", key)
	}
	return nil
}

// keyFormat prints a key as table, row and cell, for pebble's own messages.
type keyFormat []byte

// Format writes table/row/family:qualifier, row and qualifier in hex. A 00 ends the table and the
// row; a key without a suffix, as a bound of a scan, ends with its row.
func (k keyFormat) Format(s fmt.State, _ rune) {
	prefix, suffix := k[:split(k)], k[split(k):]
	table, row, _ := bytes.Cut(prefix, []byte{0})
	fmt.Fprintf(s, "%s/%x", table, bytes.TrimSuffix(row, []byte{0}))
	if family, qualifier, ok := parseSuffix(suffix); ok {
		fmt.Fprintf(s, "/%s:%x", family, qualifier)
	}
}
