package telnet

import (
	"bytes"

	"downpour/gateway/write"
)

// maxAhead is how many puts prepareNames looks at: enough to share the steps by which
// names get UIDs, and little work that is done twice.
const maxAhead = 512

// prepareNames gives UIDs to the new names of the put at hand, and of the puts behind it
// that have arrived already: a client that sends one new series usually sends many. p is
// the put at hand. What is left out gets its UIDs, or its error, when its own turn comes.
func (c *conn) prepareNames(p *write.Point) {
	if c.prepared > 0 {
		return
	}
	names := c.cfg.Writer.NewNames()
	names.Add(p.Metric, p.Tags)
	if names.Empty() {
		return // a new series of old names
	}

	held, _ := c.in.Peek(c.in.Buffered()) // does not move what the put at hand refers to
	for c.prepared < maxAhead {
		line, rest, whole := bytes.Cut(held, []byte("\n"))
		args, isPut := bytes.CutPrefix(line, []byte("put "))
		// Another command may change what the connection is allowed.
		if !whole || !isPut {
			break
		}
		held = rest
		c.prepared++

		args, err := trimLine(args)
		if err != nil {
			continue
		}
		c.addNames(names, args)
	}
	names.Assign(c.ctx)
}

// addNames adds the names of a later put. It adds none of one that will be refused, which
// gives no name a UID.
func (c *conn) addNames(names *write.NewNames, args []byte) {
	p := &c.ahead
	metric, tags, err := parseNumbers(p, args)
	if err == nil {
		err = c.parseNames(p, metric, tags)
	}
	if err == nil {
		names.Add(p.Metric, p.Tags)
	}
}
