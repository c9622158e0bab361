package downsample_test

import (
	"fmt"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/downsample"
)

// 1m-avg-nan over one series: buckets of a minute with the average of their points,
// and NaN in those without a point.
func ExampleBucketer() {
	const from, to = 1356998400, 1357002000 // one hour
	d := &scanplan.Downsample{Interval: 60_000, Count: 1, Unit: "m", Function: "avg", Fill: scanplan.FillNaN}
	b, err := downsample.New(d, from, to, from*1000, from*1000+150_000)
	if err != nil {
		fmt.Println(err)
		return
	}

	b.Reset()
	b.Points([]int64{from * 1000, from*1000 + 30_000, from*1000 + 120_000}, []float64{1, 2, 7})
	times, values := b.Finish()
	fmt.Println(times, values)

	filled, err := b.Fill(nil, times, values)
	fmt.Println(len(filled), filled[:4], err)
	// Output:
	// [1356998400000 1356998520000] [1.5 7]
	// 60 [1.5 NaN 7 NaN] <nil>
}
