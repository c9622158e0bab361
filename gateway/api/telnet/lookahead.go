package telnet

import (
	"bytes"
	"iter"

	"downpour/gateway/write"
)

// prepareNames gives UIDs to the new names of the current put and of later ones that have already
// arrived, see Writer.PrepareNames. p is the current put.
func (c *conn) prepareNames(p *write.Point) {
	if c.prepared == 0 {
		c.prepared = c.cfg.Writer.PrepareNames(c.ctx, p, c.putsAhead())
	}
}

// putsAhead yields the points of the puts that have arrived after the current line, nil for one
// that will be refused. It ends at any other line. A point is valid until the next one.
func (c *conn) putsAhead() iter.Seq[*write.Point] {
	return func(yield func(*write.Point) bool) {
		held, _ := c.in.Peek(c.in.Buffered()) // does not move the bytes of the current line
		for {
			line, rest, whole := bytes.Cut(held, []byte("\n"))
			args, isPut := bytes.CutPrefix(line, []byte("put "))
			// Another command may change what the connection is allowed.
			if !whole || !isPut || !yield(c.parseAhead(args)) {
				return
			}
			held = rest
		}
	}
}

// parseAhead parses the arguments of a later put, nil if it will be refused.
func (c *conn) parseAhead(args []byte) *write.Point {
	args, err := trimLine(args)
	if err != nil {
		return nil
	}
	p := &c.ahead
	metric, tags, err := parseNumbers(p, args)
	if err != nil || c.parseNames(p, metric, tags) != nil {
		return nil
	}
	return p
}
