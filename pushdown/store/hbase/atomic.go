package hbase

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/filter"
	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// Increment adds to a counter. It is sent again after a lost reply, with the
// same number (nonce), by which the server recognizes what it has done.
func (st *Store) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	if err := checkCell(cell.Row, cell.Family); err != nil {
		return 0, err
	}
	mutation := cellMutation(cell, pb.MutationProto_INCREMENT, binary.BigEndian.AppendUint64(nil, uint64(delta)))
	mutation.Nonce = st.nonces.next()
	call, err := st.mutate(ctx, table, &pb.MutateRequest{Mutation: mutation, NonceGroup: &st.nonces.group}, true)
	if err != nil {
		return 0, err
	}
	value, err := singleValue(call)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("increment of %x %s:%x: got a counter of %d bytes, want 8",
			cell.Row, cell.Family, cell.Qualifier, len(value))
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}

// CompareAndPut writes a cell on condition. A call whose reply was lost is not
// sent again: the second would find the first one's value and report that it
// had not written.
func (st *Store) CompareAndPut(ctx context.Context, table string, cell store.CellKey, expected, value []byte) (bool, error) {
	if err := checkCell(cell.Row, cell.Family); err != nil {
		return false, err
	}
	if len(expected) == 0 {
		if found, err := st.hasCell(ctx, table, cell); found || err != nil {
			return false, err
		}
	}
	comparator, err := filter.NewBinaryComparator(filter.NewByteArrayComparable(nonNil(expected))).ConstructPBComparator()
	if err != nil {
		return false, err
	}
	call, err := st.mutate(ctx, table, &pb.MutateRequest{
		Mutation: cellMutation(cell, pb.MutationProto_PUT, value),
		Condition: &pb.Condition{
			Row:         cell.Row,
			Family:      []byte(cell.Family),
			Qualifier:   nonNil(cell.Qualifier),
			CompareType: pb.CompareType_EQUAL.Enum(),
			Comparator:  comparator,
		},
	}, false)
	if err != nil {
		return false, err
	}
	response := call.response.(*pb.MutateResponse)
	if response.Processed == nil {
		return false, fmt.Errorf("compare and put of %x: the reply does not tell whether it wrote", cell.Row)
	}
	return response.GetProcessed(), nil
}

// hasCell looks for a cell before it is put if absent: in HBase's comparison a
// cell with an empty value is absent too. The look and the put are two steps,
// so an empty value that is written between them is overwritten.
func (st *Store) hasCell(ctx context.Context, table string, cell store.CellKey) (bool, error) {
	rows, err := st.Get(ctx, table, cell.Family, [][]byte{cell.Row})
	if err != nil || len(rows) == 0 {
		return false, err
	}
	for _, c := range rows[0].Cells {
		if bytes.Equal(c.Qualifier, cell.Qualifier) {
			return true, nil
		}
	}
	return false, nil
}

// nonNil makes an empty slice present in a message.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// mutate sends one mutation to the region of its row.
func (st *Store) mutate(ctx context.Context, table string, request *pb.MutateRequest, again bool) (*rpc, error) {
	row := request.Mutation.Row
	return st.do(ctx, table, row, again, func(ctx context.Context, loc *location) *rpc {
		request := proto.Clone(request).(*pb.MutateRequest) // an earlier attempt may still be being sent
		request.Region = regionSpecifier(loc.name)
		call := newRPC(ctx, "Mutate", request, &pb.MutateResponse{})
		call.table = table
		return call
	})
}

// cellMutation is a mutation of one cell.
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

// singleValue reads the one cell of a reply, from the message or its block.
func singleValue(call *rpc) ([]byte, error) {
	if cells := call.response.(*pb.MutateResponse).GetResult().GetCell(); len(cells) == 1 {
		return cells[0].GetValue(), nil
	}
	row, err := decodeRow(call.cells)
	if err != nil {
		return nil, err
	}
	if len(row.Cells) != 1 {
		return nil, fmt.Errorf("mutation: the reply has %d cells, want 1", len(row.Cells))
	}
	return row.Cells[0].Value, nil
}
