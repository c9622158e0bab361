package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
)

// A plan whose groups have one series each is executed per series the second time, also where its
// hours could be read side by side; one with larger groups is not. The answers are the same.
func TestSmallGroups_inProcess(t *testing.T) {
	b := newBoard(t, rand.New(rand.NewPCG(7, 7)), embedded(t)) // without salt
	for range 200 {
		b.putAt(boardHours - 2) // every series has points
	}
	cfg := b.caching.cfg
	cfg.Exec = dispatch.New(dispatch.Config{Store: b.store, SideBySide: true})
	b.caching = New(cfg)

	for tags, partly := range map[string][]bool{
		`{"host":"*","dc":"*"}`: {true, false, false}, // 6 series, 6 groups
		`{"host":"*"}`:          {true, true, true},   // 3 groups
	} {
		q, err := query.Parser{Now: time.Now()}.JSON(fmt.Appendf(nil,
			`{"start":%d,"end":%d,"queries":[{"metric":"m","aggregator":"sum","downsample":"5m-avg","tags":%s}]}`,
			hourZero, hourZero+boardHours*3600-1, tags))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range partly {
			_, stats, err := b.caching.Run(t.Context(), q, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := stats.Partial > 0; got != want {
				t.Errorf("%s, time %d: by partial aggregates: %t, want %t", tags, i+1, got, want)
			}
		}
		b.ask(q)
	}
}
