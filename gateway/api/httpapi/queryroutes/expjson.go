package queryroutes

import (
	"math"
	"net/http"
	"strconv"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/exp"
)

// writeExp sends tables as JSON: rows by time, a column for each series. It ends with an
// error as writeAnswer does. after comes after the outputs and the request.
// Source: QueryExecutor.serialize.
func writeExp(w http.ResponseWriter, x *engine.Expressions, work *WorkTime, tables []exp.Table, after []trailer) error {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	out := &answerWriter{w: w, q: x.Query, work: work}

	out.text(`{"outputs":[`)
	for i := range tables {
		if i > 0 {
			out.text(",")
		}
		if out.table(&tables[i]); out.err != nil {
			return out.err
		}
	}
	out.text("]")
	out.field("query", x.Request)
	for _, t := range after {
		out.field(t.name, t.value)
	}
	out.text("}")
	return out.flush()
}

// table writes one output. It stops when the client has disconnected, see flushIfFull.
func (o *answerWriter) table(t *exp.Table) {
	o.text(`{"id":`)
	o.value(t.ID)
	if t.Alias != nil {
		o.field("alias", t.Alias)
	}

	o.text(`,"dps":[`)
	for i, ms := range t.Times {
		if i > 0 {
			o.text(",")
		}
		o.text("[")
		o.buf = strconv.AppendInt(o.buf, ms, 10)
		for _, column := range t.Columns {
			o.text(",")
			o.buf = appendNumber(o.buf, column[i])
		}
		if o.text("]"); !o.flushIfFull() {
			return
		}
	}
	o.text("]")

	o.field("dpsMeta", expMeta{t.First, t.Last, len(t.Times), len(t.Series)})
	if len(t.Series) > 0 {
		o.labels(t.Series)
	}
	o.text("}")
}

// expMeta is the field dpsMeta.
type expMeta struct {
	First  int64 `json:"firstTimestamp"`
	Last   int64 `json:"lastTimestamp"`
	Rows   int   `json:"setCount"`
	Series int   `json:"series"`
}

// labels describes the columns. All of them have the metrics of the first series, as in OpenTSDB.
func (o *answerWriter) labels(series []exp.Labels) {
	o.text(`,"meta":[{"index":0,"metrics":["timestamp"]}`)
	for i := range series {
		o.text(`,{"index":`)
		o.buf = strconv.AppendInt(o.buf, int64(i+1), 10)
		o.field("metrics", series[0].Metrics)

		o.text(`,"commonTags":{`)
		for k, t := range series[i].Tags {
			if k > 0 {
				o.text(",")
			}
			o.value(t.K)
			o.text(":")
			o.value(t.V)
		}

		names := []string{} // in JSON a list, not null
		for _, t := range series[i].Aggregated {
			names = append(names, t.Name)
		}
		o.text("}")
		o.field("aggregatedTags", names)
		if o.text("}"); !o.flushIfFull() {
			return
		}
	}
	o.text("]")
}

// appendNumber writes a double as Java does: what JSON has no number for is a string.
func appendNumber(dst []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(dst, `"-Infinity"`...)
	}
	return httpio.AppendValue(dst, encoding.FloatValue(v), false)
}
