package putroutes

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway/api/httpapi/httpio"
)

// A time is cut to whole seconds or milliseconds, however its number is spelled.
func TestParseTimestamp(t *testing.T) {
	for text, want := range map[string]int64{
		"1356998400": 1356998400, "1356998400250": 1356998400250, "1356998400.9": 1356998400,
		"1.3569984e9": 1356998400, "1.3569984E+09": 1356998400, "13569984e2": 1356998400, "1.356998400250e12": 1356998400250,
		"-1": -1, "0": 0, "": 0, "soon": 0, "1e20": 0, "-1e3": 0, "e": 0,
	} {
		if got := parseTimestamp(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// A timestamp or value means the same as a text and as a number.
func TestScalar(t *testing.T) {
	f := func(body, timestamp, value string) {
		t.Helper()
		points, err := decodePoints[dataPoint]([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if diff := cmp.Diff([]httpio.Scalar{httpio.Scalar(timestamp), httpio.Scalar(value)}, []httpio.Scalar{points[0].Timestamp, points[0].Value}); diff != "" {
			t.Errorf("%s: want -, got +: %s", body, diff)
		}
	}
	f(`{"timestamp":1356998400,"value":1}`, "1356998400", "1")
	f(`{"timestamp":"1356998400","value":"1"}`, "1356998400", "1")
	f(`{"timestamp":1356998400.0,"value":1.0}`, "1356998400.0", "1.0")
	f(`{"timestamp":null,"value":null}`, "", "")
	f(`{"value":1e3,"value":-0.0}`, "", "-0.0")
	f(`[{"value":true,"unknown":{"a":[1]}}]`, "", "true")
}
