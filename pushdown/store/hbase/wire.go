package hbase

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// watch looks at what a server sends before gohbase reads it: when it came, and
// whether gohbase can read it, for it ends the process over a header without
// what it expects.
func watch(nc net.Conn, p *pulse) net.Conn {
	w := wire{pulse: p}
	if tcp, ok := nc.(*net.TCPConn); ok {
		return &tcpWire{tcp, w} // which still writes a call's parts at once
	}
	return &otherWire{nc, w}
}

type tcpWire struct {
	*net.TCPConn
	wire wire
}

// Read reads what comes, if it is well formed.
func (c *tcpWire) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	return c.wire.check(b, n, err)
}

type otherWire struct {
	net.Conn
	wire wire
}

// Read reads what comes, if it is well formed.
func (c *otherWire) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return c.wire.check(b, n, err)
}

// errFrame is a reply that no server sends.
var errFrame = errors.New("malformed reply")

const (
	maxFrame  = 256 << 20 // of a reply; it is taken for a length before it is read
	maxHeader = 1 << 20   // of its header, which holds an exception's stack
)

// wire follows the frames of one connection:
//
//	0000002c        length of all that follows: 44
//	04              length of the header: 4
//	08 07 1a 02 …   header: call 7, cell block meta
//	…               the message behind its length, then the cell block
type wire struct {
	pulse *pulse
	head  []byte // of the frame, from its length on, until the header is whole
	left  int    // bytes of the frame still to come, once it is
}

// check looks at n bytes that have been read into b.
func (w *wire) check(b []byte, n int, err error) (int, error) {
	if n <= 0 {
		return n, err
	}
	w.pulse.beat()
	if bad := w.follow(b[:n]); bad != nil {
		return 0, bad
	}
	return n, err
}

// follow goes through the next bytes of the stream.
func (w *wire) follow(b []byte) error {
	for len(b) > 0 {
		if w.left > 0 {
			n := min(w.left, len(b))
			b, w.left = b[n:], w.left-n
			continue
		}
		// The head is collected by what it says of itself. gohbase makes room for
		// a frame as soon as it has its length.
		n := min(w.missing(), len(b))
		w.head, b = append(w.head, b[:n]...), b[n:]
		if err := w.tooLong(); err != nil {
			return err
		}
		if w.missing() > 0 {
			continue
		}
		size := int(binary.BigEndian.Uint32(w.head))
		if err := checkHeader(w.head[4:], size); err != nil {
			return err
		}
		w.left, w.head = size-(len(w.head)-4), w.head[:0]
	}
	return nil
}

// missing is how many bytes the head lacks, as far as it is known.
func (w *wire) missing() int {
	if len(w.head) < 4 {
		return 4 - len(w.head)
	}
	length, n := protowire.ConsumeVarint(w.head[4:])
	if n < 0 {
		return 1
	}
	return 4 + n + int(min(length, maxHeader)) - len(w.head)
}

// tooLong refuses lengths as soon as they are known.
func (w *wire) tooLong() error {
	if len(w.head) < 4 {
		return nil
	}
	size := binary.BigEndian.Uint32(w.head)
	length, n := protowire.ConsumeVarint(w.head[4:])
	switch {
	case size == 0 || size > maxFrame:
		return fmt.Errorf("%w: got %d bytes, want 1 to %d", errFrame, size, maxFrame)
	case n < 0 && len(w.head) < 4+int(min(size, 5)): // the length's own bytes
		return nil
	case n < 0 || length > maxHeader || uint64(n)+length > uint64(size):
		return fmt.Errorf("%w: got a header of %d bytes in %d, want at most %d", errFrame, length, size, maxHeader)
	}
	return nil
}

// checkHeader demands of a header, which stands behind its length in head, what
// gohbase takes for granted: an exception has class and stack, and the cell
// block lies within the frame.
func checkHeader(head []byte, size int) error {
	header, n := protowire.ConsumeBytes(head)
	if n < 0 || n > size {
		return fmt.Errorf("%w: header: %w", errFrame, protowire.ParseError(n))
	}
	var m pb.ResponseHeader
	if err := proto.Unmarshal(header, &m); err != nil {
		return fmt.Errorf("%w: header: %w", errFrame, err)
	}
	if e := m.Exception; e != nil && (e.ExceptionClassName == nil || e.StackTrace == nil) {
		return fmt.Errorf("%w: an exception without class or stack", errFrame)
	}
	if cells := m.GetCellBlockMeta().GetLength(); int64(cells) > int64(size-n) {
		return fmt.Errorf("%w: a cell block of %d bytes in %d", errFrame, cells, size-n)
	}
	return nil
}
