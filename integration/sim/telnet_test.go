package sim

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
)

// putLines puts points by telnet. The protocol acknowledges nothing, but the answer to version
// comes only when each line before it is stored or has had its error: so that is status 200. What
// the storage refuses is status 503, and what is wrong with a line 400.
func (c *clients) putLines(gateway int, values map[point]int64) answer {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := c.host.DialContext(ctx, "tcp", gatewayAddress(gateway))
	if err != nil {
		return answer{err: err}
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)

	var lines strings.Builder
	if c.w.token != "" {
		fmt.Fprintf(&lines, "auth %s\n", c.w.token)
	}
	for p, value := range values {
		fmt.Fprintf(&lines, "put %s %d %d host=%s\n", p.metric, p.at, value, p.host)
	}
	lines.WriteString("version\n")
	// The connection has no buffer, and the gateway may answer before it has read all.
	go io.WriteString(conn, lines.String())

	line, err := bufio.NewReader(conn).ReadString('\n')
	status := 200
	switch {
	case strings.HasPrefix(line, "put: HBase error: "):
		status = 503
	case strings.HasPrefix(line, "put: "):
		status = 400
	}
	return answer{status, []byte(line), err}
}
