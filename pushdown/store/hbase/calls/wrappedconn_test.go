package calls

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	_ "downpour/encoding/seedtest" // gives rapid its seed
	"downpour/pushdown/store/hbase/kerberos"
	"downpour/pushdown/store/hbase/sasl"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// pair returns a wrapped connection that writes to sent and reads from received, and the
// other side's tools.
func pair(t rapid.TB, p sasl.Protection,
	maxMessage int) (c *wrappedConn, buf *buffers, open *sasl.Opener, seal *sasl.Sealer) {
	t.Helper()
	keys := sasl.Keys{
		EncType:    sasl.AES256SHA1,
		Encryption: make([]byte, 32),
		Integrity:  make([]byte, 32),
		Check:      make([]byte, 32),
	}
	ours, theirs := sasl.Direction{First: 5}, sasl.Direction{Acceptor: true, First: 9}
	mySeal, err1 := sasl.NewSealer(keys, ours)
	myOpen, err2 := sasl.NewOpener(keys, theirs)
	open, err3 := sasl.NewOpener(keys, ours)
	seal, err4 := sasl.NewSealer(keys, theirs)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	buf = &buffers{}
	return newWrappedConn(buf, &handshake{&kerberos.Session{Sealer: mySeal, Opener: myOpen}, p, maxMessage},
		&liveness{}), buf, open, seal
}

// buffers is a connection of two buffers.
type buffers struct {
	net.Conn
	sent, received bytes.Buffer
}

func (b *buffers) Write(p []byte) (int, error) { return b.sent.Write(p) }
func (b *buffers) Read(p []byte) (int, error)  { return b.received.Read(p) }

// However calls are cut into writes, the server gets their bytes, each token within what
// it takes, and a call that fits into one token has one of its own, at once.
func TestWrappedConn_write(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		protection := rapid.SampledFrom([]sasl.Protection{sasl.Integrity, sasl.Privacy}).Draw(t, "protection")
		maxMessage := rapid.SampledFrom([]int{0, 2000, 1 << 16, 1 << 24}).Draw(t, "max")
		c, buf, open, _ := pair(t, protection, maxMessage)
		for range rapid.IntRange(1, 5).Draw(t, "calls") {
			body := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")},
				rapid.SampledFrom([]int{0, 1, 900, 1000, 5000, 200_000}).Draw(t, "size"))
			call := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
			for rest := call; len(rest) > 0; {
				n := rapid.IntRange(1, min(len(rest), 70_000)).Draw(t, "part")
				if written, err := c.Write(rest[:n]); err != nil || written != n {
					t.Fatalf("wrote %d of %d, %v", written, n, err)
				}
				rest = rest[n:]
			}

			var got []byte
			tokens := 0
			for ; buf.sent.Len() > 0; tokens++ {
				token := buf.sent.Next(int(binary.BigEndian.Uint32(buf.sent.Next(4))))
				if len(token) > max(maxMessage, minPiece+100) {
					t.Fatalf("token of %d bytes, the server takes %d", len(token), maxMessage)
				}
				data, err := open.Open(slices.Clone(token), protection)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, data...)
			}
			if !bytes.Equal(got, call) {
				t.Fatalf("got %d bytes of a call of %d", len(got), len(call))
			}
			if len(call) <= c.maxPending && tokens != 1 {
				t.Fatalf("%d tokens for a call of %d bytes", tokens, len(call))
			}
		}
	})
}

// Two calls that come in one write have a token each, and what cannot be sent is an error.
func TestWrappedConn_twoCalls(t *testing.T) {
	c, buf, open, _ := pair(t, sasl.Privacy, 1<<16)
	calls := []byte("\x00\x00\x00\x05first\x00\x00\x00\x06second")
	if n, err := c.Write(calls); n != len(calls) || err != nil {
		t.Errorf("wrote %d bytes, %v", n, err)
	}
	for _, want := range []string{"\x00\x00\x00\x05first", "\x00\x00\x00\x06second"} {
		token := buf.sent.Next(int(binary.BigEndian.Uint32(buf.sent.Next(4))))
		if got, err := open.Open(token, sasl.Privacy); string(got) != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	c.Conn = full{}
	if n, err := c.Write(calls); n != 0 || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("wrote %d bytes, %v, want the error of the connection", n, err)
	}
}

// full is a connection that takes nothing.
type full struct{ net.Conn }

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// A token is read at once, its bytes count as a sign of life, and an end within one is unexpected.
func TestWrappedConn_oneToken(t *testing.T) {
	c, buf, _, seal := pair(t, sasl.Privacy, 1<<16)
	l := &liveness{start: time.Now().Add(-time.Hour)}
	c.in = bufio.NewReader(notingReader{buf, l})
	token := sasl.AppendFrame(nil, seal.Seal(nil, []byte("reply")))
	buf.received.Write(token)
	if n, err := c.Read(make([]byte, 10)); n != 5 || err != nil || l.lastReceived.Load() == 0 {
		t.Errorf("read %d bytes, %v, noted at %d", n, err, l.lastReceived.Load())
	}
	l.lastReceived.Store(0)
	if _, err := c.Read(make([]byte, 10)); err != io.EOF || l.lastReceived.Load() != 0 {
		t.Errorf("at the end: %v, noted at %d", err, l.lastReceived.Load())
	}
	buf.received.Write(token[:len(token)-1])
	if _, err := c.Read(make([]byte, 10)); err != io.ErrUnexpectedEOF {
		t.Errorf("of a token without its last byte: %v", err)
	}
	if err := noEOF(io.ErrClosedPipe); err != io.ErrClosedPipe {
		t.Errorf("another error became %v", err)
	}
}

// A header that cannot be read is no refusal, whatever it begins with.
func TestUnsignedRefusal_malformed(t *testing.T) {
	header := pb.MustMarshal(&pb.ResponseHeader{CallId: proto.Uint32(refusedCall), Exception: &pb.ExceptionResponse{
		ExceptionClassName: proto.String("a.B"),
	}})
	if err := unsignedRefusal(protowire.AppendBytes(nil, header)); !errors.Is(err, errRefused) {
		t.Errorf("got %v, want a refusal", err)
	}
	if err := unsignedRefusal(protowire.AppendBytes(nil, append(header, 0xff))); err != nil {
		t.Errorf("of a header with a byte more: got %v, want nothing", err)
	}
}

// A refusal that is not wrapped is a lost connection with its text, whatever class it names, and is
// taken for nothing once a token was opened: nobody has signed it.
func TestWrappedConn_unsignedRefusal(t *testing.T) {
	const class = "org.apache.hadoop.hbase.TableNotFoundException"
	inside := javaPrefix[:7] + javaPrefix + javaPrefix[7:] // what is left without the prefix in it is the prefix
	header, err := proto.Marshal(&pb.ResponseHeader{CallId: proto.Uint32(refusedCall), Exception: &pb.ExceptionResponse{
		ExceptionClassName: proto.String(class),
		StackTrace:         proto.String(javaPrefix + class + ": no " + inside + class + ": no"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	frame := protowire.AppendBytes(nil, header)
	frame = append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)

	for _, opened := range []bool{false, true} {
		c, buf, _, seal := pair(t, sasl.Privacy, 1<<16)
		if opened {
			token := seal.Seal(nil, []byte("reply"))
			buf.received.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(token))), token...))
			if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
		}
		buf.received.Write(frame)
		_, err := c.Read(make([]byte, 1))
		if refused := errors.Is(err, errRefused); refused == opened {
			t.Errorf("a token opened before %v: got %v, want a refusal only before", opened, err)
		}
		if !opened && !strings.Contains(err.Error(), class) {
			t.Errorf("got %v, want the class in the text", err)
		}
		lost := &LostError{err: err}
		if class := Classify(lost); class != ClassReconnect {
			t.Errorf("retry class %v of %v, want that of a lost connection", class, err)
		}
		// An operation would take an exception for an error of its table.
		if java := (*JavaError)(nil); errors.As(WithoutStack(lost), &java) {
			t.Errorf("got the exception %v, want none", java)
		}
	}
}

// However a reply is cut into tokens, its bytes are read.
func TestWrappedConn_read(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		protection := rapid.SampledFrom([]sasl.Protection{sasl.Integrity, sasl.Privacy}).Draw(t, "protection")
		c, buf, _, seal := pair(t, protection, 1<<16)
		var want []byte
		for range rapid.IntRange(1, 5).Draw(t, "tokens") {
			data := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")},
				rapid.SampledFrom([]int{0, 1, 15, 16, 1000, keptFrame + 17}).Draw(t, "size"))
			want = append(want, data...)
			if protection == sasl.Privacy {
				buf.received.Write(sasl.AppendFrame(nil, seal.Seal(nil, data)))
			} else {
				buf.received.Write(sasl.AppendFrame(nil, seal.Sign(nil, data)))
			}
		}
		got, err := io.ReadAll(c)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %d bytes, %v, want %d", len(got), err, len(want))
		}
	})
}

// A token is as long as a frame may be and a little more.
func TestWrappedConn_longest(t *testing.T) {
	for size, want := range map[uint32]bool{maxFrame + maxOverhead: false, maxFrame + maxOverhead + 1: true, 0: true} {
		c, buf, _, _ := pair(t, sasl.Privacy, 0)
		buf.received.Write(binary.BigEndian.AppendUint32(nil, size))
		_, err := c.Read(make([]byte, 1))
		refused := errors.Is(err, errFrame) && strings.Contains(err.Error(), "want 1 to 268439552")
		if refused != want {
			t.Errorf("a token of %d bytes: got %v, want it refused: %v", size, err, want)
		}
	}
}

// Nothing that a server sends is taken without a right token, and nothing panics.
func FuzzWrappedConn(f *testing.F) {
	f.Add([]byte{0, 0, 0, 3, 5, 4, 1})
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 3}) // cut off behind the length: no end of all replies
	f.Add([]byte{0x7f, 0, 0, 0, 5, 4})
	f.Add([]byte{0, 0, 0, 8, 7, 8, 0xff, 0xff, 0xff, 0xff, 0xf, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, buf, _, _ := pair(t, sasl.Privacy, 1<<16)
		buf.received.Write(b)
		if got, err := io.ReadAll(c); len(got) > 0 || err == nil && len(b) > 0 {
			t.Errorf("read %x, %v", got, err)
		}
	})
}
