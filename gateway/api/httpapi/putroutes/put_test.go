package putroutes

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway/api/httpapi/httpio"
)

// Texts and numbers mean the same in a put.
func TestScalar(t *testing.T) {
	f := func(body, timestamp, value string) {
		t.Helper()
		points, err := decodePoints[dataPoint]([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if diff := cmp.Diff([]httpio.Scalar{httpio.Scalar(timestamp), httpio.Scalar(value)}, []httpio.Scalar{points[0].Timestamp, points[0].Value}); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
	f(`{"timestamp":1356998400,"value":1}`, "1356998400", "1")
	f(`{"timestamp":"1356998400","value":"1"}`, "1356998400", "1")
	f(`{"timestamp":1356998400.0,"value":1.0}`, "1356998400.0", "1.0")
	f(`{"timestamp":null,"value":null}`, "", "")
	f(`{"value":1e3,"value":-0.0}`, "", "-0.0")
	f(`[{"value":true,"unknown":{"a":[1]}}]`, "", "true")
}
