package changefeed

import (
	"encoding/binary"
	"slices"
	"testing"
)

// kept returns cells with a point each, at these seconds of their hour.
func kept(value byte, seconds ...uint16) (cells []keptCell) {
	for _, s := range seconds {
		k := keptCell{width: 2, size: 1, value: [8]byte{value}}
		binary.BigEndian.PutUint16(k.qualifier[:], s<<4)
		cells = append(cells, k)
	}
	return cells
}

// splice replaces the end of a row's kept cells by the cells that the row has there now. It
// notices a cell that is missing among these.
func TestSplice(t *testing.T) {
	const cut = 10_000 // ms
	row := func() []keptCell { return kept(1, 0, 10, 20, 30) }
	f := func(name string, tail, want []keptCell, wantChanged, wantLost bool) {
		t.Helper()
		got, changed, lost := splice(row(), tail, cut)
		if changed != wantChanged || lost != wantLost {
			t.Errorf("%s: changed %t, lost %t, want %t, %t", name, changed, lost, wantChanged, wantLost)
		}
		if !lost && !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	f("as it was", kept(1, 10, 20, 30), row(), false, false)
	f("one more", kept(1, 10, 20, 30, 40), kept(1, 0, 10, 20, 30, 40), true, false)
	f("one between", kept(1, 10, 15, 20, 30), kept(1, 0, 10, 15, 20, 30), true, false)
	f("others", kept(2, 10, 20, 30), append(kept(1, 0), kept(2, 10, 20, 30)...), true, false)
	f("the first is missing", kept(1, 20, 30), nil, true, true)
	f("one between is missing", kept(1, 10, 30), nil, true, true)
	f("the last is missing", kept(1, 10, 20), nil, true, true)
	f("all are missing", nil, nil, true, true)
	f("one more, and one is missing", kept(1, 10, 30, 40), nil, true, true)
	f("one more in the place of the last", kept(1, 10, 20, 40), nil, true, true)
}
