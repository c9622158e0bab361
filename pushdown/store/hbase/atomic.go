package hbase

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/cellblock"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/filter"
	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// Increment adds to a counter. After a lost reply it is sent again with the same
// nonce, by which the server recognizes an increment that it has executed.
func (st *Store) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	if err := checkCell(cell.Row, cell.Family); err != nil {
		return 0, err
	}

	mutation := cellMutation(cell, pb.MutationProto_INCREMENT, binary.BigEndian.AppendUint64(nil, uint64(delta)))
	mutation.Nonce = st.nonces.next()
	call, err := st.mutate(ctx, table, &pb.MutateRequest{Mutation: mutation, NonceGroup: &st.nonces.group},
		regions.ResendLost)
	if err != nil {
		return 0, err
	}

	value, err := singleValue(call)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("cannot increment row %x %s:%x: got a counter of %d bytes, want 8",
			cell.Row, cell.Family, cell.Qualifier, len(value))
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}

// CompareAndPut writes a cell if its value is expected. After a lost reply it is
// not sent again: the second call would find the value of the first one and report
// that it had not written.
func (st *Store) CompareAndPut(ctx context.Context, table string, cell store.CellKey,
	expected, value []byte) (bool, error) {
	if err := checkCell(cell.Row, cell.Family); err != nil {
		return false, err
	}

	if len(expected) == 0 {
		found, err := st.existing(ctx, table, []store.CellKey{cell})
		if err != nil || found[0] {
			return false, err
		}
	}
	return st.checkAndPut(ctx, table, cell, expected, value)
}

// checkAndPut writes a cell if its value is expected; an empty one is also that of a cell
// that does not exist.
func (st *Store) checkAndPut(ctx context.Context, table string, cell store.CellKey,
	expected, value []byte) (bool, error) {
	condition, err := valueCondition(cell, expected)
	if err != nil {
		return false, err
	}
	call, err := st.mutate(ctx, table, &pb.MutateRequest{
		Mutation:  cellMutation(cell, pb.MutationProto_PUT, value),
		Condition: condition,
	}, regions.SendOnce)
	if err != nil {
		return false, err
	}

	response := call.Response.(*pb.MutateResponse)
	if response.Processed == nil {
		return false, fmt.Errorf("cannot compare and put row %x: the reply lacks whether it wrote", cell.Row)
	}
	return response.GetProcessed(), nil
}

// valueCondition is true if a cell has a value; an empty one is also that of a cell that does
// not exist.
func valueCondition(cell store.CellKey, value []byte) (*pb.Condition, error) {
	comparator, err := filter.NewBinaryComparator(filter.NewByteArrayComparable(nonNil(value))).ConstructPBComparator()
	return &pb.Condition{
		Row:         cell.Row,
		Family:      []byte(cell.Family),
		Qualifier:   nonNil(cell.Qualifier),
		CompareType: pb.CompareType_EQUAL.Enum(),
		Comparator:  comparator,
	}, err
}

// existing reports which cells exist, before they are put if absent: for HBase's comparison
// a cell with an empty value is absent too. The get and the put are two steps, so an empty
// value that is written in between is overwritten.
func (st *Store) existing(ctx context.Context, table string, cells []store.CellKey) ([]bool, error) {
	rows := make(map[string][][]byte, len(cells)) // by family
	for _, cell := range cells {
		rows[cell.Family] = append(rows[cell.Family], cell.Row)
	}

	known := map[string]bool{} // by family, row and qualifier
	name := func(family string, row, qualifier []byte) string {
		return fmt.Sprintf("%q %q %q", family, row, qualifier)
	}
	for family, keys := range rows {
		slices.SortFunc(keys, bytes.Compare)
		found, err := st.Get(ctx, table, family, slices.CompactFunc(keys, bytes.Equal))
		if err != nil {
			return nil, err
		}
		for _, row := range found {
			for _, c := range row.Cells {
				known[name(family, row.Key, c.Qualifier)] = true
			}
		}
	}

	exists := make([]bool, len(cells))
	for i, cell := range cells {
		exists[i] = known[name(cell.Family, cell.Row, cell.Qualifier)]
	}
	return exists, nil
}

// nonNil returns an empty slice for nil, so that a message carries the field.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// mutate sends one mutation to the region of its row.
func (st *Store) mutate(ctx context.Context, table string, request *pb.MutateRequest,
	policy regions.ResendPolicy) (*calls.Call, error) {
	row := request.Mutation.Row
	return st.router.CallRow(ctx, table, row, policy, func(ctx context.Context, loc *regions.Location) *calls.Call {
		// A copy, as the request of an earlier attempt may still be being sent.
		request := proto.Clone(request).(*pb.MutateRequest)
		request.Region = calls.RegionSpecifier(loc.Name)
		return calls.New(ctx, "Mutate", request, &pb.MutateResponse{})
	})
}

// cellMutation returns a mutation of one cell. Empty fields are sent, see nonNil.
func cellMutation(cell store.CellKey, kind pb.MutationProto_MutationType, value []byte) *pb.MutationProto {
	return &pb.MutationProto{
		Row:        cell.Row,
		MutateType: kind.Enum(),
		ColumnValue: []*pb.MutationProto_ColumnValue{{
			Family: []byte(cell.Family),
			QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{{
				Qualifier: nonNil(cell.Qualifier),
				Value:     nonNil(value),
			}},
		}},
	}
}

// singleValue returns the value of the only cell of a reply, from the message or
// from its cell block.
func singleValue(call *calls.Call) ([]byte, error) {
	if cells := call.Response.(*pb.MutateResponse).GetResult().GetCell(); len(cells) == 1 {
		return cells[0].GetValue(), nil
	}

	row, err := cellblock.Row(call.Cells)
	if err != nil {
		return nil, err
	}
	if len(row.Cells) != 1 {
		return nil, fmt.Errorf("cannot read the new value: the reply has %d cells, want 1", len(row.Cells))
	}
	return row.Cells[0].Value, nil
}
