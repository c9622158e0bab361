package hbase

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"downpour/pushdown/store"
)

// Pattern writes p as a regular expression that Java's engine searches for in
// a row key read as ISO-8859-1, one character a byte:
//
//	(?s)^.{7}(?:.{6})*?\x00\x00\x01\x00\x00[\x01-\x03]
//
// is a head of 7 bytes, any number of pairs of 3 + 3, and tagk 000001 with a
// tagv of 000001 to 000003. Every literal byte is written \xHH, so no byte has
// a meaning, and values are written as a byte trie, common leading bytes once
// and last bytes as a class, so that the cost of a row hardly depends on their
// number. Keys of the layout that KeyPattern describes match if and only if
// p.Matches; of other keys the expression may admit more, never fewer.
func Pattern(p *store.KeyPattern) string {
	var b strings.Builder
	b.WriteString("(?s)^")
	writeAny(&b, p.Head)
	step := p.NameLen + p.ValueLen
	for _, want := range p.Wants {
		if !p.Exact {
			fmt.Fprintf(&b, "(?:.{%d})*?", step)
		}
		writeLiteral(&b, want.Name)
		if len(want.Values) == 0 {
			writeAny(&b, p.ValueLen)
		} else {
			writeTrie(&b, sortedValues(want.Values))
		}
	}
	if p.Exact {
		b.WriteString(`\z`)
	}
	return b.String()
}

// checkPattern refuses what cannot be written as an expression.
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

// sortedValues gives the values ascending, as the trie needs them; usually
// they are.
func sortedValues(values [][]byte) [][]byte {
	if slices.IsSortedFunc(values, bytes.Compare) {
		return values
	}
	values = slices.Clone(values)
	slices.SortFunc(values, bytes.Compare)
	return values
}

func writeAny(b *strings.Builder, n int) {
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

// writeTrie writes values, sorted and equally long, as alternatives.
func writeTrie(b *strings.Builder, values [][]byte) {
	shared := commonPrefix(values[0], values[len(values)-1])
	writeLiteral(b, values[0][:shared])
	if shared == len(values[0]) {
		return // one value, perhaps given twice
	}
	if shared == len(values[0])-1 {
		writeClass(b, values, shared)
		return
	}
	b.WriteString("(?:")
	for begin := 0; begin < len(values); {
		end := begin + 1
		for end < len(values) && values[end][shared] == values[begin][shared] {
			end++
		}
		if begin > 0 {
			b.WriteByte('|')
		}
		writeTrie(b, cut(values[begin:end], shared))
		begin = end
	}
	b.WriteByte(')')
}

// cut drops n leading bytes of each value.
func cut(values [][]byte, n int) [][]byte {
	if n == 0 {
		return values
	}
	rest := make([][]byte, len(values))
	for i, v := range values {
		rest[i] = v[n:]
	}
	return rest
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}

// writeClass writes the bytes at index i of values, which differ only there,
// as a class with ranges.
func writeClass(b *strings.Builder, values [][]byte, i int) {
	b.WriteByte('[')
	for k := 0; k < len(values); {
		first := values[k][i]
		last := first
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
