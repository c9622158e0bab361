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
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/plan"
	"downpour/gateway/uid"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/process/memory"
)

func exportFlags(f *flag.FlagSet, o *options) {
	f.StringVar(&o.output, "o", "", "file to write, compressed if its name ends with .gz; otherwise standard output")
	f.BoolVar(&o.all, "all", false, "export every metric, instead of those named, with the list of all names, annotations and meta data")
	f.BoolVar(&o.plain, "plain", false, "with -all, write points alone: OpenTSDB's import refuses the other lines")
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
func export(ctx context.Context, c *call) (err error) {
	req, err := c.exportArguments()
	if err != nil {
		return err
	}

	conn, err := c.connect(ctx, existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.close()) }()

	out, err := c.openOutput()
	if err != nil {
		return err
	}

	var counts exportCounts
	if conn.store != nil {
		counts, err = c.exportAll(ctx, conn, req, out)
	} else {
		counts, err = conn.remote.export(ctx, req, out, c.tell)
	}
	if err != nil {
		return errors.Join(err, out.abort())
	}

	if err := out.finish(); err != nil {
		return err
	}
	counts.print(c.Err) // not among the lines
	return nil
}

// exportRequest says what to export.
type exportRequest struct {
	times      [2]string // start, and end or "" for now
	metrics    []string  // with their filters
	all, plain bool
}

// exportCounts say how much was written and how much was left out. A gateway sends
// them as JSON.
type exportCounts struct {
	Metrics int   `json:"metrics"`
	Points  int64 `json:"points"`
	Meta    int64 `json:"remarks"` // meta lines

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

	for _, left := range []struct {
		n    int64
		what string
	}{
		{n.Annotations, "annotations (-all takes them)"},
		{n.Skipped, "cells that are no points (histograms and others)"},
		{n.Unwritable, "points that no import takes (not a number, infinite, milliseconds before March 1970, of names with blanks)"},
		{n.SkippedMeta, "names, annotations and meta data that are broken, longer than a line, or of names that are gone or have blanks"},
	} {
		if left.n > 0 {
			fmt.Fprintf(w, "left out: %d %s\n", left.n, left.what)
		}
	}
}

// exportAll writes what is requested from the store of this process.
func (c *call) exportAll(ctx context.Context, conn *connection, req exportRequest, out io.Writer) (exportCounts, error) {
	x := newExporter(c, conn, out)
	x.withMeta = req.all && !req.plain

	metrics := req.metrics
	if req.all {
		var err error
		if metrics, err = x.allNames(ctx, !req.plain); err != nil {
			return x.counts, err
		}
	}

	for _, m := range metrics {
		name, filters := m, ""
		// What a user asks for may have filters; a stored name may have any character.
		if i := strings.IndexByte(m, '{'); i > 0 && !req.all {
			name, filters = m[:i], m[i:]
		}
		if err := x.exportMetric(ctx, req.times, name, filters); err != nil {
			return x.counts, fmt.Errorf("%s: %w", m, err)
		}
	}
	x.counts.Metrics = len(metrics)

	if !x.withMeta {
		return x.counts, nil
	}
	err := x.writeMetadata(ctx, req.times)
	return x.counts, err
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
func (c *call) isTime(w string) bool {
	_, err := c.parser().URI(url.Values{"start": {"1"}, "end": {w}, "m": {"sum:m"}})

	// An end that does not come after the start is a time, too.
	var refused *query.Error
	return err == nil || errors.As(err, &refused) && strings.Contains(refused.Message, "End time")
}

func (c *call) parser() query.Parser { return query.Parser{Now: c.Now(), Zone: c.Zone} }

// allNames returns every metric. If list is set it also writes the list of all
// names, and counts those that no line can hold.
func (x *exporter) allNames(ctx context.Context, list bool) (metrics []string, err error) {
	for _, kind := range everyKind {
		entries, err := namesInOrder(ctx, x.conn, kind, anyName)
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
func namesInOrder(ctx context.Context, conn *connection, kind encoding.UIDKind, wanted func(name string) bool) (entries []uid.Entry, err error) {
	account := memory.Of(ctx)
	for e, err := range conn.names.Each(ctx, kind, "") {
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

// entryBytes is about what an entry of a list takes beside its texts.
const entryBytes = 300

// engine answers queries on the store, in process.
func (c *call) engine(conn *connection) *engine.Engine {
	return engine.New(engine.Config{Names: conn.names, Exec: dispatch.New(dispatch.Config{Store: conn.store}), Compile: c.Compile})
}

// plan compiles the query for a metric's series that filters admit, {host=a} say, with
// the aggregator none: each series stays by itself.
func (c *call) plan(ctx context.Context, conn *connection, times [2]string, name, filters string) (*plan.Compiled, error) {
	values := url.Values{"start": {times[0]}, "m": {"none:m" + filters}}
	if times[1] != "" {
		values.Set("end", times[1])
	}
	q, err := c.parser().URI(values)
	if err != nil {
		return nil, err
	}
	// m has stood in for the name, because colons divide the text of a sub-query, and a stored
	// name may have some.
	q.Queries[0].Metric = name
	plans, err := c.engine(conn).Compile(ctx, q)
	if err != nil {
		return nil, err
	}
	return plans[0], nil
}

// export copies the lines of a gateway's export to out. It returns an error if the
// export was cut off.
func (r *remote) export(ctx context.Context, req exportRequest, out io.Writer, progress func(string)) (counts exportCounts, err error) {
	q := url.Values{"start": {req.times[0]}, "m": req.metrics}
	for name, value := range map[string]string{"end": req.times[1], "all": trueOrEmpty(req.all), "plain": trueOrEmpty(req.plain)} {
		if value != "" {
			q.Set(name, value)
		}
	}

	resp, err := r.send(ctx, http.MethodGet, "/api/tools/export?"+q.Encode(), nil)
	if err != nil {
		return counts, err
	}
	err = r.copyAnswer(resp, out, progress, &counts)
	return counts, err
}

// trueOrEmpty returns the value of a query parameter.
func trueOrEmpty(b bool) string {
	if b {
		return "true"
	}
	return ""
}
