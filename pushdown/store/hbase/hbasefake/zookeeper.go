package hbasefake

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// Operation codes and errors of ZooKeeper's protocol.
const (
	zkGetData = 4
	zkPing    = 11
	zkClose   = -11
	zkNoNode  = -101
)

func (c *Cluster) startZooKeeper(addr string) error {
	l, err := c.net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	c.zk = l
	c.serve(l, c.zkSession)
	return nil
}

// zkSession serves one client: a connect request, then frames of a request number
// and an operation.
func (c *Cluster) zkSession(conn net.Conn) {
	if _, err := readFrame(conn); err != nil {
		return
	}

	reply := binary.BigEndian.AppendUint32(nil, 0)       // protocol version
	reply = binary.BigEndian.AppendUint32(reply, 10_000) // the session's timeout, ms
	reply = binary.BigEndian.AppendUint64(reply, 1)      // the session's id
	reply = appendBuffer(reply, make([]byte, 16))        // password
	if writeFrame(conn, reply) != nil {
		return
	}

	for {
		frame, err := readFrame(conn)
		if err != nil || len(frame) < 8 {
			return
		}

		op := int32(binary.BigEndian.Uint32(frame[4:]))
		body, code := c.zkAnswer(op, frame[8:])
		refusal := c.zkError.Load()
		if refusal != 0 {
			body, code = nil, refusal
		}
		reply := append([]byte(nil), frame[:4]...)
		reply = binary.BigEndian.AppendUint64(reply, 1) // zxid
		reply = binary.BigEndian.AppendUint32(reply, uint32(code))
		if writeFrame(conn, append(reply, body...)) != nil || op == zkClose || refusal != 0 {
			return
		}
	}
}

// zkAnswer executes one operation: it returns the body of the reply and an error
// code.
func (c *Cluster) zkAnswer(op int32, body []byte) ([]byte, int32) {
	if op != zkGetData || len(body) < 4 {
		return nil, 0 // ping, close
	}

	path := string(body[4 : 4+binary.BigEndian.Uint32(body)])
	var message proto.Message
	switch path {
	case "/hbase/meta-region-server":
		message = &pb.MetaRegionServer{Server: serverName(c.addressOfMeta())}
	case "/hbase/master":
		message = &pb.Master{Master: serverName(c.master.addr)}
	default:
		return nil, zkNoNode
	}

	data := []byte{0xff, 0, 0, 0, 1, 'f'} // magic and metadata, here one byte
	data = append(append(data, "PBUF"...), pb.MustMarshal(message)...)
	const statLen = 68
	return append(appendBuffer(nil, data), make([]byte, statLen)...), 0
}

// serverName returns the message for "host:port".
func serverName(addr string) *pb.ServerName {
	host, port, _ := net.SplitHostPort(addr)
	n, _ := strconv.ParseUint(port, 10, 16)
	return &pb.ServerName{HostName: &host, Port: proto.Uint32(uint32(n)), StartCode: proto.Uint64(1)}
}

// appendBuffer appends the length of data, then data.
func appendBuffer(b, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(data))), data...)
}

// readFrame reads a length, then as many bytes, which it returns.
func readFrame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(r, frame)
	return frame, err
}

// writeFrame writes the length of a frame, then the frame.
func writeFrame(w io.Writer, frame []byte) error {
	_, err := w.Write(appendBuffer(nil, frame))
	return err
}
