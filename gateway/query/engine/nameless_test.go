package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"downpour/gateway/query"
	"downpour/gateway/query/engine/stage"
)

// An answer that names its series has all of them, whatever was asked without names before, and what the result
// cache has of both; one without names has the same tags.
func TestNameless(t *testing.T) {
	partial, cached := 0, int64(0)
	for seed := range uint64(6) {
		b := newBoard(t, rand.New(rand.NewPCG(7, 7)), embedded(t)) // without salt
		for range 200 {
			b.putAt(boardHours - 2) // every series has points
		}
		b.readSideBySide()
		b.caching.stages = stage.New(stage.Config{
			Exec:           b.caching.cfg.Exec,
			Log:            b.caching.cfg.Log,
			MaxOlderSeries: 1, // so that hours are read side by side also where answers are kept
		})
		rng := rand.New(rand.NewPCG(seed, 0))
		for range 30 {
			if rng.IntN(6) == 0 {
				b.change()
			}
			tags := []string{`{}`, `{"dc":"*"}`}[rng.IntN(2)]
			q, err := query.Parser{Now: time.Now()}.JSON(fmt.Appendf(nil,
				`{"start":%d,"end":%d,"showTSUIDs":%t,`+
					`"queries":[{"metric":"m","aggregator":"sum","downsample":"5m-avg","tags":%s}]}`,
				hourZero, hourZero+boardHours*3600-1, rng.IntN(2) == 0, tags))
			if err != nil {
				t.Fatal(err)
			}
			stats := b.ask(q)
			partial, cached = partial+int(stats.Partial), cached+stats.CacheHits
		}
	}
	if partial < 40 || cached < 40 {
		t.Errorf("%d parts with partial aggregates, %d from the result cache, want 40 of each", partial, cached)
	}
}
