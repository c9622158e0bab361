package hbase

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"downpour/pushdown/store"
)

// Pattern returns p as a regular expression that Java's engine searches for in
// a row key, read as ISO-8859-1, one character a byte:
//
//	(?s)^.{7}(?:.{6})*?\x00\x00\x01\x00\x00[\x01-\x03]
//
// matches a head of 7 bytes, any number of pairs of 3 + 3 bytes, and tagk 000001
// with a tagv of 000001 to 000003.
//
// Every literal byte is written \xHH, so that none is read as an operator. Values are
// written as a trie of bytes, common leading bytes once and last bytes as a class, so
// that the cost of a row hardly depends on the number of values.
//
// A key of the layout that KeyPattern describes matches if and only if p.Matches is true. The
// expression may admit more other keys, never fewer.
func Pattern(p *store.KeyPattern) string {
	var b strings.Builder
	b.WriteString("(?s)^")
	writeAnyBytes(&b, p.Head)

	step := p.NameLen + p.ValueLen
	for _, want := range p.Wants {
		// Other elements may come before the wanted one.
		if !p.Exact {
			fmt.Fprintf(&b, "(?:.{%d})*?", step)
		}
		writeLiteral(&b, want.Name)
		if len(want.Values) == 0 {
			writeAnyBytes(&b, p.ValueLen)
		} else {
			writeTrie(&b, sortedValues(want.Values))
		}
	}

	if p.Exact {
		b.WriteString(`\z`)
	}
	return b.String()
}

// checkPattern returns an error if p cannot be written as an expression.
func checkPattern(p *store.KeyPattern) error {
	if p.Head < 0 || p.NameLen < 0 || p.ValueLen < 0 || p.NameLen+p.ValueLen == 0 {
		return fmt.Errorf("key pattern: head %d, name %d, value %d bytes: want 0 or more, and elements of at least 1",
			p.Head, p.NameLen, p.ValueLen)
	}

	for _, w := range p.Wants {
		if len(w.Name) != p.NameLen {
			return fmt.Errorf("key pattern: name %x: got %d bytes, want %d", w.Name, len(w.Name), p.NameLen)
		}
		for _, v := range w.Values {
			if len(v) != p.ValueLen {
				return fmt.Errorf("key pattern: value %x of %x: got %d bytes, want %d", v, w.Name, len(v), p.ValueLen)
			}
		}
	}
	return nil
}

// sortedValues returns a copy of the values in ascending order, as the trie needs them.
func sortedValues(values [][]byte) [][]byte {
	values = slices.Clone(values)
	slices.SortFunc(values, bytes.Compare)
	return values
}

// writeAnyBytes writes an expression for any n bytes.
func writeAnyBytes(b *strings.Builder, n int) {
	if n > 0 {
		fmt.Fprintf(b, ".{%d}", n)
	}
}

func writeLiteral(b *strings.Builder, s []byte) {
	for _, c := range s {
		writeByte(b, c)
	}
}

func writeByte(b *strings.Builder, c byte) {
	const hex = "0123456789abcdef"
	b.Write([]byte{'\\', 'x', hex[c>>4], hex[c&15]})
}

// writeTrie writes values as alternatives. They are sorted and have equal lengths.
func writeTrie(b *strings.Builder, values [][]byte) {
	// All share the common prefix of the first and the last one.
	shared := commonPrefix(values[0], values[len(values)-1])
	writeLiteral(b, values[0][:shared])

	// There is one value, perhaps several times.
	if shared == len(values[0]) {
		return
	}
	if shared == len(values[0])-1 {
		writeClass(b, values, shared)
		return
	}

	// One alternative for each byte that follows the shared ones.
	b.WriteString("(?:")
	for begin := 0; begin < len(values); {
		end := begin + 1
		for end < len(values) && values[end][shared] == values[begin][shared] {
			end++
		}
		if begin > 0 {
			b.WriteByte('|')
		}
		writeTrie(b, dropBytes(values[begin:end], shared))
		begin = end
	}
	b.WriteByte(')')
}

// dropBytes returns the values without their first n bytes.
func dropBytes(values [][]byte, n int) [][]byte {
	rest := make([][]byte, len(values))
	for i, v := range values {
		rest[i] = v[n:]
	}
	return rest
}

// commonPrefix returns how many leading bytes a and b share.
func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}

// writeClass writes the last bytes of values, at index i, as a character class with
// ranges. The values are sorted and differ only there.
func writeClass(b *strings.Builder, values [][]byte, i int) {
	b.WriteByte('[')
	for k := 0; k < len(values); {
		first := values[k][i]
		last := first
		// Equal bytes are values that occur twice.
		for k++; k < len(values) && values[k][i]-last <= 1; k++ {
			last = values[k][i]
		}
		writeByte(b, first)
		if last > first {
			b.WriteByte('-')
			writeByte(b, last)
		}
	}

	b.WriteByte(']')
}
