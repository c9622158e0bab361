//go:build integration

package integration

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"downpour/encoding/seedtest"
	"downpour/integration/differential"
	"downpour/integration/e2e"
)

// Rollups and histograms are put into the same tables by turns through a gateway and a real
// OpenTSDB. Both answer random queries over them alike, so each reads what the other has written.
func TestDifferential_rollupsAndHistograms(t *testing.T) {
	t.Parallel()
	queries := randomQueries(500, 5000)
	seed := seedtest.Of(t)
	ctx := within(t, 3*time.Minute+time.Duration(queries)*2*time.Second)
	a := arranged(seed)[seed>>8%2*2]
	l := a.layout
	p, tables := l.startWithRollups(ctx, t)
	applied := map[string]int{}

	rolled, puts := differential.Rollups(seed)
	histograms, more := differential.Histograms(seed)
	p.putInTurn(ctx, t, append(puts, more...))
	for _, url := range []string{p.theirs, p.ours} {
		if err := e2e.LoadNames(ctx, url); err != nil {
			t.Fatal(err)
		}
	}
	p.notes = recorded(t, seed, "drawn_rollups_seed1", differential.PutDigest(append(puts, more...)))
	r := rand.New(rand.NewPCG(seed, 5))
	t.Run("rollups, "+l.name, func(t *testing.T) {
		p.askRandom(ctx, t, rolled, func() differential.Query { return differential.RandomRollupQuery(r, rolled) },
			queries, applied)
	})
	t.Run("histograms, "+l.name, func(t *testing.T) {
		p.askRandom(ctx, t, histograms,
			func() differential.Query { return differential.RandomHistogramQuery(r, histograms, l.saltWidth > 0) },
			queries, applied)
	})
	p.notes.finish(uidCells(ctx, t, tables))
	t.Logf("seed %d: rules applied: %v", seed, applied)
}

// startWithRollups starts OpenTSDB and a gateway on new tables, both with rollups and
// histograms.
func (l layout) startWithRollups(ctx context.Context, t *testing.T) (pair, e2e.Tables) {
	t.Helper()
	tables := createTables(t)
	for _, table := range differential.RollupTables(tables.Data) {
		if err := hbase(t).Admin.CreateTable(ctx, table, "NONE", []string{"t"}); err != nil {
			t.Fatal(err)
		}
	}
	rollups := writeFile(t, "rollups.json", differential.RollupConfig(tables.Data))

	o := l.tsdOptions(t, tables, map[string]string{
		"tsd.rollups.enable":         "true",
		"tsd.rollups.config":         rollups,
		"tsd.core.histograms.config": differential.HistogramConfig,
	})
	p := startPair(t, o, func() *e2e.Program {
		return l.gateway(t, tables, map[string]string{
			"DOWNPOUR_ROLLUPS":    rollups,
			"DOWNPOUR_HISTOGRAMS": differential.HistogramConfig,
		})
	})
	return p, tables
}

// uidCells are the cells of the UID table in hex. Which name of a request gets which UID is up to the
// server, and the order of series, and so that of sums, follows the UIDs.
func uidCells(ctx context.Context, t *testing.T, tables e2e.Tables) (all [][4]string) {
	for _, c := range must[[]e2e.Cell](t)(hbase(t).Admin.Scan(ctx, tables.UID)) {
		all = append(all, [4]string{
			hex.EncodeToString(c.Row), c.Family, hex.EncodeToString(c.Qualifier), hex.EncodeToString(c.Value),
		})
	}
	return all
}

// putInTurn sends every other request to each server. All must be stored.
func (p pair) putInTurn(ctx context.Context, t *testing.T, puts []differential.Put) {
	t.Helper()
	points := 0
	for i, put := range puts {
		url := []string{p.theirs, p.ours}[i%2]
		a := must[e2e.Answer](t)(e2e.Post(ctx, url+put.Path, put.Body))
		var stored struct{ Success, Failed int }
		if err := json.Unmarshal(a.Body, &stored); err != nil || stored.Failed > 0 || stored.Success == 0 {
			t.Fatalf("%s%s: status %d, want all stored: %.600s", url, put.Path, a.Status, a.Body)
		}
		points += stored.Success
	}
	t.Logf("%d points, rollups and histograms are put", points)
}
