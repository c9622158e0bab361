package batch

import (
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Values of the column op of live rows.
const (
	OpUpsert uint8 = 0
	OpDelete uint8 = 1
)

// LiveRows are the points of one message of a live query, one row for each point:
//
//	group     int32                  index of the group in the live query
//	timestamp timestamp[ms, UTC]
//	value     float64, nullable      NaN is a value; null if the fill policy says
//	                                 so, and in rows that delete
//	op        uint8                  0 sets the point, 1 deletes it
//
// Times ascend within the rows of one group and op.
type LiveRows struct {
	group []int32
	time  []arrow.Timestamp
	value []float64
	valid []bool
	op    []uint8
}

var liveSchema = arrow.NewSchema([]arrow.Field{
	{Name: "group", Type: arrow.PrimitiveTypes.Int32},
	{Name: "timestamp", Type: &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}},
	{Name: "value", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "op", Type: arrow.PrimitiveTypes.Uint8},
}, metadata(resultVersion))

// Append adds a point; ms counts from 1970.
func (r *LiveRows) Append(group int, ms int64, value float64) {
	r.append(group, ms, value, hasValue, OpUpsert)
}

// AppendNull adds a point without value.
func (r *LiveRows) AppendNull(group int, ms int64) { r.append(group, ms, 0, noValue, OpUpsert) }

// AppendDelete adds the deletion of a point.
func (r *LiveRows) AppendDelete(group int, ms int64) { r.append(group, ms, 0, noValue, OpDelete) }

// Len is the number of rows.
func (r *LiveRows) Len() int { return len(r.op) }

// Whether a row has a value; otherwise it is null in the batch.
const (
	hasValue = true
	noValue  = false
)

func (r *LiveRows) append(group int, ms int64, value float64, valid bool, op uint8) {
	r.group = append(r.group, int32(group))
	r.time = append(r.time, arrow.Timestamp(ms))
	r.value = append(r.value, value)
	r.valid = append(r.valid, valid)
	r.op = append(r.op, op)
}

// WriteLive writes the rows as an Arrow IPC stream of one batch. It is uncompressed,
// because readers in browsers cannot decompress buffers.
func WriteLive(w io.Writer, r *LiveRows) error {
	b := array.NewRecordBuilder(memory.DefaultAllocator, liveSchema)
	b.Field(0).(*array.Int32Builder).AppendValues(r.group, nil)
	b.Field(1).(*array.TimestampBuilder).AppendValues(r.time, nil)
	b.Field(2).(*array.Float64Builder).AppendValues(r.value, r.valid)
	b.Field(3).(*array.Uint8Builder).AppendValues(r.op, nil)
	rec := b.NewRecord()

	out := ipc.NewWriter(w, ipc.WithSchema(liveSchema))
	if err := out.Write(rec); err != nil {
		return fmt.Errorf("batch: cannot write %d live rows: %w", r.Len(), err)
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("batch: cannot end stream of %d live rows: %w", r.Len(), err)
	}
	return nil
}
