package tools

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/pushdown/compaction"
	"downpour/pushdown/lease"
	"downpour/pushdown/store"
)

func compactFlags(f *flag.FlagSet, o *options) {
	f.DurationVar(&o.margin, "margin", 10*time.Minute,
		"age that a row's hour and newest cell have at least, more than the clocks of all servers differ; 0 where "+
			"nobody writes")
}

// compactRequest says what to compact. It is the body of POST compact.
type compactRequest struct {
	Args   []string      `json:"args"`   // START END METRIC…
	Margin time.Duration `json:"margin"` // as of the command's flag
	DryRun bool          `json:"dryRun,omitempty"`
}

// runCompact compacts the rows of metrics in a time range, and prints what it has done. Rows
// that stay are counted, and are no failure.
func runCompact(ctx context.Context, c *call) error {
	if len(c.args) < 3 || !c.isTime(c.args[1]) {
		return c.usage("want START, END and METRIC")
	}
	if c.margin < 0 {
		return c.usage("margin: got %v, want 0 or more", c.margin)
	}
	if c.Embedded {
		fmt.Fprintln(c.Out, "nothing to do: an embedded store keeps the points of a row in one cell by itself")
		return nil
	}
	if c.gateway != "" {
		return c.usage("-gateway: got %s, but rows are compacted on the tables themselves", c.gateway)
	}

	var counts compaction.Counts
	err := c.at(ctx, existing, func(r *remote) error {
		return r.stream(ctx, "/api/tools/compact", compactRequest{c.args, c.margin, c.dryRun}, receiver{
			out:      c.Out,
			progress: c.tell,
			counts:   &counts,
		})
	})
	// A run that has failed may have done much.
	if err == nil || counts.Rows > 0 {
		fmt.Fprintln(c.Out, counts.String())
	}
	return err
}

// compact answers with progress, and with what was compacted.
func (h *served) compact(w http.ResponseWriter, r *http.Request) error {
	var req compactRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	x := &h.work
	if req.DryRun {
		x = x.dry()
	}
	if x.Store.Features().Versioned == nil {
		return fmt.Errorf("DOWNPOUR_STORE=%s keeps no versions of cells, want HBase", x.Settings.Store)
	}
	all, err := x.queried(r.Context(), sumOf(req.Args))
	if err != nil {
		return err
	}
	return writeLines(w, r, func(_ io.Writer, progress func(string)) (any, error) {
		return x.compactStretches(r.Context(), all, req.Margin, progress)
	})
}

// sumOf makes a query of START END METRIC…. An aggregator is part of one, and says nothing about its rows.
func sumOf(args []string) []string {
	words := slices.Clone(args[:min(2, len(args))])
	for _, metric := range args[len(words):] {
		words = append(words, "sum", metric)
	}
	return words
}

// compactStretches compacts stretch after stretch and reports progress. The rows of a region are
// compacted under its lease, as in the background.
func (x *work) compactStretches(
	ctx context.Context, all []stretch, margin time.Duration, tell func(string),
) (counts compaction.Counts, err error) {
	begun := x.now()
	told := begun
	job := compaction.Job{
		Store:         x.Store.Features().Versioned,
		Table:         x.Tables.Data,
		Schema:        x.Schema,
		FixDuplicates: x.Compile.FixDuplicates,
		Margin:        margin,
		Now:           x.now,
	}
	job.Reached = func(done compaction.Counts, next []byte) {
		counts.Add(&done)
		if now := x.now(); next != nil && now.Sub(told) >= tellEvery {
			told = now
			tell(fmt.Sprintf("%s; %.0f rows/s; all before row %x is done", &counts,
				float64(counts.Rows)/now.Sub(begun).Seconds(), next))
		}
	}
	if err := job.Check(ctx); err != nil {
		return counts, err
	}

	pieces, err := inRegions(ctx, x.Store, x.Tables.Data, all)
	if err != nil {
		return counts, err
	}
	under, err := x.underLease(ctx, tell)
	if err != nil {
		return counts, err
	}
	for _, region := range pieces {
		err := under(ctx, compaction.LeaseName(x.Tables.Data, region[0].region), func(ctx context.Context) error {
			for _, p := range region {
				admit := func(row []byte, key encoding.RowKey) bool {
					ok, _ := p.of.admits(row, key, nil) // without filters on names nothing fails
					return ok
				}
				if err := job.Run(ctx, p.KeyRange, admit); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return counts, fmt.Errorf("%w; run it again to go on", err)
		}
	}
	return counts, nil
}

// underLease returns what calls work under a lease. A dry run needs none: it would wait for others.
func (x *work) underLease(
	ctx context.Context, tell func(string),
) (func(ctx context.Context, name string, work func(context.Context) error) error, error) {
	if x.dryRun {
		return func(ctx context.Context, _ string, work func(context.Context) error) error { return work(ctx) }, nil
	}
	if err := lease.CreateTable(ctx, x.Store, x.Tables.State); err != nil {
		return nil, err
	}
	leases := &lease.Keeper{
		Store:  x.Store,
		Table:  x.Tables.State,
		Holder: lease.Holder(),
		Waits: func(name, holder string) {
			tell(fmt.Sprintf("waits for %s, which has the lease %s; if it is dead, for a minute at most", holder, name))
		},
	}
	return func(ctx context.Context, name string, work func(context.Context) error) error {
		return leases.Do(ctx, name, func(ctx context.Context, _ *lease.Lease) error { return work(ctx) })
	}, nil
}

// piece is the part of a stretch that is in one region.
type piece struct {
	store.KeyRange
	of     *stretch
	region []byte // first key
}

// inRegions cuts stretches at the borders of regions, and puts together those of a region
// that follow each other.
func inRegions(ctx context.Context, st store.Reader, table string, all []stretch) (out [][]piece, err error) {
	for i := range all {
		s := &all[i]
		regions, err := st.Regions(ctx, table, s.Start, s.Stop)
		if err != nil {
			return nil, fmt.Errorf("cannot list the regions of table %s: %w", table, err)
		}
		for n, r := range regions {
			p := piece{KeyRange: s.KeyRange, of: s, region: bytes.Clone(r.Start)}
			if n > 0 {
				p.Start = p.region
			}
			if n < len(regions)-1 {
				p.Stop = bytes.Clone(r.Stop)
			}
			if last := len(out) - 1; last >= 0 && bytes.Equal(out[last][0].region, p.region) {
				out[last] = append(out[last], p)
			} else {
				out = append(out, []piece{p})
			}
		}
	}
	return out, nil
}
