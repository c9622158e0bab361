package sim

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"downpour/gateway/admin/tools"
	"downpour/pushdown/process/network"
	"downpour/pushdown/store/hbase"
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

// settleJobs waits, after all faults, until jobs have looked at all hours once more, and counts what they have done since their
// gateways started.
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
}

// metrics returns those of a gateway, by name with labels.
func (w *World) metrics(gateway int) map[string]float64 {
	all := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(w.clients.ask(gateway, "GET", "/metrics", "").body))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		all[name], _ = strconv.ParseFloat(value, 64)
	}
	return all
}

// checkMemory checks that gateways hold no memory for anybody once all clients are gone, but for the little that an account of all
// live queries keeps at hand.
func (w *World) checkMemory() {
	pass(time.Minute)
	const atHand = 64 << 10
	for i := range w.gateways {
		all := w.metrics(i)
		for holder, most := range map[string]float64{"query": 0, "write": 0, "live": atHand} {
			name := fmt.Sprintf("downpour_memory_held_bytes{holder=%q}", holder)
			if held, ok := all[name]; held > most || !ok {
				w.t.Errorf("seed %d: gateway %d, after all clients have gone: %s is %v (%t), want at most %v", w.seed, i, name, held, ok, most)
			}
		}
	}
}

// repair runs the tool that repairs rows, while nobody writes: a put that was refused and sent again leaves two cells of a point
// where its row was compacted meanwhile. It changes nothing that readers see. A world where points are put again with other
// values has such rows by rights.
func (w *World) repair() {
	if !w.recorded.lenient {
		w.checkRows("-fix", "-resolve-duplicates", "-young")
	}
}

// checkTables runs the tools that look for faults in tables, which find none.
func (w *World) checkTables() {
	w.tool("uid", "fsck")
	if !w.recorded.lenient {
		w.checkRows()
	}
}

func (w *World) checkRows(flags ...string) {
	for _, metric := range []string{"m0", "m1"} {
		w.tool("fsck", append(flags, fmt.Sprint(w.began.Unix()-4*3600), fmt.Sprint(time.Now().Unix()), "sum", metric)...)
	}
}

// tool runs a command of the gateway's program on a machine of its own.
func (w *World) tool(name string, args ...string) {
	s, err := w.settings.ToolSettings()
	if err != nil {
		w.t.Fatal(err)
	}
	var out bytes.Buffer
	e := &tools.Env{Settings: s, Out: &out, Err: &out, Now: time.Now, Open: func(bool) (tools.Store, error) {
		return w.ground.open("tool", network.NewHost(&w.network), hbase.ProofExact)
	}}
	all := tools.Commands()
	i := slices.IndexFunc(all, func(c tools.Command) bool { return c.Name == name })
	if err := all[i].Run(context.Background(), e, args); err != nil {
		w.t.Errorf("seed %d: gateway %s %v, after all faults: %v\n%s", w.seed, name, args, err, out.String())
	}
}
