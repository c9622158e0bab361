package hbase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// errUnknownOutcome ends an operation that may have been done, or not, and
// must not be done twice.
var errUnknownOutcome = errors.New("the change may have been made")

// HBase orders the changes of a cell by the server's clock, in milliseconds,
// before it looks at their succession. A deletion hides what is written in the
// same millisecond behind it; and each append takes a time later than the one
// before, so that quick ones run ahead of the clock and hide a put that
// follows them. Both are reported only when the clock has caught up.
//
// How long that takes is measured here, by a clock that nobody sets; it does not
// matter what time it is here or there, only that a server's clock goes on
// meanwhile. If that is set back just then, or the region moves to a server whose
// clock is behind, a put may be hidden until the clock has passed the deletion's
// time. No client can wait for that, for HBase tells none what time it is there, nor
// give the deletion a time of its own: of the deleted cells' time it would hide a
// put of that millisecond still, and those who look for what was written lately
// would not find it.
const (
	afterDelete = 2 * time.Millisecond // after its reply
	afterAppend = time.Millisecond     // after it was sent
)

// noResult is the attribute that keeps the server from sending back the whole
// new value of an append.
var noResult = []*pb.NameBytesPair{{Name: proto.String("_rr_"), Value: []byte{0}}}

// Apply sends the mutations of each row as one operation, up to 1000 of them in
// a call. Where one row gets mutations of different kinds they are applied in
// the order given, kind after kind. Operations that fail for a reason that may
// pass are sent again until ctx ends; a repeated append carries a number that
// lets the server recognize it.
func (st *Store) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	phases, err := st.plan(mutations)
	if err != nil {
		return err
	}
	var failed store.ApplyError
	for i, phase := range phases {
		sent := time.Now()
		if err := st.batch(ctx, table, phase); err != nil {
			return err
		}
		wait := collect(&failed, phase, sent)
		if len(failed.Failed) > 0 {
			for _, rest := range phases[i+1:] {
				skip(&failed, rest)
			}
			return &failed
		}
		if err := st.pause(ctx, wait); err != nil && i+1 < len(phases) {
			return err
		}
	}
	return nil
}

// collect notes what failed and tells how long to wait for the clock.
func collect(failed *store.ApplyError, phase []*action, sent time.Time) (wait time.Duration) {
	for _, a := range phase {
		if a.err != nil {
			for _, i := range a.origin {
				failed.Failed = append(failed.Failed, i)
				failed.Errs = append(failed.Errs, a.err)
			}
		}
		switch a.mutation.GetMutateType() {
		case pb.MutationProto_DELETE:
			wait = afterDelete
		case pb.MutationProto_APPEND:
			wait = max(wait, afterAppend-time.Since(sent))
		}
	}
	return wait
}

// skip notes mutations that were not tried because earlier ones failed.
func skip(failed *store.ApplyError, phase []*action) {
	for _, a := range phase {
		for _, i := range a.origin {
			failed.Failed = append(failed.Failed, i)
			failed.Errs = append(failed.Errs, fmt.Errorf("not tried: %w", failed.Errs[0]))
		}
	}
}

// pause waits unless ctx ends.
func (st *Store) pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// plan groups mutations by row. The n-th change of kind within a row falls
// into phase n.
func (st *Store) plan(mutations []store.Mutation) ([][]*action, error) {
	type rowPlan struct {
		action *action
		phase  int
	}
	rows := make(map[string]*rowPlan, len(mutations))
	var phases [][]*action
	for i := range mutations {
		m := &mutations[i]
		if err := checkMutation(m); err != nil {
			return nil, fmt.Errorf("mutation %d: %w", i, err)
		}
		kind := mutateType(m.Kind)
		r := rows[string(m.Row)]
		if r == nil {
			r = &rowPlan{phase: -1}
			rows[string(m.Row)] = r
		}
		if r.action == nil || r.action.mutation.GetMutateType() != kind {
			r.phase++
			r.action = st.newMutation(m.Row, kind)
			if r.phase == len(phases) {
				phases = append(phases, nil)
			}
			phases[r.phase] = append(phases[r.phase], r.action)
		}
		r.action.origin = append(r.action.origin, i)
	}
	for _, phase := range phases {
		for _, a := range phase {
			a.write(mutations)
		}
	}
	return phases, nil
}

func (st *Store) newMutation(row []byte, kind pb.MutationProto_MutationType) *action {
	m := &pb.MutationProto{Row: row, MutateType: kind.Enum(), AssociatedCellCount: proto.Int32(0)}
	if kind == pb.MutationProto_APPEND {
		m.Attribute = noResult
		m.Nonce = st.nonces.next()
	}
	return &action{row: row, mutation: m}
}

// write makes the cell block of a row's operation.
func (a *action) write(mutations []store.Mutation) {
	if a.ascending(mutations) {
		for _, i := range a.origin {
			a.add(&mutations[i], mutations[i].Value)
		}
		return
	}
	// A server takes a column that occurs twice in one operation once, and
	// does not say which: the last put counts, and appends are joined here.
	type column struct {
		kind              store.MutationKind // a row may be deleted beside its cells
		family, qualifier string
		timestamp         int64
	}
	last := make(map[column]int, len(a.origin))
	joined := map[column][]byte{}
	for _, i := range a.origin {
		m := &mutations[i]
		c := column{m.Kind, m.Family, string(m.Qualifier), m.Timestamp}
		last[c] = i
		if m.Kind == store.Append {
			joined[c] = append(joined[c], m.Value...)
		}
	}
	for _, i := range a.origin {
		m := &mutations[i]
		c := column{m.Kind, m.Family, string(m.Qualifier), m.Timestamp}
		switch {
		case last[c] != i:
		case m.Kind == store.Append:
			a.add(m, joined[c])
		default:
			a.add(m, m.Value)
		}
	}
}

// ascending tells that every column is named once, in order, which is the
// usual way.
func (a *action) ascending(mutations []store.Mutation) bool {
	for k := 1; k < len(a.origin); k++ {
		m, before := &mutations[a.origin[k]], &mutations[a.origin[k-1]]
		if m.Family != before.Family || bytes.Compare(before.Qualifier, m.Qualifier) >= 0 {
			return false
		}
	}
	return true
}

// add appends m's cell to the row's operation.
func (a *action) add(m *store.Mutation, value []byte) {
	timestamp := m.Timestamp
	if timestamp == 0 || m.Kind == store.Append {
		timestamp = latest
	}
	kind, qualifier := byte(cellPut), m.Qualifier
	switch m.Kind {
	case store.DeleteCell:
		kind, value = cellDeleteColumn, nil
	case store.DeleteRow:
		kind, qualifier, value = cellDeleteFamily, nil, nil
	}
	a.cells = appendCell(a.cells, m.Row, m.Family, qualifier, value, timestamp, kind)
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

func checkMutation(m *store.Mutation) error {
	if m.Kind > store.DeleteRow {
		return fmt.Errorf("kind: got %d, want Put, Append, DeleteCell or DeleteRow", m.Kind)
	}
	if m.Timestamp < 0 {
		return fmt.Errorf("timestamp: got %d, want 0 or more", m.Timestamp)
	}
	return checkCell(m.Row, m.Family)
}

// checkCell refuses coordinates that HBase cannot hold.
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
