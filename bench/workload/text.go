package workload

import (
	"fmt"
	"iter"
	"strconv"

	"github.com/klauspost/compress/s2"
)

// Format is how points are spelled.
type Format string

const (
	Telnet Format = "telnet" // put cpu.user 1700000000 42 host=… a line
	Import Format = "import" // the same without put, as tsdb import reads it
	JSON   Format = "json"   // arrays for POST /api/put, one a line

	// RemoteWrite is requests of Prometheus' remote write, packed. Each sample has its labels, as Prometheus sends it.
	RemoteWrite Format = "remote write"
)

// Formats are those that are text.
var Formats = []Format{Telnet, Import, JSON}

// Chunk is some points spelled out.
type Chunk struct {
	Text   []byte // whole lines, one JSON array or one request; valid until the next one
	Points int
}

// Data is a data set that can be put.
type Data interface {
	// Text yields the points of the series for which mine is true (nil is all), in time
	// order, in chunks of about size points. Several senders take a share of the series each,
	// so that every series stays in order.
	Text(format Format, size int, mine func(series int) bool) iter.Seq[Chunk]
	// Series and Points are how many there are.
	Series() int
	Points() int
}

// Text implements Data.
func (d Devops) Text(format Format, size int, mine func(series int) bool) iter.Seq[Chunk] {
	return spell(format, size, d.Ticks(), d.Series(), mine, func(i int) (Metric, []Tag) {
		return *d.MetricOf(i), d.Host(i / d.MetricCount)
	})
}

// spell yields the points of ticks, of n series whose names are those that named returns.
func spell(
	format Format, size int, ticks iter.Seq[Tick], n int, mine func(series int) bool,
	named func(series int) (Metric, []Tag),
) iter.Seq[Chunk] {
	return func(yield func(Chunk) bool) {
		w := writer{format: format, series: make([]spelledSeries, n)}
		for i := range w.series {
			if mine == nil || mine(i) {
				w.series[i] = format.spellSeries(named(i))
			}
		}

		for tick := range ticks {
			for i, v := range tick.Values {
				if w.series[i].head == nil { // another sender's
					continue
				}
				w.point(&w.series[i], tick.Time, v)
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

// writer spells points.
type writer struct {
	format Format
	series []spelledSeries
	text   []byte
	packed []byte // of remote write
	points int
}

// spelledSeries is what stands before the time and behind the value of each point of a
// series.
type spelledSeries struct {
	head, tail []byte
	decimals   int // of the values
}

func (f Format) spellSeries(metric Metric, tags []Tag) spelledSeries {
	s := spelledSeries{decimals: metric.Decimals}
	if f == RemoteWrite {
		s.head = labels(metric, tags)
		return s
	}
	if f == JSON {
		s.head = fmt.Appendf(nil, `{"metric":%q,"timestamp":`, metric.Name)
		for n, t := range tags {
			s.tail = fmt.Appendf(s.tail, "%s%q:%q", map[bool]string{true: `,"tags":{`, false: ","}[n == 0], t.K, t.V)
		}
		s.tail = append(s.tail, "}}"...)
		return s
	}

	s.head = fmt.Appendf(nil, "%s%s ", map[bool]string{true: "put ", false: ""}[f == Telnet], metric.Name)
	for _, t := range tags {
		s.tail = fmt.Appendf(s.tail, " %s=%s", t.K, t.V)
	}
	s.tail = append(s.tail, '\n')
	return s
}

// point spells one point. v is to be divided by 10^decimals of its series.
func (w *writer) point(s *spelledSeries, at, v int64) {
	if w.format == RemoteWrite {
		w.text = appendSample(w.text, s, at, v)
	} else if w.format != JSON {
		w.text = append(w.text, s.head...)
		w.text = append(strconv.AppendInt(w.text, at, 10), ' ')
		w.text = append(AppendValue(w.text, v, s.decimals), s.tail...)
	} else {
		w.text = append(w.text, "[,"[min(w.points, 1)]) // the first point of a chunk begins its array
		w.text = append(w.text, s.head...)
		w.text = append(strconv.AppendInt(w.text, at, 10), `,"value":`...)
		w.text = append(AppendValue(w.text, v, s.decimals), s.tail...)
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
	if w.format == RemoteWrite {
		w.packed = s2.EncodeSnappy(w.packed[:cap(w.packed)], w.text)
		c.Text = w.packed
	}
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
