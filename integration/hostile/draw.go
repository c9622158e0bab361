package hostile

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"
)

// kinds are what requests are about, and how many of a hundred.
var kinds = []struct {
	name  string
	share int
	draw  func(*drawing) Request
}{
	{"query", 24, (*drawing).query},
	{"tree", 2, (*drawing).tree},
	{"expression", 6, (*drawing).expression},
	{"picture", 6, (*drawing).picture},
	{"large query", 10, (*drawing).largeQuery},
	{"absurd query", 8, (*drawing).absurdQuery},
	{"malformed query", 4, (*drawing).malformedQuery},
	{"put", 10, (*drawing).put},
	{"malformed put", 5, (*drawing).malformedPut},
	{"telnet", 5, (*drawing).lines},
	{"histogram", 3, (*drawing).histogram},
	{"live", 7, (*drawing).live},
	{"metadata", 7, (*drawing).metadata},
	{"rollup", 3, (*drawing).rollup},
}

// drawing is one request under construction.
type drawing struct {
	r      *rand.Rand
	world  *World
	number int
}

// Draw is request n of a seed against servers that hold a world's rows.
func Draw(seed uint64, n int, w *World) Request {
	d := &drawing{r: rand.New(rand.NewPCG(seed, uint64(n))), world: w, number: n}
	at := d.r.IntN(100)
	for _, k := range kinds {
		if at -= k.share; at >= 0 {
			continue
		}
		q := k.draw(d)
		q.Number, q.Kind = n, k.name
		d.behave(&q)
		return q
	}
	panic("the shares are less than a hundred")
}

// one is true with a chance of one in n.
func (d *drawing) one(n int) bool { return d.r.IntN(n) == 0 }

func pick[T any](d *drawing, list []T) T { return list[d.r.IntN(len(list))] }

// behave chooses how the client behaves, where the request has not.
func (d *drawing) behave(q *Request) {
	if q.Manner == "" {
		q.Manner = Whole
		if d.one(8) {
			q.Manner = pick(d, []Manner{HalfClosed, Slow, Stops, Leaves, Unread})
		}
	}
	q.Stay = time.Duration(50+d.r.IntN(700)) * time.Millisecond
	if d.one(25) { // longer than the 5 s that a gateway waits for a request's header
		q.Stay = 7 * time.Second
	}
	if !q.Judged() {
		q.Points = nil // nobody knows whether they were taken
	}
}

// message is an HTTP request.
type message struct {
	method, path string
	header       [][2]string
	body         []byte
}

func (m *message) set(name, value string) { m.header = append(m.header, [2]string{name, value}) }

// wire is the request as it is sent. The connection is for one request.
func (m *message) wire() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n", m.method, m.path)
	for _, h := range m.header {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	if m.method != "GET" || len(m.body) > 0 {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(m.body))
	}
	b.WriteString("\r\n")
	return append([]byte(b.String()), m.body...)
}

func (m *message) request() Request { return Request{Door: HTTP, Wire: m.wire()} }

// parameters are those of a request line, in order.
type parameters []string

func (p *parameters) add(name, value string) {
	*p = append(*p, url.QueryEscape(name)+"="+url.QueryEscape(value))
}

// flag adds a parameter whose presence counts.
func (p *parameters) flag(on bool, name string) {
	if on {
		*p = append(*p, name)
	}
}

func (p parameters) on(path string) string {
	if len(p) == 0 {
		return path
	}
	return path + "?" + strings.Join(p, "&")
}

// size is a number from 1 to most, large ones seldom.
func (d *drawing) size(most int) int {
	n := 1
	for n < most && !d.one(4) {
		n *= 4
	}
	return min(n, most)
}
