package batch_test

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding/batch"
)

// Five buckets are ten seconds apart. Of times at equal distances only the first two travel.
func ExampleSeriesWriter() {
	w := batch.NewSeriesWriter(memory.DefaultAllocator)
	defer w.Release()
	w.Append(&batch.Series{
		Span:  []byte{0, 0, 1, 0, 0, 1, 0, 0, 7}, // metric 1, tagk 1 = tagv 7
		Time:  []int64{0, 10_000, 20_000, 30_000, 40_000},
		Value: []float64{1, 2, 3, 4, 5},
	})
	record := w.Record()
	defer record.Release()
	fmt.Println(record.Column(1))

	r, err := batch.NewSeriesReader(record)
	if err != nil {
		fmt.Println(err)
		return
	}
	var s batch.Series
	if err := r.At(0, &s); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%x %d %v\n", s.Span, s.Time, s.Value)
	// Output:
	// [[0 10000]]
	// 000001000001000007 [0 10000 20000 30000 40000] [1 2 3 4 5]
}
