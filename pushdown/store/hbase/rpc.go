package hbase

import (
	"context"
	"time"

	"github.com/tsuna/gohbase/hrpc"
	"google.golang.org/protobuf/proto"
)

// rpc is one call to one server. It is used once: a reply that comes after its
// caller has given up is decoded into an object that nobody reads any more.
//
// It implements gohbase's hrpc.Call. It keeps the reply's cell block as bytes,
// instead of letting gohbase's only reader goroutine of a connection decode it.
type rpc struct {
	ctx      context.Context
	name     string // method of ClientService or MasterService
	table    string // for metrics and traces only; the request names the region
	request  proto.Message
	outCells []byte // cell block to send after the request
	response proto.Message
	result   chan hrpc.RPCResult

	loc          *location // where it is sent; nil for the master
	began        time.Time // when it was sent
	write        bool      // it holds mutations, which must not be executed after it was given up
	highPriority bool      // the server has separate handlers for such calls

	cells []byte // the reply's cell block; may be read once result has delivered
}

func newRPC(ctx context.Context, name string, request, response proto.Message) *rpc {
	return &rpc{
		ctx:      ctx,
		name:     name,
		request:  request,
		response: response,
		result:   make(chan hrpc.RPCResult, 1),
	}
}

// Table is part of hrpc.Call.
func (r *rpc) Table() []byte { return []byte(r.table) }

// Name is the method's name on the wire.
func (r *rpc) Name() string { return r.name }

// Priority is the one in the call's header; 0 sends none. Servers from HBase 1.0 on
// have separate handlers for calls with a priority above 10.
func (r *rpc) Priority() uint32 {
	if r.highPriority {
		return highQOS
	}
	return 0
}

// highQOS is HBase's HConstants.HIGH_QOS.
const highQOS = 200

// Description is part of hrpc.Call.
func (r *rpc) Description() string { return r.name }

// Key is part of hrpc.Call. It is not needed, as routing is done before a call is
// made.
func (r *rpc) Key() []byte { return nil }

// Region is part of hrpc.Call. The request names its region itself.
func (r *rpc) Region() hrpc.RegionInfo { return nil }

// SetRegion is part of hrpc.Call.
func (r *rpc) SetRegion(hrpc.RegionInfo) {}

// ToProto returns the request of a call without a cell block.
func (r *rpc) ToProto() proto.Message { return r.request }

// NewResponse returns the message to decode the reply into.
func (r *rpc) NewResponse() proto.Message { return r.response }

// ResultChan returns the channel that receives the outcome, once.
func (r *rpc) ResultChan() chan hrpc.RPCResult { return r.result }

// Context returns a context that ends when nobody waits for the reply any more.
func (r *rpc) Context() context.Context { return r.ctx }

// CellBlocksEnabled makes gohbase ask SerializeCellBlocks for the request.
func (r *rpc) CellBlocksEnabled() bool { return len(r.outCells) > 0 }

// SerializeCellBlocks returns the request and the cell block after it.
func (r *rpc) SerializeCellBlocks([][]byte) (proto.Message, [][]byte, uint32) {
	return r.request, [][]byte{r.outCells}, uint32(len(r.outCells))
}

// DeserializeCellBlocks keeps the reply's cell block and reports it as read.
// gohbase allocates a new block for every reply.
func (r *rpc) DeserializeCellBlocks(_ proto.Message, block []byte) (uint32, error) {
	r.cells = block
	return uint32(len(block)), nil
}
