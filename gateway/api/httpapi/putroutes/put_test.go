package putroutes

import (
	"strconv"
	"testing"
)

// A time is cut to whole seconds or milliseconds, however its number is spelled. A text is an
// integer. What is no time is shown as it came.
func TestTimestamp(t *testing.T) {
	f := func(text string, want int64, shown string) {
		t.Helper()
		body := []byte(`{"metric":"m","value":1,"tags":{},"timestamp":` + text + `}`)
		points, err := decodePoints[dataPoint](body)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got, err := points[0].Timestamp.MarshalJSON()
		if points[0].Timestamp.time() != want || string(got) != shown || err != nil {
			t.Errorf("%s: got %d, shown as %s, %v, want %d, %s", text, points[0].Timestamp.time(), got, err, want,
				shown)
		}
		if scanned, ok := scanPoints(body, nil); ok && scanned[0].time(body) != want {
			t.Errorf("%s: scanned as %d, want %d", text, scanned[0].time(body), want)
		}
	}
	for text, want := range map[string]int64{
		`1356998400`: 1356998400, `1356998400250`: 1356998400250, `1356998400.9`: 1356998400,
		`1.3569984e9`: 1356998400, `1.3569984E+09`: 1356998400, `13569984e2`: 1356998400,
		`1.356998400250e12`: 1356998400250,
		`-1`:                -1, `0`: 0, `""`: 0, `-1e3`: -1000, `null`: 0, `NaN`: 0, `"1356998400"`: 1356998400,
		`" 1356998400\t"`: 1356998400,
	} {
		f(text, want, strconv.FormatInt(want, 10))
	}
	for text, shown := range map[string]string{
		`"soon"`: `"soon"`, `"1396656000.foo"`: `"1396656000.foo"`, `"1396656000.5"`: `"1396656000.5"`,
		`"1e9"`: `"1e9"`, `"0x1p30"`: `"0x1p30"`,
		`"1_396_656_000"`: `"1_396_656_000"`, `1e20`: `"1e20"`, `Infinity`: `"Infinity"`, `true`: `"true"`,
		`9223372036854775808`: `"9223372036854775808"`,
	} {
		f(text, 0, shown)
	}
}
