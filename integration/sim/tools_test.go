package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"downpour/gateway/extra/tools"
	"downpour/pushdown/process/network/networktest"
	"downpour/pushdown/store/hbase"
)

// repair runs the tools that repair tables, while nobody writes. A gateway that is killed leaves
// series without meta data, which uid metasync makes. fsck removes duplicates: if a put is refused
// and sent again, and the row is compacted in between, the row has two cells of a point; removing
// one changes nothing for readers. Where points are overwritten such rows are no fault.
func (w *World) repair() {
	w.tool("uid", "metasync")
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
		w.tool("fsck",
			append(flags, fmt.Sprint(w.began.Unix()-before), fmt.Sprint(time.Now().Unix()), "sum", metric)...)
	}
}

// checkNames checks that the meta data, complete since repair, lists the series that have points.
func (w *World) checkNames() {
	for _, metric := range []string{"m0", "m1"} {
		points, err := w.clients.query(0, "none:"+metric)
		if err != nil {
			w.t.Errorf("seed %d: %v", w.seed, err)
			continue
		}
		type result struct{ TSUID string }
		var listed struct{ Results []result }
		a := w.clients.ask(0, "POST", "/api/search/lookup",
			fmt.Sprintf(`{"metric":%q,"useMeta":true,"limit":1000}`, metric))
		if !a.ok() && (a.status != 404 || len(points) > 0) || a.ok() && json.Unmarshal(a.body, &listed) != nil {
			w.clients.wrong(0, "lookup of %s: %v", metric, a)
			continue
		}
		for _, s := range points {
			if !slices.ContainsFunc(listed.Results, func(r result) bool { return r.TSUID == s.TSUIDs[0] }) {
				w.clients.wrong(0, "the meta data lacks %v of %s, and its points are there", s.Tags, metric)
			}
		}
		w.checked("meta data")
	}
}

// operate runs tools while all the rest goes on. What they find is no matter then: a name is on its
// way, a row is being compacted, and HBase may refuse them. What they change must do no harm.
func (w *World) operate() {
	r := w.rand("operator")
	for w.pause(r, 2*time.Minute) {
		command := [][]string{
			{"uid", "fsck"},
			{"uid", "metasync"},
			{"uid", "grep", "h"},
			{"uid", "reclaim", "-no-tsds", "-dry-run"}, // a TSD writes
			{"fsck", "-fix", "-resolve-duplicates", fmt.Sprint(w.began.Unix() - before), "sum", "m0"},
			{"scan", "-import", fmt.Sprint(w.began.Unix() - before), "sum", "m1"},
		}[r.IntN(6)]
		ctx, cancel := context.WithTimeout(context.Background(), w.slower(patience))
		out, err := w.runTool(ctx, command[0], command[1:]...)
		cancel()
		w.counted(func(c *Counts) { c.Commands++ })
		w.note("gateway %v: %v, %.200s", command, err, out)
	}
}

// tool runs a command that must succeed.
func (w *World) tool(name string, args ...string) {
	if out, err := w.runTool(context.Background(), name, args...); err != nil {
		w.t.Errorf("seed %d: gateway %s %v, after all faults: %v\n%s", w.seed, name, args, err, out)
	}
}

// runTool runs a command of the gateway's program on a machine of its own, and returns its output.
func (w *World) runTool(ctx context.Context, name string, args ...string) (string, error) {
	s, err := tools.ForConfig(w.settings)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	e := &tools.Env{Settings: s, Out: &out, Err: &out, Now: time.Now, Open: func(bool) (tools.Store, error) {
		return w.ground.open("tool", networktest.NewHost(&w.network), hbase.ProofExact)
	}}
	all := tools.Commands()
	i := slices.IndexFunc(all, func(c tools.Command) bool { return c.Name == name })
	err = all[i].Run(ctx, e, args)
	return out.String(), err
}
