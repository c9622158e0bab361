package pebble_test

import (
	"context"
	"fmt"
	"log"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

// openTable opens a store in memory and creates OpenTSDB's data table in it.
func openTable(ctx context.Context) *pebble.Store {
	s, err := pebble.Open("data", pebble.Options{
		FS:       vfs.NewMem(),
		Grouping: encoding.DefaultSchema().RowHours(),
	})
	if err != nil {
		log.Fatal(err)
	}
	spec := store.TableSpec{Name: "tsdb", Families: []store.FamilySpec{{Name: "t"}}}
	if err := s.CreateTable(ctx, spec); err != nil {
		log.Fatal(err)
	}
	return s
}

// rowKey returns the row key of metric 000001 with tag 000001=000002 at a base time.
func rowKey(baseTime uint32) []byte {
	schema := encoding.DefaultSchema()
	tags := schema.AppendTags(nil, []encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, 0, 2}}})
	return schema.AppendRowKey(nil, encoding.UID{0, 0, 1}, baseTime, tags)
}

// Rows are written in one Apply, in any order, and scanned in the order of their keys.
func ExampleStore_Scan() {
	ctx := context.Background()
	s := openTable(ctx)
	defer s.Close()

	err := s.Apply(ctx, "tsdb", []store.Mutation{
		{Row: rowKey(1297576800), Family: "t", Qualifier: []byte{0x00, 0x00}, Value: []byte{42}},
		{Row: rowKey(1297573200), Family: "t", Qualifier: []byte{0x07, 0xb0}, Value: []byte{7}},
		{Row: rowKey(1297573200), Family: "t", Qualifier: []byte{0x00, 0x10}, Value: []byte{6}},
	})
	if err != nil {
		log.Fatal(err)
	}

	for row, err := range store.Rows(ctx, s, store.Scan{Table: "tsdb", Family: "t"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("row %x\n", row.Key)
		for _, c := range row.Cells {
			fmt.Printf("  %s:%x = %d\n", c.Family, c.Qualifier, c.Value[0])
		}
	}
	// Output:
	// row 0000014d576550000001000002
	//   t:0010 = 6
	//   t:07b0 = 7
	// row 0000014d577360000001000002
	//   t:0000 = 42
}

// A version token of a range stays the same until a row of the range is written. With
// rows grouped by hour, a write to another hour does not change it.
func ExampleStore_Version() {
	ctx := context.Background()
	s := openTable(ctx)
	defer s.Close()

	firstHour := store.KeyRange{Start: rowKey(1297573200), Stop: rowKey(1297576800)[:7]}
	version := func() string {
		token, err := s.Version(ctx, "tsdb", "t", firstHour)
		if err != nil {
			log.Fatal(err)
		}
		return token
	}
	put := func(baseTime uint32) {
		m := store.Mutation{Row: rowKey(baseTime), Family: "t", Qualifier: []byte{0x00, 0x00}, Value: []byte{1}}
		if err := s.Apply(ctx, "tsdb", []store.Mutation{m}); err != nil {
			log.Fatal(err)
		}
	}

	before := version()
	put(1297576800)
	fmt.Println("after a write to the next hour, equal:", version() == before)
	put(1297573200)
	fmt.Println("after a write to this hour, equal:", version() == before)
	// Output:
	// after a write to the next hour, equal: true
	// after a write to this hour, equal: false
}
