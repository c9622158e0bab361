package pebble

import (
	"strings"
	"testing"
)

// Names hold no byte but these: not those that separate the parts of a key, nor those of names of the store's own.
func TestCheckName(t *testing.T) {
	const good = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_.-:"
	for c := range 256 {
		name := "a" + string([]byte{byte(c)})
		if err := checkName("table", name); (err == nil) != strings.Contains(good, name[1:]) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", marksTable} {
		if checkName("table", name) == nil {
			t.Errorf("%q is a name", name)
		}
	}
}

// Rows and qualifiers are as long as a key can say, and no longer.
func TestCheckCell(t *testing.T) {
	const longest = maxSuffix - minSuffix - len("t")
	for _, c := range []struct {
		row, qualifier int
		ok             bool
	}{
		{1, 0, true}, {maxRow, 0, true}, {1, longest, true},
		{0, 0, false}, {maxRow + 1, 0, false}, {1, longest + 1, false},
	} {
		if err := checkCell(make([]byte, c.row), "t", make([]byte, c.qualifier)); (err == nil) != c.ok {
			t.Errorf("a row of %d bytes, a qualifier of %d: %v", c.row, c.qualifier, err)
		}
	}
	err := checkCell([]byte("r"), "t", make([]byte, longest+1))
	const want = "qualifier has 16777210 bytes, want at most 16777209"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
