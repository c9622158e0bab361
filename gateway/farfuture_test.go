package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"downpour/gateway"
)

// withHistograms has a gateway take histograms.
func withHistograms(c *gateway.Config) {
	c.Histograms = `{"net.opentsdb.core.SimpleHistogramDecoder":1}`
}

// A time after 2106, whose row would be one of another year, is refused wherever a time can be
// written, and nothing is stored. The last moment that a row can hold is taken.
func TestFarFuture_refused(t *testing.T) {
	for name, b := range map[string]*bench{"embedded": open(t, withHistograms), "HBase": onFakeHBase(t, withHistograms)} {
		t.Run(name, func(t *testing.T) {
			b := &bench{T: t, cfg: b.cfg, store: b.store, g: b.g}
			const ordinary, far = 1356998400000, (1356998400 + 1800 + 1<<32) * 1000
			b.put(fmt.Sprintf("f %d 1 host=b", ordinary))
			const refusal = "Invalid timestamp: got 5651967496000 ms, want at most 4294967295999 (2106-02-07T06:28:15.999Z)"

			// The series is known by its spelling in one body, and is new in the other.
			for _, host := range []string{"b", "new"} {
				body := fmt.Sprintf(`[{"metric":"f","timestamp":%d,"value":666,"tags":{"host":%q}}]`, int64(far), host)
				if a := b.post("/api/put?details", body); a.status != 400 || !strings.Contains(a.body, refusal) || !strings.Contains(a.body, `"failed":1`) {
					t.Errorf("put of host %s: %d %s, want 400 and %s", host, a.status, a.body, refusal)
				}
			}
			c := b.dial()
			fmt.Fprintf(c, "put f %d 666 host=b\nput f 9999999999999 666 host=b\nput f 9999999999.999 1 host=b\nhistogram f %d 1 AAEAAAAAP4AAAAEAAA== host=b\n", int64(far), int64(far))
			if got := c.rest(); strings.Count(got, "Invalid timestamp: got ") != 4 {
				t.Errorf("telnet: %q, want four refusals", got)
			}
			histogram := fmt.Sprintf(`{"metric":"f","timestamp":%d,"overflow":0,"underflow":0,"buckets":{"0,1":5},"tags":{"host":"b"}}`, int64(far))
			if a := b.post("/api/histogram?details", histogram); a.status != 400 || !strings.Contains(a.body, refusal) {
				t.Errorf("histogram: %d %s, want 400", a.status, a.body)
			}
			for _, start := range []int64{far, 4294967296000} {
				for _, more := range []string{"", `,"tsuid":"000001000001000001"`} {
					a := b.post("/api/annotation", fmt.Sprintf(`{"startTime":%d,"description":"x"%s}`, start, more))
					b.refused(a, 400, "startTime of an annotation: got the time")
				}
			}
			b.refused(b.post("/api/annotation?start_time=4294967296&description=x&method_override=post", ""), 400, "start_time: got the time 4294967296 s, want 0 to 4294967295 (2106-02-07T06:28:15Z)")

			if a := b.get("/api/query?start=1&m=none:f&ms"); !strings.Contains(a.body, `"dps":{"1356998400000":1}}]`) {
				t.Errorf("got %s, want the one point that was taken", a.body)
			}
			b.put("f 4294967295999 7 host=last")
		})
	}
}

// onFakeHBase starts a gateway on a simulated HBase.
func onFakeHBase(t *testing.T, change func(*gateway.Config)) *bench {
	t.Helper()
	cfg, st := fakeHBase(t)
	if change != nil {
		change(cfg)
	}
	at := &faulty{Store: st}
	at.set()
	return &bench{T: t, cfg: cfg, store: at, g: start(t, cfg, st)}
}
