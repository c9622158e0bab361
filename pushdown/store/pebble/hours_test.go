package pebble

import (
	"testing"

	"downpour/encoding"
)

// The hour of a row is that of its append column's key alone.
func TestAppendHour(t *testing.T) {
	row := hourRow(1, 5, "")
	for name, c := range map[string]struct {
		key  []byte
		want bool
	}{
		"an append column": {appendKey(nil, "t", row, "t", encoding.AppendColumn), true},
		"another column":   {appendKey(nil, "t", row, "t", []byte{5, 0, 1}), false},
		"no column":        {appendPrefix(nil, "t", row), false},
		"a short row":      {appendKey(nil, "t", shortRow(), "t", encoding.AppendColumn), false},
		"no row":           {appendKey(nil, "t", nil, "t", encoding.AppendColumn), false},
	} {
		if hour, ok := appendHour(hourly, c.key); ok != c.want || ok && hour != 1356998400/3600+5 {
			t.Errorf("%s: got %d, %t", name, hour, ok)
		}
	}
}
