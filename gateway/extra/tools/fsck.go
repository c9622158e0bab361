package tools

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"runtime"

	"downpour/gateway/extra/tools/fsck"
	"downpour/pushdown/process/memory"
)

func fsckFlags(f *flag.FlagSet, o *options) {
	r := &o.fsck
	f.BoolVar(&r.Full, "full-scan", false, "check the whole data table")
	f.BoolVar(&r.Options.Fix, "fix", false, "repair what loses nothing, and what other flags allow")
	f.BoolVar(&o.fixAll, "fix-all", false, "all the flags that allow a repair")
	f.BoolVar(&r.Options.Compact, "compact", false, "make one cell of a row's points")
	f.BoolVar(&r.Options.DeleteBadRows, "delete-bad-rows", false, "delete rows whose key is impossible")
	f.BoolVar(&r.Options.DeleteOrphans, "delete-orphans", false, "delete rows of UIDs without a name")
	f.Int64Var(&r.YesDeleteOrphans, "yes-delete-orphans", 0,
		"the most orphans that may be deleted. Without it none is if more than a tenth of at least ten rows "+
			"are orphans")
	f.BoolVar(&r.Options.DeleteUnknownColumns, "delete-unknown-columns", false,
		"delete cells that nothing of OpenTSDB writes")
	f.BoolVar(&r.Options.DeleteBadCompacts, "delete-bad-compacts", false,
		"delete compacted cells that cannot be cut; of those with a wrong last byte the points are kept, and of "+
			"broken append columns what can be read")
	f.BoolVar(&r.Options.DeleteBadValues, "delete-bad-values", false, "delete points that cannot be read")
	f.BoolVar(&r.Options.ResolveDuplicates, "resolve-duplicates", false,
		"keep the oldest of several values of one time")
	f.BoolVar(&r.Options.LastWriteWins, "last-write-wins", false,
		"keep the newest instead; DOWNPOUR_FIX_DUPLICATES does so, too")
	f.BoolVar(&r.Young, "young", false, "repair also rows of the current and the previous hour")
	f.IntVar(&r.Threads, "threads", 0,
		"parts of the table that are read at a time, at most 4 for each CPU (default: 2 for each; in a "+
			"gateway 2 in all)")
	f.StringVar(&r.From, "from", "", "row key in hex from which to go on, as an earlier run has told it")
}

// fsckRequest says what to check and what to repair. It is the body of POST fsck.
type fsckRequest struct {
	Args    []string     `json:"args"` // START [END] AGG METRIC …, if not Full
	Full    bool         `json:"full"`
	Options fsck.Options `json:"options"`
	Young   bool         `json:"young"`
	From    string       `json:"from"` // hex
	Threads int          `json:"threads"`
	// YesDeleteOrphans is the most orphans that may be deleted, 0 if a small part may.
	YesDeleteOrphans int64 `json:"yesDeleteOrphans"`
	DryRun           bool  `json:"dryRun,omitempty"` // repair nothing, and report all as if it were
}

// runFsck checks the data table and repairs what its flags allow. It prints a line for each
// finding and then the counters, and returns an error if anything is still damaged.
// Source: Fsck.
func runFsck(ctx context.Context, c *call) error {
	req := &c.fsck
	req.Args, req.DryRun = c.args, c.dryRun
	if c.fixAll {
		req.Options.All()
	}
	// The rows are those of a query, or all of them: one of the two has to be given.
	if req.Full == (len(req.Args) > 0) {
		return c.usage("want a query or --full-scan")
	}
	if !req.Full {
		if _, err := c.query(); err != nil {
			return err
		}
	}

	var counts fsckCounts
	out := bufio.NewWriterSize(c.Out, 64<<10)
	err := c.at(ctx, existing, func(r *remote) error {
		return r.stream(ctx, "/api/tools/fsck", req, receiver{out: out, progress: c.tell, counts: &counts})
	})

	// A run that has failed may have repaired much.
	if err == nil || counts.Rows > 0 {
		counts.print(out)
	}
	err = errors.Join(err, out.Flush())
	if err == nil {
		err = counts.left()
	}
	return err
}

// servedThreads is the number of threads of an fsck in a gateway if the request says none.
const servedThreads = 2

// fsck answers with what it finds in rows, and with what it did about it.
func (h *served) fsck(w http.ResponseWriter, r *http.Request) error {
	var req fsckRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	if err := req.complete(h.bound(servedThreads, 2*runtime.NumCPU())); err != nil {
		return err
	}
	if err := memory.Reserve(r.Context(), req.memory()); err != nil {
		return err
	}
	if !h.checking.TryLock() {
		return conflict("another fsck of this gateway runs, and one at a time may")
	}
	defer h.checking.Unlock()

	x := &h.work
	if req.DryRun {
		x = x.dry()
	}
	return writeLines(w, r, func(out io.Writer, progress func(string)) (any, error) {
		return x.checkRows(r.Context(), &req, out, progress)
	})
}
