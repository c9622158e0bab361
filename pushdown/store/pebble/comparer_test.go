package pebble

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"pgregory.net/rapid"
)

// cellKey is a key in parts, the plain way to say what the order is.
type cellKey struct {
	table, row, family, qualifier string
	bare                          bool // a prefix without a suffix
}

func (k cellKey) bytes() []byte {
	if k.bare {
		return appendPrefix(nil, k.table, []byte(k.row))
	}
	return appendKey(nil, k.table, []byte(k.row), k.family, []byte(k.qualifier))
}

// compare is HBase's order, with a row's bare prefix before its cells.
func (k cellKey) compare(o cellKey) int {
	if c := cmp.Or(cmp.Compare(k.table, o.table), cmp.Compare(k.row, o.row)); c != 0 {
		return c
	}
	if k.bare || o.bare {
		return map[bool]int{true: 0, false: 1}[k.bare] - map[bool]int{true: 0, false: 1}[o.bare]
	}
	return cmp.Or(cmp.Compare(k.family, o.family), cmp.Compare(k.qualifier, o.qualifier))
}

// awkward are bytes that the encoding uses itself, and the extremes.
var awkward = rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 5, 6, 7, 8, 9, 't', 0xfe, 0xff}), 0, 9)

func drawKey(t *rapid.T, label string) cellKey {
	return cellKey{
		table:     rapid.SampledFrom([]string{"", "t", "tsdb", "tsdb-uid"}).Draw(t, label+" table"),
		row:       string(awkward.Draw(t, label+" row")),
		family:    rapid.SampledFrom([]string{"", "id", "name", "t", "tt"}).Draw(t, label+" family"),
		qualifier: string(awkward.Draw(t, label+" qualifier")),
		bare:      rapid.IntRange(0, 4).Draw(t, label+" bare") == 0,
	}
}

// drawNear draws a key that shares much with a: random ones hardly ever differ
// behind the row.
func drawNear(t *rapid.T, a cellKey) cellKey {
	b := drawKey(t, "b")
	same := rapid.IntRange(0, 4).Draw(t, "same parts")
	if same > 0 {
		b.table = a.table
	}
	if same > 1 {
		b.row = a.row + map[bool]string{true: b.row}[same == 2]
	}
	if same > 2 {
		b.family = a.family
	}
	if same > 3 {
		b.qualifier = a.qualifier + b.qualifier
	}
	return b
}

func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawKey(t, "a")
		b := drawNear(t, a)
		x, y := a.bytes(), b.bytes()
		want := a.compare(b)
		if got := compareKeys(x, y); got != want {
			t.Fatalf("compare %+v with %+v: %d, want %d", a, b, got, want)
		}
		if cells.Equal(x, y) != (want == 0) {
			t.Fatalf("%+v equals %+v: %v, want the opposite", a, b, cells.Equal(x, y))
		}
		if p, q := abbreviate(x), abbreviate(y); p < q && want >= 0 || p > q && want <= 0 {
			t.Fatalf("abbreviated %+v %016x, %+v %016x, but compare is %d", a, p, b, q, want)
		}
		prefix := len(a.table) + len(a.row) + 2
		if got := split(x); got != prefix {
			t.Fatalf("split %+v: %d, want %d", a, got, prefix)
		}
		if err := validateKey(x); err != nil {
			t.Fatal(err)
		}
	})
}

func TestShortKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := drawKey(t, "a")
		a, b := first.bytes(), drawNear(t, first).bytes()
		if compareKeys(a, b) > 0 {
			a, b = b, a
		}
		kept := []byte("kept")
		if k, ok := bytes.CutPrefix(cells.Separator(slices.Clone(kept), a, b), kept); !ok ||
			compareKeys(a, b) < 0 && (compareKeys(a, k) > 0 || compareKeys(k, b) >= 0) || validateKey(k) != nil ||
			len(k) > len(a)+1 {
			t.Fatalf("separator of %x and %x: %x, want a short valid key from the first on and before the second",
				a, b, k)
		}
		if k, ok := bytes.CutPrefix(cells.Successor(slices.Clone(kept), a), kept); !ok || compareKeys(a, k) > 0 ||
			validateKey(k) != nil || len(k) > len(a)+1 {
			t.Fatalf("successor of %x: %x, want a short valid key that is not before it", a, k)
		}
		own := a[:split(a)]
		next := cells.ImmediateSuccessor(nil, own)
		if compareKeys(own, next) >= 0 || split(next) != len(next) {
			t.Fatalf("immediate successor of %x: %x, want a prefix after it", own, next)
		}
		if other := b[:split(b)]; compareKeys(own, other) < 0 && compareKeys(other, next) < 0 {
			t.Fatalf("%x lies between %x and its immediate successor %x", other, own, next)
		}
	})
}

// Indexes of tables hold separators and successors: they are no longer than it takes to tell rows apart. There is none
// that is shorter for a row of ff alone, nor for nothing, whose successor pebble may ask for.
func TestShortKeys_frozen(t *testing.T) {
	key := func(row string) []byte { return appendKey(nil, "tsdb", []byte(row), "t", []byte("qualifier")) }
	last := append([]byte{0xff, 0xff, 0}, appendSuffix(nil, "t", []byte("q"))...)
	for name, c := range map[string]struct{ got, want []byte }{
		"between rows":        {separator(nil, key("abcdef"), key("axy")), appendPrefix(nil, "tsdb", []byte("ac"))},
		"between cells":       {separator(nil, key("a"), appendKey(nil, "tsdb", []byte("a"), "u", nil)), key("a")},
		"before a longer row": {separator(nil, key("ab"), key("abc")), key("ab")},
		"after a row":         {successor(nil, key("abcdef")), []byte("u\x00")},
		"after a row of ff":   {successor(nil, last), last},
		"after the empty key": {successor(nil, nil), []byte{0}},
	} {
		if !bytes.Equal(c.got, c.want) || validateKey(c.got) != nil {
			t.Errorf("%s: %x, want %x, and that valid", name, c.got, c.want)
		}
	}
	if err := validateKey(nil); err != nil {
		t.Error(err)
	}
}

// Messages name table, row and cell, those about bounds of ranges table and row.
func TestKeyFormat(t *testing.T) {
	for want, key := range map[string][]byte{
		"tsdb/0a00/t:0500": appendKey(nil, "tsdb", []byte{10, 0}, "t", []byte{5, 0}),
		"tsdb/0a00":        appendPrefix(nil, "tsdb", []byte{10, 0}),
	} {
		if got := fmt.Sprint(keyFormat(key)); got != want {
			t.Errorf("%x: %s, want %s", key, got, want)
		}
	}
}

// pebble's own check: split, order and equality over all combinations, prefixes
// with leading bytes cut off included.
func TestPebblesCheck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var prefixes, suffixes [][]byte
		for i := range 3 {
			k := drawKey(t, fmt.Sprint(i))
			k.bare = false
			key := k.bytes()
			prefixes, suffixes = append(prefixes, key[:split(key)]), append(suffixes, key[split(key):])
		}
		if err := pebble.CheckComparer(cells, prefixes, suffixes); err != nil {
			t.Fatal(err)
		}
	})
}

// Bounds lie where they must: a row's prefix before its cells and after those of every lesser row,
// the ends of a table and of a family right after their cells.
func TestBoundKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawKey(t, "a")
		b := drawNear(t, a)
		b.bare = false
		key := b.bytes()
		if got, want := compareKeys(appendPrefix(nil, a.table, []byte(a.row)), key) <= 0,
			a.table+"\x00"+a.row <= b.table+"\x00"+b.row; got != want {
			t.Fatalf("prefix of %+v is not above %+v: %v, want %v", a, b, got, want)
		}
		if got, want := compareKeys(key, appendTableEnd(nil, a.table)) < 0, b.table <= a.table; got != want {
			t.Fatalf("%+v is before the end of table %q: %v, want the opposite", b, a.table, got)
		}
		a.table, a.row = b.table, b.row
		if got, want := compareKeys(key, appendFamilyEnd(nil, a.table, []byte(a.row), a.family)) < 0,
			b.family <= a.family; got != want {
			t.Fatalf("%+v is before the end of family %q: %v, want the opposite", b, a.family, got)
		}
	})
}

// Keys that no store has written do not make the comparer panic.
func FuzzSplit(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 9, 1})
	f.Add([]byte{0xff, 0xff, 0xff, 1})
	f.Add(appendKey(nil, "tsdb", []byte{0, 0, 1}, "t", []byte{5, 0, 0}))
	f.Fuzz(func(t *testing.T, key []byte) {
		if n := split(key); n < 0 || n > len(key) {
			t.Fatalf("split of %x: %d, want a length within the key", key, n)
		}
		if compareKeys(key, key) != 0 {
			t.Fatalf("%x is not equal to itself", key)
		}
		parseSuffix(key[split(key):])
		_ = fmt.Sprint(keyFormat(key))
	})
}
