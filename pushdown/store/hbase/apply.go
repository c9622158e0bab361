package hbase

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"downpour/pushdown/process/wait"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/cellblock"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// HBase orders the changes of a cell by timestamp, which is the server's clock in
// milliseconds, and only then by their order of arrival. So a deletion hides later
// writes of the same millisecond. And each append gets a later timestamp than the one
// before, so that quick appends run ahead of the clock and hide a put that follows
// them. Apply therefore waits after deletions and appends until the server's clock has
// caught up.
//
// The wait is measured here, by a monotonic clock. It does not matter what time it is
// here or there, only that the server's clock advances. If it is set back just then, or
// the region moves to a server whose clock is slow, a put may be hidden until the clock
// has passed the deletion's timestamp. No client can wait for that, because HBase does
// not report its time. A client cannot set the deletion's timestamp either: with that
// of the deleted cells it would still hide a put of the same millisecond, and readers
// that look for recent changes would not find it.
const (
	waitAfterDelete = 2 * time.Millisecond // since its reply
	waitAfterAppend = time.Millisecond     // since it was sent
)

// noResult is the attribute that keeps the server from sending back the whole
// new value of an append. HBase 1 then leaves the append out of its reply, and refuses
// it when it comes again, although it is done: see Store.appendResults.
var noResult = []*pb.NameBytesPair{{Name: proto.String("_rr_"), Value: []byte{0}}}

// Apply sends the mutations of each row as one operation, up to 1000 of them in
// a call. If a row gets mutations of different kinds, they are applied in the
// order given, kind after kind. Operations that fail for a reason that may
// pass are sent again until ctx ends; a repeated append carries a nonce by which
// the server recognizes it.
func (st *Store) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	phases, err := st.planPhases(mutations)
	if err != nil {
		return err
	}

	var failed store.ApplyError
	for i, phase := range phases {
		sent := time.Now()
		if err := st.runActions(ctx, table, phase); err != nil {
			return err
		}

		// The last phase is waited for as well: the caller may write to the same rows next.
		behind := collectFailures(&failed, phase, sent)
		if len(failed.Failed) > 0 {
			for _, rest := range phases[i+1:] {
				failUnsent(&failed, rest)
			}
			return &failed
		}

		// After the last phase everything has been applied, so the end of ctx is
		// no failure.
		if err := wait.For(ctx, behind); err != nil && i+1 < len(phases) {
			return err
		}
	}
	return nil
}

// collectFailures adds the failed actions of a phase to failed. It returns how long
// to wait until the server's clock has passed the timestamps of the phase.
func collectFailures(failed *store.ApplyError, phase []*action, sent time.Time) (wait time.Duration) {
	for _, a := range phase {
		if a.err != nil {
			for _, i := range a.origin {
				failed.Failed = append(failed.Failed, i)
				failed.Errs = append(failed.Errs, a.err)
			}
		}

		switch a.mutation.GetMutateType() {
		case pb.MutationProto_DELETE:
			// It would hide what is put in the same millisecond.
			wait = waitAfterDelete
		case pb.MutationProto_APPEND:
			// Each append gets a later millisecond than the one before: with a
			// millisecond for each, they do not run ahead of the clock.
			wait = max(wait, waitAfterAppend-time.Since(sent))
		}
	}
	return wait
}

// failUnsent adds the mutations of a phase to failed without sending them,
// because an earlier phase has failed.
func failUnsent(failed *store.ApplyError, phase []*action) {
	for _, a := range phase {
		for _, i := range a.origin {
			failed.Failed = append(failed.Failed, i)
			failed.Errs = append(failed.Errs, fmt.Errorf("not sent after an earlier failure: %w", failed.Errs[0]))
		}
	}
}

// planPhases groups mutations by row and kind. An action is a run of mutations of
// one kind within a row; the n-th run of a row falls into phase n. The phases are
// sent one after another, which keeps the order within a row. The actions of a
// phase are of different rows, and so go in any order.
func (st *Store) planPhases(mutations []store.Mutation) ([][]*action, error) {
	type rowPlan struct {
		action *action // the last one of the row
		phase  int     // of that action
	}
	rows := make(map[string]*rowPlan, len(mutations))
	var phases [][]*action
	for i := range mutations {
		m := &mutations[i]
		if err := checkMutation(m); err != nil {
			return nil, fmt.Errorf("cannot apply mutation %d: %w", i, err)
		}

		kind := mutateType(m.Kind)
		r := rows[string(m.Row)]
		if r == nil {
			r = &rowPlan{phase: -1}
			rows[string(m.Row)] = r
		}

		if r.action == nil || r.action.mutation.GetMutateType() != kind {
			r.phase++
			r.action = st.newMutationAction(m.Row, kind)
			if r.phase == len(phases) {
				phases = append(phases, nil)
			}
			phases[r.phase] = append(phases[r.phase], r.action)
		}
		r.action.origin = append(r.action.origin, i)
	}

	// Only now every action has all of its mutations.
	for _, phase := range phases {
		for _, a := range phase {
			a.encodeCells(mutations)
		}
	}
	return phases, nil
}

// newMutationAction returns an action of a row without cells. An append gets a
// nonce; puts and deletes are harmless when they are executed twice.
func (st *Store) newMutationAction(row []byte, kind pb.MutationProto_MutationType) *action {
	m := &pb.MutationProto{
		Row:                 row,
		MutateType:          kind.Enum(),
		AssociatedCellCount: proto.Int32(0), //fault:log-skipped TestApply_faults
	}
	if kind == pb.MutationProto_APPEND {
		if !st.appendResults.Load() { //fault:appends-left-out-on-hbase-1 TestApply_appendsOnHBase1
			m.Attribute = noResult
		}
		m.Nonce = st.nonces.next()
	}
	return &action{row: row, mutation: m}
}

// encodeCells encodes the cells of the action from the mutations that it stems
// from.
func (a *action) encodeCells(mutations []store.Mutation) {
	if a.columnsAscend(mutations) {
		for _, i := range a.origin {
			a.addCell(&mutations[i], mutations[i].Value)
		}
		return
	}

	// If a column occurs twice in one operation, a server applies one of the two,
	// undefined which. So the last put is chosen and appends are joined here.
	type column struct {
		kind              store.MutationKind // an action that deletes may delete the whole row as well as cells
		family, qualifier string
		timestamp         int64 // an append has none
	}
	columnOf := func(m *store.Mutation) column {
		c := column{kind: m.Kind, family: m.Family, qualifier: string(m.Qualifier)}
		if m.Kind != store.Append {
			c.timestamp = m.Timestamp
		}
		return c
	}

	last := make(map[column]int, len(a.origin))
	joined := map[column][]byte{}
	for _, i := range a.origin {
		m := &mutations[i]
		c := columnOf(m)
		last[c] = i
		if m.Kind == store.Append {
			joined[c] = append(joined[c], m.Value...)
		}
	}

	for _, i := range a.origin {
		m := &mutations[i]
		c := columnOf(m)
		switch {
		case last[c] != i:
			// The last mutation of the column represents all.
		case m.Kind == store.Append:
			a.addCell(m, joined[c])
		default:
			a.addCell(m, m.Value)
		}
	}
}

// columnsAscend reports whether the mutations of the action are sorted by qualifier
// without a duplicate, of whatever families, which is the usual case.
func (a *action) columnsAscend(mutations []store.Mutation) bool {
	for k := 1; k < len(a.origin); k++ {
		m, before := &mutations[a.origin[k]], &mutations[a.origin[k-1]]
		if bytes.Compare(before.Qualifier, m.Qualifier) >= 0 {
			return false
		}
	}
	return true
}

// addCell appends the cell of mutation m, with the given value, to the action.
func (a *action) addCell(m *store.Mutation, value []byte) {
	timestamp := m.Timestamp
	// An append must get a later time than the value before it: only the server knows one.
	if timestamp == 0 || m.Kind == store.Append {
		timestamp = cellblock.ServerTime
	}

	kind, qualifier := byte(cellblock.Put), m.Qualifier
	switch m.Kind {
	case store.DeleteCell:
		kind, value = cellblock.DeleteColumn, nil
	case store.DeleteRow:
		kind, qualifier, value = cellblock.DeleteFamily, nil, nil
	}
	a.cells = cellblock.Append(a.cells, m.Row, m.Family, qualifier, value, timestamp, kind)
	*a.mutation.AssociatedCellCount++
}

func mutateType(kind store.MutationKind) pb.MutationProto_MutationType {
	switch kind {
	case store.Put:
		return pb.MutationProto_PUT
	case store.Append:
		return pb.MutationProto_APPEND
	}
	return pb.MutationProto_DELETE
}

// checkMutation returns an error if HBase cannot hold the mutation.
func checkMutation(m *store.Mutation) error {
	if m.Kind > store.DeleteRow {
		return fmt.Errorf("kind: got %d, want Put, Append, DeleteCell or DeleteRow", m.Kind)
	}
	if m.Timestamp < 0 {
		return fmt.Errorf("timestamp: got %d, want 0 or more", m.Timestamp)
	}
	return checkCell(m.Row, m.Family)
}

// checkCell returns an error if HBase cannot hold a cell of the row and family.
func checkCell(row []byte, family string) error {
	if len(family) == 0 || len(family) > math.MaxInt8 {
		return fmt.Errorf("family %q: got %d bytes, want 1 to %d", family, len(family), math.MaxInt8)
	}
	return checkKey(row)
}

func checkKey(row []byte) error {
	if len(row) == 0 || len(row) > math.MaxInt16 {
		return fmt.Errorf("row: got %d bytes, want 1 to %d", len(row), math.MaxInt16)
	}
	return nil
}
