package queryroutes

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"downpour/encoding/batch"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/querylog"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/exp"
	"downpour/pushdown/process/memory"
)

// expArrow answers with an Arrow IPC stream that has a column for each output.
func (h *Handlers) expArrow(w http.ResponseWriter, r *http.Request, x *engine.Expressions, tables []exp.Table,
	compression batch.Compression, entry *querylog.Entry) error {
	// Every series may have different tags, and then has values for all outputs.
	n := 0
	for i := range tables {
		n += len(tables[i].Series)
	}
	if err := memory.Reserve(r.Context(), int64(n*(len(tables)*columnBytes+seriesBytes))); err != nil {
		return err
	}
	series, outputs := outputSeries(tables)

	SetIncompleteHeader(w, &entry.Stats)
	t := h.newTagWriter(w, r, x.Query)
	s := &arrowSender{w: t, compressed: compression != ""}
	out := batch.NewOutputWriter(s, outputs, series,
		batch.ResultOptions{
			Compression: compression,
			Missing:     httpio.HexRanges(entry.Stats.Missing),
			Damaged:     entry.Stats.Damaged,
		})
	if err := writeOutputs(r.Context(), out, series); err != nil {
		if s.sent && t.streaming {
			return Abort(err)
		}
		return err // no byte has reached the client, so it can get an error
	}
	err := t.end(r)
	entry.Sent = err == nil
	return Abort(err)
}

// Bytes of a series of an Arrow answer, and of its column of an output, in addition to the tables.
const (
	seriesBytes = 300
	columnBytes = 48
)

// writeOutputs writes all series and the end of the stream, unless the client leaves before.
func writeOutputs(ctx context.Context, out *batch.OutputWriter, series []batch.OutputSeries) error {
	for i := range series {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := out.Write(&series[i]); err != nil {
			return err
		}
	}
	return out.Close()
}

// outputSeries joins the series of all tables that have the same tags. An output that
// is repeated has one column.
func outputSeries(tables []exp.Table) (all []batch.OutputSeries, outputs []batch.Output) {
	tables = slices.Clone(tables)
	seen := map[string]bool{}
	tables = slices.DeleteFunc(tables, func(t exp.Table) bool {
		repeated := seen[t.ID]
		seen[t.ID] = true
		return repeated
	})

	index := map[string]int{}
	for o := range tables {
		t := &tables[o]
		alias := ""
		if t.Alias != nil {
			alias = *t.Alias
		}
		outputs = append(outputs, batch.Output{ID: t.ID, Alias: alias})

		times := map[string]int{} // number of series with these tags in this table
		for i := range t.Series {
			name := nameOf(&t.Series[i])
			times[name]++
			name += strconv.Itoa(times[name]) // series of one table are not joined, even with equal tags
			at, known := index[name]
			if !known {
				at = len(all)
				index[name] = at
				all = append(all, newOutputSeries(&t.Series[i], len(tables)))
			}
			all[at].Columns[o] = batch.OutputColumn{Time: t.Times, Value: t.Columns[i]}
		}
	}
	return all, outputs
}

// nameOf returns a text that is equal for series with the same tags.
func nameOf(l *exp.Labels) string {
	var b strings.Builder
	for _, t := range l.Tags {
		b.WriteString(t.K + "\x00" + t.V + "\x00")
	}
	b.WriteString("\x01")
	for _, t := range l.Aggregated {
		b.WriteString(t.Name + "\x00")
	}
	return b.String()
}

// newOutputSeries returns a series that has an empty column for each output.
func newOutputSeries(l *exp.Labels, outputs int) batch.OutputSeries {
	s := batch.OutputSeries{Columns: make([]batch.OutputColumn, outputs)}
	for _, t := range l.Tags {
		s.TagKeys = append(s.TagKeys, t.K)
		s.TagValues = append(s.TagValues, t.V)
	}
	for _, t := range l.Aggregated {
		s.AggregateTags = append(s.AggregateTags, t.Name)
	}
	return s
}
