package calls

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"downpour/pushdown/store/hbase/sasl"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// checked returns nc as a connection for gohbase. Its Read checks everything a server sends: it notes in l
// when bytes come, and returns an error for a frame that gohbase cannot read, because over an incomplete header,
// for example, gohbase panics, which ends the process. Its Write leaves out gohbase's preamble if secured is
// set: Kerberos's handshake had another.
func checked(nc net.Conn, l *liveness, secured bool) net.Conn {
	_, encrypted := nc.(*encryptedConn)
	checker := frameChecker{liveness: l, plain: !encrypted && !secured}
	cutter := preambleCutter{done: !secured}
	// The wrapper embeds *net.TCPConn, not net.Conn: gohbase uses its vectored
	// writes, which keep the parts of a call together.
	if tcp, ok := nc.(*net.TCPConn); ok {
		return &checkedTCPConn{tcp, checker, cutter}
	}
	return &checkedConn{nc, checker, cutter}
}

type checkedTCPConn struct {
	*net.TCPConn
	checker frameChecker
	cutter  preambleCutter
}

// Write sends bytes. Vectored writes, which no preamble is in, do not come here.
func (c *checkedTCPConn) Write(b []byte) (int, error) { return c.cutter.write(c.TCPConn, b) }

// Read reads bytes and checks them.
func (c *checkedTCPConn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	return c.checker.checkRead(b, n, err)
}

type checkedConn struct {
	net.Conn
	checker frameChecker
	cutter  preambleCutter
}

// Write sends bytes.
func (c *checkedConn) Write(b []byte) (int, error) { return c.cutter.write(c.Conn, b) }

// Read reads bytes and checks them.
func (c *checkedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return c.checker.checkRead(b, n, err)
}

// preambleCutter leaves out the preamble that gohbase begins a connection with, and then is done.
type preambleCutter struct{ done bool }

// write writes b to w, without the preamble if b is the first of the connection. It counts the preamble
// as written.
func (p *preambleCutter) write(w io.Writer, b []byte) (int, error) {
	if p.done {
		return w.Write(b)
	}

	// gohbase writes the preamble and the header after it in one call.
	rest, ok := bytes.CutPrefix(b, []byte(sasl.SimplePreamble))
	if !ok {
		return 0, fmt.Errorf("the connection's first bytes: got %x, want the preamble %x", b[:min(6, len(b))],
			sasl.SimplePreamble)
	}
	p.done = true
	n, err := w.Write(rest)
	return n + len(b) - len(rest), err
}

const (
	maxFrame  = 256 << 20 // bytes of a reply; gohbase allocates them as soon as it knows the length
	maxHeader = 1 << 20   // bytes of its header, which holds an exception's stack trace
)

// frameChecker checks the frames of one connection's replies:
//
//	0000002c        length of all that follows: 44
//	04              length of the header, a varint: 4
//	08 07 1a 02 …   header: call 7, cell block meta
//	…               the message after its length, then the cell block
type frameChecker struct {
	liveness *liveness
	plain    bool // neither TLS nor Kerberos is spoken
	anyCame  bool // at least one byte has been received

	// head holds the start of a frame, from its length on, until the header is
	// complete and has been checked. rest then counts the bytes of the frame that
	// are still to come.
	head []byte
	rest int
}

// checkRead returns the result of a Read, n bytes in b and err, if it is good, else 0 and what is wrong
// with it. A fault of the server or the configuration is also noted in liveness, because calls get no more than
// that the connection is closed.
func (f *frameChecker) checkRead(b []byte, n int, err error) (int, error) {
	firstOfPlain := f.plain && !f.anyCame
	switch {
	case n > 0:
		f.anyCame = true
		f.liveness.received()
		bad := f.checkFrames(b[:n])
		if firstOfPlain && speaksTLS(b[:n]) { // as a frame it is bad, too; this says why
			bad = errWantsTLS
		}
		if bad != nil {
			n, err = 0, bad
		}
	case firstOfPlain && endsUnanswered(err):
		err = fmt.Errorf("%w: %w", errUnanswered, err)
	}

	for _, fault := range []error{errFrame, errRefused, errTLS, errUnanswered, sasl.ErrToken} {
		if errors.Is(err, fault) {
			f.liveness.fault.CompareAndSwap(nil, &err)
		}
	}
	return n, err
}

// endsUnanswered reports whether an error of a connection's first Read means that the server has
// closed it.
func endsUnanswered(err error) bool {
	return err == io.EOF || errors.Is(err, syscall.ECONNRESET)
}

// checkFrames checks the next bytes of the stream, which may end or begin within a
// frame. After an error the stream is of no use.
func (f *frameChecker) checkFrames(b []byte) error {
	for len(b) > 0 {
		// The message and the cell block are not checked.
		n := min(f.rest, len(b))
		b, f.rest = b[n:], f.rest-n

		// Collect the head. Each length is checked as soon as it is complete,
		// because gohbase allocates a frame once it knows its length.
		n = min(f.missingHead(), len(b))
		f.head, b = append(f.head, b[:n]...), b[n:]
		if err := f.checkLengths(); err != nil {
			return err
		}
		if f.missingHead() > 0 {
			continue
		}

		size := int(binary.BigEndian.Uint32(f.head))
		if err := checkHeader(f.head[4:], size); err != nil {
			return err
		}
		f.rest, f.head = size-(len(f.head)-4), f.head[:0]
	}
	return nil
}

// missingHead returns how many more bytes the head has at least, as known from the bytes so far; 0 if
// it is complete.
func (f *frameChecker) missingHead() int {
	if len(f.head) < 4 {
		return 4 - len(f.head)
	}
	length, n := protowire.ConsumeVarint(f.head[4:])
	if n < 0 {
		return 1 // of the varint
	}
	// checkLengths refuses a longer header; here its length must not overflow.
	return 4 + n + int(min(length, maxHeader)) - len(f.head)
}

// checkLengths returns an error if a length in the head is too large. It accepts a
// head whose lengths are incomplete.
func (f *frameChecker) checkLengths() error {
	if len(f.head) < 4 {
		return nil
	}

	size := binary.BigEndian.Uint32(f.head)
	length, n := protowire.ConsumeVarint(f.head[4:])
	switch {
	case size > maxFrame:
		return fmt.Errorf("%w: got %d bytes, want at most %d", errFrame, size, maxFrame)
	case n < 0 && len(f.head) < 4+int(min(size, 5)):
		// The header's length is a varint of at most 5 bytes, still incomplete.
		return nil
	case n < 0 || length > maxHeader || uint64(n)+length > uint64(size):
		return fmt.Errorf("%w: got a header of %d bytes in %d, want at most %d", errFrame, length, size, maxHeader)
	}
	return nil
}

// checkHeader returns an error if a frame's header, which follows its length in head,
// lacks what gohbase relies on: an exception has class and stack, and the cell block is
// within the frame of size bytes.
func checkHeader(head []byte, size int) error {
	header, n := protowire.ConsumeBytes(head)
	if n < 0 || n > size {
		return fmt.Errorf("%w: cannot parse its header: %w", errFrame, protowire.ParseError(n))
	}
	var m pb.ResponseHeader
	if err := proto.Unmarshal(header, &m); err != nil {
		return fmt.Errorf("%w: cannot parse its header: %w", errFrame, err)
	}

	if err := refusalIn(&m); err != nil {
		return err
	}
	if e := m.Exception; e != nil && (e.ExceptionClassName == nil || e.StackTrace == nil) {
		return fmt.Errorf("%w: got an exception without class or stack", errFrame)
	}
	if cells := m.GetCellBlockMeta().GetLength(); int64(cells) > int64(size-n) {
		return fmt.Errorf("%w: got a cell block of %d bytes in %d", errFrame, cells, size-n)
	}
	return nil
}
