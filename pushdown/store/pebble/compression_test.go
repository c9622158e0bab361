package pebble

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"downpour/pushdown/store"
)

// Tables of the last level are compressed even if little in them repeats, and are read as before.
func TestCompression(t *testing.T) {
	testCompression(t, func(rnd *rand.Rand) []byte {
		values := drawnRow(rnd)
		return append(values, values[:60]...)
	})
}

// drawnRow draws a row of growing offsets, and numbers up to 100, in which no bytes repeat.
func drawnRow(rnd *rand.Rand) (values []byte) {
	for p := range 360 {
		values = append(binary.BigEndian.AppendUint16(values, uint16(p*10)<<4), byte(rnd.IntN(101)))
	}
	return values
}

// testCompression looks at what the table of the last level takes of rows with drawn values.
func testCompression(t *testing.T, draw func(*rand.Rand) []byte) {
	s := openMem(t, Options{})
	create(t, s)
	rnd := rand.New(rand.NewPCG(1, 2))
	raw := 0
	for i := range 200 {
		values := draw(rnd)
		raw += len(values)
		for half := range slices.Chunk(values, len(values)/2) {
			apply(t, s, cell(store.Append, fmt.Sprint("row", i), "q", string(half)))
		}
	}
	before := dump(t, s, store.Scan{})
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Tables that overlap are written again.
	apply(t, s, cell(store.Put, "row0", "z", ""), cell(store.Put, "row99", "z", ""))
	if err := s.db.Compact(t.Context(), []byte{0}, []byte{0xff, 0}, false); err != nil {
		t.Fatal(err)
	}
	last := s.db.Metrics().Levels[6]
	if got := int(last.TablesSize); got == 0 || got > raw*9/10 {
		t.Errorf("%d bytes of rows take %d, want at most nine tenths", raw, got)
	}
	apply(t, s, cell(store.DeleteCell, "row0", "z", ""), cell(store.DeleteCell, "row99", "z", ""))
	if after := dump(t, s, store.Scan{}); after != before {
		t.Errorf("what is read has changed: %d bytes, were %d", len(after), len(before))
	}
}
