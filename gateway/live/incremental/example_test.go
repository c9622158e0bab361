package incremental_test

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/live/incremental"
)

// A view is loaded with what the parts of a plan have returned. Then one of the series gets a
// point, and the view returns what has changed in the answer.
func ExampleView() {
	const hour = 1_356_998_400 // 2013-01-01 00:00, in seconds
	schema := encoding.DefaultSchema()
	metric, host := encoding.UID{0, 0, 1}, encoding.UID{0, 0, 1}
	plan := &scanplan.Plan{
		Schema: schema, Metric: metric, From: hour, To: hour + 3600,
		Start: hour * 1000, End: (hour+3600)*1000 - 1, Aggregator: "sum",
	}
	shown := incremental.Window{From: plan.Start, To: plan.End}

	view, err := incremental.New(plan, nil, incremental.Bounds{})
	if err != nil {
		fmt.Println(err)
		return
	}

	// Load: two series with a point each minute for three minutes.
	var spans [][]byte
	batches := batch.NewSeriesWriter(memory.DefaultAllocator)
	for i := range byte(2) {
		tags := schema.AppendTags(nil, []encoding.TagPair{{K: host, V: encoding.UID{0, 0, i + 1}}})
		spans = append(spans, schema.AppendSpan(nil, schema.AppendRowKey(nil, metric, hour, tags)))

		s := batch.Series{Span: spans[i]}
		for minute := range int64(3) {
			s.Raw.Append((hour+60*minute)*1000, encoding.IntValue(10*minute))
		}
		batches.Append(&s)
	}
	record := batches.Record()
	defer record.Release()

	load := view.Load()
	if err := load.Add(scanplan.KeyRange{}, []batch.Record{record}); err != nil {
		fmt.Println(err)
		return
	}
	if err := load.Finish(); err != nil {
		fmt.Println(err)
		return
	}
	groups, err := view.Groups(shown)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("snapshot:", text(groups[0].Points))

	// Change: the first series gets a fourth point. The second one has none after
	// its third, so it contributes nothing there.
	var added encoding.Points
	added.Append((hour+180)*1000, encoding.IntValue(100))
	taken, err := view.Extend(spans[0], added)
	fmt.Println("taken in without reading the row:", taken, err)

	// Delta: only the window that the point may have changed.
	changes, err := view.Changes(shown)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range changes[0].Windows {
		fmt.Printf("from second %d on: %s\n", w.From/1000-hour, text(w.Points))
	}
	// Output:
	// snapshot: +0s=0 +60s=20 +120s=40
	// taken in without reading the row: true <nil>
	// from second 120 on: +120s=40 +180s=100
}

// text returns points with their times relative to the hour.
func text(p encoding.Points) (s string) {
	for i := range p.Len() {
		ms, v := p.At(i)
		if i > 0 {
			s += " "
		}
		s += fmt.Sprintf("+%ds=%d", ms/1000%3600, v.Int())
	}
	return s
}
