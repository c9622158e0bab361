package hostile

import (
	"fmt"
	"strings"
)

// lines is a telnet connection: puts, with nonsense between.
func (d *drawing) lines() Request {
	q := Request{Door: Telnet}
	var b strings.Builder
	switch d.r.IntN(6) {
	case 0: // errors without end, which a client need not read
		word := strings.Repeat("x", 1+d.r.IntN(900))
		for range d.size(32_000) {
			b.WriteString("put " + word + "\n")
		}
		q.Manner = pick(d, []Manner{Whole, Unread, Unread, Leaves})
	case 1: // a line without end
		b.WriteString("put " + strings.Repeat("y", d.size(16<<20)))
		q.Manner = pick(d, []Manner{HalfClosed, Stops, Leaves})
	case 2:
		for range d.size(2000) {
			b.WriteString(pick(d, []string{
				"put", "put a 1 1", "stats\n", "help", "version", "auth x", "\x00\xFF\x01", "put \x00 1 1 a=b",
				"put a 1 NaN a=b", "put a 99999999999999999999 1 a=b", "nonsense " + strings.Repeat("z", 500),
			}) + "\n")
		}
	default:
		q.Points = d.points(pick(d, []int{1, 10, 100, 5000}))
		for _, p := range q.Points {
			fmt.Fprintf(&b, "put %s %d %d writer=%s\n", p.Metric, p.Time, p.Value, p.Writer)
		}
		q.Manner = pick(d, []Manner{HalfClosed, HalfClosed, HalfClosed, Stops, Slow})
	}
	q.Wire = []byte(b.String())
	return q
}
