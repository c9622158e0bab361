package gateway_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"downpour/pushdown/store"
)

// A part that panics, here or on a pushdown server, is a 500 that says so and keeps the cause for the log. It
// comes at once, and the next query is answered by the same processes.
func TestPanic(t *testing.T) {
	for name, b := range map[string]*bench{"in process": open(t, nil), "pushdown": behind(t, 4, nil)} {
		t.Run(name, func(t *testing.T) {
			b := b.In(t)
			b.Put("m 1356998400 1 host=a")
			var calls atomic.Int64
			judge := func(s store.Scan) error {
				if s.Table == "tsdb" {
					calls.Add(1)
					panic("secret of the store")
				}
				return nil
			}
			b.Store.Judge.Store(&judge)
			for _, m := range []string{"none:m", "sum:1h-count:m", "sum:m%7Bhost=a%7D"} {
				a := b.Get("/api/query?start=1356998400&end=1356999400&m=" + m)
				b.Refused(a, 500, "by a fault of the program")
				if strings.Contains(a.Body, "secret") {
					t.Errorf("%s: the answer names the cause: %s", m, a.Body)
				}
			}
			if n := calls.Load(); n > 30 {
				t.Errorf("%d scans, want each part at most twice", n)
			}
			b.Store.Judge.Store(nil)
			if a := b.Get("/api/query?start=1356998400&end=1356999400&m=none:m"); a.Status != 200 ||
				!strings.Contains(a.Body, `"1356998400":1`) {
				t.Errorf("afterwards: %d %s", a.Status, a.Body)
			}
		})
	}
}
