package calls

import (
	"context"
	"time"

	"github.com/tsuna/gohbase/hrpc"
	"google.golang.org/protobuf/proto"
)

// Call is one call to one server. It is used once: a reply that comes after its caller has given up
// is decoded into an object that is never read.
//
// It keeps the reply's cell block as bytes, instead of letting gohbase's only reader
// goroutine of a connection decode it.
type Call struct {
	OutCells []byte // cell block to send after the request
	Write    bool   // it holds mutations, which must not be executed after it was given up
	// Moved reports whether the target of the call, a region or the master's role, is
	// no longer at the server that it was sent to. It may call other servers. It is
	// called while the server is silent; nil if the target does not move.
	Moved func(ctx context.Context) bool

	Began    time.Time     // when it was sent
	Response proto.Message // the reply, once Conn.Wait has returned no error
	Cells    []byte        // its cell block

	ctx          context.Context
	name         string // method of the service
	request      proto.Message
	highPriority bool // the server has separate handlers for such calls
	result       chan hrpc.RPCResult
}

// New makes a call of a method. ctx ends when the reply is no longer awaited. The reply
// is decoded into response.
func New(ctx context.Context, name string, request, response proto.Message) *Call {
	return &Call{
		ctx:      ctx,
		name:     name,
		request:  request,
		Response: response,
		result:   make(chan hrpc.RPCResult, 1),
	}
}

// queued is a call as gohbase takes it, its hrpc.Call.
type queued struct{ *Call }

// Table is part of hrpc.Call. The request names its region itself.
func (r queued) Table() []byte { return nil }

// Name is the method's name on the wire.
func (r queued) Name() string { return r.name }

// Priority is the one in the call's header; 0 sends none. Servers from HBase 1.0 on
// have separate handlers for calls with a priority above 10.
func (r queued) Priority() uint32 {
	if r.highPriority {
		return highQOS
	}
	return 0
}

// highQOS is HBase's HConstants.HIGH_QOS.
const highQOS = 200

// Description is part of hrpc.Call.
func (r queued) Description() string { return r.name }

// Key is part of hrpc.Call. It is not needed, as routing is done before a call is
// made.
func (r queued) Key() []byte { return nil }

// Region is part of hrpc.Call. The request names its region itself.
func (r queued) Region() hrpc.RegionInfo { return nil }

// SetRegion is part of hrpc.Call.
func (r queued) SetRegion(hrpc.RegionInfo) {}

// ToProto returns the request of a call without a cell block.
func (r queued) ToProto() proto.Message { return r.request }

// NewResponse returns the message to decode the reply into.
func (r queued) NewResponse() proto.Message { return r.Response }

// ResultChan returns the channel that receives the outcome, once.
func (r queued) ResultChan() chan hrpc.RPCResult { return r.result }

// Context returns a context that ends when the reply is no longer awaited.
func (r queued) Context() context.Context { return r.ctx }

// CellBlocksEnabled makes gohbase ask SerializeCellBlocks for the request.
func (r queued) CellBlocksEnabled() bool { return len(r.OutCells) > 0 }

// SerializeCellBlocks returns the request and the cell block after it.
func (r queued) SerializeCellBlocks([][]byte) (proto.Message, [][]byte, uint32) {
	return r.request, [][]byte{r.OutCells}, uint32(len(r.OutCells))
}

// DeserializeCellBlocks keeps the reply's cell block and reports it as read.
// gohbase allocates a new block for every reply.
func (r queued) DeserializeCellBlocks(_ proto.Message, block []byte) (uint32, error) {
	r.Cells = block
	return uint32(len(block)), nil
}
