package rate_test

import (
	"fmt"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/rate"
)

// A counter of 8 bits: from 250 to 4 it has begun again, so it has grown by 9. The
// first rate is measured from 0 in 1970, as in OpenTSDB.
func ExampleDoubles() {
	times := []int64{10_000, 20_000, 30_000}
	values := []float64{200, 250, 4}

	times, values, err := rate.Doubles(&scanplan.Rate{Counter: true, CounterMax: 255}, times, values, nil, nil)
	fmt.Println(times, values, err)

	times, values = rate.DropFirst(10_000, times, values)
	fmt.Println(times, values)
	// Output:
	// [10000 20000 30000] [20 5 0.9] <nil>
	// [20000 30000] [5 0.9]
}
