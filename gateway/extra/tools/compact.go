package tools

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/pushdown/compaction"
	"downpour/pushdown/lease"
	"downpour/pushdown/store"
)

func compactFlags(f *flag.FlagSet, o *options) {
	f.DurationVar(&o.margin, "margin", 10*time.Minute, "age that a row's hour and newest cell have at least, more than the clocks of all servers differ; 0 where nobody writes")
}

// runCompact compacts the rows of metrics in a time range, and prints what it has done. Rows
// that stay are counted, and are no failure.
func runCompact(ctx context.Context, c *call) (err error) {
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

	conn, err := c.connect(ctx, existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	versions := conn.store.Features().Versioned
	if versions == nil {
		return fmt.Errorf("DOWNPOUR_STORE=%s keeps no versions of cells, want HBase", c.Store)
	}

	// An aggregator is part of a query, and says nothing about its rows.
	words := slices.Clone(c.args[:2])
	for _, metric := range c.args[2:] {
		words = append(words, "sum", metric)
	}
	all, err := c.queried(ctx, conn, words)
	if err != nil {
		return err
	}

	counts, err := c.compactStretches(ctx, conn.store, versions, all)
	// A run that has failed may have done much.
	if err == nil || counts.Rows > 0 {
		dry := ""
		if c.dryRun {
			dry = "dry run, nothing is changed: "
		}
		fmt.Fprintln(c.Out, dry+counts.String())
	}
	return err
}

// compactStretches compacts stretch after stretch and tells progress. The rows of a region are
// compacted under its lease, as in the background.
func (c *call) compactStretches(ctx context.Context, st Store, versions store.Versioned, all []stretch) (counts compaction.Counts, err error) {
	begun := c.Now()
	told := begun
	job := compaction.Job{Store: versions, Table: c.Tables.Data, Schema: c.Schema, FixDuplicates: c.Compile.FixDuplicates, Margin: c.margin, Now: c.Now, DryRun: c.dryRun}
	job.Reached = func(done compaction.Counts, next []byte) {
		counts.Add(&done)
		if now := c.Now(); next != nil && now.Sub(told) >= tellEvery {
			told = now
			c.tell(fmt.Sprintf("%s; %.0f rows/s; all before row %x is done", &counts, float64(counts.Rows)/now.Sub(begun).Seconds(), next))
		}
	}
	if err := job.Check(ctx); err != nil {
		return counts, err
	}

	pieces, err := inRegions(ctx, st, c.Tables.Data, all)
	if err != nil {
		return counts, err
	}
	under, err := c.underLease(ctx, st)
	if err != nil {
		return counts, err
	}
	for _, region := range pieces {
		err := under(ctx, compaction.LeaseName(c.Tables.Data, region[0].region), func(ctx context.Context) error {
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

// underLease returns what calls work under a lease. A dry run needs none.
func (c *call) underLease(ctx context.Context, st Store) (func(ctx context.Context, name string, work func(context.Context) error) error, error) {
	if c.dryRun {
		return func(ctx context.Context, _ string, work func(context.Context) error) error { return work(ctx) }, nil
	}
	if err := lease.CreateTable(ctx, st, c.Tables.State); err != nil {
		return nil, err
	}
	leases := &lease.Keeper{Store: st, Table: c.Tables.State, Holder: lease.Holder(), Waits: func(name, holder string) {
		c.tell(fmt.Sprintf("waits for %s, which has the lease %s; if it is dead, for a minute at most", holder, name))
	}}
	return func(ctx context.Context, name string, work func(context.Context) error) error {
		return leases.Do(ctx, name, func(ctx context.Context, _ *lease.Lease) error { return work(ctx) })
	}, nil
}

// piece is the part of a stretch that lies in one region.
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
