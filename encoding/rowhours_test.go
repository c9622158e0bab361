package encoding

import (
	"encoding/hex"
	"testing"
)

// RowHours puts the rows of one metric and hour into one group, gives for a key range the groups
// that its rows can be in, and reads the base time of a key that looks like a data row's.
func TestRowHours(t *testing.T) {
	h := DefaultSchema().RowHours()
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}

	const hour = 1297573200 / RowSeconds // its base time is 4d576550
	group := func(row, prefix string, number uint32, want bool) {
		t.Helper()
		p, n, ok := h.Group(unhex(row))
		if hex.EncodeToString(p) != prefix || n != number || ok != want {
			t.Errorf("group of %s: %x, %d, %v, want %s, %d, %v", row, p, n, ok, prefix, number, want)
		}
	}
	group("0000014d576550000001000002", "000001", hour, true)
	group("0000024d576550", "000002", hour, true)
	group("0000014d57735f", "000001", hour, true)
	group("0000014d577360", "000001", hour+1, true)
	group("0000014d5765", "", 0, false)

	groups := func(start, stop string, first, last uint32, want bool) {
		t.Helper()
		p, f, l, ok := h.Groups(unhex(start), unhex(stop))
		if f != first || l != last || ok != want || ok != (hex.EncodeToString(p) == "000001") {
			t.Errorf("groups of [%s, %s): %x, %d to %d, %v, want %d to %d, %v", start, stop, p, f, l, ok, first, last,
				want)
		}
	}
	groups("0000014d576550", "0000014d577360", hour, hour, true)
	groups("0000014d576550", "0000014d57736000", hour, hour+1, true)
	groups("0000014d576550", "0000014d576550", hour, hour, true)
	groups("0000014d576550", "0000024d577360", 0, 0, false)
	groups("0000014d576550", "", 0, 0, false)
	groups("", "0000014d576550", 0, 0, false)

	for row, want := range map[string]bool{
		"0000014d576550000001000002": true,
		"0000014d576550":             true,
		"0000014d5765":               false, // too short
		"0000014d576551000001000002": false, // no full hour
		"00000100000e10000001000002": false, // in 1970: too early for a base time
	} {
		if seconds, ok := h.Time(unhex(row)); ok != want || ok && seconds != 1297573200 {
			t.Errorf("time of %s: %d, %v, want %v", row, seconds, ok, want)
		}
	}
}
