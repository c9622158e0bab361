package aggregate_test

import (
	"fmt"

	"downpour/encoding"
	"downpour/pushdown/operator/aggregate"
)

// The sum of two series. At 20 s only the first has a point: the second one
// contributes the value on the line between its points, 15.
func ExampleGroup_Aggregate() {
	sum, _ := aggregate.Lookup("sum")
	members := []aggregate.Series{
		{Time: []int64{10_000, 20_000, 30_000}, Value: []float64{1, 2, 3}},
		{Time: []int64{10_000, 30_000}, Value: []float64{10, 20}},
	}

	var g aggregate.Group
	var out encoding.Points
	err := g.Aggregate(sum, aggregate.Query{To: 3600, End: 3_600_000}, members, &out)
	fmt.Println(out.Time, err)
	for i := range out.Len() {
		_, v := out.At(i)
		fmt.Println(v)
	}
	// Output:
	// [10000 20000 30000] <nil>
	// 11.0
	// 17.0
	// 23.0
}

// Two parts of one group merge to what the whole group gives. The proof says that
// no addition has rounded, so that their order does not matter.
func ExampleFunction_Merge() {
	sum, _ := aggregate.Lookup("sum")
	grid := []int64{0, 60_000}
	first, second := sum.NewPartial(len(grid)), sum.NewPartial(len(grid))
	sum.AddMember(first, grid, aggregate.Series{Time: grid, Value: []float64{1, 2.5}}, nil)
	sum.AddMember(second, grid, aggregate.Series{Time: grid, Value: []float64{10, 0.1}}, nil)

	fmt.Println(first.ExactWith(0, &second.Proof, 0), first.ExactWith(1, &second.Proof, 1))
	sum.Merge(first, 0, second)
	out := make([]float64, len(grid))
	sum.Finish(first, 0, out)
	fmt.Println(out)
	// Output:
	// true false
	// [11 2.6]
}
