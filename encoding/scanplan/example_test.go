package scanplan_test

import (
	"fmt"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// newPlan is the scan plan of sum:1m-avg:metric{tagk 1 = tagv 1 or 2} by tagk 1, over
// two hours.
func newPlan() scanplan.Plan {
	const from, to = 1356998400, 1357005600
	schema, metric := encoding.DefaultSchema(), encoding.UID{0, 0, 1}
	return scanplan.Plan{
		Version: scanplan.Version, Schema: schema, Table: "tsdb", Metric: metric,
		From: from, To: to, Start: from * 1000, End: to*1000 - 1,
		Ranges: []scanplan.KeyRange{{
			Start: schema.AppendRangeKey(nil, 0, metric, from),
			Stop:  schema.AppendRangeKey(nil, 0, metric, to),
		}},
		Tags: []scanplan.TagPredicate{{
			TagK:   encoding.UID{0, 0, 1},
			Op:     scanplan.In,
			Values: []encoding.UID{{0, 0, 1}, {0, 0, 2}},
		}},
		Downsample: &scanplan.Downsample{
			Interval: 60_000,
			Count:    1,
			Unit:     "m",
			Function: "avg",
			Fill:     scanplan.FillNone,
		},
		Aggregator: "sum",
		GroupBy:    []encoding.UID{{0, 0, 1}},
	}
}

func ExamplePlan() {
	plan := newPlan()
	if err := plan.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan.String())
	// Output:
	// scan tsdb metric 000001 rows [1356998400, 1357005600) query [1356998400000 ms, 1357005599999 ms]
	// range [00000150e22700, 00000150e24320)
	// tag 000001 in 000001 000002
	// downsample 1m-avg-none
	// aggregate sum by 000001
}

// A part travels as a ticket. ParseTicket refuses a plan that it does not understand.
func ExampleParseTicket() {
	plan := newPlan()
	part := scanplan.Part{Plan: plan, Range: plan.Ranges[0], Mode: scanplan.PartialAggregation}
	ticket, err := part.MarshalTicket()
	if err != nil {
		fmt.Println(err)
		return
	}

	parsed, err := scanplan.ParseTicket(ticket)
	fmt.Println(parsed.Mode, parsed.Range.Start, parsed.Range.Stop, err)

	_, err = scanplan.ParseTicket([]byte(`{"Plan":{"Version":99}}`))
	fmt.Println(err)
	// Output:
	// partial 00000150e22700 00000150e24320 <nil>
	// scanplan: version 99, want 1
}

func ExamplePlan_AppendGroupKey() {
	plan := newPlan()
	span := []byte{0, 0, 1, 0, 0, 1, 0, 0, 2} // metric 1, tagk 1 = tagv 2
	key, ok := plan.AppendGroupKey(nil, span)
	fmt.Printf("% X %t\n", key, ok)
	// Output:
	// 00 00 02 true
}
