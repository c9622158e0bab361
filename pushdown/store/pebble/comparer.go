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

// cells orders keys as HBase orders cells; the package comment shows how.
// pebble's columnar blocks need what it gives: heads ("prefixes") sort as
// bytes, tails ("suffixes") only break ties, and what is left of a head when
// leading bytes are cut off is a head again.
var cells = &pebble.Comparer{
	Name:                 comparerName,
	Compare:              compareKeys,
	Equal:                bytes.Equal,
	ComparePointSuffixes: compareTails,
	CompareRangeSuffixes: compareTails,
	Split:                split,
	AbbreviatedKey:       abbreviate,
	Separator:            separator,
	Successor:            successor,
	ImmediateSuccessor:   immediateSuccessor,
	FormatKey:            func(key []byte) fmt.Formatter { return keyFormat(key) },
	ValidateKey:          validateKey,
}

// compareKeys orders by head, then by tail.
func compareKeys(a, b []byte) int {
	i, j := split(a), split(b)
	if c := bytes.Compare(a[:i], b[:j]); c != 0 {
		return c
	}
	return bytes.Compare(tailBody(a[i:]), tailBody(b[j:]))
}

// compareTails orders the cells of one row; no tail comes first.
func compareTails(a, b []byte) int { return bytes.Compare(tailBody(a), tailBody(b)) }

// abbreviate packs the head's first eight bytes. A shorter head is filled with
// zeros, which sorts it no later than any head that it begins.
func abbreviate(key []byte) uint64 {
	head := key[:split(key)]
	if len(head) >= 8 {
		return binary.BigEndian.Uint64(head)
	}
	var eight [8]byte
	copy(eight[:], head)
	return binary.BigEndian.Uint64(eight[:])
}

// open returns key's head without its closing 00: what may be shortened.
func open(key []byte) []byte { return bytes.TrimSuffix(key[:split(key)], []byte{0}) }

// separator appends a short key k with a <= k < b. Shortening happens inside
// heads only; two cells of one row are separated by the first itself.
func separator(dst, a, b []byte) []byte {
	x, y := open(a), open(b)
	if len(x) == 0 || len(y) == 0 || bytes.Equal(x, y) {
		return append(dst, a...)
	}
	n := len(dst)
	dst = pebble.DefaultComparer.Separator(dst, x, y)
	if bytes.Equal(dst[n:], x) {
		return append(dst[:n], a...)
	}
	return append(dst, 0) // greater than x in some byte, so greater than all of a's row
}

// successor appends a short key that is not less than a.
func successor(dst, a []byte) []byte {
	n := len(dst)
	dst = pebble.DefaultComparer.Successor(dst, open(a))
	if bytes.Equal(dst[n:], open(a)) {
		dst = append(dst[:n], a...)
		if len(a) == 0 {
			dst = append(dst, 0)
		}
		return dst
	}
	return append(dst, 0)
}

// immediateSuccessor appends the least head behind head a: one more 00.
func immediateSuccessor(dst, a []byte) []byte { return append(append(dst, a...), 0) }

// validateKey tells whether key ends as a head or as a tail must.
func validateKey(key []byte) error {
	if n := len(key); n > 0 && key[n-1] != 0 && split(key) == n {
		return fmt.Errorf("key %x: ends neither with 00 nor with a tail's length and 01", key)
	}
	return nil
}

// keyFormat prints a key as table, row and cell, for pebble's own messages.
type keyFormat []byte

// Format implements fmt.Formatter.
func (k keyFormat) Format(s fmt.State, _ rune) {
	head, tail := k[:split(k)], k[split(k):]
	table, row, _ := bytes.Cut(head, []byte{0})
	fmt.Fprintf(s, "%s/%x", table, bytes.TrimSuffix(row, []byte{0}))
	if family, qualifier, ok := parseTail(tail); ok {
		fmt.Fprintf(s, "/%s:%x", family, qualifier)
	}
}
