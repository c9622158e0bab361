package operator_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

// A part is executed on the embedded store, in memory: 1m-avg over one series, whose
// cells are put first.
func ExampleNew() {
	ctx := context.Background()
	st, err := pebble.Open("data", pebble.Options{FS: vfs.NewMem(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer st.Close()
	spec := store.TableSpec{Name: "tsdb", Families: []store.FamilySpec{{Name: encoding.FamilyData}}}
	if err := st.CreateTable(ctx, spec); err != nil {
		fmt.Println(err)
		return
	}

	// Two points of metric 1 with tag 1=1: 42 at +0 s and 44 at +30 s.
	const hour = 1356998400
	schema, metric := encoding.DefaultSchema(), encoding.UID{0, 0, 1}
	row := schema.AppendRowKey(nil, metric, hour, []byte{0, 0, 1, 0, 0, 1})
	err = st.Apply(ctx, "tsdb", []store.Mutation{
		{Row: row, Family: encoding.FamilyData, Qualifier: []byte{0x00, 0x00}, Value: []byte{42}},
		{Row: row, Family: encoding.FamilyData, Qualifier: []byte{0x01, 0xE0}, Value: []byte{44}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	plan := operatortest.Plan(schema, metric, hour, hour+3600)
	plan.Downsample = &scanplan.Downsample{
		Interval: 60_000,
		Count:    1,
		Unit:     "m",
		Function: "avg",
		Fill:     scanplan.FillNone,
	}
	op, err := operator.New(st, &scanplan.Part{Plan: plan, Range: plan.Ranges[0]}, operator.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}

	err = operatortest.Drain(ctx, op, printSeries)
	fmt.Println("rows:", op.Stats().Rows, "points:", op.Stats().Points, "error:", err)
	// Output:
	// span 000001000001000001: [1356998400000] [43]
	// rows: 1 points: 2 error: <nil>
}

// printSeries prints the rows of a series batch.
func printSeries(r batch.Record) error {
	reader, err := batch.NewSeriesReader(r)
	if err != nil {
		return err
	}

	var s batch.Series
	for i := range reader.Len() {
		if err := reader.At(i, &s); err != nil {
			return err
		}
		fmt.Printf("span %x: %d %v\n", s.Span, s.Time, s.Value)
	}
	return nil
}

// A tag with the smallest UID comes first in every key that has it: its rows can be
// read by key range.
func ExampleChooseAccess() {
	const hour = 1356998400
	plan := operatortest.Plan(encoding.DefaultSchema(), encoding.UID{0, 0, 1}, hour, hour+2*3600)
	plan.Tags = []scanplan.TagPredicate{{
		TagK:   encoding.UID{0, 0, 1},
		Op:     scanplan.In,
		Values: []encoding.UID{{0, 0, 7}},
	}}

	path := operator.ChooseAccess(&scanplan.Part{Plan: plan, Range: plan.Ranges[0]}, nil)
	fmt.Println(path.Reason)
	for _, r := range path.Filter.Ranges {
		fmt.Printf("%x to %x\n", r.Start, r.Stop)
	}
	// Output:
	// 2 ranges of hour and tag 000001: its UID is the smallest
	// 00000150e22700000001000007 to 00000150e22700000001000008
	// 00000150e22701 to 00000150e23510
	// 00000150e23510000001000007 to 00000150e23510000001000008
	// 00000150e23511 to 00000150e24320
}

// The context carries the budget. A part that reads more ends with a *LimitError.
func ExampleNewBudget() {
	const hour = 1356998400
	schema, metric := encoding.DefaultSchema(), encoding.UID{0, 0, 1}
	table := &operatortest.Store{}
	table.Load(schema, metric, operatortest.Series{
		Tags:   []encoding.TagPair{operatortest.Tag(1, 1)},
		Points: operatortest.Every(hour, hour+3600, 10, func(i int) float64 { return float64(i) }),
	})

	plan := operatortest.Plan(schema, metric, hour, hour+3600)
	op, err := operator.New(table, &scanplan.Part{Plan: plan, Range: plan.Ranges[0]},
		operator.Options{Budget: operator.NewBudget(100, 0)})
	if err != nil {
		fmt.Println(err)
		return
	}

	fmt.Println(operatortest.Drain(context.Background(), op, func(batch.Record) error { return nil }))
	// Output:
	// the query reads more than 100 points from the store, at least 360
}
