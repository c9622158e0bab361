package telnet

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"downpour/gateway/admin/audit"
)

var errNoEnd = errors.New("the connection ended before the line did: it was not executed")

// longError is the error of a line of more bytes than are read.
type longError struct {
	begin string // of the line: command and metric
	most  int
}

// Error has the number of the line.
func (e *longError) Error() string {
	return fmt.Sprintf("line of more than %d bytes: %s...", e.most, e.begin)
}

// tooLong returns the error of a line.
func tooLong(line []byte, most int) *longError {
	const shown = 256
	begin := line[:min(len(line), shown)]
	if words := bytes.SplitN(begin, blank, 3); len(words) == 3 {
		begin = begin[:len(words[0])+1+len(words[1])]
	}
	return &longError{latin1(bytes.Clone(begin)), most}
}

// readLine returns the next line without its end; it is valid until the next call.
// A line longer than MaxLine is skipped, and its error is a longError; so is one that is longer
// than the small buffer while there is no memory for the large one.
func (c *conn) readLine() ([]byte, error) {
	held, _ := c.in.Peek(c.in.Buffered())
	if end := bytes.IndexByte(held, '\n'); end >= 0 {
		c.in.Discard(end + 1) // of what is buffered
		return trimLine(held[:end])
	}

	// There is no whole line: before the wait for one, the client gets its answers.
	if err := c.beforeRead(held); err != nil {
		return nil, err
	}
	c.enlargeBuffer(held) // no earlier line is still in use
	line, err := c.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) && c.enlargeBuffer(line) {
		line, err = c.in.ReadSlice('\n')
	}
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, c.discardLine(tooLong(line, min(len(line), MaxLine)), len(line))
	case err != nil:
		c.refuseUnfinished(line, len(line))
		return nil, err
	}
	return trimLine(line[:len(line)-1])
}

// A connection begins with a small buffer, so that thousands of idle ones take
// little memory. It gets a large one when a read has filled the small one.
const (
	smallBuffer = 4 << 10
	largeBuffer = MaxLine + 2 // with \r\n
)

// source is where lines come from: first the bytes that the small buffer still
// held when it was replaced, then the connection.
type source struct {
	nc     net.Conn
	held   []byte
	filled bool // whether the last read of the connection filled its buffer
}

// Read reads the held bytes, then the connection.
func (s *source) Read(b []byte) (n int, err error) {
	if len(s.held) > 0 {
		n = copy(b, s.held)
		s.held = s.held[n:]
		return n, nil
	}
	n, err = s.nc.Read(b)
	s.filled = n == len(b) // a client that sends much, see enlargeBuffer
	return n, err
}

// initBuffer makes the small buffer.
func (c *conn) initBuffer() {
	c.source.nc = c.nc
	c.in = bufio.NewReaderSize(&c.source, smallBuffer)
}

// enlargeBuffer gives a client that sends much the large buffer; held is what the
// small one still holds. Lines of the small one are not valid afterwards. If memory
// is short the small buffer stays. It reports whether the buffer was enlarged.
func (c *conn) enlargeBuffer(held []byte) bool {
	if !c.source.filled || c.in.Size() == largeBuffer || !c.account.Try(largeBuffer) {
		return false
	}
	c.source.held = bytes.Clone(held) //fault:line-lost-between-buffers TestLines_buffers
	c.in = bufio.NewReaderSize(&c.source, largeBuffer)
	return true
}

// trimLine cuts off further line ends, as the \r of a \r\n.
func trimLine(line []byte) ([]byte, error) {
	for len(line) > 0 && (line[len(line)-1] == '\r' || line[len(line)-1] == '\n') {
		line = line[:len(line)-1]
	}
	if len(line) > MaxLine {
		return nil, tooLong(line, MaxLine)
	}
	return line, nil
}

// beforeRead prepares to wait for the rest of a line whose beginning is held, and
// gives it its time to arrive. The deadline is set for each line and not for each
// read: a byte now and then does not keep a connection open for ever.
func (c *conn) beforeRead(held []byte) error {
	if err := c.catchUp(len(held) > 0); err != nil {
		return err
	}
	if err := c.nc.SetReadDeadline(time.Now().Add(c.cfg.Idle)); err != nil {
		return err
	}
	// Checked after the deadline is set, which would overwrite the one that Serve sets
	// when ctx ends.
	if err := c.ctx.Err(); err != nil {
		c.refuseUnfinished(held, len(held))
		return err
	}
	return nil
}

// refuseUnfinished refuses a line that ends with the connection and not with a line
// end. It may have been cut short, and then look like a complete line with another
// value.
func (c *conn) refuseUnfinished(line []byte, length int) {
	if len(bytes.TrimSpace(line)) != 0 {
		c.refuse(fmt.Sprintf("error: line without end, %d bytes, not executed", length))
		if bytes.HasPrefix(line, []byte("put ")) {
			c.logRefused("put", "line without end", errNoEnd, 1, func() string { return latin1(line) })
		}
	}
}

// discardLine skips the rest of a line after length bytes of it were read, and returns its error.
func (c *conn) discardLine(long *longError, length int) error {
	for {
		rest, err := c.in.ReadSlice('\n')
		length += len(rest)
		if err == nil {
			return long
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			c.refuseUnfinished([]byte("x"), length) // the line is not blank: it is too long
			return err
		}
	}
}

// latin1 converts ISO-8859-1 to a string.
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

// splitWords splits a line at each blank: two blanks in a row enclose an empty word.
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
	c.line = line
	// Nearly all lines are puts: they are not split into words first.
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
		c.putWithoutArguments()
		return nil
	case command == "histogram":
		c.histogram()
		return nil
	case command == "rollup":
		c.rollup()
		return nil
	case command == "exit":
		return errExit
	// The commands above check for themselves, or need no token.
	case !c.may(command):
		c.refuse("unauthorized: send 'auth TOKEN' first, with a token whose scope allows " + latin1(c.words[0]))
		return nil
	}
	return c.command()
}

// may reports whether the connection's token allows a command other than put. Any
// token allows version, because it acknowledges puts.
func (c *conn) may(command string) bool {
	switch command {
	case "version", "help":
		return c.rights != Rights{}
	case "dropcaches":
		return c.rights.Admin
	}
	return c.rights.Read
}

// auth checks a token. A gateway without tokens accepts any line without an answer,
// so that clients need no other configuration for it.
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

// command executes a command other than put. It answers only after every earlier line
// is durable or has had its error line: so a client can take the answer to version for
// an acknowledgement.
func (c *conn) command() error {
	c.awaitCommits(everyBatch) //fault:version-before-the-points TestAcknowledgement_waits
	c.flushCounts()            // the answer to stats has them

	audited := string(c.words[0]) == "dropcaches" && c.cfg.Log != nil
	who := []any{"command", "dropcaches", "token", c.rights.Name, "client", c.nc.RemoteAddr()}
	if audited {
		c.cfg.Log.Info(audit.Begun, who...)
	}
	words := make([]string, len(c.words))
	for i, w := range c.words {
		words[i] = latin1(w)
	}
	answer, ok := c.cfg.Commands(c.ctx, words)
	if audited {
		c.cfg.Log.Info(audit.Ended, append(who, "outcome", strings.TrimSpace(answer))...)
	}
	if !ok {
		c.refuse("unknown command: " + words[0] + ".  Try `help'.")
		return nil
	}
	c.out.WriteString(answer)
	return nil
}

// refuse writes an error line, in ISO-8859-1 as the lines of clients.
func (c *conn) refuse(text string) {
	for _, r := range text {
		// A line break in a quoted name would make two answers of one.
		if r < 0x20 || r == 0x7F || r > 0xFF {
			r = '?'
		}
		c.out.WriteByte(byte(r))
	}
	c.out.WriteByte('\n')
}
