//go:build integration

package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/integration/e2e"
)

// TestCompaction_lossOfOpenTSDB shows what OpenTSDB's own row compaction loses: a point that is
// written over after a TSD has read its row, and before that TSD deletes the columns that it has
// read, up to now. So tests of other things keep TSDs that compact rows away from points that are
// written over. That gateway compact loses none of such points is what TestCompaction_beside and
// TestLife show.
func TestCompaction_lossOfOpenTSDB(t *testing.T) {
	t.Parallel()
	ctx := within(t, 4*time.Minute)
	l := layout{name: "compacted", compacted: true}
	tables := createTables(t)
	// It compacts only what it reads.
	tsd, err := e2e.StartOpenTSDB(ctx, l.tsdOptions(t, tables, map[string]string{
		"tsd.storage.fix_duplicates": "true", "tsd.storage.compaction.min_flush_threshold": "1000000"}))
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, tsd)
	ours := l.gateway(t, tables, map[string]string{"DOWNPOUR_FIX_DUPLICATES": "true"})
	rng := rand.New(rand.NewPCG(seedtest.Of(t), 0))

	const metric, series, rounds = "loss.over", 4, 100
	m := newModel()
	for round := range rounds {
		hour := int64(lifeStart + round*encoding.RowSeconds)
		points := make([][]e2e.Point, series)
		for s := range series {
			for at := hour; at < hour+encoding.RowSeconds; at += 60 {
				points[s] = append(points[s], pointAt(metric, lifeHost(s), at))
			}
			if err := m.put(ctx, ours.URL, points[s]); err != nil {
				t.Fatal(err)
			}
		}
		path := fmt.Sprintf("/api/query?start=%d&end=%d&arrays=true&m=none:%s",
			hour, hour+encoding.RowSeconds-1, metric)
		overwriteBeside(ctx, t, m, ours.URL, points, rng, func() error {
			_, err := e2e.Get(ctx, tsd.URL+path)
			return err
		})

		// What the TSD deletes after this is seen in the next round.
		before := m.snapshot(metric)
		a := must[e2e.Answer](t)(e2e.Get(ctx, fmt.Sprintf("%s/api/query?start=%d&end=%d&arrays=true&m=none:%s",
			ours.URL, lifeStart, hour+encoding.RowSeconds-1, metric)))
		if a.Status != 200 {
			t.Fatalf("status %d: %.300s", a.Status, a.Body)
		}
		answered := must[map[pointID]float64](t)(pointsOf(metric, a.Body))
		if lost := m.differences(metric, before, answered); len(lost) > 0 {
			t.Logf("after %d rounds %d of %d points are lost: %s", round+1, len(lost), len(before), lost[0])
			return
		}
	}
	t.Errorf("no point was lost in %d rounds: tests need no longer keep TSDs that compact rows away from points "+
		"that are written over", rounds)
}

// overwriteBeside writes points over, those of each series by themselves, while a TSD reads.
func overwriteBeside(
	ctx context.Context, t *testing.T, m *model, url string, points [][]e2e.Point, rng *rand.Rand,
	read func() error,
) {
	t.Helper()
	var all sync.WaitGroup
	all.Go(func() {
		if err := read(); err != nil {
			t.Error(err)
		}
	})
	for _, of := range points {
		rng.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		all.Go(func() {
			for i := range of {
				if err := m.put(ctx, url, of[i:i+1]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
