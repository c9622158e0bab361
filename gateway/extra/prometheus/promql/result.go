package promql

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// Result is the answer to a query.
type Result struct {
	Warnings, Infos []string
	value           parser.Value
	query           promql.Query
}

// Close gives back the memory of the answer, which has been sent.
func (r *Result) Close() { r.query.Close() }

// Type is "matrix", "vector", "scalar" or "string".
func (r *Result) Type() string { return string(r.value.Type()) }

// Series returns how many series there are, and how many points these have.
func (r *Result) Series() (series, points int) {
	switch v := r.value.(type) {
	case promql.Matrix:
		for i := range v {
			points += len(v[i].Floats)
		}
		return len(v), points
	case promql.Vector:
		return len(v), len(v)
	}
	return 1, 1
}

// Truncate leaves the first series, and reports whether there were more.
func (r *Result) Truncate(limit int) bool {
	switch v := r.value.(type) {
	case promql.Matrix:
		if len(v) > limit {
			r.value = v[:limit]
			return true
		}
	case promql.Vector:
		if len(v) > limit {
			r.value = v[:limit]
			return true
		}
	}
	return false
}

// flushBytes is how much JSON is collected before it is passed on.
const flushBytes = 64 << 10

// WriteJSON writes the value as Prometheus' API has it, piece by piece.
func (r *Result) WriteJSON(write func([]byte) error) error {
	w := &jsonWriter{write: write}
	switch v := r.value.(type) {
	case promql.Matrix:
		w.matrix(v)
	case promql.Vector:
		w.vector(v)
	case promql.Scalar:
		w.point(v.T, v.V)
	case promql.String:
		w.buf = appendTime(append(w.buf, '['), v.T)
		w.buf = appendString(append(w.buf, ','), v.V)
		w.text("]")
	}
	w.flush(0)
	return w.err
}

// jsonWriter collects JSON. After an error it writes nothing more.
type jsonWriter struct {
	write func([]byte) error
	buf   []byte
	err   error
}

func (w *jsonWriter) text(s string) { w.buf = append(w.buf, s...) }

// flush passes on what there is if it is at least so long, and reports whether to go on.
func (w *jsonWriter) flush(from int) bool {
	if w.err == nil && len(w.buf) >= from && len(w.buf) > 0 {
		w.err = w.write(w.buf)
		w.buf = w.buf[:0]
	}
	return w.err == nil
}

func (w *jsonWriter) matrix(m promql.Matrix) {
	w.list(len(m), func(i int) {
		w.labels(m[i].Metric)
		w.text(`,"values":`)
		w.list(len(m[i].Floats), func(k int) { w.point(m[i].Floats[k].T, m[i].Floats[k].F) })
		w.text("}")
	})
}

func (w *jsonWriter) vector(v promql.Vector) {
	w.list(len(v), func(i int) {
		w.labels(v[i].Metric)
		w.text(`,"value":`)
		w.point(v[i].T, v[i].F)
		w.text("}")
	})
}

// list writes a list of n elements, each by one.
func (w *jsonWriter) list(n int, one func(i int)) {
	w.text("[")
	for i := range n {
		if i > 0 {
			w.text(",")
		}
		one(i)
		if !w.flush(flushBytes) {
			return
		}
	}
	w.text("]")
}

// labels begins a series.
func (w *jsonWriter) labels(l labels.Labels) {
	w.buf = appendLabels(append(w.buf, `{"metric":`...), l)
}

func (w *jsonWriter) point(ms int64, v float64) {
	w.buf = appendTime(append(w.buf, '['), ms)
	w.buf = appendValue(append(w.buf, ',', '"'), v)
	w.text(`"]`)
}

// appendTime appends a time in seconds, with as many digits as it needs.
func appendTime(dst []byte, ms int64) []byte {
	if ms < 0 {
		dst, ms = append(dst, '-'), -ms
	}
	dst = strconv.AppendInt(dst, ms/1000, 10)
	rest := ms % 1000
	if rest == 0 {
		return dst
	}
	return append(dst, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}

// appendValue appends a value as Prometheus writes it.
func appendValue(dst []byte, v float64) []byte {
	form, size := byte('f'), math.Abs(v)
	if size != 0 && (size < 1e-6 || size >= 1e21) {
		form = 'e'
	}
	return strconv.AppendFloat(dst, v, form, -1, 64)
}

// appendString appends a string as JSON.
func appendString(dst []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string always encodes
	return append(dst, text...)
}

// appendLabels appends labels as an object.
func appendLabels(dst []byte, l labels.Labels) []byte {
	dst = append(dst, '{')
	first := true
	l.Range(func(l labels.Label) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendString(dst, l.Name)
		dst = appendString(append(dst, ':'), l.Value)
	})
	return append(dst, '}')
}
