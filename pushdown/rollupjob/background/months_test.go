package background

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"downpour/pushdown/store/storetest"
)

// TestWorker_months: if nothing has changed, a day's work needs few calls for each metric and
// month: one for the record, and two for marks. Months before a metric's first row need none,
// however old other metrics are.
func TestWorker_months(t *testing.T) {
	simulate(t, func(w *world) {
		const young, months = 19, 24
		w.fill(young, 20)
		for month := range int64(months) {
			w.put(young+1, born-month*window-5*day)
		}
		a := &storetest.Counting{Store: w.st}
		ctx, cancel := context.WithCancel(w.Context())
		worker := w.worker(ctx, func(c *Config) { c.Alone, c.Store = true, a })
		// Until the newest hours have no rows.
		time.Sleep(3 * 24 * time.Hour)
		synctest.Wait()
		w.wantProven("at first", born-20*day, born)

		before, made := a.Asked.Load(), worker.did().Made
		time.Sleep(24 * time.Hour)
		cancel()
		w.all.Wait()
		// Four passes over the newest hours, none of which has a row; the walk: the first row of each metric,
		// the newest month, in which another day is over, and the other months that have rows.
		const look, day = 3, 30
		bound := int64((young+1)*(4*(look+1)+1+day+look+1) + months*(look+1))
		n := a.Asked.Load() - before
		w.Logf("%d calls in a day of %d metrics", n, w.metrics)
		if n > bound {
			w.Errorf("%d calls in a day of %d metrics, want at most %d", n, w.metrics, bound)
		}
		if n := worker.did().Made - made; n > 2*(young+1) {
			w.Errorf("%d days were rolled up again", n)
		}
	})
}
