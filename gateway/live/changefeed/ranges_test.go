package changefeed

import (
	"testing"
	"time"

	"downpour/encoding"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/store"
)

// After the rows of older hours were deleted as a range, a live query has the answer that a fresh one
// has, also where those hours came from the result cache.
func TestWatched_rangesGo(t *testing.T) {
	for _, query := range []string{
		`{"start":"8h-ago","queries":[{"metric":"m","aggregator":"sum","downsample":"5m-sum"}]}`,
		`{"start":"8h-ago","queries":[{"metric":"m","aggregator":"sum","tags":{"host":"*"}}]}`,
		`{"start":"8h-ago","queries":[{"metric":"m","aggregator":"avg","rate":true}]}`,
	} {
		for _, cache := range []*resultcache.Cache{nil, resultcache.New(1<<20, quiet)} {
			w := newCachingWorld(t, false, cache)
			t.Cleanup(w.close)
			for at := time.Duration(0); at < 7*time.Hour; at += 10 * time.Minute {
				for i, host := range []string{"a", "b"} {
					w.apply(w.point(w.clock.Add(-at).UnixMilli(), true,
						encoding.IntValue(int64(at/time.Minute)+int64(i)), "host", host))
				}
			}
			for range 3 { // remembered, if there is a cache
				if _, err := w.fresh(query); err != nil {
					t.Fatal(err)
				}
			}
			tick := w.ticking(t, query)
			tick()
			for _, hours := range []time.Duration{6, 5, 2} {
				w.clock = w.clock.Add(time.Second)
				tick()
				metric := w.uid(encoding.UIDMetric, "m")
				cut := uint32(w.clock.Add(-hours*time.Hour).Unix()) / encoding.RowSeconds * encoding.RowSeconds
				r := store.KeyRange{
					Start: w.schema.AppendRangeKey(nil, 0, metric, 0),
					Stop:  w.schema.AppendRangeKey(nil, 0, metric, cut),
				}
				if err := w.store.DeleteRows(t.Context(), "tsdb", []store.KeyRange{r}); err != nil {
					t.Fatal(err)
				}
				tick()
				w.apply(w.point(w.clock.UnixMilli(), true, encoding.IntValue(3), "host", "a"))
				tick()
			}
		}
	}
}
