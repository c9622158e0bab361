package tools

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/metadata/wholetable"
	"downpour/gateway/query"
	"downpour/gateway/query/plan"
	"downpour/gateway/uid"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/process/memory"
)

func exportFlags(f *flag.FlagSet, o *options) {
	f.StringVar(&o.output, "o", "", "file to write, compressed if its name ends with .gz; otherwise standard output")
	f.BoolVar(&o.all, "all", false,
		"export every metric, instead of those named, with the list of all names, annotations and meta data")
	f.BoolVar(&o.plain, "plain", false, "with -all, write points alone: OpenTSDB's import refuses the other lines")
	f.StringVar(&o.format, "format", "lines", "lines, which import reads, or parquet, a table for notebooks")
}

// export writes the points of metrics as import lines: an integer as an integer,
// a float as a float, seconds as seconds and milliseconds as milliseconds. With
// -all the lines begin with a list of all names in the order of their UIDs, and
// meta lines stand among and after those of points:
//
//	#uid metrics sys.cpu.user
//
// Import assigns UIDs in that order. Series are aggregated in the order of their
// UIDs, so answers are the same there, to the last bit of a sum.
//
// As parquet it writes points alone, see pointfile.
func export(ctx context.Context, c *call) error {
	req, err := c.exportArguments()
	if err != nil {
		return err
	}

	return c.at(ctx, existing, func(r *remote) error {
		out, err := c.openOutput()
		if err != nil {
			return err
		}

		var counts exportCounts
		if err := r.get(ctx, "/api/tools/export?"+req.parameters(), receiver{
			out:      out,
			progress: c.tell,
			counts:   &counts,
		}); err != nil {
			return errors.Join(err, out.abort())
		}
		if counts.Format != req.format {
			err := fmt.Errorf("%s has no -format %s: it is a gateway of an earlier release", r.url, req.format)
			return errors.Join(err, out.abort())
		}
		if err := out.finish(); err != nil {
			return err
		}
		counts.print(c.Err) // not among the points
		return nil
	})
}

// exportRequest says what to export.
type exportRequest struct {
	times      [2]string // start, and end or "" for now
	metrics    []string  // with their filters
	all, plain bool
	format     string // parquet, or "" for lines
}

// parquet is the other format than lines.
const parquet = "parquet"

// parameters are those of the route.
func (r *exportRequest) parameters() string {
	q := url.Values{"start": {r.times[0]}, "m": r.metrics}
	if r.times[1] != "" {
		q.Set("end", r.times[1])
	}
	if r.all {
		q.Set("all", "true")
	}
	if r.plain {
		q.Set("plain", "true")
	}
	if r.format != "" {
		q.Set("format", r.format)
	}
	return q.Encode()
}

// export answers with import lines, or with the bytes of a Parquet file among its lines.
func (h *served) export(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	req := exportRequest{
		times:   [2]string{q.Get("start"), q.Get("end")},
		metrics: q["m"],
		all:     q.Get("all") == "true",
		plain:   q.Get("plain") == "true",
		format:  q.Get("format"),
	}
	if req.format != "" && req.format != parquet {
		return fmt.Errorf("format: got %q, want %s or none", req.format, parquet)
	}
	if req.times[0] == "" || req.all != (len(req.metrics) == 0) {
		return fmt.Errorf("got start %q and %d metrics, want a start, and metrics or all=true", req.times[0],
			len(req.metrics))
	}

	// Only an export of all metrics has meta data, some of it may not be stored yet.
	if req.all && h.Flush != nil {
		if err := h.Flush(r.Context()); err != nil {
			return err
		}
	}

	if err := memory.Reserve(r.Context(), namerBytes+wholetable.BlockBytes); err != nil {
		return err
	}
	return writeLines(w, r, func(out io.Writer, _ func(string)) (any, error) {
		x := h.exporter(out)
		if req.format == parquet {
			return &x.counts, x.allParquet(r.Context(), req)
		}
		return &x.counts, x.all(r.Context(), req)
	})
}

// exportCounts say how much was written and how much was left out. A gateway sends
// them as JSON.
type exportCounts struct {
	Format  string `json:"format,omitempty"` // which it was; a gateway of an earlier release has lines only
	Metrics int    `json:"metrics"`
	Points  int64  `json:"points"`
	Meta    int64  `json:"remarks"` // meta lines

	// Left out:
	Annotations int64 `json:"notes"`      // where points alone are written
	Skipped     int64 `json:"skipped"`    // cells that are no points
	Unwritable  int64 `json:"unwritable"` // points that no import takes
	SkippedMeta int64 `json:"unsaid"`     // names, annotations and meta data that no line can hold
}

// print prints the counts for the user.
func (n *exportCounts) print(w io.Writer) {
	fmt.Fprintf(w, "%d points of %d metrics exported", n.Points, n.Metrics)
	if n.Meta > 0 {
		fmt.Fprintf(w, ", %d annotations and meta data", n.Meta)
	}
	fmt.Fprintln(w)

	notes := "annotations (-all takes them)"
	if n.Format == parquet {
		notes = "annotations (-all takes them, in lines)"
	}
	for _, left := range []struct {
		n    int64
		what string
	}{
		{n.Annotations, notes},
		{n.Skipped, "cells that are no points (histograms and others)"},
		{n.Unwritable, "points that no import takes (not a number, infinite, milliseconds before March 1970, " +
			"of names with blanks)"},
		{n.SkippedMeta, "names, annotations and meta data that are broken, longer than a line, or of names that are " +
			"gone or have blanks"},
	} {
		if left.n > 0 {
			fmt.Fprintf(w, "left out: %d %s\n", left.n, left.what)
		}
	}
}

// all writes what is requested.
func (x *exporter) all(ctx context.Context, req exportRequest) (err error) {
	x.withMeta = req.all && !req.plain
	metrics := req.metrics
	if req.all {
		if metrics, err = x.allNames(ctx, !req.plain); err != nil {
			return err
		}
	}

	if err := x.eachRow(ctx, req, metrics, false, x.exportRow); err != nil {
		return err
	}
	x.counts.Metrics = len(metrics)

	if !x.withMeta {
		return nil
	}
	return x.writeMetadata(ctx, req.times)
}

// eachRow calls f with each row of the series of metrics that their filters admit.
func (x *exporter) eachRow(
	ctx context.Context, req exportRequest, metrics []string, keysOnly bool, f func(*scanplan.Plan, seriesRow) error,
) error {
	for _, m := range metrics {
		name, filters := m, ""
		// What a user asks for may have filters; a stored name may have any character.
		if i := strings.IndexByte(m, '{'); i > 0 && !req.all {
			name, filters = m[:i], m[i:]
		}
		if err := x.eachRowOf(ctx, req.times, name, filters, keysOnly, f); err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
	}
	return nil
}

// exportArguments parses START [END] [AGG] METRIC…. An aggregator is accepted, as
// by tsdb scan, and ignored.
func (c *call) exportArguments() (req exportRequest, err error) {
	req.all, req.plain = c.all, c.plain
	if len(c.args) == 0 {
		return req, c.usage("START is missing")
	}

	req.times[0] = c.args[0]
	rest := c.args[1:]
	if len(rest) > 0 && c.isTime(rest[0]) {
		req.times[1], rest = rest[0], rest[1:]
	}
	// A single word is a metric, even if an aggregator has its name.
	if len(rest) > 1 {
		if _, ok := aggregate.Lookup(scanplan.Aggregator(rest[0])); ok {
			rest = rest[1:]
		}
	}

	req.metrics = joinTags(rest)
	if c.all != (len(req.metrics) == 0) {
		return req, c.usage("got %d metrics, want some, or -all", len(req.metrics))
	}

	switch c.format {
	case "lines":
	case parquet:
		if c.output == "" {
			if err := c.refuseTerminal(); err != nil {
				return req, err
			}
		}
		if req.format = parquet; strings.HasSuffix(c.output, ".gz") {
			return req, c.usage("-o: got %q, want no .gz: a Parquet file is compressed inside", c.output)
		}
	default:
		return req, c.usage("-format: got %q, want lines or %s", c.format, parquet)
	}
	return req, nil
}

// joinTags joins words "tag=value" with the metric before them, as tsdb takes them:
// "m host=a dc=b" is "m{host=a,dc=b}".
func joinTags(words []string) (metrics []string) {
	for _, w := range words {
		n := len(metrics)
		switch {
		case n == 0 || strings.Contains(w, "{") || !strings.Contains(w, "="): // a metric
			metrics = append(metrics, w)
		case strings.HasSuffix(metrics[n-1], "}"): // a further tag
			metrics[n-1] = strings.TrimSuffix(metrics[n-1], "}") + "," + w + "}"
		default:
			metrics[n-1] += "{" + w + "}"
		}
	}
	return metrics
}

// isTime reports whether a word is a time and not an aggregator or a metric. Source: CliQuery.parseCommandLineQuery.
func isTime(w string, parser query.Parser) bool {
	_, err := parser.URI(url.Values{"start": {"1"}, "end": {w}, "m": {"sum:m"}})

	// An end that does not come after the start is a time, too.
	var refused *query.Error
	return err == nil || errors.As(err, &refused) && strings.Contains(refused.Message, "End time")
}

func (c *call) isTime(w string) bool { return isTime(w, c.parser()) }

func (c *call) parser() query.Parser { return query.Parser{Now: c.Now(), Zone: c.Zone} }

// allNames returns every metric. If list is set it also writes the list of all
// names, and counts those that no line can hold.
func (x *exporter) allNames(ctx context.Context, list bool) (metrics []string, err error) {
	for _, kind := range everyKind {
		entries, err := namesInOrder(ctx, x.Names, kind, anyName)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if kind == encoding.UIDMetric {
				metrics = append(metrics, e.Name)
			}
			if !list {
				continue
			}

			if checkName(e.Name) != nil {
				x.counts.SkippedMeta++
				continue
			}
			if _, err := fmt.Fprintf(x.out, "%s %s %s\n", namePrefix, kind, e.Name); err != nil {
				return nil, err
			}
		}
	}
	return metrics, nil
}

// namesInOrder returns the names of a kind that are wanted, in the order of their
// UIDs. In a gateway their memory is the request's.
func namesInOrder(
	ctx context.Context, names *uid.Dictionary, kind encoding.UIDKind, wanted func(name string) bool,
) (entries []uid.Entry, err error) {
	account := memory.Of(ctx)
	for e, err := range names.Each(ctx, kind, "") {
		if err != nil {
			return nil, err
		}
		if !wanted(e.Name) {
			continue
		}
		// Each name is also in what is made of the list, an answer for one.
		if err := account.Reserve(ctx, int64(entryBytes+3*len(e.Name))); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}

	slices.SortFunc(entries, func(a, b uid.Entry) int { return bytes.Compare(a.UID, b.UID) })
	return entries, nil
}

func anyName(string) bool { return true }

// entryBytes is about what an entry of a list takes on top of its texts.
const entryBytes = 300

// plan compiles the query for a metric's series that filters admit, {host=a} say, with
// the aggregator none: each series stays by itself.
func (x *work) plan(ctx context.Context, times [2]string, name, filters string) (*plan.Compiled, error) {
	values := url.Values{"start": {times[0]}, "m": {"none:m" + filters}}
	if times[1] != "" {
		values.Set("end", times[1])
	}
	q, err := x.parser().URI(values)
	if err != nil {
		return nil, err
	}
	// m has stood in for the name, because colons divide the text of a sub-query, and a stored
	// name may have some.
	q.Queries[0].Metric = name
	plans, err := x.engine().Compile(ctx, q)
	if err != nil {
		return nil, err
	}
	return plans[0], nil
}
