package cellblock

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	_ "downpour/encoding/seedtest" // gives rapid its seed
	"downpour/pushdown/store"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The cell in the package comment, which a real server sent, is decoded and encoded
// as documented.
func TestSplit_documented(t *testing.T) {
	block, err := hex.DecodeString("000000250000001c00000001000d00000152cb4dd000000100000701740380000001434af487bb0464")
	if err != nil {
		t.Fatal(err)
	}

	var c store.Cell
	row, rest, err := Split(block, &c)
	if err != nil || len(rest) != 0 {
		t.Fatalf("%v, %d bytes left", err, len(rest))
	}
	got := fmt.Sprintf("%x %s %x %x %d", row, c.Family, c.Qualifier, c.Value, c.Timestamp)
	if want := "00000152cb4dd0000001000007 t 0380 64 1388531976123"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if again := Append(nil, row, "t", c.Qualifier, c.Value, c.Timestamp, Put); !bytes.Equal(again, block) {
		t.Errorf("written again: %x, want %x", again, block)
	}
}

// A good block that is cut anywhere is refused, and never read beyond its end.
func TestSplit_cut(t *testing.T) {
	block := Append(nil, []byte("row"), "t", []byte("q"), []byte("value"), 1, Put)
	for n := range block {
		var c store.Cell
		if _, _, err := Split(block[:n:n], &c); !errors.Is(err, ErrMalformed) {
			t.Errorf("%d of %d bytes: got %v, want an error", n, len(block), err)
		}
	}
}

// Lengths that do not add up are refused, although the block is long enough.
func TestSplit_lengths(t *testing.T) {
	block := Append(nil, []byte("row"), "t", []byte("q"), []byte("value"), 1, Put)
	block = append(block, make([]byte, 8)...)
	for at := 3; at < 12; at += 4 { // the last bytes of the lengths of all, of the key and of the value
		for _, by := range []byte{1, 0xff} {
			wrong := bytes.Clone(block)
			wrong[at] += by
			var c store.Cell
			if _, _, err := Split(wrong, &c); !errors.Is(err, ErrMalformed) {
				t.Errorf("byte %d: % x: got %v, want an error", at, wrong[:14], err)
			}
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add(Append(nil, []byte("row"), "t", []byte("q"), []byte("value"), 1, Put))
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Fuzz(func(t *testing.T, block []byte) {
		var c store.Cell
		row, rest, err := Split(block, &c)
		if err != nil {
			return
		}
		kind := block[len(block)-len(rest)-len(c.Value)-1]
		again := Append(nil, row, string(c.Family), c.Qualifier, c.Value, c.Timestamp, kind)
		if !bytes.Equal(again, block[:len(block)-len(rest)]) {
			t.Errorf("read %x, written again %x", block, again)
		}
	})
}

// Rows that are cut anywhere, into parts and replies, are joined again.
//
//fault:half-row-delivered a.lastHeld => false
func TestAssembler_anyParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want, got []string
		a := &Assembler{}
		var block []byte
		var counts []uint32
		flush := func(end bool) {
			if err := a.AddReply(block, counts); err != nil {
				t.Fatal(err)
			}
			got = append(got, printRows(a.CompleteRows(end))...)
			a.StartBlock()
			block, counts = nil, nil
		}
		for r := range rapid.IntRange(0, 6).Draw(t, "rows") {
			row := fmt.Appendf(nil, "r%d", r)
			line := string(row)
			fresh := true
			for q := range rapid.IntRange(1, 6).Draw(t, "cells") {
				block = Append(block, row, "t", []byte{byte('a' + q)}, nil, 1, Put)
				line += " " + string(byte('a'+q))
				if fresh {
					counts = append(counts, 0)
				}
				counts[len(counts)-1]++
				fresh = rapid.Bool().Draw(t, "new part")
				if rapid.Bool().Draw(t, "reply ends") {
					flush(false)
					fresh = true
				}
			}
			want = append(want, line)
		}
		flush(true)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("rows (-want +got):\n%s", diff)
		}
	})
}

func printRows(rows []store.Row) []string {
	var lines []string
	for _, r := range rows {
		line := string(r.Key)
		for _, c := range r.Cells {
			line += " " + string(c.Qualifier)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestAssembler_refuses(t *testing.T) {
	block := Append(nil, []byte("a"), "t", nil, nil, 1, Put)
	block = Append(block, []byte("bc"), "t", nil, nil, 1, Put)
	for name, counts := range map[string][]uint32{
		"a cell after the last":   {1},
		"a cell too few":          {1, 1, 1},
		"another row in one part": {2},
	} {
		a := &Assembler{}
		if err := a.AddReply(block, counts); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, want an error", name, err)
		}
	}
}

// benchBlock returns the cell block of a reply of about 2 MiB, and the cells of each
// row.
func benchBlock(cellsPerRow, valueLen int) (block []byte, counts []uint32) {
	const size = 2 << 20 // what a scan asks for
	row := []byte("\x00\x00\x0a\x52\xcb\x4d\xd0\x00\x00\x01\x00\x00\x07\x00\x00\x02\x00\x00\x01")
	value := make([]byte, valueLen)
	for r := 0; len(block) < size; r++ {
		row[11], row[12] = byte(r>>8), byte(r)
		for q := range cellsPerRow {
			block = Append(block, row, "t", []byte{byte(q >> 8), byte(q)}, value, 1, Put)
		}
		counts = append(counts, uint32(cellsPerRow))
	}
	return block, counts
}

func BenchmarkDecode(b *testing.B) {
	for _, shape := range []struct{ cells, value int }{{360, 8}, {60, 8}, {1, 8}, {1, 1100}} {
		b.Run(fmt.Sprintf("cells=%d/value=%d", shape.cells, shape.value), func(b *testing.B) {
			block, counts := benchBlock(shape.cells, shape.value)
			a := &Assembler{}
			b.SetBytes(int64(len(block)))
			b.ReportAllocs()
			for b.Loop() {
				a.Reset()
				if err := a.AddReply(block, counts); err != nil {
					b.Fatal(err)
				}
				a.CompleteRows(true)
			}
			perBlock := float64(len(counts) * shape.cells)
			b.ReportMetric(perBlock*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mcells/s")
		})
	}
}

// A block costs no allocation once the slices have grown.
func TestAssembler_allocations(t *testing.T) {
	block, counts := benchBlock(60, 8)
	a := &Assembler{}
	n := testing.AllocsPerRun(5, func() {
		a.Reset()
		if err := a.AddReply(block, counts); err != nil {
			t.Fatal(err)
		}
		a.CompleteRows(true)
	})
	if n != 0 {
		t.Errorf("%v allocations a block, want 0", n)
	}
}
