package live

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/workload"
)

// history is a data set that goes on: whole hours before this one, put as fast
// as the server takes them, and a tenth of the series every second from there on
// (with a point of each series every ten seconds).
type history struct {
	data  workload.Devops // one metric
	conn  net.Conn
	lines *bufio.Reader // what the server says
	next  int64         // second that is still to be put
	heads [][]byte      // by series: what stands before the time
	tails [][]byte      // and behind the value
}

// newHistory puts the data set, with its hours moved to end with the last full
// one, and the points since.
func newHistory(ctx context.Context, server *peer.Server, d workload.Devops, p *progress.Progress) (*history, error) {
	d.MetricCount = 1
	now := time.Now().Unix()
	d.Start = now - now%3600 - int64(d.Hours)*3600
	c := bench.SendConfig{Server: server, Data: d, Format: workload.Telnet, Progress: p}
	if _, err := c.Send(ctx, c.Stream()); err != nil {
		return nil, err
	}

	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", server.Telnet)
	if err != nil {
		return nil, err
	}
	h := &history{data: d, conn: conn, lines: bufio.NewReader(conn), next: d.End()}
	for i := range d.Hosts {
		h.heads = append(h.heads, []byte("put "+d.Metric()+" "))
		var tail []byte
		for _, t := range d.Host(i) {
			tail = fmt.Appendf(tail, " %s=%s", t.K, t.V)
		}
		h.tails = append(h.tails, append(tail, '\n'))
	}

	if err := h.put(time.Now()); err != nil {
		return nil, err
	}
	return h, h.durable(ctx)
}

// close ends the connection of the puts; nil has none.
func (h *history) close() {
	if h != nil {
		h.conn.Close()
	}
}

// perSecond is how many points a second brings.
func (h *history) perSecond() int64 { return int64(h.data.Hosts / h.data.Step) }

// put writes the points of all seconds up to a moment that were not put yet, in one piece
// for each second. Values are integers, as Answers needs them.
func (h *history) put(until time.Time) error {
	for ; h.next <= until.Unix(); h.next++ {
		var text bytes.Buffer
		// In each second one series in Step has a point, so each has one every Step seconds.
		for i := int(h.next) % h.data.Step; i < len(h.heads); i += h.data.Step {
			text.Write(h.heads[i])
			fmt.Fprintf(&text, "%d %d", h.next, h.next%100)
			text.Write(h.tails[i])
		}
		if _, err := h.conn.Write(text.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// run puts each second when it has begun, for so many seconds.
func (h *history) run(ctx context.Context, seconds int) error {
	begin := time.Now().Truncate(time.Second)
	// A second that has just begun counts as a whole one.
	if time.Since(begin) > 100*time.Millisecond {
		begin = begin.Add(time.Second)
	}
	for i := range seconds {
		if !bench.Until(ctx, begin.Add(time.Duration(i)*time.Second)) {
			return ctx.Err()
		}
		if err := h.put(time.Now()); err != nil {
			return err
		}
	}

	if !bench.Until(ctx, begin.Add(time.Duration(seconds)*time.Second)) {
		return ctx.Err()
	}
	return nil
}

// durable waits until all points that were put are durable: the server answers lines in
// turn, so the answer to version comes after them. A complaint about a point comes before it.
func (h *history) durable(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { h.conn.SetReadDeadline(time.Now()) })()
	if err := h.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := h.conn.Write([]byte("version\n")); err != nil {
		return err
	}

	first, err := h.lines.ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(first, "downpour ") {
		return fmt.Errorf("put by telnet: the server says %q", strings.TrimSpace(first))
	}

	_, err = h.lines.ReadString('\n') // the second line of the version
	return err
}
