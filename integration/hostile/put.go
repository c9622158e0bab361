package hostile

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// putMetrics is over how many metrics puts are spread, putWriters over how many
// series of each.
const (
	putMetrics = 5
	putWriters = 100
)

// points are n new ones, of one series: no other request puts them.
func (d *drawing) points(n int) (out []Point) {
	p := Point{
		Metric: fmt.Sprintf("hostile.put%d", d.number%putMetrics),
		Writer: strconv.Itoa(d.number / putMetrics % putWriters),
	}
	// The requests of one series have stretches of time one behind the other.
	p.Time = Era + int64(d.number/(putMetrics*putWriters))*mostPoints
	for range n {
		p.Value = int64(d.r.IntN(1 << 30))
		out = append(out, p)
		p.Time++
	}
	return out
}

// mostPoints is more than one put has.
const mostPoints = 200_000

// put is one that is taken, however it is written.
func (d *drawing) put() Request {
	points := d.points(pick(d, []int{1, 1, 1, 10, 100, 1000, 10_000}))
	spell := pick(d, spellings)
	body := spell(d, points)
	m := message{method: "POST", path: "/api/put", body: body}
	var p parameters
	p.flag(d.one(4), "summary")
	p.flag(d.one(4), "details")
	p.flag(d.one(4), "sync")
	m.path = p.on(m.path)
	if d.one(3) {
		m.set("Content-Type", pick(d, []string{
			"application/json", "text/plain", "application/x-www-form-urlencoded", strings.Repeat("x", 3000),
		}))
	}
	switch d.r.IntN(6) {
	case 0:
		m.set("Content-Encoding", "gzip")
		m.body = squeezed(body, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	case 1:
		m.set("Content-Encoding", "deflate")
		m.body = squeezed(body, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
	}
	q := m.request()
	q.Points = points
	return q
}

func squeezed(b []byte, with func(io.Writer) io.WriteCloser) []byte {
	var out bytes.Buffer
	w := with(&out)
	_, _ = w.Write(b) // to memory
	_ = w.Close()
	return out.Bytes()
}

// bomb is 96 MiB of blanks in some 90 KB.
var bomb = sync.OnceValue(func() []byte {
	return squeezed(bytes.Repeat([]byte(" "), 96<<20), func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
})

// spellings write points in ways that mean the same.
var spellings = []func(d *drawing, points []Point) []byte{
	func(_ *drawing, points []Point) []byte {
		return list(points, `{"metric":"%s","timestamp":%d,"value":%d,"tags":{"writer":"%s"}}`)
	},
	func(_ *drawing, points []Point) []byte {
		return list(points, `{"metric":"%s","timestamp":"%d","value":"%d","tags":{"writer":"%s"}}`)
	},
	func(_ *drawing, points []Point) []byte {
		return list(points,
			`{"value":0,"tags":{"a":"b"},"m\u0065tric":"%s","timestamp":%d,"value":%d,"tags":{"writer":"%s"}}`)
	},
	func(_ *drawing, points []Point) []byte {
		return list(points,
			`{"other":[{"a":[1,2,{"b":null}]}],"metric":"%s","timestamp":%d.0,"value":%d,"tags":{"wr\u0069ter":"%s"}}`)
	},
	func(d *drawing, points []Point) []byte { // blanks inside what series are known by
		blank := strings.Repeat(pick(d, []string{" ", "\n", "\t \r\n"}), d.size(2<<20)/max(1, len(points)))
		return list(points, `{"metric":"%s","timestamp":%d,"value":%d,"tags":{`+blank+`"writer":`+blank+`"%s"}}`)
	},
	func(d *drawing, points []Point) []byte {
		pad := strings.Repeat(" ", d.size(4<<20))
		return []byte(
			pad + string(list(points, `{"metric":"%s","timestamp":%d,"value":%d,"tags":{"writer":"%s"}}`)) + pad,
		)
	},
}

// list is the points as a JSON list, each in a form for its metric, time, value
// and writer.
func list(points []Point, form string) []byte {
	b := []byte("[")
	for i, p := range points {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, form, p.Metric, p.Time, p.Value, p.Writer)
	}
	return append(b, ']')
}

// malformedPut is a put from which nothing is taken, or nobody knows what.
func (d *drawing) malformedPut() Request {
	m := message{method: "POST", path: "/api/put?details"}
	// Its points go where nobody looks for them.
	point := func(metric, at, value, tags string) string {
		return fmt.Sprintf(`{"metric":%s,"timestamp":%s,"value":%s,"tags":%s}`, metric, at, value, tags)
	}
	n := d.size(1 << 20)
	good := point(`"hostile.bad"`, strconv.Itoa(Era), "1", `{"a":"b"}`)
	long := `"` + strings.Repeat("n", n) + `"`
	switch d.r.IntN(12) {
	case 0:
		m.body = []byte(point(long, "1", "1", `{"a":"b"}`))
	case 1:
		m.body = []byte(point(`"hostile.bad"`, "1", "1", `{"a":`+long+`}`))
	case 2:
		m.body = []byte(point(`"hostile.bad"`, strings.Repeat("9", n), strings.Repeat("1", n), `{"a":"b"}`))
	case 3:
		var tags []string
		for i := range n / 16 {
			tags = append(tags, fmt.Sprintf(`"k%d":"v"`, i))
		}
		m.body = []byte(point(`"hostile.bad"`, "1", "1", "{"+strings.Join(tags, ",")+"}"))
	case 4:
		m.body = []byte("[" + strings.Repeat(good+",", n/len(good)) + "{}]")
	case 5: // with details, the error of each {} is longer than the {}
		m.body = []byte("[" + strings.Repeat("{},", 120_000) + "{}]")
	case 6:
		m.body = []byte(strings.Repeat("[", n))
	case 7:
		m.body = []byte(good[:d.r.IntN(len(good))])
	case 8: // a bomb: a thousand times as large as it comes
		m.set("Content-Encoding", "gzip")
		m.body = bomb()
	case 9: // cut short
		m.set("Content-Encoding", "gzip")
		b := squeezed(bytes.Repeat([]byte(good), n/len(good)+1), func(w io.Writer) io.WriteCloser {
			return gzip.NewWriter(w)
		})
		m.body = b[:d.r.IntN(len(b))]
	case 10: // what no server takes, and a stream of another form than the header says
		m.set("Content-Encoding", pick(d, []string{"br", "gzip, gzip", "gzip"}))
		m.body = squeezed([]byte(good), func(w io.Writer) io.WriteCloser {
			f, _ := flate.NewWriter(w, 1) // a level that exists
			return f
		})
	default:
		m.body = []byte(point(`"hostile.bad"`, "-1",
			pick(d, []string{`"NaN"`, "1e999", `""`, "null", "{}", "9223372036854775808"}), `{}`))
	}
	q := m.request()
	if d.one(4) {
		q.Manner = Stops
	}
	return q
}
