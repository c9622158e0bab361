package sim

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"downpour/gateway/admin/tools"
	"downpour/pushdown/process/network"
	"downpour/pushdown/store/hbase"
)

// repair runs the tool that repairs rows, while nobody writes. If a put is refused and sent again, and the row is compacted in between,
// the row has two cells of a point; removing one changes nothing for readers. Where points are overwritten such rows are no fault.
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
