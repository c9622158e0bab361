package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// keep is the age beyond which a world with retention deletes rows.
const keep = 8 * time.Hour

// rollups is a configuration of rollups that gateways make by themselves: of intervals of ten minutes, a row a day.
const rollups = `auto:{"aggregationIds": {"sum": 0, "count": 1, "min": 2, "max": 3}, "intervals": [
	{"table": "tsdb", "preAggregationTable": "tsdb-preagg", "interval": "1m", "rowSpan": "1h", "defaultInterval": true},
	{"table": "tsdb-rollup", "preAggregationTable": "tsdb-rollup-preagg", "interval": "10m", "rowSpan": "1d"}]}`

// drawJobs draws the settings of jobs that look at hours, which are those of all gateways.
func (w *World) drawJobs(r *rand.Rand) {
	w.jobs = map[string]string{}
	if w.tempo != hours {
		return
	}
	// Not both: of days that are partly past nothing is rolled up.
	if r.IntN(2) == 0 {
		w.jobs["DOWNPOUR_ROLLUPS"] = rollups
		return
	}
	w.jobs["DOWNPOUR_RETENTION"] = fmt.Sprintf("%.0fh", keep.Hours())
	w.model.keep = keep
}

// settleJobs waits, after all faults, until jobs have looked at all hours once more, and counts
// what they have done since their gateways started.
func (w *World) settleJobs() {
	if len(w.jobs) == 0 {
		return
	}
	pass(7 * time.Hour) // rollups are made every six hours, and rows are deleted each hour
	w.model.calm = true
	for i := range w.gateways {
		n := w.metrics(i)
		w.counted(func(c *Counts) {
			c.RolledUp += int(n["downpour_rollup_made_points_total"])
			c.Past += int(n["downpour_retention_deleted_rows_total"])
		})
	}
	if d, ok := w.ground.(*disk); ok && d.seals() && w.counts.Sealed == 0 {
		w.t.Errorf("seed %d: no row was sealed, though a series had a point each %d seconds", w.seed, denseEvery)
	}
}
