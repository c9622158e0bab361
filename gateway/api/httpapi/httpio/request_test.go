package httpio

import "testing"

func TestInteger(t *testing.T) {
	f := func(text string, want int64, ok bool) {
		t.Helper()
		var i Integer
		if err := i.UnmarshalJSON([]byte(text)); (err == nil) != ok || int64(i) != want {
			t.Errorf("%s: %d, %v, want %d", text, i, err, want)
		}
	}
	f("12", 12, true)
	f(`"12"`, 12, true)
	f("12.9", 12, true)
	f("1e3", 1000, true)
	f("null", 0, true)
	f("1e30", 0, false)
	f(`"x"`, 0, false)
	f("{}", 0, false)
}
