package telnet

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"time"
)

var errTooLong = fmt.Errorf("line of more than %d bytes", MaxLine)

// readLine returns the next line without its end. A longer line than MaxLine is
// read away without being kept. The line is valid until the next call.
func (c *conn) readLine() ([]byte, error) {
	held, _ := c.in.Peek(c.in.Buffered())
	if end := bytes.IndexByte(held, '\n'); end >= 0 {
		c.in.Discard(end + 1) // of what is buffered
		return trimLine(held[:end])
	}
	if err := c.extend(held); err != nil {
		return nil, err
	}
	c.widen(held)
	line, err := c.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, c.discardLine(len(line))
	case err != nil:
		c.unfinished(line, len(line))
		return nil, err
	}
	return trimLine(line[:len(line)-1])
}

// A connection begins with a small buffer, so that thousands that are idle take
// little, and gets a large one when it has filled the small one at once.
const (
	smallBuffer = 4 << 10
	largeBuffer = 64 << 10
)

// source is where lines come from: a connection, behind the bytes that a smaller
// buffer held.
type source struct {
	nc     net.Conn
	held   []byte
	filled bool // the last read took all that there was room for
}

// Read gives what was held, then what the connection has.
func (s *source) Read(b []byte) (n int, err error) {
	if len(s.held) > 0 {
		n = copy(b, s.held)
		s.held = s.held[n:]
		return n, nil
	}
	n, err = s.nc.Read(b)
	s.filled = n == len(b)
	return n, err
}

// begin makes the first buffer.
func (c *conn) begin() {
	c.source.nc = c.nc
	c.in = bufio.NewReaderSize(&c.source, smallBuffer)
}

// widen makes a larger buffer for a client that sends much; held is what the
// present one still has. Lines that are held are not valid afterwards. A client
// goes on with the small one where memory is short.
func (c *conn) widen(held []byte) {
	if !c.source.filled || c.in.Size() == largeBuffer || !c.account.Try(largeBuffer) {
		return
	}
	c.source.held = bytes.Clone(held)
	c.in = bufio.NewReaderSize(&c.source, largeBuffer)
}

// trimLine cuts off what ends a line beside its last byte.
func trimLine(line []byte) ([]byte, error) {
	for len(line) > 0 && (line[len(line)-1] == '\r' || line[len(line)-1] == '\n') {
		line = line[:len(line)-1]
	}
	if len(line) > MaxLine {
		return nil, errTooLong
	}
	return line, nil
}

// extend gives the next line, whose beginning is held, its time to arrive.
// Lines, not bytes, keep a connection: neither does a byte now and then hold it
// for ever, nor is a busy one cut because each read ends within a line.
func (c *conn) extend(held []byte) error {
	if err := c.catchUp(len(held) > 0); err != nil {
		return err
	}
	if err := c.nc.SetReadDeadline(time.Now().Add(c.cfg.Idle)); err != nil {
		return err
	}
	if err := c.ctx.Err(); err != nil { // after the deadline, which Serve sets when ctx ends
		c.unfinished(held, len(held))
		return err
	}
	return nil
}

// unfinished answers for a line that ends with the connection. What the client
// meant to send is unknown: a line cut short may look like a whole one with
// another value.
func (c *conn) unfinished(line []byte, length int) {
	if len(bytes.TrimSpace(line)) != 0 {
		c.refuse(fmt.Sprintf("error: line without end, %d bytes, not executed", length))
	}
}

// discardLine reads to the end of a line of which length bytes were read.
func (c *conn) discardLine(length int) error {
	for {
		rest, err := c.in.ReadSlice('\n')
		length += len(rest)
		if err == nil {
			return errTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			c.unfinished([]byte("x"), length)
			return err
		}
	}
}

// latin1 makes a string of ISO-8859-1 bytes.
func latin1(b []byte) string {
	for _, x := range b {
		if x >= 0x80 {
			runes := make([]rune, len(b))
			for i, y := range b {
				runes[i] = rune(y)
			}
			return string(runes)
		}
	}
	return string(b)
}

// splitWords cuts a line at single blanks: two blanks enclose an empty word.
// Source: Tags.splitString.
func splitWords(dst [][]byte, line []byte) [][]byte {
	for {
		i := bytes.IndexByte(line, ' ')
		if i < 0 {
			return append(dst, line)
		}
		dst = append(dst, line[:i])
		line = line[i+1:]
	}
}

// handle executes one line.
func (c *conn) handle(line []byte) error {
	if args, ok := bytes.CutPrefix(line, []byte("put ")); ok {
		c.put(args)
		return nil
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	c.words = splitWords(c.words[:0], line)
	command := string(c.words[0])
	switch {
	case command == "auth":
		return c.auth()
	case command == "put":
		c.putNothing()
		return nil
	case command == "exit":
		return errExit
	case !c.may(command):
		c.refuse("unauthorized: send 'auth TOKEN' first, with a token whose scope allows " + latin1(c.words[0]))
		return nil
	}
	return c.command()
}

// may tells whether the connection's token allows a command that is no put. The
// acknowledgement by version is for whoever may put, too.
func (c *conn) may(command string) bool {
	switch command {
	case "version", "help":
		return c.rights != Rights{}
	case "dropcaches":
		return c.rights.Admin
	}
	return c.rights.Read
}

// auth takes a token. A gateway without tokens takes any, in silence, so that
// one client configuration serves both.
func (c *conn) auth() error {
	if c.cfg.Authorize == nil {
		return nil
	}
	if len(c.words) != 2 {
		c.refuse("auth: want 'auth TOKEN'")
		return errExit
	}
	rights, ok := c.cfg.Authorize(string(c.words[1]))
	if !ok {
		c.refuse("auth: unknown token")
		return errExit
	}
	c.rights = rights
	return nil
}

// command answers everything but puts, once the lines before it are settled.
func (c *conn) command() error {
	c.awaitCommits(true)
	c.tell()
	words := make([]string, len(c.words))
	for i, w := range c.words {
		words[i] = latin1(w)
	}
	answer, ok := c.cfg.Commands(c.ctx, words)
	if !ok {
		c.refuse("unknown command: " + words[0] + ".  Try `help'.")
		return nil
	}
	c.out.WriteString(answer)
	return nil
}

// refuse writes one error line, in ISO-8859-1 as lines come in.
func (c *conn) refuse(text string) {
	for _, r := range text {
		if r < 0x20 || r == 0x7F || r > 0xFF {
			r = '?'
		}
		c.out.WriteByte(byte(r))
	}
	c.out.WriteByte('\n')
}
