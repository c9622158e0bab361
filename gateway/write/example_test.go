package write_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

// A point is validated and refused in OpenTSDB's words.
func ExamplePoint_Validate() {
	schema := encoding.DefaultSchema()
	p := write.Point{Metric: "cpu.user", Time: 1356998400, Value: encoding.IntValue(42)}
	fmt.Println(p.Validate(schema))

	p.Tags = []write.Tag{{K: "host", V: "web!01"}}
	fmt.Println(p.Validate(schema))

	p.Tags[0].V = "web01"
	fmt.Println(p.Validate(schema))
	// Output:
	// Missing tags
	// Invalid tag value with key [host] ("web!01"): illegal character: !
	// <nil>
}

// The spelling of a value decides its type.
func ExampleParseValue() {
	for _, text := range []string{"42", "42.0", "4.2e1", "NaN", ""} {
		v, err := write.ParseValue(text)
		if err != nil {
			fmt.Printf("%q: %v\n", text, err)
			continue
		}
		fmt.Printf("%q: float %t\n", text, v.Float)
	}
	// Output:
	// "42": float false
	// "42.0": float true
	// "4.2e1": float true
	// "NaN": Unable to parse value to a number
	// "": Empty value
}

// openStore opens a store in memory with a table of points and one of UIDs.
func openStore(ctx context.Context) *pebble.Store {
	st, err := pebble.Open("db", pebble.Options{FS: vfs.NewMem(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	for _, spec := range []store.TableSpec{{Name: "tsdb", Families: []store.FamilySpec{{Name: "t"}}},
		{Name: "tsdb-uid", Families: []store.FamilySpec{{Name: encoding.FamilyID}, {Name: encoding.FamilyName}}}} {
		if err := st.CreateTable(ctx, spec); err != nil {
			panic(err)
		}
	}
	return st
}

// newSeries resolves names by the UID table and assigns UIDs to unknown ones.
func newSeries(st store.Store) *write.SeriesCache {
	schema := encoding.DefaultSchema()
	names := uid.New(uid.Config{Store: st, Table: "tsdb-uid", Schema: schema})
	return write.NewSeries(write.SeriesConfig{Schema: schema, Names: uid.Staged{Dictionary: names},
		Auto: write.Auto{Metrics: true, TagKs: true, TagVs: true}})
}

// A series is the UIDs of its metric and tags, whatever the order of the tags.
func ExampleSeriesCache_Resolve() {
	ctx := context.Background()
	st := openStore(ctx)
	defer st.Close()
	series := newSeries(st)

	a, err := series.Resolve(ctx, "cpu.user", []write.Tag{{K: "host", V: "web01"}, {K: "dc", V: "ams"}})
	if err != nil {
		panic(err)
	}
	b, err := series.Resolve(ctx, "cpu.user", []write.Tag{{K: "dc", V: "ams"}, {K: "host", V: "web01"}})
	if err != nil {
		panic(err)
	}
	fmt.Println("metric", a.Metric)
	fmt.Printf("tags   % X\n", a.Tags)
	fmt.Println("same  ", bytes.Equal(a.Tags, b.Tags))
	// Output:
	// metric 000001
	// tags   00 00 01 00 00 01 00 00 02 00 00 02
	// same   true
}

// A writer gathers points in batches, and Wait returns once a batch is durable.
func ExampleWriter() {
	ctx := context.Background()
	st := openStore(ctx)
	defer st.Close()

	w := write.New(write.Config{Schema: encoding.DefaultSchema(), Table: "tsdb", Form: write.Single}, st, newSeries(st))
	defer w.Close()
	tags := []write.Tag{{K: "host", V: "web01"}}
	var last *write.Batch
	for i, value := range []int64{42, 7} {
		batch, err := w.Add(ctx,
			&write.Point{
				Metric: "cpu.user",
				Tags:   tags,
				Time:   1356998400 + 10*int64(i),
				Value:  encoding.IntValue(value),
			})
		if err != nil {
			panic(err)
		}
		last = batch
	}
	if err := last.Wait(ctx); err != nil {
		panic(err)
	}

	for row, err := range store.Rows(ctx, st, store.Scan{Table: "tsdb", Family: "t"}) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("row % X\n", row.Key) // metric, base time, tagk, tagv
		for _, c := range row.Cells {
			fmt.Printf("  % X = % X\n", c.Qualifier, c.Value)
		}
	}
	// Output:
	// row 00 00 01 50 E2 27 00 00 00 01 00 00 01
	//   00 00 = 2A
	//   00 A0 = 07
}
