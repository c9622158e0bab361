package replay

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/integration/conformance"
	"downpour/integration/differential"
	"downpour/pushdown/store"
)

// The same points, put into empty tables of HBase by a gateway, make the same cells as OpenTSDB has made, byte for
// byte: names, counters and data.
func TestReplay_cells(t *testing.T) {
	for _, name := range []string{"cells_plain", "cells_salted", "cells_wide", "cells_appended"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r conformance.Cells
			if err := conformance.Decode(name, &r); err != nil {
				t.Fatal(err)
			}
			schema := encoding.DefaultSchema()
			schema.SaltWidth, schema.SaltBuckets = r.SaltWidth, r.SaltBuckets
			schema.MetricWidth, schema.TagKWidth, schema.TagVWidth = r.MetricWidth, r.TagKWidth, r.TagVWidth
			cfg, st := empty(t, true, schema, func(cfg *gateway.Config) { cfg.EnableAppends = r.Appends })
			at := front{"HBase", start(t, cfg, st), st}
			for _, put := range r.Puts {
				a := at.ask(t, differential.Request{Path: "/api/put?details&sync", Body: string(put)})
				if a.Status != http.StatusOK {
					t.Fatalf("%.100s: %d %s", put, a.Status, a.Body)
				}
			}
			for table, want := range map[string][]string{cfg.TableUID: r.UID, cfg.TableData: r.Data} {
				if d := cmp.Diff(want, lines(t, st, table)); d != "" || len(want) < 15 {
					t.Errorf("%s: -OpenTSDB +ours\n%.4000s", table, d)
				}
			}
		})
	}
}

// lines are all cells of a table.
func lines(t *testing.T, st store.Store, table string) (all []string) {
	t.Helper()
	for rows, err := range store.Blocks(t.Context(), st, store.Scan{Table: table}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			for _, c := range row.Cells {
				all = append(all, conformance.CellLine(row.Key, string(c.Family), c.Qualifier, c.Value))
			}
		}
	}
	return all
}
