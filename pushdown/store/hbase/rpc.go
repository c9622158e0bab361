package hbase

import (
	"context"
	"time"

	"github.com/tsuna/gohbase/hrpc"
	"google.golang.org/protobuf/proto"
)

// rpc is one call to one server, used once: a reply that comes after its
// caller has given up lands in an object that nobody reads any more. It
// implements gohbase's hrpc.Call, and keeps the reply's cell block as the
// bytes that came instead of letting gohbase's single reader goroutine decode
// it.
type rpc struct {
	ctx      context.Context
	name     string // method of ClientService or MasterService
	table    string // for metrics and traces only; the request names the region
	request  proto.Message
	outCells []byte // cell block to send behind the request
	response proto.Message
	result   chan hrpc.RPCResult

	loc   *location // where it is sent; nil for the master
	began time.Time // when it was sent
	write bool      // mutations, which must not be done any more once they are given up
	high  bool      // high priority: the server has handlers for it beside those of other calls

	cells []byte // the reply's cell block; read it after result has delivered
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

// Priority is the one in the call's header, where 0 is none. Of servers from
// HBase 1.0 on, calls above 10 have handlers of their own.
func (r *rpc) Priority() uint32 {
	if r.high {
		return highPriority
	}
	return 0
}

// highPriority is HConstants.HIGH_QOS.
const highPriority = 200

// Description is part of hrpc.Call.
func (r *rpc) Description() string { return r.name }

// Key is part of hrpc.Call; routing is done before a call is made.
func (r *rpc) Key() []byte { return nil }

// Region is part of hrpc.Call; the request names its region itself.
func (r *rpc) Region() hrpc.RegionInfo { return nil }

// SetRegion is part of hrpc.Call.
func (r *rpc) SetRegion(hrpc.RegionInfo) {}

// ToProto gives the request when no cell block goes with it.
func (r *rpc) ToProto() proto.Message { return r.request }

// NewResponse gives the message to decode the reply into.
func (r *rpc) NewResponse() proto.Message { return r.response }

// ResultChan receives the outcome, once.
func (r *rpc) ResultChan() chan hrpc.RPCResult { return r.result }

// Context ends the interest in the reply.
func (r *rpc) Context() context.Context { return r.ctx }

// CellBlocksEnabled makes gohbase ask SerializeCellBlocks for the request.
func (r *rpc) CellBlocksEnabled() bool { return len(r.outCells) > 0 }

// SerializeCellBlocks gives the request and the cell block behind it.
func (r *rpc) SerializeCellBlocks([][]byte) (proto.Message, [][]byte, uint32) {
	return r.request, [][]byte{r.outCells}, uint32(len(r.outCells))
}

// DeserializeCellBlocks keeps the reply's cell block, which gohbase allocates
// anew for every reply, and reports it as read.
func (r *rpc) DeserializeCellBlocks(_ proto.Message, block []byte) (uint32, error) {
	r.cells = block
	return uint32(len(block)), nil
}
