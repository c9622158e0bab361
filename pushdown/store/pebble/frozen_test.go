package pebble

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// What is tested here is on users' disks: a change of the code that fails it
// is wrong, however good it looks. A new format gets new names and stands
// next to this one.

var writeDatabase = flag.String("write-database", "",
	"write the database of TestOldDatabase into this new directory; only for a new format")

func TestFrozenNames(t *testing.T) {
	for got, want := range map[string]string{
		cells.Name:     "downpour.cells.v1",
		appends.Name:   "downpour.append.v1",
		keySchema.Name: "DefaultKeySchema(downpour.cells.v1,16)",
	} {
		if got != want {
			t.Errorf("name %q, want %q", got, want)
		}
	}
}

// frozenKeys are keys as FORMAT.md shows them, in their order.
var frozenKeys = []struct {
	hex  string
	cell cellKey
}{
	{"00 74736462 00 | 00 00000501", cellKey{"", "tsdb", "", "", false}},
	{"00 74736462 00 | 74 00 00000601", cellKey{"", "tsdb", "t", "", false}},
	{"00 74736462 00 | 74 00 424c4f4f4d46494c544552 00001101", cellKey{"", "tsdb", "t", "BLOOMFILTER", false}},
	{"74736462 00 000001 00", cellKey{"tsdb", "\x00\x00\x01", "", "", true}},
	{"74736462 00 000001 00 | 74 00 07b3 00000801", cellKey{"tsdb", "\x00\x00\x01", "t", "\x07\xb3", false}},
	{"74736462 00 000001 00 | 74 00 07b3 00 00000901", cellKey{"tsdb", "\x00\x00\x01", "t", "\x07\xb3\x00", false}},
	{
		"74736462 00 000001 00 | 74 00 07b3 0000 00000a01",
		cellKey{"tsdb", "\x00\x00\x01", "t", "\x07\xb3\x00\x00", false},
	},
	{"74736462 00 000001 00 | 74 00 07b3 01 00000901", cellKey{"tsdb", "\x00\x00\x01", "t", "\x07\xb3\x01", false}},
	{
		"74736462 00 0000014d576550000001000002 00 | 74 00 050000 00000901",
		cellKey{"tsdb", "\x00\x00\x01\x4d\x57\x65\x50\x00\x00\x01\x00\x00\x02", "t", "\x05\x00\x00", false},
	},
	{
		"747364622d756964 00 00 00 | 6964 00 6d657472696373 00000e01",
		cellKey{"tsdb-uid", "\x00", "id", "metrics", false},
	},
}

func TestFrozenKeys(t *testing.T) {
	var keys [][]byte
	for _, c := range frozenKeys {
		want, err := hex.DecodeString(strings.NewReplacer(" ", "", "|", "").Replace(c.hex))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.cell.bytes(); !bytes.Equal(got, want) {
			t.Errorf("%+v: key %x, want %x", c.cell, got, want)
		}
		keys = append(keys, want)
	}

	if !slices.IsSortedFunc(keys, compareKeys) {
		t.Error("the keys are not in order")
	}
}

func TestFrozenValues(t *testing.T) {
	if got, want := hex.EncodeToString(putValue(1297574486000, []byte{0x2a})), "01012e1d775ff02a"; got != want {
		t.Errorf("put of 2a at 1297574486000: %s, want %s", got, want)
	}
	m, err := newJoiner(nil, []byte{0, 0x50, 0x6b})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.MergeOlder([]byte{0, 0x07, 0xb3}); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := m.Finish(true); hex.EncodeToString(got) != "0007b3506b" {
		t.Errorf("appends of 07b3 and 506b: %x, want 0007b3506b", got)
	}
}

// A column as FORMAT.md shows it: six points that are sealed, and one that came later.
func TestFrozenSealed(t *testing.T) {
	const frozen = "02ff12ff10060000000a00d8040388c6024caf9f2e02d12a2a"
	s := openMem(t, Options{IdleFlush: -1, Logger: quiet(), Grouping: sealedSchema.RowHours()})
	create(t, s)
	var entries []byte
	for i := range 6 {
		entries = encoding.AppendEntry(entries, encoding.Qualifier{OffsetMS: int32(i) * 10_000, Width: 2},
			[]byte{1, byte(44 + i)})
	}
	late := []byte{0x02, 0xd1, 0x2a, 0x2a}
	sealed, ok := new(encoding.Sealer).Seal(nil, entries)
	stored := append(append(appendSealedHeader(nil, len(sealed)), sealed...), late...)
	if got := hex.EncodeToString(stored); !ok || got != frozen {
		t.Errorf("sealed %t as %s, want %s", ok, got, frozen)
	}

	stored, err := hex.DecodeString(frozen)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.db.Set(appendKey(nil, "tsdb", sealedRow(0, 0), "t", encoding.AppendColumn), stored, nil); err != nil {
		t.Fatal(err)
	}
	wantCells(t, s, map[string]string{fmt.Sprintf("%x 050000 0", sealedRow(0, 0)): string(entries) + string(late)})
}

// The property of a block as FORMAT.md shows it.
func TestFrozenHours(t *testing.T) {
	c := newHoursCollector(sealedSchema.RowHours())
	row := sealedSchema.AppendRowKey(nil, encoding.UID{0, 0, 1}, 1_297_342_800, []byte{0, 0, 1, 0, 0, 1})
	for _, qualifier := range [][]byte{encoding.AppendColumn, {0, 0}} {
		key := appendKey(nil, "tsdb", row, "t", qualifier)
		if err := c.AddPointKey(pebble.MakeInternalKey(key, 1, pebble.InternalKeyKindMerge), nil); err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.FinishDataBlock(nil)
	if err != nil || hex.EncodeToString(got) != "b5ff1501" || c.Name() != "downpour.hours.v1" {
		t.Errorf("property %s is %x, %v, want b5ff1501", c.Name(), got, err)
	}
}

// oldDatabase is what testdata/v1 was written with, and holds for ever.
const oldDatabase = "\x00/id:metrics=\x00\x00\x00\x00\x00\x00\x00\x05 a/t:q=put+append ab/t:q=123 ab/t:q\x00=x " +
	"b/t:=empty qualifier "

func TestOldDatabase(t *testing.T) {
	if *writeDatabase != "" {
		fillOldDatabase(t, *writeDatabase)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/v1")); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := dump(t, s, store.Scan{}); got != oldDatabase {
		t.Errorf("got %q\nwant %q", got, oldDatabase)
	}
	rows, err := s.Get(t.Context(), "tsdb", "t", [][]byte{[]byte("b")})
	if err != nil || len(rows) != 1 || rows[0].Cells[0].Timestamp != 1297574486000 {
		t.Errorf("row b: %+v, %v, want its time 1297574486000", rows, err)
	}
}

// fillOldDatabase writes cells of every kind: some into tables, some joined,
// some left in the log.
func fillOldDatabase(t *testing.T, dir string) {
	s, err := Open(dir, Options{IdleFlush: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	spec := store.TableSpec{
		Name:     "tsdb",
		Families: []store.FamilySpec{{Name: "t", Attributes: map[string]string{"BLOOMFILTER": "ROW"}}, {Name: "id"}},
	}
	if err := s.CreateTable(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	old := cell(store.Put, "b", "", "empty qualifier")
	old.Timestamp = 1297574486000
	apply(t, s, cell(store.Put, "a", "q", "put"), cell(store.Append, "ab", "q", "1"),
		cell(store.Append, "ab", "q", "2"), cell(store.Put, "gone", "q", "v"), cell(store.Put, "gone2", "q", "v"), old)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	apply(t, s, cell(store.Append, "a", "q", "+append"), cell(store.Append, "ab", "q", "3"),
		cell(store.Put, "ab", "q\x00", "x"), cell(store.DeleteCell, "gone", "q", ""),
		cell(store.DeleteRow, "gone2", "", ""))
	if _, err := s.Increment(t.Context(), "tsdb",
		store.CellKey{Row: []byte{0}, Family: "id", Qualifier: []byte("metrics")}, 5); err != nil {
		t.Fatal(err)
	}
}
