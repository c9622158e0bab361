package hbasefake

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// server is a region server, or the master with index -1.
type server struct {
	c        *Cluster
	index    int
	addr     string
	handlers chan struct{} // holds an element for each call that is executed; nil without a limit

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	running  chan struct{} // closed unless the server is paused
	expired  bool          // it lost its session while it was paused
	lives    atomic.Int32  // how often it was started: a call of an earlier life is not executed
}

func newServer(c *Cluster, index int) *server {
	s := &server{c: c, index: index, running: make(chan struct{})}
	close(s.running) // it is not paused
	if c.opts.Handlers > 0 {
		s.handlers = make(chan struct{}, c.opts.Handlers)
	}
	return s
}

func (s *server) listen(addr string) error {
	l, err := s.c.net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.listener, s.conns = l, map[net.Conn]bool{}
	s.mu.Unlock()
	// It keeps its address when it is started again, and others read that at any time.
	if s.addr == "" {
		s.addr = l.Addr().String()
	}

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
	s.die()
}

// die ends every connection, and the calls that wait. The caller holds mu.
func (s *server) die() {
	s.lives.Add(1)
	for conn := range s.conns {
		conn.Close()
	}
	clear(s.conns)
}

func (s *server) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = make(chan struct{})
}

// resume lets a paused server go on. One that has lost its session aborts, as HBase's do, and is
// started again: it executes none of the calls that waited for it, even if its regions are back.
func (s *server) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expired {
		s.expired = false
		s.die()
	}
	close(s.running)
}

// expire ends the session of a server that is paused.
func (s *server) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.running:
	default:
		s.expired = true
	}
}

// awaitRunning waits while the server is paused. It returns false once the cluster is
// closed.
func (s *server) awaitRunning() bool {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()

	select {
	case <-s.c.done:
		return false
	case <-running:
		return true
	}
}

// addConn registers a connection, so that stop closes it. It returns false if the
// server is stopped.
func (s *server) addConn(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		s.conns[conn] = true
	}
	return s.listener != nil
}

// session serves one connection. The client first sends "HBas", version 0,
// authentication 0x50 (simple) and a connection header, then calls in frames.
func (s *server) session(conn net.Conn) {
	if !s.addConn(conn) || !s.awaitRunning() {
		return
	}
	preamble := make([]byte, 6)
	if _, err := io.ReadFull(conn, preamble); err != nil || string(preamble) != "HBas\x00\x50" {
		return
	}

	if _, err := readFrame(conn); err != nil {
		return
	}

	life := s.lives.Load()
	l := &clientConn{s: s, conn: conn, ended: make(chan struct{}), writes: make(chan struct{}, 1)}
	defer close(l.ended)
	for s.awaitRunning() {
		frame, err := readFrame(conn)
		if err != nil {
			return
		}
		call, err := parseCall(frame)
		if err != nil {
			return
		}
		call.life, call.ended = life, l.ended

		// Counted on arrival: a call that a fault ends has been sent all the same.
		if call.header.GetMethodName() == "Multi" {
			s.c.received.Add(int64(countCells(call.cells)))
		}

		// Without a limit the calls of a connection are executed one after another, so
		// that a test's hook knows the order in which it meets them.
		if s.handlers == nil {
			if l.answer(call) != nil {
				return
			}
			continue
		}

		s.c.wg.Go(func() { l.handle(call) })
	}
}

// clientConn is the connection of one client.
type clientConn struct {
	s     *server
	conn  net.Conn
	ended chan struct{} // closed with the connection
	deaf  atomic.Bool   // nothing more is executed or written, see Deafen
	// writes has an element while a reply is written. It is no mutex, on which simulated time would
	// wait: a client may be stalled.
	writes chan struct{}
}

// highPriority is the priority above which calls do not wait for a handler.
const highPriority = 10

// skipsQueue reports whether a call does not wait for a handler.
func (s *server) skipsQueue(c *call) bool {
	urgent := c.header.GetPriority() > highPriority && !s.c.opts.NoPriority
	return urgent || bytes.Contains(c.param, []byte(metaRegion))
}

// handle waits for a handler and executes a call.
func (l *clientConn) handle(c *call) {
	if !l.s.skipsQueue(c) {
		select {
		case l.s.handlers <- struct{}{}:
			defer func() { <-l.s.handlers }()
		case <-l.ended:
			// HBase drops calls that are queued when their connection ends.
			return
		}
	}

	if l.answer(c) != nil {
		l.conn.Close()
	}
}

// answer executes a call and writes the reply. After an error the caller closes the
// connection.
func (l *clientConn) answer(c *call) error {
	if l.deaf.Load() {
		return nil
	}

	reply, beforeReply, err := l.s.answer(c)
	if errors.Is(err, errDeaf) {
		l.deaf.Store(true)
		return nil
	}
	// It may use the cluster, which is not locked here.
	if beforeReply != nil {
		beforeReply()
	}

	// Another call may have made the connection deaf in between.
	if err != nil || reply == nil || l.deaf.Load() {
		return err
	}
	// A paused server writes nothing.
	if !l.s.awaitRunning() {
		return errBroken
	}

	l.writes <- struct{}{}
	defer func() { <-l.writes }()
	return writeFrame(l.conn, reply)
}

// call is a decoded request frame.
type call struct {
	header pb.RequestHeader
	param  []byte
	cells  []byte
	life   int32           // of its server
	ended  <-chan struct{} // closed with its connection
}

var (
	// errBroken is returned when the connection is to be closed without a reply.
	errBroken = errors.New("connection is to be closed")
	// errDeaf is returned when nothing more is to be written to the connection.
	errDeaf = errors.New("connection is to write nothing more")
)

// hasEnded reports whether the call's connection has ended.
func (c *call) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

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

// answer executes a call with the cluster locked. It returns the frame of the reply,
// nil if none is to be sent, and a function to call before it is sent, or nil.
func (s *server) answer(call *call) (reply []byte, beforeReply func(), err error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	reply, err = s.replyLocked(call)
	if s.c.onReadPoint != nil {
		beforeReply = readPointHook(call, s.c.onReadPoint)
	}
	return reply, beforeReply, err
}

// readPointHook returns a call of f with the table's name if the call requests a
// read point and no rows, else nil.
func readPointHook(call *call, f func(table string)) func() {
	var m pb.ScanRequest
	if call.header.GetMethodName() != "Scan" || proto.Unmarshal(call.param, &m) != nil || m.ScannerId != nil ||
		m.GetNumberOfRows() > 0 {
		return nil
	}
	table, _, _ := strings.Cut(string(m.GetRegion().GetValue()), ",")
	return func() { f(table) }
}

// replyLocked executes a call, with the fault that the hook wants, and returns the
// frame of the reply. c.mu is held.
func (s *server) replyLocked(call *call) ([]byte, error) {
	method := call.header.GetMethodName()
	fault := s.faultLocked(method, call)
	if fault.Kind == DropBefore || fault.Delay > 0 && !s.sleepLocked(fault.Delay) {
		return nil, errBroken
	}
	if fault.Kind == Deafen {
		return nil, errDeaf
	}
	if fault.Queued && call.hasEnded() || call.life != s.lives.Load() {
		return nil, errBroken
	}

	// Executed even if its reply is lost or cut below.
	response, cells, err := s.executeOrRefuse(method, call, fault)
	switch fault.Kind {
	case DropAfter:
		return nil, errBroken
	case Hang:
		return nil, nil
	case CutCells:
		// A reply without cells has no byte to lose.
		if len(cells) == 0 {
			return nil, errBroken
		}
		cells = cells[:len(cells)-1]
	}

	if fault.Change != nil && err == nil {
		fault.Change(response)
	}
	return encodeReply(call.header.GetCallId(), response, cells, err), nil
}

// sleepLocked waits with the cluster unlocked. It returns false once the cluster is
// closed.
func (s *server) sleepLocked(d time.Duration) bool {
	s.c.mu.Unlock()
	defer s.c.mu.Lock()

	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return s.awaitRunning()
	case <-s.c.done:
		return false
	}
}

// executeOrRefuse executes a call, or those of its actions that the fault allows.
func (s *server) executeOrRefuse(method string, call *call, fault Fault) (proto.Message, []byte, error) {
	switch {
	case fault.Kind == Refuse:
		return nil, nil, throw(fault.Exception, "injected")
	case fault.Kind == SkipActions && method == "Multi":
		return decoded(call, &pb.MultiRequest{}, func(m *pb.MultiRequest) (proto.Message, []byte, error) {
			// Each call skips the other half, so that no action is skipped for ever.
			return s.multi(m, call.cells, (s.c.calls[method]-1)%2)
		})
	case fault.Kind == RefuseActions && method == "Multi":
		return decoded(call, &pb.MultiRequest{}, func(m *pb.MultiRequest) (proto.Message, []byte, error) {
			return refuseActions(m, throw(fault.Exception, "injected")), nil, nil
		})
	}

	return s.execute(method, call)
}

// execute executes a method.
func (s *server) execute(method string, c *call) (proto.Message, []byte, error) {
	switch method {
	case "Scan":
		return decoded(c, &pb.ScanRequest{}, s.scan)
	case "Get":
		return decoded(c, &pb.GetRequest{}, s.get)
	case "Mutate":
		return decoded(c, &pb.MutateRequest{},
			func(m *pb.MutateRequest) (proto.Message, []byte, error) { return s.mutateOne(m, c.cells) })
	case "Multi":
		// -1: no action is left out.
		return decoded(c, &pb.MultiRequest{},
			func(m *pb.MultiRequest) (proto.Message, []byte, error) { return s.multi(m, c.cells, -1) })
	case "CreateTable":
		return decoded(c, &pb.CreateTableRequest{}, s.createTable)
	case "getProcedureResult":
		// createTable has already created the table.
		return &pb.GetProcedureResultResponse{State: pb.GetProcedureResultResponse_FINISHED.Enum()}, nil, nil
	case "GetStoreFile":
		return s.storeFiles(c.param)
	case "GetClusterId", "GetActiveMaster", "GetMasters", "GetMetaRegionLocations", "GetBootstrapNodes":
		return s.node(method)
	case "getSecurityCapabilities":
		return s.capabilities()
	case "HasUserPermissions":
		return s.permissions(c.param)
	case "GetClusterStatus":
		return s.clusterStatus()
	case "GetTableDescriptors":
		return decoded(c, &pb.GetTableDescriptorsRequest{}, s.descriptors)
	}

	return nil, nil, lacks(method)
}

// decoded calls f with the call's message, decoded into m.
func decoded[M proto.Message](c *call, m M, f func(M) (proto.Message, []byte, error)) (proto.Message, []byte, error) {
	if err := proto.Unmarshal(c.param, m); err != nil {
		return nil, nil, throw(doNotRetry, "%v", err)
	}
	return f(m)
}

// encodeReply returns the frame of a reply, or of an exception if err is one.
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
