package hbase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

const (
	maxActions  = 1000    // row operations in one call; a region gets fewer at first, see window
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

	told      bool              // the reply being read has a result or an exception of it
	exception *pb.NameBytesPair // of that reply

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
	if len(actions) > 0 && actions[0].get == nil {
		ctx, retry = retry.forWrite()
		defer retry.cancel()
	}
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
		if err == nil {
			err = errLeftOut
		}
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

// share is what one region gets of a round, or of a call.
type share struct {
	loc     *location
	actions []*action
	rest    *share // of a call's share: what the round still has for the region
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
			if err := st.serve(ctx, shares); err != nil {
				mu.Lock()
				fault = err
				mu.Unlock()
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

// serve sends one server its shares, call after call. What a region has refused
// stays for the next round, and so does everything once a call has failed as a
// whole. There is never more than one call of a batch at a server.
func (st *Store) serve(ctx context.Context, shares []*share) (fault error) {
	for {
		call, err := st.nextCall(shares)
		if err != nil {
			fault = err
		}
		if len(call) == 0 {
			return fault
		}
		whole, err := st.multi(ctx, call)
		if err != nil {
			fault = err
		}
		if whole {
			return fault
		}
		for _, s := range call {
			if len(unfinished(s.actions)) > 0 {
				s.rest.actions = nil
			}
		}
	}
}

// nextCall takes a call of bounded size out of one server's shares. Those of
// regions that take no writes now stay for the next round.
func (st *Store) nextCall(shares []*share) (call []*share, fault error) {
	room, bytes := maxActions, maxOutBytes
	for _, s := range shares {
		if len(s.actions) == 0 {
			continue
		}
		w := window{size: fullWindow}
		if s.actions[0].get != nil {
			room = min(room, maxGets)
		} else if now, err := st.paces.window(s.loc.name); err == nil {
			w = now
		} else {
			fault = fmt.Errorf("%w: region %q at %s", err, s.loc.name, s.loc.addr)
			s.actions = nil
			continue
		}
		n, size := fit(s.actions, min(room, w.size), min(bytes, w.bytes()))
		if n == 0 || size > bytes && len(call) > 0 {
			break
		}
		call = append(call, &share{loc: s.loc, actions: s.actions[:n], rest: s})
		s.actions = s.actions[n:]
		room -= n
		bytes -= size
	}
	return call, fault
}

// fit tells how many of the first actions, at most count, keep within a size;
// one alone may be larger.
func fit(actions []*action, count, limit int) (n, size int) {
	for n < min(count, len(actions)) {
		next := size + len(actions[n].cells)
		if n > 0 && next > limit {
			break
		}
		n, size = n+1, next
	}
	return n, size
}

// multi sends one call to one server and reads its outcomes. It returns a
// fault that may be tried again, and whether that is of the whole call; final
// ones are put into their actions.
func (st *Store) multi(ctx context.Context, shares []*share) (whole bool, err error) {
	call, sent := st.multiCall(ctx, shares)
	if call.write {
		st.paces.begin(shares)
		defer st.paces.end(shares)
	}
	c, err := st.exchange(ctx, shares[0].loc, call)
	if err == nil {
		return st.outcomes(shares, sent, call)
	}
	if call.write {
		st.slowDown(ctx, c, call, shares, err)
	}
	if judge(err) == fatal {
		for _, a := range sent {
			a.finish(readable(err))
		}
	}
	return true, err
}

// slowDown draws the consequences of a failed write: less is sent next time to
// regions that it did not get to, and nothing to those that still have it.
func (st *Store) slowDown(ctx context.Context, c *conn, call *rpc, shares []*share, err error) {
	if c != nil && err == ctx.Err() { // sent, and not known to be lost
		st.leave(c, call, shares)
		return
	}
	for _, s := range shares {
		if _, lost := err.(*lostError); lost {
			st.paces.lost(s.loc.name, call.began)
		} else if judge(err) == busy {
			st.paces.refused(s.loc.name, call.began)
		}
	}
}

// leave goes on waiting for a write whose caller has gone.
func (st *Store) leave(c *conn, call *rpc, shares []*share) {
	settled := st.paces.leave(shares)
	st.wg.Go(func() {
		defer settled()
		st.learn(shares[0].loc, c, st.servers.wait(st.life, c, call))
	})
}

// multiCall writes the request; the index of an action in it is its place in
// the returned slice. A write outlives its caller, see paces.
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
	write := sent[0].get == nil
	if write {
		ctx = st.life
	}
	call := newRPC(ctx, "Multi", request, &pb.MultiResponse{})
	call.table, call.write, call.outCells = shares[0].loc.table, write, cells
	return call, sent
}

// outcomes deals the reply out to the actions. Those that it leaves out stay
// unfinished.
func (st *Store) outcomes(shares []*share, sent []*action, call *rpc) (whole bool, err error) {
	addr := shares[0].loc.addr
	if err := readMulti(call.response.(*pb.MultiResponse), call.cells, shares); err != nil {
		return true, fmt.Errorf("%w from %s: %w", errReply, addr, err)
	}
	var fault error
	leftOut := 0
	for _, s := range shares {
		taken, refused := 0, false
		for _, a := range s.actions {
			switch {
			case !a.told:
				leftOut++
			case a.exception == nil:
				a.finish(nil)
				taken++
			default:
				v := st.refuse(a, func(err error) { st.learn(s.loc, nil, err); fault = err })
				refused = refused || v == busy
			}
		}
		switch {
		case !call.write:
		case refused:
			st.paces.refused(s.loc.name, call.began)
		case taken > 0:
			st.paces.taken(s.loc.name, taken)
		}
	}
	if fault == nil && leftOut > 0 {
		fault = fmt.Errorf("%w from %s: %w: %d of %d actions", errReply, addr, errLeftOut, leftOut, len(sent))
	}
	return false, fault
}

// errReply is an answer that no server should give.
var errReply = errors.New("malformed reply")

// errLeftOut is a reply without the outcome of an action: its fate is unknown.
var errLeftOut = errors.New("outcomes are left out")

// readMulti reads what a reply says of each action. The cells of all results
// come in one block, in the order of the results. A reply that cannot be is
// refused whole: nothing that such a server says is believed.
func readMulti(response *pb.MultiResponse, block []byte, shares []*share) error {
	results := response.GetRegionActionResult()
	if len(results) != len(shares) {
		return fmt.Errorf("multi: got the results of %d regions, want %d", len(results), len(shares))
	}
	for _, s := range shares {
		for _, a := range s.actions {
			a.told, a.exception, a.result = false, nil, nil
		}
	}
	first := 0
	for i, r := range results {
		var err error
		if block, err = readRegion(r, block, shares[i].actions, first); err != nil {
			return err
		}
		first += len(shares[i].actions)
	}
	if len(block) > 0 {
		return fmt.Errorf("multi: %w: %d bytes behind the last result", errCellBlock, len(block))
	}
	return nil
}

// readRegion reads the results of one region's actions, whose indexes begin at
// first, and returns what is behind their cells.
func readRegion(r *pb.RegionActionResult, block []byte, actions []*action, first int) ([]byte, error) {
	for _, roe := range r.GetResultOrException() {
		index := int64(roe.GetIndex()) - int64(first)
		if roe.Index == nil || index < 0 || index >= int64(len(actions)) {
			return nil, fmt.Errorf("multi: got a result of action %d, want %d to %d", roe.GetIndex(), first, first+len(actions)-1)
		}
		a := actions[index]
		if a.told {
			return nil, fmt.Errorf("multi: got two results of action %d", roe.GetIndex())
		}
		if a.exception = roe.GetException(); a.exception != nil {
			a.told = true
			continue
		}
		n, err := cellsLen(block, int(roe.GetResult().GetAssociatedCellCount()), a.row)
		if err != nil {
			return nil, err
		}
		a.result, block = block[:n:n], block[n:]
		a.told = a.get == nil || roe.Result != nil
	}
	// Where the region has failed as a whole, its results tell nothing.
	if e := r.GetException(); e != nil {
		for _, a := range actions {
			a.told, a.exception = true, e
		}
	}
	return block, nil
}

// refuse deals with the exception of an action.
func (st *Store) refuse(a *action, again func(error)) retryClass {
	err := exception(a.exception)
	v := judge(err)
	switch v {
	case done:
		a.finish(nil)
	case fatal:
		a.finish(err)
	default:
		again(err)
	}
	return v
}

// exception reads an exception inside a reply: class and stack.
func exception(e *pb.NameBytesPair) error {
	return newJavaError(e.GetName(), string(e.GetValue()))
}

// cellsLen is the length of the first n cells of block, which must be of a row.
func cellsLen(block []byte, n int, row []byte) (int, error) {
	if n < 0 {
		return 0, fmt.Errorf("%w: got %d cells", errCellBlock, n)
	}
	length := 0
	for range n {
		var cell store.Cell
		got, rest, err := splitCell(block[length:], &cell)
		if err != nil {
			return 0, fmt.Errorf("%w, want %d cells of row %x", err, n, row)
		}
		if !bytes.Equal(got, row) {
			return 0, fmt.Errorf("%w: a cell of row %x, want row %x", errCellBlock, got, row)
		}
		length = len(block) - len(rest)
	}
	return length, nil
}
