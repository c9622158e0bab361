package hbase

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"

	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/cellblock"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
)

// Limits of one Multi call.
const (
	maxActions  = 1000    // row operations; a region gets fewer at first, see window
	maxGets     = 250     // rows to read: the size of the reply is not known beforehand
	maxOutBytes = 4 << 20 // cells to send, unless a single action is larger
)

// action is what a Multi call does to one row: a get or a mutation, and its
// outcome.
type action struct {
	row      []byte
	get      *pb.Get           // nil for a mutation
	mutation *pb.MutationProto // without cells; it has the number of its cells
	cells    []byte            // what the mutation writes, as a cell block
	origin   []int             // indexes of the caller's mutations

	// Of the reply that is being decoded.
	answered  bool              // it has a result or an exception for the action
	exception *pb.NameBytesPair // class and stack trace

	// The final outcome.
	finished bool
	err      error  // nil if the action succeeded
	result   []byte // a get's cells, as a cell block
}

func (a *action) finish(err error) { a.finished, a.err = true, err }

// unfinished returns the actions without a final outcome.
func unfinished(actions []*action) []*action {
	var left []*action
	for _, a := range actions {
		if !a.finished {
			left = append(left, a)
		}
	}
	return left
}

// nonces makes the numbers of mutations that must not be executed twice. A server
// recognizes by its number a mutation that is sent again after a lost reply.
type nonces struct{ group uint64 }

func newNonces() nonces { return nonces{group: rand.Uint64() | 1} }

// next returns a random nonce; 0 would mean none.
func (n nonces) next() *uint64 { return proto.Uint64(rand.Uint64() | 1) }

// runActions executes actions, which are all gets or all mutations, on whatever servers
// hold their rows. Temporary failures are sent again until ctx ends or, for gets,
// Config.RetryTimeout has passed without progress. Each action then has its outcome, an
// error of its own if it failed. runActions itself returns an error only if the store
// is closed.
func (st *Store) runActions(ctx context.Context, table string, actions []*action) error {
	if err := st.life.Begin(); err != nil {
		return err
	}
	defer st.life.Done()

	retry := st.router.NewRetrier(ctx, table)
	// After an error the caller would only send the write again: it has until ctx ends.
	if len(actions) > 0 && actions[0].get == nil {
		var cancel context.CancelFunc
		ctx, retry, cancel = retry.ForWrite()
		defer cancel()
	}

	for pending := actions; ; {
		err := st.sendRound(ctx, table, pending)
		left := unfinished(pending)
		if len(left) == 0 {
			return nil
		}
		if len(left) < len(pending) {
			retry.MadeProgress()
		}
		pending = left

		// Some actions remain, so there must be a reason to classify.
		if err == nil {
			err = errLeftOut
		}
		if err := retry.AfterFailure(err); err != nil {
			for _, a := range pending {
				a.finish(err)
			}
			return nil
		}
	}
}

// regionBatch is the actions of one region: those that a round still has to send,
// or those that one call sends.
type regionBatch struct {
	loc     *regions.Location
	actions []*action

	// round is set in the batch of a call: what the round still has for the region.
	round *regionBatch
}

// sendRound sends every action once, to all servers at the same time. It returns
// one of the errors that left actions unfinished.
func (st *Store) sendRound(ctx context.Context, table string, actions []*action) error {
	servers, failure := st.groupByServer(ctx, table, actions)

	var sends errgroup.Group
	for _, batches := range servers {
		sends.Go(func() error { return st.sendToServer(ctx, batches) })
	}
	return cmp.Or(sends.Wait(), failure)
}

// groupByServer groups actions by their region, and the regions by the address of their
// server. After a failed look-up the remaining actions wait for the next round.
func (st *Store) groupByServer(ctx context.Context, table string,
	actions []*action) (map[string][]*regionBatch, error) {
	byRegion := map[*regions.Location]*regionBatch{}
	servers := map[string][]*regionBatch{}
	for _, a := range actions {
		loc, err := st.router.Locate(ctx, table, a.row)
		if err != nil {
			return servers, err
		}

		b := byRegion[loc]
		if b == nil {
			b = &regionBatch{loc: loc}
			byRegion[loc] = b
			servers[loc.Addr] = append(servers[loc.Addr], b)
		}
		b.actions = append(b.actions, a)
	}
	return servers, nil
}

// sendToServer sends the batches of one server, call after call: the actions of
// one runActions are never in more than one call at a server. If a region has
// refused actions, it may have moved or be overloaded: the rest of its batch waits for
// the next round, after a pause. If a whole call has failed, the rest of all batches does.
func (st *Store) sendToServer(ctx context.Context, batches []*regionBatch) (failure error) {
	for {
		call, err := st.nextCall(batches)
		// Even if some regions get nothing now, the call may still hold actions of others.
		failure = cmp.Or(err, failure)
		if len(call) == 0 {
			return failure
		}

		callFailed, err := st.sendMulti(ctx, call)
		failure = cmp.Or(err, failure)
		if callFailed {
			return failure
		}

		for _, b := range call {
			if len(unfinished(b.actions)) > 0 {
				b.round.actions = nil
			}
		}
	}
}

// nextCall takes the actions of one call out of the batches of a server, within
// the limits of a call and of each region's window. Regions that are not sent writes
// now are passed over; the error says why.
func (st *Store) nextCall(batches []*regionBatch) (call []*regionBatch, failure error) {
	room, bytes := maxActions, maxOutBytes
	for _, b := range batches {
		if len(b.actions) == 0 {
			// They are all sent, or wait for the next round.
			continue
		}

		// Only writes are paced: gets have the largest window, but their own bound.
		w := window{size: maxWindow}
		if b.actions[0].get != nil {
			room = min(room, maxGets)
		} else if allowed, err := st.pacer.window(b.loc.Name); err == nil {
			w = allowed
		} else {
			failure = fmt.Errorf("%w: region %q at %s", err, b.loc.Name, b.loc.Addr)
			continue
		}

		n, size := countFitting(b.actions, min(room, w.size), min(bytes, w.bytes()))
		// countFitting lets a single action exceed the bytes; such a one gets a
		// call of its own.
		if n == 0 || size > bytes && len(call) > 0 {
			break
		}
		call = append(call, &regionBatch{loc: b.loc, actions: b.actions[:n], round: b})
		b.actions = b.actions[n:]
		room -= n
		bytes -= size
	}
	return call, failure
}

// countFitting returns how many of the first actions, at most maxCount, have cells
// of at most maxSize bytes together, and the bytes of those. The first one may be
// larger alone.
func countFitting(actions []*action, maxCount, maxSize int) (n, size int) {
	for n < min(maxCount, len(actions)) {
		next := size + len(actions[n].cells)
		if n > 0 && next > maxSize {
			break
		}
		n, size = n+1, next
	}
	return n, size
}

// sendMulti sends one call to one server and gives the actions their outcomes. It
// returns an error if actions are left unfinished, and whether the whole call has
// failed rather than some of its actions.
func (st *Store) sendMulti(ctx context.Context, batches []*regionBatch) (callFailed bool, err error) {
	call, sent := st.newMultiCall(ctx, batches)
	if call.Write {
		st.pacer.callStarted(batches)
		defer st.pacer.callEnded(batches)
	}

	// All batches are of one server, so the location of any of them leads there.
	c, err := st.router.CallConn(ctx, batches[0].loc, call)
	if err == nil {
		return st.applyOutcomes(batches, call)
	}

	if call.Write {
		st.noteFailedWrite(ctx, c, call, batches, err)
	}
	if calls.Classify(err) != calls.ClassFatal {
		return true, err
	}
	// Another round would end in the same way, for these actions alone.
	for _, a := range sent {
		a.finish(calls.WithoutStack(err))
	}
	return false, nil
}

// noteFailedWrite reports a failed call to the pacer: regions that lost or refused it
// get less the next time, and regions whose server may still execute it get no other
// write until it is known.
func (st *Store) noteFailedWrite(ctx context.Context, c *calls.Conn, call *calls.Call, batches []*regionBatch,
	err error) {
	// The caller has left; the call was sent, and is not known to be lost.
	if c != nil && err == ctx.Err() {
		st.awaitAbandoned(c, call, batches)
		return
	}

	for _, b := range batches {
		if _, lost := err.(*calls.LostError); lost {
			st.pacer.lost(b.loc.Name, call.Began)
		} else if calls.Classify(err) == calls.ClassBusy {
			st.pacer.refused(b.loc.Name, call.Began)
		}
	}
}

// awaitAbandoned waits in the background for the reply to a write whose caller has
// left. Until then its regions get no other write.
func (st *Store) awaitAbandoned(c *calls.Conn, call *calls.Call, batches []*regionBatch) {
	resolved := st.pacer.abandoned(batches)
	st.life.Run(func() {
		defer resolved()
		st.router.Invalidate(batches[0].loc, c, c.Wait(st.life.Context(), call))
	})
}

// newMultiCall makes the request. It also returns the actions in the order of
// their indexes in the request, which counts through all regions. A write does not
// end with its caller's context, see pacer.
func (st *Store) newMultiCall(ctx context.Context, batches []*regionBatch) (*calls.Call, []*action) {
	request := &pb.MultiRequest{NonceGroup: &st.nonces.group}
	var sent []*action
	var cells []byte
	for _, b := range batches {
		ra := &pb.RegionAction{Region: calls.RegionSpecifier(b.loc.Name), Action: make([]*pb.Action, len(b.actions))}
		for i, a := range b.actions {
			ra.Action[i] = &pb.Action{Index: proto.Uint32(uint32(len(sent))), Get: a.get, Mutation: a.mutation}
			sent = append(sent, a)
			cells = append(cells, a.cells...)
		}
		request.RegionAction = append(request.RegionAction, ra)
	}

	write := sent[0].get == nil // a call has only gets or only writes
	if write {
		// Its reply is awaited even after the caller has left: until it comes, the server
		// may still execute the write.
		ctx = st.life.Context()
	}
	call := calls.New(ctx, "Multi", request, &pb.MultiResponse{})
	call.Write, call.OutCells = write, cells
	return call, sent
}

// applyOutcomes decodes the reply and gives the actions their outcomes. Those that the
// reply lacks, or that failed for a temporary reason, stay unfinished; the error is the
// reason. callFailed reports that the reply as a whole cannot be used.
func (st *Store) applyOutcomes(batches []*regionBatch, call *calls.Call) (callFailed bool, err error) {
	addr := batches[0].loc.Addr
	if err := decodeMulti(call.Response.(*pb.MultiResponse), call.Cells, batches); err != nil {
		return true, fmt.Errorf("%w from %s: %w", errReply, addr, err)
	}

	var failure error
	for _, b := range batches {
		accepted, refused := 0, false
		for _, a := range b.actions {
			switch {
			case !a.answered:
				if failure == nil { // an exception is more informative than a gap
					failure = fmt.Errorf("%w from %s: %w", errReply, addr, errLeftOut)
				}
				st.noteLeftOut(a) //fault:left-out-taken-for-done TestMulti_leavesOut
			case a.exception == nil:
				a.finish(nil)
				accepted++
			default:
				class, err := a.settleException()
				if !a.finished { // it is sent again, to the region's server at that time
					st.router.Invalidate(b.loc, nil, err)
					failure = err
				}
				refused = refused || class == calls.ClassBusy
			}
		}

		switch {
		case !call.Write:
			// Reads have no window.
		case refused:
			// Even if it accepted the rest, the region was sent too much.
			st.pacer.refused(b.loc.Name, call.Began)
		case accepted > 0:
			st.pacer.accepted(b.loc.Name, accepted)
		}
	}

	return false, failure
}

// noteLeftOut notes that a reply lacks an action: if it is an append, appends want their result from now on.
func (st *Store) noteLeftOut(a *action) {
	if a.get == nil && a.mutation.GetMutateType() == pb.MutationProto_APPEND {
		st.appendResults.Store(true)
	}
}

// settleException finishes the action if its exception is final, or means that the action was done
// before. It returns the exception and its class.
func (a *action) settleException() (calls.RetryClass, error) {
	err := calls.NewJavaError(a.exception.GetName(), string(a.exception.GetValue()))
	class := calls.Classify(err)
	switch class {
	case calls.ClassDone:
		a.finish(nil)
	case calls.ClassFatal:
		a.finish(err)
	}
	return class, err
}

// decodeMulti sets answered, exception and result of the actions from the reply. The
// cells of all results are in block, in the order of the results. A reply that
// contradicts its request is refused as a whole, because then none of its results can
// be trusted to belong to its action.
func decodeMulti(response *pb.MultiResponse, block []byte, batches []*regionBatch) error {
	results := response.GetRegionActionResult()
	if len(results) != len(batches) {
		return fmt.Errorf("multi: got the results of %d regions, want %d", len(results), len(batches))
	}

	// An earlier reply to the same actions must not count.
	for _, b := range batches {
		for _, a := range b.actions {
			a.answered, a.exception, a.result = false, nil, nil
		}
	}

	first := 0
	for i, r := range results {
		var err error
		if block, err = decodeRegionResult(r, block, batches[i].actions, first); err != nil {
			return err
		}
		first += len(batches[i].actions)
	}

	if len(block) > 0 {
		return fmt.Errorf("multi: %w: %d bytes after the last result", cellblock.ErrMalformed, len(block))
	}
	return nil
}

// decodeRegionResult decodes the results of one region's actions, whose indexes
// begin at first. It returns the rest of block.
func decodeRegionResult(r *pb.RegionActionResult, block []byte, actions []*action, first int) ([]byte, error) {
	for _, roe := range r.GetResultOrException() {
		index := int64(roe.GetIndex()) - int64(first)
		if roe.Index == nil || index < 0 || index >= int64(len(actions)) {
			return nil, fmt.Errorf("multi: got a result of action %d, want %d to %d",
				roe.GetIndex(), first, first+len(actions)-1)
		}
		a := actions[index]
		if a.answered {
			return nil, fmt.Errorf("multi: got two results of action %d", roe.GetIndex())
		}

		a.exception = roe.GetException()
		// They would be dropped, and the row would count as absent.
		if n := len(roe.GetResult().GetCell()); a.get != nil && n > 0 {
			return nil, fmt.Errorf("multi: %w: %d cells outside of the cell block", cellblock.ErrMalformed, n)
		}
		n, err := cellblock.Length(block, int(roe.GetResult().GetAssociatedCellCount()), a.row)
		if err != nil {
			return nil, err
		}
		a.result, block = block[:n:n], block[n:]
		// A mutation that was executed needs no result, a get does.
		a.answered = a.exception != nil || a.get == nil || roe.Result != nil
	}

	// If the region has failed as a whole, its results mean nothing.
	if e := r.GetException(); e != nil {
		for _, a := range actions {
			a.answered, a.exception = true, e
		}
	}
	return block, nil
}
