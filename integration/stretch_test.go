//go:build integration

package integration

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"downpour/encoding/seedtest"
	"downpour/integration/compare"
	"downpour/integration/e2e"
)

// A gateway gives OpenTSDB's own answers over six hours while a TSD writes to the last of them before
// every question, and now and then late to an older one. The older hours lie in a region of their own,
// so that they come from the result cache, merged, and only the last hour is read.
func TestStretch_beside(t *testing.T) {
	t.Parallel()
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	ctx := within(t, 20*time.Minute)

	tables := createTables(t)
	tsd, err := e2e.StartOpenTSDB(within(t, 5*time.Minute), e2e.OpenTSDBOptions{
		Quorum:     hbase(t).Quorum(),
		Tables:     tables,
		QuickStart: !*soak,
		Config: map[string]string{
			"tsd.storage.fix_duplicates": "true",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, tsd)
	put(ctx, t, tsd.URL, introduce())
	const metric, hours, last = "load.float", 6, dataStart + 5*3600
	for shift := int64(0); shift < hours*3600; shift += 7200 {
		put(ctx, t, tsd.URL, shifted(metric, shift))
	}
	splitAt(t, tables.Data, last)

	var l layout
	gateway := l.gateway(t, tables, map[string]string{"DOWNPOUR_FIX_DUPLICATES": "true"})
	forms := []string{"sum:5m-avg:", "max:1h-max:", "sum:", "avg:rate:", "sum:10m-sum-zero:", "none:1h-avg:"}
	var all []question
	for i, m := range forms {
		filter := []string{"", "{host=*}"}[i%2]
		all = append(all, question{
			name: m + metric + filter,
			path: fmt.Sprintf("/api/query?start=%d&end=%d&m=%s%s%s", dataStart, last+3599, m, metric, filter),
		})
	}

	continued := 0
	for round := range 20 {
		// In order, to a series that is there; a late one may overwrite a point.
		at := last + 3600*int64(round)/20 + 1
		if round%6 == 5 {
			at = dataStart + rng.Int64N(5*3600)
		}
		host := rng.IntN(len(hosts))
		put(ctx, t, tsd.URL, []e2e.Point{
			{Metric: metric, Timestamp: at, Value: json.RawMessage(fmt.Sprintf("%d.5", rng.IntN(1000))),
				Tags: map[string]string{"host": hosts[host], "dc": dcs[host%len(dcs)]}},
		})

		for _, q := range all {
			comparer := compare.Comparer{Permits: compare.Standard}
			if r, err := comparer.Answers(ask(ctx, t, tsd.URL, q), ask(ctx, t, gateway.URL, q)); err != nil ||
				!r.Equal() {
				t.Fatalf("round %d: %s: error %v, %v", round, q.name, err, r)
			}
			traced, err := e2e.Get(ctx, gateway.URL+q.path+"&trace=true")
			if err != nil {
				t.Fatal(err)
			}
			// The question before has stored the whole answer, or found the older hours.
			text := string(traced.Body)
			if strings.Contains(text, "older hours from memory") && !strings.Contains(text, "again as a whole") {
				continued++
			}
		}
	}
	t.Logf("%d of %d answers had their older hours from memory", continued, 20*len(all))
	if want := 4 * len(all); continued < want {
		t.Errorf("%d answers had their older hours from memory, want at least %d", continued, want)
	}
}

// shifted returns the points that dataset has of a metric, so many seconds later.
func shifted(metric string, by int64) (points []e2e.Point) {
	for _, p := range dataset(9 + uint64(by)) {
		if p.Metric == metric {
			p.Timestamp += by
			points = append(points, p)
		}
	}
	return points
}

// splitAt splits a table before the first row of a base time.
func splitAt(t *testing.T, table string, base uint32) {
	t.Helper()
	cells, err := hbase(t).Admin.Scan(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cells {
		if binary.BigEndian.Uint32(c.Row[3:]) == base { // the row key is metric, 3 bytes, and base time
			if err := hbase(t).Admin.Split(t.Context(), table, c.Row[:7]); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no row has the base time %d", base)
}
