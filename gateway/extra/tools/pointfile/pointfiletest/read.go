// Package pointfiletest reads Parquet files of points for tests.
package pointfiletest

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
)

// Row is a row of a file.
type Row struct {
	Texts map[string]string // by column, without nulls
	Time  int64
	Bits  uint64 // of the double
	Null  bool   // there is no double
	Int   string // null for none
	Query int32  // 0 without the column
}

// Read returns the columns of a file, its rows and the number of row groups, as the library's own reader has them.
func Read(t *testing.T, data []byte) (columns []string, rows []Row, groups int) {
	t.Helper()
	r, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	schema := r.MetaData().Schema
	for i := range schema.NumColumns() {
		c := schema.Column(i)
		columns = append(columns,
			fmt.Sprintf("%s %s %s %d", c.Name(), c.PhysicalType(), c.LogicalType(), c.MaxDefinitionLevel()))
	}
	for g := range r.NumRowGroups() {
		group := r.RowGroup(g)
		n := int(group.NumRows())
		part := make([]Row, n)
		for i := range schema.NumColumns() {
			c, err := group.Column(i)
			if err != nil {
				t.Fatal(err)
			}
			switch c := c.(type) {
			case *file.ByteArrayColumnChunkReader:
				each(t, n, c.ReadBatch, func(row int, v parquet.ByteArray, ok bool) {
					if part[row].Texts == nil {
						part[row].Texts = map[string]string{}
					}
					if ok {
						part[row].Texts[schema.Column(i).Name()] = string(v)
					}
				})
			case *file.Int64ColumnChunkReader:
				each(t, n, c.ReadBatch, func(row int, v int64, ok bool) {
					switch {
					case schema.Column(i).Name() == "timestamp":
						part[row].Time = v
					case ok:
						part[row].Int = fmt.Sprint(v)
					default:
						part[row].Int = "null"
					}
				})
			case *file.Float64ColumnChunkReader:
				each(t, n, c.ReadBatch, func(row int, v float64, ok bool) {
					part[row].Bits, part[row].Null = math.Float64bits(v), !ok
				})
			case *file.Int32ColumnChunkReader:
				each(t, n, c.ReadBatch, func(row int, v int32, _ bool) { part[row].Query = v })
			default:
				t.Fatalf("column %s is a %T", columns[i], c)
			}
		}
		rows = append(rows, part...)
	}
	return columns, rows, r.NumRowGroups()
}

// each calls f with each of n values of a column; ok is false for a null.
func each[V any](
	t *testing.T, n int, batch func(int64, []V, []int16, []int16) (int64, int, error), f func(row int, v V, ok bool),
) {
	t.Helper()
	for row := 0; row < n; {
		values, levels := make([]V, n-row), make([]int16, n-row)
		for i := range levels {
			levels[i] = 1 // a column without nulls has none
		}
		got, _, err := batch(int64(n-row), values, levels, nil)
		if err != nil || got == 0 {
			t.Fatalf("row %d of %d: got %d, %v", row, n, got, err)
		}
		for i, next := 0, 0; i < int(got); i++ {
			var v V
			if levels[i] == 1 {
				v = values[next]
				next++
			}
			f(row+i, v, levels[i] == 1)
		}
		row += int(got)
	}
}
