package expression_test

import (
	"fmt"

	"downpour/gateway/query/expression"
)

func Example() {
	e, err := expression.Parse("100 * used / total")
	if err != nil {
		fmt.Println(err)
		return
	}
	used, total := []float64{1, 2, 3}, []float64{4, 0, 4}

	percent := make([]float64, 3)
	if err := e.Evaluate(percent, [][]float64{used, total}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Variables, percent)
	// Output: [used total] [25 0 75]
}
