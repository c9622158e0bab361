package scenario

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"time"

	"downpour/bench/workload"
)

// One host over all time: of a metric whose hours mostly have no row, and of one whose hours have
// very many. A query says start=0, and most of its hours lie before the data.
const (
	sparseHosts, sparseHours, sparseEach = 3, 455, 19 // a row of each host every so many hours
	denseHosts, denseHours               = 200, 1000
)

// sparseStart is when both metrics begin.
const sparseStart = 1_577_836_800

// hostSince asks for one host of a metric from a time on. Each round asks for another end.
func hostSince(metric string, start int64) func(*stage, int) func(int) []workload.Query {
	end := sparseStart + sparseHours*sparseEach*3600
	return batches(func(_ *stage, i int) []workload.Query {
		return []workload.Query{{Start: start, End: int64(end + 3600*24*365 + i), M: "sum:" + metric + "{host=h1}"}}
	})
}

// fillHosts puts both metrics through our side.
func fillHosts(ctx context.Context, s *stage) error {
	server, err := s.side(ctx, uncached)
	if err != nil {
		return err
	}
	if err := putHosts(ctx, server.Telnet); err != nil {
		return err
	}
	return s.set.at.Compact(ctx)
}

// putHosts puts both metrics by telnet. Its answer to version says that they are stored.
func putHosts(ctx context.Context, address string) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		return err
	}
	w := bufio.NewWriter(c)
	for hour := range sparseHours {
		for host := range sparseHosts {
			fmt.Fprintf(w, "put sparse %d %d host=h%d\n", sparseStart+hour*sparseEach*3600, hour, host)
		}
	}
	for hour := range denseHours {
		for host := range denseHosts {
			fmt.Fprintf(w, "put dense %d %d host=h%d\n", sparseStart+hour*3600, hour, host)
		}
	}
	fmt.Fprint(w, "version\n")
	if err := w.Flush(); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err
	}
	if len(line) < 4 || line[:4] == "put:" {
		return fmt.Errorf("put: %s", line)
	}
	return nil
}
