package hbase

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// frame is a reply: a length, then the header behind its own, then the rest.
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

// badFrames are replies of which gohbase would make a panic in a goroutine of
// its own, or gigabytes.
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
	"a header of nonsense":      {0, 0, 0, 4, 0x03, 0xff, 0xff, 0xff},
}

// Whatever pieces they come in, bad frames are refused before their end, good
// ones pass.
func TestWire_frames(t *testing.T) {
	good := frame(&pb.ResponseHeader{CallId: proto.Uint32(1)}, 0)
	good = append(good, frame(cellBlock(3), 0, 1, 2, 3)...)
	good = append(good, frame(exceptional(&pb.ExceptionResponse{ExceptionClassName: proto.String("a.B"),
		StackTrace: proto.String(string(bytes.Repeat([]byte("x"), 300)))}))...)
	for piece := 1; piece <= len(good); piece++ {
		w := frameChecker{liveness: &liveness{}}
		for at := 0; at < len(good); at += piece {
			if err := w.check(good[at:min(at+piece, len(good))]); err != nil {
				t.Fatalf("in pieces of %d: %v", piece, err)
			}
		}
		if w.rest != 0 || len(w.head) != 0 {
			t.Fatalf("in pieces of %d: %d bytes are expected behind the last frame, %d kept", piece, w.rest, len(w.head))
		}
		for name, bad := range badFrames {
			w := frameChecker{liveness: &liveness{}}
			var err error
			for at := 0; at < len(bad) && err == nil; at += piece {
				err = w.check(bad[at:min(at+piece, len(bad))])
			}
			if !errors.Is(err, errFrame) {
				t.Errorf("%s, in pieces of %d: got %v, want an error", name, piece, err)
			}
		}
	}
}

// What passes is what gohbase can read.
func FuzzWire(f *testing.F) {
	for _, b := range badFrames {
		f.Add(b, 3)
	}
	f.Add(frame(cellBlock(3), 0, 1, 2, 3), 5)
	f.Fuzz(func(t *testing.T, b []byte, piece int) {
		piece = max(1, piece&0xff)
		whole, parted := frameChecker{liveness: &liveness{}}, frameChecker{liveness: &liveness{}}
		first := whole.check(b)
		var second error
		for at := 0; at < len(b) && second == nil; at += piece {
			second = parted.check(b[at:min(at+piece, len(b))])
		}
		if (first == nil) != (second == nil) {
			t.Fatalf("as a whole %v, in pieces of %d %v", first, piece, second)
		}
		for first == nil && len(b) >= 4 {
			size := binary.BigEndian.Uint32(b)
			if size > maxFrame {
				t.Fatal("a frame of more than the most, for which gohbase would make room")
			}
			if uint64(len(b)) < 4+uint64(size) {
				return
			}
			body := b[4 : 4+size]
			var h pb.ResponseHeader
			header, n := protowire.ConsumeBytes(body)
			if n < 0 || proto.Unmarshal(header, &h) != nil {
				t.Fatal("a header that cannot be read")
			}
			if e := h.Exception; e != nil && (e.ExceptionClassName == nil || e.StackTrace == nil) || h.GetCellBlockMeta().GetLength() > size {
				t.Fatalf("gohbase would panic over %v", &h)
			}
			b = b[4+size:]
		}
	})
}

// A server that sends such a frame loses its connection, and nothing else
// happens.
func TestWire_badServer(t *testing.T) {
	for name, bad := range badFrames {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, err := Open(Config{Quorum: "127.0.0.1:1", Dial: func(context.Context, string, string) (net.Conn, error) {
					mine, theirs := net.Pipe()
					go func() {
						defer theirs.Close()
						if _, err := theirs.Read(make([]byte, 1<<16)); err != nil { // the greeting
							return
						}
						if _, err := theirs.Read(make([]byte, 1<<16)); err != nil { // a call
							return
						}
						theirs.Write(append(bad, make([]byte, 16)...))
						io.Copy(io.Discard, theirs)
					}()
					return mine, nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				defer st.Close()
				loc := &location{table: "t", name: []byte("r"), addr: "127.0.0.1:2"}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err = st.call(ctx, loc, st.servers.newProbe())
				var lost *lostError
				if !errors.As(err, &lost) || lost.callOnly {
					t.Errorf("got %v, want a lost connection", err)
				}
			})
		})
	}
}
