package exp_test

import (
	"fmt"
	"time"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/gateway/query/exp"
)

func Example() {
	parser := query.Parser{Now: time.Unix(1_357_000_000, 0)}
	r, err := exp.Parse([]byte(`{"time":{"start":1356998400,"end":1356998500,"aggregator":"sum"},
		"metrics":[{"id":"used","metric":"mem.used"},{"id":"total","metric":"mem.total"}],
		"expressions":[{"id":"percent","expr":"100 * used / total"}]}`), parser)
	if err != nil {
		fmt.Println(err)
		return
	}
	q, _, err := r.Query(parser)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("reads", q.Queries[0].Metric, "and", q.Queries[1].Metric)

	// What the query engine returns.
	points := func(values ...int64) exp.Group {
		var g exp.Group
		for i, v := range values {
			g.Points.Append(q.Start+int64(i)*10_000, encoding.IntValue(v))
		}
		return g
	}
	tables, err := r.Tables([][]exp.Group{{points(1, 2, 3)}, {points(4, 4, 6)}}, q.Start, q.End, exp.Bounds{
		Reserve: func(int64) error { return nil }, Release: func(int64) {},
		Check: func() error { return nil }, Points: func(int) error { return nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tables[0].ID, tables[0].Columns[0])
	// Output:
	// reads mem.used and mem.total
	// percent [25 50 50]
}
