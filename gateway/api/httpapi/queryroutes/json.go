package queryroutes

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine"
)

// flushBytes is how much JSON is collected before it is written.
const flushBytes = 64 << 10

// usualBytes is the room that the text of an answer has at first.
const usualBytes = 4 << 10

// answerWriter writes results as OpenTSDB's JSON, without holding the whole text.
// After the first error it writes nothing more and returns that error.
// Source: HttpJsonSerializer.formatQueryAsyncV1.
type answerWriter struct {
	w    io.Writer
	q    *query.Query
	work *WorkTime
	buf  []byte
	err  error
	// stats are of the sub-queries, for showStats.
	stats []dispatch.Stats
	// echoes are the sub-queries as JSON, for showQuery: all results of one show
	// the same.
	echoes map[int][]byte
}

// writeAnswer sends results as JSON. It ends with an error if the query's time for
// the work is over, or its client has disconnected.
func writeAnswer(w http.ResponseWriter, r *http.Request, q *query.Query, work *WorkTime, results []engine.Result,
	stats engine.Stats, after []trailer) error {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=UTF-8")
	out := &answerWriter{
		w: w, q: q, work: work, buf: make([]byte, 0, usualBytes), stats: stats.Queries, echoes: map[int][]byte{},
	}

	name := httpio.LastValue(r, "jsonp")
	callback := name != "" && httpio.ValidCallback(name) // a name that could be a script is ignored
	if callback {
		h.Set("Content-Type", "application/javascript; charset=UTF-8")
		out.text(name + "(")
	}
	out.results(results, after)
	if callback {
		out.text(")")
	}
	return out.flush()
}

// results writes the list of the answer: the results, then the objects after them. It stops when
// the client has disconnected.
func (o *answerWriter) results(results []engine.Result, after []trailer) {
	o.text("[")
	for i := range results {
		if i > 0 {
			o.text(",")
		}
		if o.result(&results[i]); !o.flushIfFull() {
			return
		}
	}

	for i, t := range after {
		if i+len(results) > 0 {
			o.text(",")
		}
		o.text(`{"` + t.name + `":`)
		o.value(t.value)
		o.text("}")
	}
	o.text("]")
}

// flushIfFull writes the buffer once it is large enough, and reports whether to
// continue: not after an error, as when the client has disconnected or the time is
// over.
func (o *answerWriter) flushIfFull() bool {
	if len(o.buf) >= flushBytes {
		o.flush()
	}
	return o.err == nil
}

func (o *answerWriter) text(s string) { o.buf = append(o.buf, s...) }

// value writes v as JSON. An error ends the answer.
func (o *answerWriter) value(v any) {
	b, err := json.Marshal(v)
	if err != nil && o.err == nil {
		o.err = err
	}
	o.buf = append(o.buf, b...)
}

// field writes a comma, a key and its value.
func (o *answerWriter) field(name string, v any) {
	o.text(`,"` + name + `":`)
	o.value(v)
}

// result writes one element of the answer, its fields in OpenTSDB's order.
func (o *answerWriter) result(r *engine.Result) {
	o.text(`{"metric":`)
	o.value(r.Metric)
	o.text(`,"tags":{`)
	for i, t := range r.Tags {
		if i > 0 {
			o.text(",")
		}
		o.value(t.K)
		o.text(":")
		o.value(t.V)
	}
	o.text("}")

	// append copies a list so that it is not nil, which JSON would write as null.
	o.field("aggregateTags", append([]string{}, r.AggregateTags...))
	if o.q.ShowQuery {
		o.echo(r.Query)
	}
	if o.q.ShowTSUIDs {
		o.field("tsuids", append([]string{}, r.TSUIDs...))
	}
	// The list is empty if the scan met annotations, but none inside the query.
	if r.HasNotes && !o.q.NoAnnotations {
		o.field("annotations", append([]json.RawMessage{}, r.Annotations...))
	}
	if r.GlobalAnnotations != nil {
		o.field("globalAnnotations", r.GlobalAnnotations)
	}

	o.text(`,"dps":`)
	o.points(r)
	if o.q.ShowStats {
		o.field("stats", o.resultStats(r))
	}
	o.text("}")
}

// echo writes sub-query i as the field "query".
func (o *answerWriter) echo(i int) {
	if o.echoes[i] == nil {
		from := len(o.buf)
		o.field("query", o.q.Echo(i))
		o.echoes[i] = append([]byte{}, o.buf[from:]...)
		return
	}
	o.buf = append(o.buf, o.echoes[i]...)
}

// resultStats returns the numbers of a result's sub-query under OpenTSDB's names.
// The times of single steps are missing: Downpour does not keep them.
// Source: QueryStats.getQueryStats.
func (o *answerWriter) resultStats(r *engine.Result) map[string]any {
	s := o.stats[r.Query]
	return map[string]any{"queryIndex": r.Query, "emittedDPs": r.Points.Len(), "successfulScan": s.Parts,
		"rowsFromStorage": s.Rows, "columnsFromStorage": s.Cells, "bytesFromStorage": s.Bytes,
		"rowsPreFilter": s.Rows, "rowsPostFilter": s.Rows - s.Rejected, "dpsPreFilter": s.Points,
		"dpsPostFilter": s.Points}
}

// points writes a result's points as a map keyed by time, or as pairs if the query
// wants arrays. Times are whole seconds unless the query wants milliseconds, so
// several points of one second have the same key, as in OpenTSDB.
func (o *answerWriter) points(r *engine.Result) {
	open, middle, end := `{"`, `":`, "}"
	between := `,"`
	if o.q.Arrays {
		open, middle, end, between = "[[", ",", "]]", "],["
	}
	n := r.Points.Len()
	if n == 0 {
		o.text(map[bool]string{false: "{}", true: "[]"}[o.q.Arrays])
		return
	}

	o.text(open)
	// The fix "seconds" keeps only the last point of each second.
	lastOnly := o.q.Fix.Contains(query.FixSeconds) && !o.q.MSResolution
	separator := ""
	for i := range n {
		t, v := r.Points.At(i)
		if lastOnly && i+1 < n && r.Points.Time[i+1]/1000 == t/1000 {
			continue
		}

		if !o.q.MSResolution {
			t /= 1000
		}

		o.text(separator)
		separator = between
		o.buf = strconv.AppendInt(o.buf, t, 10)
		o.text(middle)
		o.buf = httpio.AppendValue(o.buf, v, r.NaNIsNull)
		if !o.flushIfFull() {
			return
		}
	}
	o.text(end)
}

// flush writes the buffer.
func (o *answerWriter) flush() error {
	if o.err == nil {
		o.err = o.work.Write(o.w, o.buf)
	}
	o.buf = o.buf[:0]
	return o.err
}
