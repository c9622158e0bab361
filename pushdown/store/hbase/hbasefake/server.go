package hbasefake

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// server is a region server, or the master with index -1.
type server struct {
	c     *Cluster
	index int
	addr  string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
}

func (s *server) listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.listener, s.addr, s.conns = l, l.Addr().String(), map[net.Conn]bool{}
	s.mu.Unlock()
	s.c.serve(l, s.session)
	return nil
}

// stop closes the listener and every connection.
func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return
	}
	s.listener.Close()
	s.listener = nil
	for conn := range s.conns {
		conn.Close()
	}
}

func (s *server) enter(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		s.conns[conn] = true
	}
	return s.listener != nil
}

// session answers one client, call after call: the greeting "HBas", version 0,
// authentication 50 (simple) and a connection header, then frames.
func (s *server) session(conn net.Conn) {
	if !s.enter(conn) {
		return
	}
	greeting := make([]byte, 6)
	if _, err := io.ReadFull(conn, greeting); err != nil || string(greeting) != "HBas\x00\x50" {
		return
	}
	if _, err := readFrame(conn); err != nil {
		return
	}
	for {
		frame, err := readFrame(conn)
		if err != nil {
			return
		}
		reply, looked, err := s.answer(frame)
		if err != nil {
			return
		}
		if looked != nil {
			looked()
		}
		if reply != nil && writeFrame(conn, reply) != nil {
			return
		}
	}
}

// call is a request taken apart.
type call struct {
	header pb.RequestHeader
	param  []byte
	cells  []byte
}

var errBroken = errors.New("connection to be broken")

func parseCall(frame []byte) (*call, error) {
	c := &call{}
	header, n := protowire.ConsumeBytes(frame)
	if n < 0 {
		return nil, protowire.ParseError(n)
	}
	if err := proto.Unmarshal(header, &c.header); err != nil {
		return nil, err
	}
	param, m := protowire.ConsumeBytes(frame[n:])
	if m < 0 {
		return nil, protowire.ParseError(m)
	}
	c.param, c.cells = param, frame[n+m:]
	return c, nil
}

// answer executes a call with the cluster locked and makes the reply, nil if
// none is to be sent, and what is to be called before it is.
func (s *server) answer(frame []byte) (reply []byte, looked func(), err error) {
	call, err := parseCall(frame)
	if err != nil {
		return nil, nil, err
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	reply, err = s.reply(call)
	if s.c.looked != nil {
		looked = s.lookedAt(call, s.c.looked)
	}
	return reply, looked, err
}

// lookedAt is f with the table of a call that has asked for a read point alone.
func (s *server) lookedAt(call *call, f func(table string)) func() {
	var m pb.ScanRequest
	if call.header.GetMethodName() != "Scan" || proto.Unmarshal(call.param, &m) != nil || m.ScannerId != nil || m.GetNumberOfRows() > 0 {
		return nil
	}
	table, _, _ := strings.Cut(string(m.GetRegion().GetValue()), ",")
	return func() { f(table) }
}

// reply executes a call, or does to it what the hook wants.
func (s *server) reply(call *call) ([]byte, error) {
	method, table := call.header.GetMethodName(), s.tableOf(call)
	fault := s.c.judge(Call{Server: s.index, Method: method, Table: table})
	if fault.Kind == DropBefore {
		return nil, errBroken
	}
	var response proto.Message
	var cells []byte
	var err error
	if fault.Kind == Refuse {
		err = throw(fault.Exception, "injected")
	} else {
		response, cells, err = s.execute(method, call)
	}
	switch fault.Kind {
	case DropAfter:
		return nil, errBroken
	case Hang:
		return nil, nil
	case CutCells:
		if len(cells) == 0 {
			return nil, errBroken
		}
		cells = cells[:len(cells)-1]
	}
	return encodeReply(call.header.GetCallId(), response, cells, err), nil
}

// tableOf names the table of calls that a hook may want to disturb; probes and
// calls to hbase:meta count as meta.
func (s *server) tableOf(call *call) string {
	var region []byte
	switch call.header.GetMethodName() {
	case "Scan":
		var m pb.ScanRequest
		if proto.Unmarshal(call.param, &m) != nil || m.GetCloseScanner() {
			return metaName // closing is not counted
		}
		region = m.GetRegion().GetValue()
	case "Get":
		var m pb.GetRequest
		if proto.Unmarshal(call.param, &m) != nil {
			return metaName
		}
		region = m.GetRegion().GetValue()
	default:
		return ""
	}
	for name := range s.c.tables {
		for _, r := range s.c.tables[name].regions {
			if string(r.name) == string(region) {
				return name
			}
		}
	}
	if string(region) == metaRegion || string(region) == "downpour,probe,1" {
		return metaName
	}
	return ""
}

// execute runs a method.
func (s *server) execute(method string, c *call) (proto.Message, []byte, error) {
	switch method {
	case "Scan":
		return decoded(c, &pb.ScanRequest{}, s.scan)
	case "Get":
		return decoded(c, &pb.GetRequest{}, s.get)
	case "Mutate":
		return decoded(c, &pb.MutateRequest{}, func(m *pb.MutateRequest) (proto.Message, []byte, error) { return s.mutateOne(m, c.cells) })
	case "Multi":
		return decoded(c, &pb.MultiRequest{}, func(m *pb.MultiRequest) (proto.Message, []byte, error) { return s.multi(m, c.cells) })
	case "CreateTable":
		return decoded(c, &pb.CreateTableRequest{}, s.createTable)
	case "getProcedureResult":
		return &pb.GetProcedureResultResponse{State: pb.GetProcedureResultResponse_FINISHED.Enum()}, nil, nil
	case "GetTableDescriptors":
		return decoded(c, &pb.GetTableDescriptorsRequest{}, s.descriptors)
	}
	return nil, nil, throw(unsupported, "%s", method)
}

// decoded runs f with the call's message.
func decoded[M proto.Message](c *call, m M, f func(M) (proto.Message, []byte, error)) (proto.Message, []byte, error) {
	if err := proto.Unmarshal(c.param, m); err != nil {
		return nil, nil, throw(doNotRetry, "%v", err)
	}
	return f(m)
}

// encodeReply frames a reply or an exception.
func encodeReply(id uint32, response proto.Message, cells []byte, err error) []byte {
	header := &pb.ResponseHeader{CallId: &id}
	var java *javaError
	if errors.As(err, &java) {
		stack := java.Error() + "\n\tat fake"
		header.Exception = &pb.ExceptionResponse{ExceptionClassName: &java.class, StackTrace: &stack}
		return protowire.AppendBytes(nil, pb.MustMarshal(header))
	}
	if len(cells) > 0 {
		header.CellBlockMeta = &pb.CellBlockMeta{Length: proto.Uint32(uint32(len(cells)))}
	}
	reply := protowire.AppendBytes(nil, pb.MustMarshal(header))
	reply = protowire.AppendBytes(reply, pb.MustMarshal(response))
	return append(reply, cells...)
}
