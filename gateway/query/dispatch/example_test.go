package dispatch

import (
	"context"
	"fmt"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
)

// Each key interval is accepted once, in any order, and coverage knows what is missing.
func Example_coverage() {
	key := func(b byte) scanplan.HexBytes { return scanplan.HexBytes{b} }
	c := newCoverage([]scanplan.KeyRange{{Start: key(0x10), Stop: key(0x20)}})

	fmt.Println("12 to 18:", c.accept(scanplan.KeyRange{Start: key(0x12), Stop: key(0x18)}))
	fmt.Println("16 to 20:", c.accept(scanplan.KeyRange{Start: key(0x16), Stop: key(0x20)}))
	for _, r := range c.missing() {
		fmt.Println("missing", r.Start, "to", r.Stop)
	}
	fmt.Println("complete:", c.complete())
	// Output:
	// 12 to 18: true
	// 16 to 20: false
	// missing 10 to 12
	// missing 18 to 20
	// complete: false
}

// A plan over four hours is cut at the boundary of two regions, and then between hours
// into about as many parts as wanted.
func Example_cutPlan() {
	schema := encoding.DefaultSchema()
	const hour0 = 1356998400
	plan := operatortest.Plan(schema, encoding.UID{0, 0, 1}, hour0, hour0+4*3600)
	boundary := schema.AppendRangeKey(nil, 0, encoding.UID{0, 0, 1}, hour0+3*3600)
	regions := []store.Region{{Stop: boundary, Server: "rs1:16020"}, {Start: boundary, Server: "rs2:16020"}}

	for _, p := range cutPlan(&plan, regions, cutGoal{parts: 2}, aggregationChoice{}) {
		fmt.Println(p.Range.Start, "to", p.Range.Stop, "at", p.RegionServer)
	}
	// Output:
	// 00000150e22700 to 00000150e24320 at rs1:16020
	// 00000150e24320 to 00000150e25130 at rs1:16020
	// 00000150e25130 to 00000150e25f40 at rs2:16020
}

// A run hands the records of each part to the sink, in no particular order.
func ExampleExecutor_Run() {
	schema := encoding.DefaultSchema()
	const hour0 = 1356998400
	table := &operatortest.Store{}
	table.Load(schema, encoding.UID{0, 0, 1}, operatortest.Series{
		Tags:   []encoding.TagPair{operatortest.Tag(1, 1)},
		Points: operatortest.Every(hour0, hour0+4*3600, 60, func(i int) float64 { return float64(i) }),
	})
	plan := operatortest.Plan(schema, encoding.UID{0, 0, 1}, hour0, hour0+4*3600)

	e := New(Config{Store: table, Local: 1})
	batches := 0
	stats, err := e.Run(context.Background(), &plan, Options{Aggregation: PerSeries},
		func(part scanplan.KeyRange, records []batch.Record) error {
			batches += len(records)
			return nil
		})
	fmt.Println(stats.Parts, "parts,", stats.Points, "points,", batches, "batches,", err)
	// Output:
	// 4 parts, 240 points, 4 batches, <nil>
}
