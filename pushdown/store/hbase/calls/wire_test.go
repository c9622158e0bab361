package calls

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// frame returns the frame of a reply: its length, the header's length, the header,
// then the rest.
func frame(header *pb.ResponseHeader, rest ...byte) []byte {
	body := append(protowire.AppendBytes(nil, pb.MustMarshal(header)), rest...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func cellBlock(n uint32) *pb.ResponseHeader {
	return &pb.ResponseHeader{CallId: proto.Uint32(1), CellBlockMeta: &pb.CellBlockMeta{Length: &n}}
}

func exceptional(e *pb.ExceptionResponse) *pb.ResponseHeader {
	return &pb.ResponseHeader{CallId: proto.Uint32(1), Exception: e}
}

// badFrames are replies over which gohbase would panic in a goroutine of its own, or
// for which it would allocate gigabytes.
var badFrames = map[string][]byte{
	"cells beyond the frame":    frame(cellBlock(9), 0, 1, 2, 3),
	"cells of 4 GiB":            frame(cellBlock(1<<32-1), 0),
	"an exception of nothing":   frame(exceptional(&pb.ExceptionResponse{})),
	"an exception without text": frame(exceptional(&pb.ExceptionResponse{ExceptionClassName: proto.String("a.B")})),
	"an exception of no class":  frame(exceptional(&pb.ExceptionResponse{StackTrace: proto.String("a.B: c")})),
	"4 GiB":                     {0xff, 0xff, 0xff, 0xff, 0x02, 0x08, 0x01},
	"nothing":                   {0, 0, 0, 0, 0},
	"a header beyond the frame": {0, 0, 0, 3, 0x05, 0x08, 0x01, 0, 0, 0},
	"a header of 1 GiB":         {0x0f, 0xff, 0xff, 0xff, 0x80, 0x80, 0x80, 0x80, 0x04, 0x08},
	"a header without end":      {0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	"a byte of cells too many":  frame(cellBlock(5), 0, 1, 2, 3),
	"a header of nonsense":      {0, 0, 0, 4, 0x03, 0xff, 0xff, 0xff},
}

// Bad frames are refused before their end and good ones pass, whatever parts they
// come in.
func TestWire_frames(t *testing.T) {
	good := frame(&pb.ResponseHeader{})
	good = append(good, frame(&pb.ResponseHeader{CallId: proto.Uint32(1)}, 0)...)
	good = append(good, frame(cellBlock(3), 0, 1, 2, 3)...)
	good = append(good, frame(exceptional(&pb.ExceptionResponse{ExceptionClassName: proto.String("a.B"),
		StackTrace: proto.String(string(bytes.Repeat([]byte("x"), 300)))}))...)

	for part := 1; part <= len(good); part++ {
		w := frameChecker{liveness: &liveness{}}
		for at := 0; at < len(good); at += part {
			if err := w.checkFrames(good[at:min(at+part, len(good))]); err != nil {
				t.Fatalf("in parts of %d: %v", part, err)
			}
		}
		if w.rest != 0 || len(w.head) != 0 {
			t.Fatalf("in parts of %d: %d bytes are expected after the last frame, %d kept", part, w.rest, len(w.head))
		}
		for name, bad := range badFrames {
			w := frameChecker{liveness: &liveness{}}
			var err error
			for at := 0; at < len(bad) && err == nil; at += part {
				err = w.checkFrames(bad[at:min(at+part, len(bad))])
			}
			if !errors.Is(err, errFrame) {
				t.Errorf("%s, in parts of %d: got %v, want an error", name, part, err)
			}
		}
	}
}

// A length that is too large is refused as soon as it has come, and the longest frame is not.
func TestWire_lengths(t *testing.T) {
	for _, e := range []struct {
		head []byte
		want error
	}{
		{binary.BigEndian.AppendUint32(nil, maxFrame), nil},
		{binary.BigEndian.AppendUint32(nil, maxFrame+1), errFrame},
		{protowire.AppendVarint(binary.BigEndian.AppendUint32(nil, maxFrame), maxHeader), nil},
		{protowire.AppendVarint(binary.BigEndian.AppendUint32(nil, maxFrame), maxHeader+1), errFrame},
		{[]byte{0, 0, 0, 5, 4}, nil},
		{[]byte{0, 0, 0, 5, 5}, errFrame},
	} {
		w := frameChecker{liveness: &liveness{}}
		if err := w.checkFrames(e.head); !errors.Is(err, e.want) {
			t.Errorf("% x: got %v, want %v", e.head, err, e.want)
		}
	}
}

// The end of a connection that has answered is no fault of its bytes.
func TestWire_noFault(t *testing.T) {
	f := frameChecker{liveness: &liveness{}, plain: true}
	reply := frame(&pb.ResponseHeader{CallId: proto.Uint32(1)}, 0)
	_, err := f.checkRead(reply, len(reply), nil)
	_, end := f.checkRead(nil, 0, io.EOF)
	if fault := f.liveness.fault.Load(); err != nil || end != io.EOF || fault != nil {
		t.Errorf("read %v, then %v, fault %v, want none", err, end, fault)
	}
}

// A header may have maxHeader bytes and no more.
func TestWire_longestHeader(t *testing.T) {
	for size, want := range map[int]error{maxHeader: nil, maxHeader + 1: errFrame} {
		header := protowire.AppendTag(nil, 100, protowire.BytesType) // of a later HBase
		header = protowire.AppendBytes(header, make([]byte, size-len(header)-protowire.SizeVarint(uint64(size))))
		body := protowire.AppendBytes(nil, header)
		w := frameChecker{liveness: &liveness{}}
		err := w.checkFrames(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
		if len(header) != size || !errors.Is(err, want) {
			t.Errorf("a header of %d bytes, want %d: got %v, want %v", len(header), size, err, want)
		}
	}
}

// A connection that ends before it has taken the first bytes is an error of Get.
func TestPool_endsAtOnce(t *testing.T) {
	cfg := &Config{
		Logger:      slog.New(slog.DiscardHandler),
		DialTimeout: time.Minute,
		ProbeAfter:  time.Minute,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			mine, theirs := net.Pipe()
			return mine, theirs.Close()
		},
	}
	l := NewLife()
	p := NewPool(cfg, l, RegionService)
	defer l.Wait()
	defer p.CloseAll()
	defer l.End()
	if _, err := p.Get(t.Context(), "127.0.0.1:2"); err == nil {
		t.Error("got no error")
	}
}

// A connection that is being made while the pool is closed is closed as well, before the pool is.
func TestPool_closedWhileDialling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		mine, theirs := net.Pipe()
		go io.Copy(io.Discard, theirs) // the preamble
		cfg := &Config{
			Logger:      slog.New(slog.DiscardHandler),
			DialTimeout: time.Minute,
			ProbeAfter:  time.Minute,
			Dial: func(context.Context, string, string) (net.Conn, error) {
				<-release
				return mine, nil
			},
		}
		l := NewLife()
		p := NewPool(cfg, l, RegionService)
		c := p.liveOrDialling("127.0.0.1:2")
		var closed atomic.Bool
		go func() {
			l.End()
			p.CloseAll()
			l.Wait()
			closed.Store(true)
		}()
		synctest.Wait()
		if closed.Load() {
			t.Error("the pool is closed although a connection is being made")
		}
		close(release)
		synctest.Wait()
		if _, err := mine.Write([]byte{0}); !closed.Load() || !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("closed %v, a write to the connection: %v, want it closed", closed.Load(), err)
		}
		<-c.ready
	})
}

// Work that was begun is waited for.
func TestLife_wait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLife()
		done := false
		l.Run(func() {
			time.Sleep(time.Second)
			done = true
		})
		if l.Wait(); !done {
			t.Error("Wait has not waited")
		}
	})
}

// A probe goes past the calls that wait for a handler, and other calls do not.
func TestQueued_priority(t *testing.T) {
	p := NewPool(&Config{}, NewLife(), RegionService)
	other := New(t.Context(), "Get", &pb.GetRequest{}, &pb.GetResponse{})
	if probe, usual := (queued{p.newProbe()}).Priority(), (queued{other}).Priority(); probe != highQOS || usual != 0 {
		t.Errorf("priorities %d and %d, want %d and 0", probe, usual, highQOS)
	}
}

// FuzzWire: gohbase can read every frame that passes, and a frame passes or fails whatever parts
// it comes in.
func FuzzWire(f *testing.F) {
	for _, b := range badFrames {
		f.Add(b, 3)
	}

	f.Add(frame(cellBlock(3), 0, 1, 2, 3), 5)
	f.Fuzz(func(t *testing.T, b []byte, part int) {
		part = max(1, part&0xff)
		whole, parted := frameChecker{liveness: &liveness{}}, frameChecker{liveness: &liveness{}}
		first := whole.checkFrames(b)
		var second error
		for at := 0; at < len(b) && second == nil; at += part {
			second = parted.checkFrames(b[at:min(at+part, len(b))])
		}
		if (first == nil) != (second == nil) {
			t.Fatalf("checked as a whole: %v, in parts of %d: %v, want both accepted or both refused", first, part,
				second)
		}
		for first == nil && len(b) >= 4 {
			size := binary.BigEndian.Uint32(b)
			if size > maxFrame {
				t.Fatal("a frame passed that is larger than maxFrame: gohbase would allocate it")
			}
			if uint64(len(b)) < 4+uint64(size) {
				return
			}
			body := b[4 : 4+size]
			var h pb.ResponseHeader
			header, n := protowire.ConsumeBytes(body)
			if n < 0 || proto.Unmarshal(header, &h) != nil {
				t.Fatal("a frame passed whose header cannot be read")
			}
			if e := h.Exception; e != nil && (e.ExceptionClassName == nil || e.StackTrace == nil) ||
				h.GetCellBlockMeta().GetLength() > size {
				t.Fatalf("gohbase would panic over %v", &h)
			}
			b = b[4+size:]
		}
	})
}

// A server that speaks TLS is recognized by the first bytes on a plain connection, and only there.
func TestWire_speaksTLS(t *testing.T) {
	alert, handshake, reply := "\x15\x03", "\x16\x03\x01\x02\x00", "\x00\x00\x00\x40\x02"
	for _, c := range []struct {
		plain bool
		reads []string
		want  bool // of the last of them
	}{
		{true, []string{alert}, true},
		{true, []string{handshake}, true},
		{true, []string{reply}, false},
		{true, []string{"\x15"}, false},
		{true, []string{"\x15\x02"}, false},
		{true, []string{"\x17\x03"}, false},
		{true, []string{"\x00", alert}, false},
		{false, []string{alert}, false},
	} {
		f := frameChecker{liveness: &liveness{}, plain: c.plain}
		var err error
		for _, read := range c.reads {
			_, err = f.checkRead([]byte(read), len(read), nil)
		}
		if got := errors.Is(err, errWantsTLS); got != c.want {
			t.Errorf("plain %v, reads of %q: got %v, want it taken for TLS: %v", c.plain, c.reads, err, c.want)
		}
	}
}

// A bad frame only ends the connection that it comes by.
func TestWire_badServer(t *testing.T) {
	for name, bad := range badFrames {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := &Config{
					Logger:       slog.New(slog.DiscardHandler),
					DialTimeout:  time.Second,
					RPCTimeout:   time.Minute,
					WriteTimeout: time.Minute,
					ProbeAfter:   time.Second,
				}
				cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
					mine, theirs := net.Pipe()
					go func() {
						defer theirs.Close()
						if _, err := theirs.Read(make([]byte, 1<<16)); err != nil { // the preamble
							return
						}
						if _, err := theirs.Read(make([]byte, 1<<16)); err != nil { // a call
							return
						}
						theirs.Write(append(bad, make([]byte, 16)...))
						io.Copy(io.Discard, theirs)
					}()
					return mine, nil
				}
				l := NewLife()
				p := NewPool(cfg, l, RegionService)
				defer l.Wait()
				defer p.CloseAll()
				defer l.End()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				c, err := p.Get(ctx, "127.0.0.1:2")
				if err != nil {
					t.Fatal(err)
				}
				if again, err := p.Get(ctx, "127.0.0.1:2"); again != c || err != nil {
					t.Errorf("got another connection, %v", err)
				}
				if c.writeLock == nil {
					t.Error("nothing keeps the two parts of a call together where the connection does not")
				}
				call := p.newProbe()
				c.Send(call)
				err = c.Wait(ctx, call)
				var lost *LostError
				if !errors.As(err, &lost) || lost.CallOnly {
					t.Errorf("got %v, want a lost connection", err)
				}
			})
		})
	}
}
