package httpapi

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine"
)

// flushBytes is how much JSON is collected before it is written.
const flushBytes = 64 << 10

// answerWriter writes results as OpenTSDB's JSON, without holding the whole
// text. The first error sticks. Source: HttpJsonSerializer.formatQueryAsyncV1.
type answerWriter struct {
	w      io.Writer
	q      *query.Query
	effort *effort
	buf    []byte
	err    error
	// stats are those of the sub-queries, for showStats.
	stats  []dispatch.Stats
	echoes map[int][]byte // by sub-query, for showQuery
}

// writeAnswer sends results as JSON, with as much work as there is time left for.
func writeAnswer(w http.ResponseWriter, r *http.Request, q *query.Query, work *effort, results []engine.Result, stats engine.Stats, marks []mark) error {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=UTF-8")
	out := &answerWriter{w: w, q: q, effort: work, stats: stats.Queries, echoes: map[int][]byte{}}
	name := r.URL.Query().Get("jsonp")
	if name != "" && validCallback(name) {
		h.Set("Content-Type", "application/javascript; charset=UTF-8")
		out.text(name + "(")
	} else {
		name = ""
	}
	out.results(results, marks)
	if name != "" {
		out.text(")")
	}
	return out.flush()
}

func (o *answerWriter) results(results []engine.Result, marks []mark) {
	o.text("[")
	for i := range results {
		if i > 0 {
			o.text(",")
		}
		if o.result(&results[i]); !o.goesOn() {
			return
		}
	}
	for i, m := range marks {
		if i+len(results) > 0 {
			o.text(",")
		}
		o.text(`{"` + m.name + `":`)
		o.value(m.value)
		o.text("}")
	}
	o.text("]")
}

// goesOn sends what is enough to be sent, and tells whether to go on: not if the
// client has left or the time is over.
func (o *answerWriter) goesOn() bool {
	if len(o.buf) >= flushBytes {
		o.flush()
	}
	return o.err == nil
}

func (o *answerWriter) text(s string) { o.buf = append(o.buf, s...) }

func (o *answerWriter) value(v any) {
	b, err := json.Marshal(v)
	if err != nil && o.err == nil {
		o.err = err
	}
	o.buf = append(o.buf, b...)
}

// field writes a key after another field.
func (o *answerWriter) field(name string, v any) {
	o.text(`,"` + name + `":`)
	o.value(v)
}

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
	o.field("aggregateTags", append([]string{}, r.AggregateTags...))
	if o.q.ShowQuery {
		o.echo(r.Query)
	}
	if o.q.ShowTSUIDs {
		o.field("tsuids", append([]string{}, r.TSUIDs...))
	}
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

// echo writes a sub-query, which all its results show.
func (o *answerWriter) echo(i int) {
	if o.echoes[i] == nil {
		from := len(o.buf)
		o.field("query", o.q.Echo(i))
		o.echoes[i] = append([]byte{}, o.buf[from:]...)
		return
	}
	o.buf = append(o.buf, o.echoes[i]...)
}

// resultStats are the numbers of a result's sub-query that this program keeps,
// under OpenTSDB's names; it keeps no times of the steps.
// Source: QueryStats.getQueryStats.
func (o *answerWriter) resultStats(r *engine.Result) map[string]any {
	s := o.stats[r.Query]
	return map[string]any{"queryIndex": r.Query, "emittedDPs": r.Points.Len(), "successfulScan": s.Parts,
		"rowsFromStorage": s.Rows, "columnsFromStorage": s.Cells, "bytesFromStorage": s.Bytes,
		"rowsPreFilter": s.Rows, "rowsPostFilter": s.Rows - s.Rejected, "dpsPreFilter": s.Points, "dpsPostFilter": s.Points}
}

// points writes a map keyed by time, or pairs. Times are seconds, cut off, so
// that points of one second have the same key, unless ms were asked for.
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
	lastOnly := o.q.Fix.Has(query.FixSeconds) && !o.q.MSResolution
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
		o.buf = appendValue(o.buf, v, r.NaNIsNull)
		if !o.goesOn() {
			return
		}
	}
	o.text(end)
}

// flush writes what was collected.
func (o *answerWriter) flush() error {
	if o.err == nil {
		o.err = o.effort.pause()
	}
	if o.err == nil {
		_, o.err = o.w.Write(o.buf)
		o.effort.resume()
	}
	o.buf = o.buf[:0]
	return o.err
}
