package tools

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
	"time"

	"downpour/gateway/extra/opspage/opsroutes"
	"downpour/gateway/extra/opspage/seriescount"
	"downpour/gateway/extra/opspage/uidusage"
)

const seriesPath = "/api/ops/series"

func seriesFlags(f *flag.FlagSet, o *options) {
	f.IntVar(&o.top, "top", 20, "how many metrics and tag keys are printed, 1 to 1000")
}

// runSeries prints the metrics with most series, and the tag keys with most values.
func runSeries(ctx context.Context, c *call) error {
	if len(c.args) != 1 || c.args[0] != "top" {
		return c.usage("got %q, want top", c.args)
	}
	return c.at(ctx, existing, func(r *remote) error {
		status, body, err := r.do(ctx, http.MethodGet, fmt.Sprintf("%s?top=%d", seriesPath, c.top), nil)
		if err != nil {
			return err
		}
		if status != http.StatusOK {
			return r.failed(status, body)
		}
		var counts seriescount.Counts
		if err := json.Unmarshal(body, &counts); err != nil {
			return fmt.Errorf("%s: %w", seriesPath, err)
		}
		return printSeries(c.Out, &counts)
	})
}

// printSeries prints counts as tables and a line of sums.
func printSeries(to io.Writer, c *seriescount.Counts) error {
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, list := range []struct {
		head  string
		names []seriescount.Named
	}{{"metric\tseries\tnew today", c.Metrics}, {"tag key\tvalues\tnew today", c.TagKeys}} {
		if len(list.names) == 0 {
			continue
		}
		fmt.Fprintln(out, list.head)
		for _, n := range list.names {
			fmt.Fprintf(out, "%s\t%d\t%d\n", n.Name, n.Count, n.New)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out, "UIDs of\tused\tof all\tnew today\trun out")
	for _, u := range c.UIDs {
		ofAll := 100 * float64(u.Used) / float64(u.Most)
		fmt.Fprintf(out, "%s\t%d\t%.1f %%\t%d\t%s\n", u.Kind, u.Used, ofAll, u.Grown, runOut(u))
	}
	fmt.Fprintln(out)

	least, of := "", ""
	if !c.Complete {
		least = "not all was read, others may have more: at least "
	}
	if c.Hour > 0 {
		of = fmt.Sprintf(", with rows of the hour from %s on", time.Unix(c.Hour, 0).UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(out, "%s%d series of %d metrics with %d tag keys%s\n", least, c.Series, c.AllMetrics, c.AllTagKeys, of)
	return out.Flush()
}

// runOut is when the UIDs of a kind run out, in words.
func runOut(u uidusage.UIDs) string {
	when := "not soon"
	if u.RunOut > 0 {
		when = time.UnixMilli(u.RunOut).UTC().Format(time.DateOnly)
	}
	if u.Used >= u.Most {
		when = "none is left"
	}
	if u.Short() {
		when += ": more than 80 % are used, see gateway uid reclaim -h"
	}
	return when
}

// seriesRoute is the route that counts series, of this process's own handler.
func (w *work) seriesRoute() opsroutes.Handlers {
	return opsroutes.Handlers{Series: func(ctx context.Context, top int) (*seriescount.Counts, error) {
		return seriescount.Run(ctx, ctx, seriescount.Config{
			Store:     w.Store,
			Table:     w.Tables.Meta,
			DataTable: w.Tables.Data,
			Schema:    w.Schema,
			Names:     w.Names,
			Now:       w.now,
		}, top)
	}}
}
