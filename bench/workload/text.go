package workload

import (
	"fmt"
	"iter"
	"strconv"
)

// Format is how points are spelled.
type Format string

const (
	Telnet Format = "telnet" // put cpu.user 1700000000 42 host=… a line
	Import Format = "import" // the same without put, as tsdb import reads it
	JSON   Format = "json"   // arrays for POST /api/put, one a line
)

// Formats are all of them.
var Formats = []Format{Telnet, Import, JSON}

// Chunk is some points spelled out.
type Chunk struct {
	Text   []byte // whole lines, or one JSON array; valid until the next one
	Points int
}

// Text yields the points of the series for which mine is true (nil is all), in
// time order, in chunks of about size points. Several senders take a share of
// the series each, so that every series stays in order.
func (d Devops) Text(format Format, size int, mine func(series int) bool) iter.Seq[Chunk] {
	return func(yield func(Chunk) bool) {
		w := writer{d: d, format: format, heads: make([][]byte, d.Series()), tails: make([][]byte, d.Series())}
		for i := range w.heads {
			if mine == nil || mine(i) {
				w.prepare(i)
			}
		}

		for tick := range d.Ticks() {
			for i, v := range tick.Values {
				if w.heads[i] == nil { // another sender's
					continue
				}
				w.point(i, tick.Time, v)
				if w.points >= size && !yield(w.takeChunk()) {
					return
				}
			}
		}

		if w.points > 0 {
			yield(w.takeChunk())
		}
	}
}

// writer spells points; what stands before the time and behind the value is
// spelled once a series.
type writer struct {
	d            Devops
	format       Format
	heads, tails [][]byte
	text         []byte
	points       int
}

// prepare spells what stands before the time and behind the value of series i.
func (w *writer) prepare(i int) {
	metric := Metrics[i%w.d.MetricCount].Name
	tags := w.d.Host(i / w.d.MetricCount)
	var tail []byte
	if w.format == JSON {
		w.heads[i] = fmt.Appendf(nil, `{"metric":%q,"timestamp":`, metric)
		for n, t := range tags {
			tail = fmt.Appendf(tail, "%s%q:%q", map[bool]string{true: `,"tags":{`, false: ","}[n == 0], t.K, t.V)
		}
		w.tails[i] = append(tail, "}}"...)
		return
	}

	w.heads[i] = fmt.Appendf(nil, "%s%s ", map[bool]string{true: "put ", false: ""}[w.format == Telnet], metric)
	for _, t := range tags {
		tail = fmt.Appendf(tail, " %s=%s", t.K, t.V)
	}

	w.tails[i] = append(tail, '\n')
}

// point spells one point. v is to be divided by 10^Decimals of its metric.
func (w *writer) point(i int, at, v int64) {
	decimals := Metrics[i%w.d.MetricCount].Decimals
	if w.format != JSON {
		w.text = append(w.text, w.heads[i]...)
		w.text = append(strconv.AppendInt(w.text, at, 10), ' ')
		w.text = append(AppendValue(w.text, v, decimals), w.tails[i]...)
	} else {
		w.text = append(w.text, "[,"[min(w.points, 1)]) // the first point of a chunk begins its array
		w.text = append(w.text, w.heads[i]...)
		w.text = append(strconv.AppendInt(w.text, at, 10), `,"value":`...)
		w.text = append(AppendValue(w.text, v, decimals), w.tails[i]...)
	}

	w.points++
}

// takeChunk returns what was spelled since the last chunk; it is valid until the next
// point.
func (w *writer) takeChunk() Chunk {
	if w.format == JSON {
		w.text = append(w.text, "]\n"...)
	}
	c := Chunk{w.text, w.points}
	w.text, w.points = w.text[:0], 0
	return c
}

// AppendValue spells v/10^decimals: 1234 with 2 decimals is 12.34.
func AppendValue(b []byte, v int64, decimals int) []byte {
	if decimals == 0 {
		return strconv.AppendInt(b, v, 10)
	}
	scale := int64(1)
	for range decimals {
		scale *= 10
	}

	if v < 0 {
		b, v = append(b, '-'), -v
	}
	b = append(strconv.AppendInt(b, v/scale, 10), '.')
	for scale /= 10; scale > 0; scale /= 10 {
		b = append(b, byte('0'+v/scale%10))
	}
	return b
}
