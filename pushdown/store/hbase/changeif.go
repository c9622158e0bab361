package hbase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/cellblock"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/filter"
	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Fields that gohbase's schema lacks; they travel as unknown fields.
const (
	fieldCondition = 4 // of RegionAction: Condition
	fieldProcessed = 3 // of RegionActionResult: bool
)

// maxConditional bounds the rows of a call of conditional changes.
const maxConditional = 256

// ChangeIf sends each change as a region action of its own, atomic and with a condition, which the
// server checks under the lock of the row. Changes of one region share a call. A call whose reply
// is lost is sent again, and so are changes that the server refuses for a temporary reason.
func (st *Store) ChangeIf(ctx context.Context, table, family string,
	changes []store.ConditionalChange) ([]bool, error) {
	actions := make([]*conditional, len(changes))
	for i := range changes {
		c := &changes[i]
		if i > 0 && bytes.Compare(changes[i-1].Row, c.Row) >= 0 {
			return nil, fmt.Errorf("cannot change row %x: it does not come after row %x", c.Row, changes[i-1].Row)
		}
		var err error
		if actions[i], err = newConditional(family, c); err != nil {
			return nil, fmt.Errorf("cannot change row %x: %w", c.Row, err)
		}
	}

	if err := st.sendAll(ctx, table, family, actions, regions.ResendLost); err != nil {
		return nil, err
	}
	held := make([]bool, len(actions))
	for i, a := range actions {
		held[i] = a.held
	}
	return held, nil
}

// sendAll sends changes, which ascend by row, until servers have checked the condition of each. It
// returns errUnconditional if one of them cannot.
func (st *Store) sendAll(ctx context.Context, table, family string, actions []*conditional,
	policy regions.ResendPolicy) error {
	if err := st.life.Begin(); err != nil {
		return err
	}
	defer st.life.Done()

	retry := st.router.NewRetrier(ctx, table)
	for pending := actions; len(pending) > 0; {
		left, err := st.sendConditional(ctx, table, family, pending)
		if len(left) < len(pending) {
			retry.MadeProgress()
		}
		pending = left
		if err == nil {
			continue
		}

		// On a retry the server would answer the same.
		if errors.Is(err, errUnconditional) {
			return err
		}
		if lost, ok := err.(*calls.LostError); ok && policy == regions.SendOnce {
			return retry.UnknownOutcome(lost)
		}
		if err := retry.AfterFailure(err); err != nil {
			return err
		}
	}
	return nil
}

// errUnconditional is returned when a server does not know the condition of a region action,
// and carries it out. Nothing but a trial is sent to such a server.
var errUnconditional = errors.New("the server knows no conditions on changes of rows, want HBase 2.4 or later")

// conditional is a change as it is sent.
type conditional struct {
	row       []byte
	condition []byte // the marshalled field of the region action
	actions   []*pb.Action
	cells     []byte // of all actions
	held      bool   // the outcome
}

// newConditional encodes a change. Puts and deletions are two mutations.
func newConditional(family string, c *store.ConditionalChange) (*conditional, error) {
	if err := checkCell(c.Row, family); err != nil {
		return nil, err
	}
	condition, err := newCondition(c.Row, family, &c.If)
	if err != nil {
		return nil, err
	}
	a, err := actionIf(condition)
	if err != nil {
		return nil, err
	}

	if len(c.Put) > 0 {
		for _, x := range c.Put {
			if x.Timestamp <= 0 {
				return nil, fmt.Errorf("timestamp: got %d, want that of a cell", x.Timestamp)
			}
			a.cells = cellblock.Append(a.cells, c.Row, family, x.Qualifier, x.Value, x.Timestamp, cellblock.Put)
		}
		a.add(pb.MutationProto_PUT, len(c.Put))
	}

	for _, v := range c.Delete {
		if v.Timestamp <= 0 {
			return nil, fmt.Errorf("timestamp: got %d, want that of a version", v.Timestamp)
		}
		a.cells = cellblock.Append(a.cells, c.Row, family, v.Qualifier, nil, v.Timestamp, cellblock.Delete)
	}
	a.cells = cellblock.Append(a.cells, c.Row, family, changeMarker, nil, cellblock.ServerTime, cellblock.DeleteColumn)
	a.add(pb.MutationProto_DELETE, len(c.Delete)+1)
	return a, nil
}

// actionIf returns a change of the row of a condition that has no mutation yet.
func actionIf(condition *pb.Condition) (*conditional, error) {
	message, err := proto.Marshal(condition)
	if err != nil {
		return nil, err
	}
	field := protowire.AppendBytes(protowire.AppendTag(nil, fieldCondition, protowire.BytesType), message)
	return &conditional{row: condition.Row, condition: field}, nil
}

// add adds a mutation whose cells are in a.cells.
func (a *conditional) add(kind pb.MutationProto_MutationType, cells int) {
	m := &pb.MutationProto{Row: a.row, MutateType: kind.Enum(), AssociatedCellCount: proto.Int32(int32(cells))}
	a.actions = append(a.actions, &pb.Action{Index: proto.Uint32(uint32(len(a.actions))), Mutation: m})
}

// newCondition translates a condition to filters: it is true if they admit anything of the row. One drops the row if
// any cell has another timestamp, one if the column lacks the value, and one drops all columns but those from the
// last wanted one on. The last counts columns by the cells that it sees, so it comes after the others, which let a
// cell pass or drop the whole row.
func newCondition(row []byte, family string, c *store.Condition) (*pb.Condition, error) {
	if len(c.Stamps) == 0 {
		return nil, errors.New("condition: got no timestamps")
	}
	all := []filter.Filter{filter.NewSkipFilter(filter.NewTimestampsFilter(c.Stamps))}
	if c.Cell != nil {
		const ifMissing, latestOnly = true, true
		equal := filter.NewBinaryComparator(filter.NewByteArrayComparable(nonNil(c.Cell.Value)))
		there := filter.NewSingleColumnValueFilter([]byte(family), nonNil(c.Cell.Qualifier), filter.Equal, equal,
			ifMissing, latestOnly)
		all = append(all, there)
	}
	if c.Columns > 0 {
		// The server adds limit and offset up in 32 bits.
		before := int32(c.Columns - 1)
		all = append(all, filter.NewColumnPaginationFilter(math.MaxInt32-before, before, nil))
	}

	f, err := filter.NewList(filter.MustPassAll, all...).ConstructPBFilter()
	return &pb.Condition{Row: row, Filter: f}, err
}

// sendConditional sends the first of the actions that one call may hold, to a server
// that is known to check their conditions. It returns those that remain, and an error
// if the call or one of its actions has failed.
func (st *Store) sendConditional(ctx context.Context, table, family string,
	pending []*conditional) ([]*conditional, error) {
	loc, err := st.router.Locate(ctx, table, pending[0].row)
	if err != nil {
		return pending, err
	}
	server, err := st.router.Connect(ctx, loc)
	if err != nil {
		return pending, err
	}
	if err := st.checkKnowsConditions(ctx, server, loc, family, pending[0].row); err != nil {
		st.router.Invalidate(loc, server, err)
		return pending, err
	}

	n, size := 0, 0
	for n < min(len(pending), maxConditional) && loc.Contains(pending[n].row) &&
		(n == 0 || size+len(pending[n].cells) <= maxOutBytes) {
		size += len(pending[n].cells)
		n++
	}
	sent, rest := pending[:n], pending[n:]

	call := conditionalCall(ctx, loc, sent)
	if err := st.router.CallOn(ctx, server, loc, call); err != nil {
		return pending, err
	}
	failed, err := conditionalOutcomes(call.Response.(*pb.MultiResponse), sent)
	st.router.Invalidate(loc, server, err)
	return slices.Concat(failed, rest), err
}

// Whether a server knows conditions on region actions.
const (
	conditionsUntried = iota
	conditionsKnown
	conditionsIgnored // changes are carried out regardless of them
)

// checkKnowsConditions returns errUnconditional if the server of a connection carries out region actions
// whatever their conditions. The first call on a connection finds that out by a trial, and the
// connection keeps the outcome: the trial deletes a column that never exists, so it is harmless however it
// ends. Any other error is of the trial, and the next call tries again.
func (st *Store) checkKnowsConditions(ctx context.Context, c *calls.Conn, loc *regions.Location, family string,
	row []byte) error {
	switch c.Conditions.Load() {
	case conditionsKnown:
		return nil
	case conditionsIgnored:
		return fmt.Errorf("server %s: %w", c.Addr, errUnconditional)
	}

	// That all cells of the row have the timestamp 1. Whether this is true does not matter, only
	// whether the server says so.
	condition := store.Condition{Stamps: []int64{1}}
	trial, err := newConditional(family, &store.ConditionalChange{Row: row, If: condition})
	if err != nil {
		return err
	}
	call := conditionalCall(ctx, loc, []*conditional{trial})
	if err := st.router.CallOn(ctx, c, loc, call); err != nil {
		return fmt.Errorf("cannot try a condition on a region action: %w", err)
	}

	_, err = conditionalOutcomes(call.Response.(*pb.MultiResponse), []*conditional{trial})
	switch {
	case err == nil:
		c.Conditions.Store(conditionsKnown)
		return nil
	case errors.Is(err, errUnconditional):
		c.Conditions.Store(conditionsIgnored)
	}
	return fmt.Errorf("server %s, table %q: %w", c.Addr, loc.Table, err)
}

// conditionalCall makes a Multi call with a region action for each change.
func conditionalCall(ctx context.Context, loc *regions.Location, sent []*conditional) *calls.Call {
	request := &pb.MultiRequest{}
	var cells []byte
	for _, a := range sent {
		ra := &pb.RegionAction{Region: calls.RegionSpecifier(loc.Name), Atomic: proto.Bool(true), Action: a.actions}
		ra.ProtoReflect().SetUnknown(a.condition)
		request.RegionAction = append(request.RegionAction, ra)
		cells = append(cells, a.cells...)
	}
	call := calls.New(ctx, "Multi", request, &pb.MultiResponse{})
	call.OutCells = cells
	return call
}

// conditionalOutcomes reads which conditions held. It returns the changes whose conditions the
// server has not checked, and one of the reasons.
func conditionalOutcomes(response *pb.MultiResponse, sent []*conditional) (failed []*conditional, err error) {
	results := response.GetRegionActionResult()
	if len(results) != len(sent) {
		return sent, fmt.Errorf("%w: %d outcomes of %d changes", errReply, len(results), len(sent))
	}

	for i, r := range results {
		if e := r.GetException(); e != nil {
			failed = append(failed, sent[i])
			err = calls.NewJavaError(e.GetName(), string(e.GetValue()))
			continue
		}
		held, ok := processed(r.ProtoReflect().GetUnknown())
		if !ok {
			return sent, fmt.Errorf("%w: of row %x no outcome came", errUnconditional, sent[i].row)
		}
		sent[i].held = held //fault:compaction-takes-every-condition-for-true TestJob_writtenInBetween
	}
	return failed, err
}

// processed returns the field of this name of a region action's result, and whether it is
// there.
func processed(unknown []byte) (value, ok bool) {
	for b := unknown; ; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false, false
		}
		if number == fieldProcessed && kind == protowire.VarintType {
			v, m := protowire.ConsumeVarint(b[n:])
			return v != 0, m > 0
		}
		skip := protowire.ConsumeFieldValue(number, kind, b[n:])
		if skip < 0 {
			return false, false
		}
		b = b[n+skip:]
	}
}
