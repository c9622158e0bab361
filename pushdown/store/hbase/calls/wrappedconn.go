package calls

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"downpour/pushdown/store/hbase/sasl"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// wrappedConn is a connection whose bytes travel in wrap tokens. One goroutine may read
// and another write.
//
// It embeds the interface net.Conn and not *net.TCPConn, whose vectored writes would go
// past Write and send calls in clear.
type wrappedConn struct {
	net.Conn
	*handshake

	// Writing. A call comes in several parts, its length first. They are collected so
	// that a call has a token of its own, if it is not too long for one.
	pending    []byte // to be wrapped
	length     []byte // the bytes so far of the length of the next call
	missing    int    // bytes of the current call, after its length, that are still to come
	maxPending int    // the most bytes that one token may hold
	token      []byte // length and token, as they are sent

	// Reading.
	in     *bufio.Reader
	frame  []byte // the last token; its memory is used again for the next
	unread []byte // the part of what it held that Read has not returned yet
	opened bool   // a token was opened: the server has taken the connection's header
}

const (
	// maxPiece bounds a token that we send; HBase's servers offer as much.
	maxPiece = 64 << 10
	minPiece = 1 << 10
	// keptFrame is the longest token whose memory is kept for the next.
	keptFrame = 1 << 20
	// roomToDecrypt is the free space after a token, so that decrypting never copies.
	roomToDecrypt = 16
	// maxOverhead is more than a token is longer than what it holds.
	maxOverhead = 4 << 10
)

func newWrappedConn(nc net.Conn, h *handshake, l *liveness) *wrappedConn {
	c := &wrappedConn{Conn: nc, handshake: h}
	c.maxPending = max(min(h.maxMessage, maxPiece)-h.Sealer.Overhead(), minPiece)
	c.in = bufio.NewReaderSize(notingReader{nc, l}, 64<<10)
	return c
}

// notingReader notes that bytes come: a long token has many before any can be read.
type notingReader struct {
	io.Reader
	liveness *liveness
}

// Read reads bytes.
func (r notingReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if n > 0 {
		r.liveness.received()
	}
	return n, err
}

// Write wraps and sends bytes of calls. The last bytes of a call send all of it.
func (c *wrappedConn) Write(b []byte) (int, error) {
	written := len(b)
	for len(b) > 0 {
		part := b[:min(len(b), c.untilBoundary(), c.maxPending-len(c.pending))]
		c.advance(part)
		c.pending = append(c.pending, part...)
		b = b[len(part):]

		callEnds := c.missing == 0 && len(c.length) == 0
		if !callEnds && len(c.pending) < c.maxPending {
			continue
		}
		if err := c.flush(); err != nil {
			return 0, err
		}
	}
	return written, nil
}

// untilBoundary returns how many bytes follow until the current call ends, or, between calls, until the length
// of the next one is complete.
func (c *wrappedConn) untilBoundary() int {
	if c.missing > 0 {
		return c.missing
	}
	return 4 - len(c.length)
}

// advance moves the place in the stream of calls behind part, which does not go past untilBoundary.
func (c *wrappedConn) advance(part []byte) {
	if c.missing > 0 {
		c.missing -= len(part)
		return
	}
	if c.length = append(c.length, part...); len(c.length) == 4 {
		c.missing, c.length = int(binary.BigEndian.Uint32(c.length)), c.length[:0]
	}
}

// flush sends what is pending as one token.
func (c *wrappedConn) flush() error {
	c.token = append(c.token[:0], 0, 0, 0, 0)
	if c.protection == sasl.Privacy {
		c.token = c.Sealer.Seal(c.token, c.pending)
	} else {
		c.token = c.Sealer.Sign(c.token, c.pending)
	}
	binary.BigEndian.PutUint32(c.token, uint32(len(c.token)-4))
	c.pending = c.pending[:0]
	_, err := c.Conn.Write(c.token)
	return err
}

// Read reads bytes of replies.
func (c *wrappedConn) Read(b []byte) (int, error) {
	for len(c.unread) == 0 {
		if err := c.readToken(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

// readToken reads the next token, opens it, and sets unread to what it held. It fails if the token is not as
// the handshake wants it, or if the server has refused the connection.
func (c *wrappedConn) readToken() error {
	var head [4]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint32(head[:]))
	if size == 0 || size > maxFrame+maxOverhead {
		return fmt.Errorf("%w: wrap token: got %d bytes, want 1 to %d", errFrame, size, maxFrame+maxOverhead)
	}

	if cap(c.frame) > keptFrame+roomToDecrypt {
		c.frame = nil
	}
	c.frame = c.frame[:0]
	// The token's length is not authenticated, so memory is taken only as bytes come.
	for len(c.frame) < size {
		n := len(c.frame)
		step := min(size-n, max(n, keptFrame))
		c.frame = slices.Grow(c.frame, step+roomToDecrypt)[:n+step]
		if _, err := io.ReadFull(c.in, c.frame[n:]); err != nil {
			return noEOF(err)
		}
	}

	// A refusal of the connection's header is not wrapped.
	if !c.opened && !sasl.IsWrap(c.frame) {
		if err := unsignedRefusal(c.frame); err != nil {
			return err
		}
	}
	var err error
	if c.unread, err = c.Opener.Open(c.frame, c.protection); err == nil {
		c.opened = true
	}
	return err
}

// noEOF returns io.ErrUnexpectedEOF for io.EOF, and other errors as they are.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// refusedCall is the call number of a refusal of the connection itself.
const refusedCall = 0xffffffff

// unsignedRefusal returns the error that a server's refusal of a connection holds, nil if frame
// is no refusal. The frame has a header after its length and no message. It is not signed, so its
// class stays text: otherwise an attacker in between could claim that a table does not exist.
// The connection counts as lost.
func unsignedRefusal(frame []byte) error {
	header, _ := protowire.ConsumeBytes(frame)
	var m pb.ResponseHeader
	if err := proto.Unmarshal(header, &m); err != nil {
		return nil
	}
	e := refusedBy(&m)
	if e == nil {
		return nil
	}
	// gohbase's errors name their class after this prefix. The replacement has a colon, so that no
	// text around it becomes the prefix.
	return fmt.Errorf("%w: %s", errRefused, strings.ReplaceAll(e.Error(), javaPrefix, "HBase: "))
}

// refusalIn returns the error that a header of a reply holds if it refuses the connection.
func refusalIn(m *pb.ResponseHeader) error {
	if e := refusedBy(m); e != nil {
		return fmt.Errorf("%w: %w", errRefused, e)
	}
	return nil
}

// refusedBy returns the exception of a header that refuses the connection, nil if it does not.
func refusedBy(m *pb.ResponseHeader) *JavaError {
	if m.GetCallId() != refusedCall || m.Exception == nil {
		return nil
	}
	return NewJavaError(m.Exception.GetExceptionClassName(), m.Exception.GetStackTrace())
}
