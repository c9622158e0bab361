package merge_test

import (
	"fmt"

	arrowmemory "github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/query/merge"
)

// Two parts have an hour each of the series host=1, and the second part also has the series host=2.
// The parts may arrive in any order.
func ExampleMerger() {
	schema := encoding.DefaultSchema()
	metric, host := encoding.UID{0, 0, 1}, encoding.UID{0, 0, 1}
	const hour0, hour1, end = 1356998400, 1357002000, 1357005600
	first := scanplan.KeyRange{
		Start: schema.AppendRangeKey(nil, 0, metric, hour0),
		Stop:  schema.AppendRangeKey(nil, 0, metric, hour1),
	}
	second := scanplan.KeyRange{Start: first.Stop, Stop: schema.AppendRangeKey(nil, 0, metric, end)}
	plan := &scanplan.Plan{
		Version: scanplan.Version, Schema: schema, Table: "tsdb", Metric: metric, Aggregator: "sum",
		From: hour0, To: end, Start: hour0 * 1000, End: end*1000 - 1,
		Ranges: []scanplan.KeyRange{{Start: first.Start, Stop: second.Stop}},
	}

	// series is one row of a batch: a point of host n at a time in seconds.
	series := func(n byte, seconds int64, value int64) *batch.Series {
		tags := schema.AppendTags(nil, []encoding.TagPair{{K: host, V: encoding.UID{0, 0, n}}})
		s := &batch.Series{Span: schema.AppendSpan(nil, schema.AppendRowKey(nil, metric, 0, tags))}
		s.Raw.Append(seconds*1000, encoding.IntValue(value))
		return s
	}

	m := merge.New(plan, nil)
	add := func(part scanplan.KeyRange, rows ...*batch.Series) {
		w := batch.NewSeriesWriter(arrowmemory.DefaultAllocator)
		for _, s := range rows {
			w.Append(s)
		}
		rec := w.Record()
		defer rec.Release()
		if err := m.Add(part, rec); err != nil {
			fmt.Println(err)
		}
	}
	add(second, series(1, hour1, 30), series(2, hour1, 4))
	add(first, series(1, hour0, 10))

	groups, err := m.Finish()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, g := range groups {
		fmt.Println("TSUIDs", g.TSUIDs, "aggregated", g.Aggregated)
		for i := range g.Points.Len() {
			ms, v := g.Points.At(i)
			fmt.Println(ms/1000, v)
		}
	}
	// Output:
	// TSUIDs [000001000001000001 000001000001000002] aggregated [000001]
	// 1356998400 10
	// 1357002000 34
}
