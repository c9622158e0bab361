package tools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/pushdown/compaction"
	"downpour/pushdown/store"
)

func compactFlags(f *flag.FlagSet, o *options) {
	f.DurationVar(&o.margin, "margin", 10*time.Minute, "age that a row's hour and newest cell have at least, more than the clocks of all servers differ; 0 where nobody writes")
	f.BoolVar(&o.dryRun, "dry-run", false, "count and change nothing")
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
	versions, ok := conn.store.(store.Versioned)
	if !ok {
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

	counts, err := c.compactStretches(ctx, versions, all)
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

// compactStretches compacts stretch after stretch and tells progress.
func (c *call) compactStretches(ctx context.Context, st store.Versioned, all []stretch) (counts compaction.Counts, err error) {
	begun := c.Now()
	told := begun
	job := compaction.Job{Store: st, Table: c.Tables.Data, Schema: c.Schema, FixDuplicates: c.Compile.FixDuplicates, Margin: c.margin, Now: c.Now, DryRun: c.dryRun}
	job.Reached = func(done compaction.Counts, next []byte) {
		counts.Add(&done)
		if now := c.Now(); now.Sub(told) >= tellEvery {
			told = now
			c.tell(fmt.Sprintf("%s; %.0f rows/s; all before row %x is done", &counts, float64(counts.Rows)/now.Sub(begun).Seconds(), next))
		}
	}

	if err := job.Check(ctx); err != nil {
		return counts, err
	}
	for i := range all {
		s := &all[i]
		admit := func(row []byte, key encoding.RowKey) bool { return s.admits(row, key, nil) }
		if err := job.Run(ctx, s.KeyRange, admit); err != nil {
			return counts, fmt.Errorf("%w; run it again to go on", err)
		}
	}
	return counts, nil
}
