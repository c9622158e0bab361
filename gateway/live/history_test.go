package live

import (
	"context"
	"encoding/json"
	"runtime"
	"testing"

	"downpour/encoding"
)

// The history of a long answer with one new point a tick holds the answer once, not once for each
// tick.
func TestHistoryKeepsOnlyWhatIsNew(t *testing.T) {
	const points = 50_000 // 850 kB
	h := blockedHub()
	defer h.Close()
	s, err := h.Subscribe(Request{Query: json.RawMessage(`{"start":"1h-ago","msResolution":true}`)}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for tick := range historyTicks + 1 {
		var r Result
		for i := range points + tick {
			r.Points.Append(int64(i), encoding.IntValue(int64(i)))
		}
		s.evaluator.publish(context.Background(), Answer{Results: []Result{r}}, nil)
		s.Next()
	}
	runtime.GC()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > 20<<20 {
		t.Errorf("%d MiB in use after %d ticks, want 20 at most", after.HeapAlloc>>20, historyTicks+1)
	}
	runtime.KeepAlive(s)
}
