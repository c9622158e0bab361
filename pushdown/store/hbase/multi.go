package hbase

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

const (
	maxActions  = 1000    // row operations in one call
	maxGets     = 250     // rows asked for in one call: their size is not known
	maxOutBytes = 4 << 20 // cells sent in one call
)

// action is one row's part of a Multi call and its outcome.
type action struct {
	row      []byte
	get      *pb.Get
	mutation *pb.MutationProto // names the count of cells
	cells    []byte            // what the mutation writes, as a cell block
	origin   []int             // indexes of the caller's mutations

	finished bool
	err      error  // of a finished action, final
	result   []byte // cells that came back
}

// nonces number mutations that must not be done twice, so that a server
// recognizes one sent again after a lost reply.
type nonces struct{ group uint64 }

func newNonces() nonces { return nonces{group: rand.Uint64() | 1} }

func (n nonces) next() *uint64 { return proto.Uint64(rand.Uint64() | 1) }

// batch runs actions on whatever servers hold their rows, those that fail
// again and again, until ctx ends. Outcomes are in the actions; an error in
// each that did not succeed.
func (st *Store) batch(ctx context.Context, table string, actions []*action) error {
	if err := st.enter(); err != nil {
		return err
	}
	defer st.wg.Done()
	retry := st.newRetrier(ctx, table)
	for pending := actions; ; {
		err := st.round(ctx, table, pending)
		left := unfinished(pending)
		if len(left) == 0 {
			return nil
		}
		if len(left) < len(pending) {
			retry.progress()
		}
		pending = left
		if err := retry.after(err); err != nil {
			for _, a := range pending {
				a.finish(err)
			}
			return nil
		}
	}
}

func (a *action) finish(err error) { a.finished, a.err = true, err }

func unfinished(actions []*action) []*action {
	var left []*action
	for _, a := range actions {
		if !a.finished {
			left = append(left, a)
		}
	}
	return left
}

// share is what one region gets of a round.
type share struct {
	loc     *location
	actions []*action
}

// round sends every action once, to all servers at the same time, and returns
// a fault that left some unfinished.
func (st *Store) round(ctx context.Context, table string, actions []*action) error {
	servers, fault := st.distribute(ctx, table, actions)
	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)
	for _, shares := range servers {
		wg.Go(func() {
			for _, part := range split(shares) {
				if err := st.multi(ctx, part); err != nil {
					mu.Lock()
					fault = err
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return fault
}

// distribute finds the regions of actions, by server. After a failed look-up
// the rest waits for the next round.
func (st *Store) distribute(ctx context.Context, table string, actions []*action) (map[string][]*share, error) {
	byRegion := map[*location]*share{}
	servers := map[string][]*share{}
	for _, a := range actions {
		loc, err := st.locate(ctx, table, a.row)
		if err != nil {
			return servers, err
		}
		s := byRegion[loc]
		if s == nil {
			s = &share{loc: loc}
			byRegion[loc] = s
			servers[loc.addr] = append(servers[loc.addr], s)
		}
		s.actions = append(s.actions, a)
	}
	return servers, nil
}

// split cuts one server's shares into calls of bounded size.
func split(shares []*share) [][]*share {
	var (
		calls       [][]*share
		call        []*share
		count, size int
	)
	for _, s := range shares {
		part := &share{loc: s.loc}
		for _, a := range s.actions {
			limit := maxActions
			if a.get != nil {
				limit = maxGets
			}
			if count == limit || count > 0 && size+len(a.cells) > maxOutBytes {
				calls = append(calls, addShare(call, part))
				call, part, count, size = nil, &share{loc: s.loc}, 0, 0
			}
			part.actions = append(part.actions, a)
			count++
			size += len(a.cells)
		}
		call = addShare(call, part)
	}
	if len(call) > 0 {
		calls = append(calls, call)
	}
	return calls
}

func addShare(call []*share, s *share) []*share {
	if len(s.actions) == 0 {
		return call
	}
	return append(call, s)
}

// multi sends one call to one server and reads its outcomes. It returns a
// fault that may be tried again; final ones are put into their actions.
func (st *Store) multi(ctx context.Context, shares []*share) error {
	call, sent := st.multiCall(ctx, shares)
	if err := st.call(ctx, shares[0].loc, call); err != nil {
		if v := judge(err); v == fatal {
			for _, a := range sent {
				a.finish(readable(err))
			}
		}
		return err
	}
	return st.outcomes(shares, sent, call)
}

// multiCall writes the request; the index of an action in it is its place in
// the returned slice.
func (st *Store) multiCall(ctx context.Context, shares []*share) (*rpc, []*action) {
	request := &pb.MultiRequest{NonceGroup: &st.nonces.group}
	var sent []*action
	var cells []byte
	for _, s := range shares {
		ra := &pb.RegionAction{Region: regionSpecifier(s.loc.name), Action: make([]*pb.Action, len(s.actions))}
		for i, a := range s.actions {
			ra.Action[i] = &pb.Action{Index: proto.Uint32(uint32(len(sent))), Get: a.get, Mutation: a.mutation}
			sent = append(sent, a)
			cells = append(cells, a.cells...)
		}
		request.RegionAction = append(request.RegionAction, ra)
	}
	call := newRPC(ctx, "Multi", request, &pb.MultiResponse{})
	call.table = shares[0].loc.table
	call.outCells = cells
	return call, sent
}

// outcomes deals the reply out to the actions. The cells of all results come
// in one block, in the order of the results.
func (st *Store) outcomes(shares []*share, sent []*action, call *rpc) error {
	results := call.response.(*pb.MultiResponse).GetRegionActionResult()
	if len(results) != len(shares) {
		return fmt.Errorf("multi: got the results of %d regions, want %d", len(results), len(shares))
	}
	var fault error
	note := func(loc *location, err error) {
		st.learn(loc, nil, err)
		fault = err
	}
	block := call.cells
	for i, r := range results {
		if e := r.GetException(); e != nil {
			st.refuse(shares[i].actions, e, func(err error) { note(shares[i].loc, err) })
			continue
		}
		for _, roe := range r.GetResultOrException() {
			if int(roe.GetIndex()) >= len(sent) {
				return fmt.Errorf("multi: got a result of action %d, want one below %d", roe.GetIndex(), len(sent))
			}
			a := sent[roe.GetIndex()]
			if e := roe.GetException(); e != nil {
				st.refuse([]*action{a}, e, func(err error) { note(shares[i].loc, err) })
				continue
			}
			n, err := cellsLen(block, int(roe.GetResult().GetAssociatedCellCount()))
			if err != nil {
				return err
			}
			a.result, block = block[:n:n], block[n:]
			a.finish(nil)
		}
	}
	return fault
}

// refuse deals with an exception for some actions of a call.
func (st *Store) refuse(actions []*action, e *pb.NameBytesPair, again func(error)) {
	err := exception(e)
	switch judge(err) {
	case done:
		err = nil
		fallthrough
	case fatal:
		for _, a := range actions {
			a.finish(err)
		}
	default:
		again(err)
	}
}

// exception reads an exception inside a reply: class and stack.
func exception(e *pb.NameBytesPair) error {
	return newJavaError(e.GetName(), string(e.GetValue()))
}

// cellsLen is the length of the first n cells of block.
func cellsLen(block []byte, n int) (int, error) {
	length := 0
	for range n {
		if len(block)-length < fixed {
			return 0, fmt.Errorf("%w: %d bytes left, want %d more cells", errCellBlock, len(block)-length, n)
		}
		length += 4 + int(binary.BigEndian.Uint32(block[length:]))
		if length > len(block) {
			return 0, fmt.Errorf("%w: a cell ends %d bytes behind the block", errCellBlock, length-len(block))
		}
	}
	return length, nil
}
