package tools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"

	"downpour/encoding"
	"downpour/pushdown/lease"
	"downpour/pushdown/rollupjob"
)

// rollupPath is the route by which a gateway rolls up for a tool.
const rollupPath = "/api/tools/rollup"

func rollupFlags(f *flag.FlagSet, o *options) {
	f.DurationVar(&o.margin, "margin", rollupjob.DefaultMargin,
		"how long ago an hour has ended before it is rolled up, more than points come late")
	f.BoolVar(&o.fewer, "fewer", false,
		"replace or delete also rollups that were made of more points than there are now, after a deletion; not where "+
			"raw rows go by their age")
}

// rollupRequest says what to roll up. It is the body of POST rollup.
type rollupRequest struct {
	Args   []string `json:"args"`             // START END METRIC…
	Margin string   `json:"margin,omitempty"` // as of the command's flag, and its default
	DryRun bool     `json:"dryRun"`
	Fewer  bool     `json:"fewer"`
}

// runRollup rolls up the sealed hours of metrics, and prints what it has done.
func runRollup(ctx context.Context, c *call) error {
	if len(c.args) < 3 || !c.isTime(c.args[1]) {
		return c.usage("want START, END and METRIC")
	}
	if c.margin < 0 {
		return c.usage("margin: got %v, want 0 or more", c.margin)
	}
	req := rollupRequest{Args: c.args, Margin: c.margin.String(), DryRun: c.dryRun, Fewer: c.fewer}
	var counts rollupjob.Counts
	err := c.at(ctx, existing, func(r *remote) error {
		return r.stream(ctx, rollupPath, req, receiver{out: c.Out, progress: c.tell, counts: &counts})
	})

	// A run that has failed may have done much.
	if err == nil || counts.Made > 0 {
		fmt.Fprintln(c.Out, counts.String())
	}
	if err == nil && counts.Failed > 0 {
		err = fmt.Errorf("%d days cannot be rolled up", counts.Failed)
	}
	return err
}

// rollUp carries out a request and reports progress.
func (x *work) rollUp(ctx context.Context, req *rollupRequest, tell func(string)) (counts rollupjob.Counts, err error) {
	if x.Rollups == nil {
		return counts, errors.New("DOWNPOUR_ROLLUPS: want auto: and the rollups to make, auto:rollups.json")
	}
	margin, err := rollupjob.DefaultMargin, error(nil)
	if req.Margin != "" {
		margin, err = time.ParseDuration(req.Margin)
	}
	if err != nil || margin < 0 {
		return counts, fmt.Errorf("margin: got %q, want 0 or more, such as 10m", req.Margin)
	}
	metrics, from, to, err := x.metricsBetween(ctx, req.Args)
	if err != nil {
		return counts, err
	}
	if err := lease.CreateTable(ctx, x.Store, x.Tables.State); err != nil {
		return counts, err
	}

	begun := x.now()
	told, reached := begun, rollupjob.Counts{}
	job := rollupjob.Job{
		Store:         x.Store,
		Tables:        rollupjob.Tables{Data: x.Tables.Data, State: x.Tables.State},
		Schema:        x.Schema,
		Config:        x.Rollups,
		FixDuplicates: x.Compile.FixDuplicates,
		Margin:        margin,
		Now:           x.now,
		Fewer:         req.Fewer,
	}
	// A dry run would wait for others.
	if !x.dryRun {
		job.Leases = &lease.Keeper{Store: x.Store, Table: x.Tables.State, Holder: lease.Holder()}
		job.Leases.Waits = func(name, holder string) {
			tell(fmt.Sprintf("waits for %s, which works on %s", holder, name))
		}
	}
	job.Reached = func(done rollupjob.Counts) {
		reached.Add(&done)
		if now := x.now(); now.Sub(told) >= tellEvery {
			told = now
			tell(fmt.Sprintf("%s; %.0f points/s", &reached, float64(reached.Points)/now.Sub(begun).Seconds()))
		}
	}

	// Everything is written before anything is read back, see Job.Prove. Of a dry run nothing could be.
	steps := []func(context.Context, encoding.UID, int64, int64) (rollupjob.Counts, error){job.Roll, job.Prove}
	if x.dryRun {
		steps = steps[:1]
	}
	for _, step := range steps {
		for _, metric := range metrics {
			done, err := step(ctx, metric, from, to)
			counts.Add(&done)
			if err != nil {
				return counts, fmt.Errorf("metric %s: %w; run it again to go on", metric, err)
			}
		}
	}
	return counts, nil
}

// metricsBetween returns the metrics that START END METRIC… name, and the times in s.
func (x *work) metricsBetween(ctx context.Context, args []string) (metrics []encoding.UID, from, to int64, err error) {
	if len(args) < 3 {
		return nil, 0, 0, fmt.Errorf("got %d arguments, want START, END and METRIC", len(args))
	}
	body, err := queryArguments(sumOf(args), x.parser())
	if err != nil {
		return nil, 0, 0, err
	}
	q, err := body.parse(x.parser())
	if err != nil {
		return nil, 0, 0, err
	}
	plans, err := x.engine().Compile(ctx, q)
	if err != nil {
		return nil, 0, 0, err
	}
	for _, p := range plans {
		metrics = append(metrics, p.Plan.Metric)
	}
	return metrics, q.Start / 1000, (q.End + 999) / 1000, nil // END itself is in the next day
}

// rollup answers with progress, and with what was rolled up.
func (h *served) rollup(w http.ResponseWriter, r *http.Request) error {
	var req rollupRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	x := &h.work
	if req.DryRun {
		x = x.dry(x.Tables.State) // the records of rollups: a worker in the background may change them
	}
	return writeLines(w, r, func(_ io.Writer, progress func(string)) (any, error) {
		return x.rollUp(r.Context(), &req, progress)
	})
}
