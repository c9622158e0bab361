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

// printSeries prints counts as two tables and a line of sums.
func printSeries(to io.Writer, c *seriescount.Counts) error {
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, list := range []struct {
		head  string
		names []seriescount.Named
	}{{"metric\tseries", c.Metrics}, {"tag key\tvalues", c.TagKeys}} {
		if len(list.names) == 0 {
			continue
		}
		fmt.Fprintln(out, list.head)
		for _, n := range list.names {
			fmt.Fprintf(out, "%s\t%d\n", n.Name, n.Count)
		}
		fmt.Fprintln(out)
	}
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
