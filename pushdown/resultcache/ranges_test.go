package resultcache

import (
	"math/rand/v2"
	"testing"

	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
)

// Rows are deleted as ranges of keys, as retention does: older hours of a metric in a salt bucket. The
// answer with the cache stays the one without it.
func TestLaw_ranges(t *testing.T) {
	seeds(t, 15, func(t *testing.T, rng *rand.Rand) Counts {
		st := openPebble(t)
		w := newWorld(t, rng, st)
		w.extra = []func(){func() {
			bucket, metric, until := rng.IntN(w.schema.Buckets()), operatortest.UID(1+rng.IntN(2)),
				uint32(base+3600*rng.IntN(hours+1)-3599)
			r := store.KeyRange{
				Start: w.schema.AppendRangeKey(nil, bucket, metric, 0),
				Stop:  w.schema.AppendRangeKey(nil, bucket, metric, until),
			}
			if err := st.DeleteRows(t.Context(), operatortest.Table, []store.KeyRange{r}); err != nil {
				t.Fatal(err)
			}
		}}
		return w.live(120)
	})
}
