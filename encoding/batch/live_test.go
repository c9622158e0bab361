package batch

import (
	"bytes"
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
)

func TestLiveRowsReadBack(t *testing.T) {
	var rows LiveRows
	rows.Append(0, 1292148123000, 476)
	rows.Append(0, 1292148123500, math.NaN())
	rows.AppendNull(2, 1292148124000)
	rows.AppendDelete(1, 1292148125000)
	var buf bytes.Buffer
	if err := WriteLive(&buf, &rows); err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(&buf)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Schema().Equal(liveSchema) {
		t.Fatalf("schema %v, want %v", r.Schema(), liveSchema)
	}
	if !r.Next() {
		t.Fatalf("no batch: %v", r.Err())
	}
	rec := r.Record()
	value := rec.Column(2).(*array.Float64)
	type row struct {
		group int32
		time  int64
		kind  string
		op    uint8
	}
	want := []row{
		{0, 1292148123000, "number", OpUpsert},
		{0, 1292148123500, "NaN", OpUpsert},
		{2, 1292148124000, "null", OpUpsert},
		{1, 1292148125000, "null", OpDelete},
	}
	for i, w := range want {
		got := row{rec.Column(0).(*array.Int32).Value(i), int64(rec.Column(1).(*array.Timestamp).Value(i)), "number",
			rec.Column(3).(*array.Uint8).Value(i)}
		if value.IsNull(i) {
			got.kind = "null"
		} else if math.IsNaN(value.Value(i)) {
			got.kind = "NaN"
		}
		if got != w {
			t.Errorf("row %d is %v, want %v", i, got, w)
		}
	}
	if value.Value(0) != 476 || rec.NumRows() != int64(len(want)) {
		t.Errorf("first value %v of %d rows, want 476 of %d", value.Value(0), rec.NumRows(), len(want))
	}
}

func TestLiveEmptyIsAStream(t *testing.T) {
	var buf bytes.Buffer
	if err := WriteLive(&buf, &LiveRows{}); err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(&buf)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	for r.Next() {
		if n := r.Record().NumRows(); n != 0 {
			t.Errorf("%d rows, want none", n)
		}
	}
	if r.Err() != nil {
		t.Error(r.Err())
	}
}
