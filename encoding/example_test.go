package encoding_test

import (
	"fmt"

	"downpour/encoding"
)

// The first row of a series: metric 1 with the tags 1=1 and 2=2, in the hour that
// begins at 2013-01-01 00:00 UTC.
func ExampleSchema_AppendRowKey() {
	schema := encoding.DefaultSchema()
	metric := encoding.UID{0, 0, 1}
	tags := schema.AppendTags(nil, []encoding.TagPair{
		{K: encoding.UID{0, 0, 2}, V: encoding.UID{0, 0, 2}},
		{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, 0, 1}},
	})

	key := schema.AppendRowKey(nil, metric, encoding.KeyTime(encoding.Hour(1356998460)), tags)
	fmt.Printf("% X\n", key)
	// Output:
	// 00 00 01 50 E2 27 00 00 00 01 00 00 01 00 00 02 00 00 02
}

func ExampleSchema_ParseRowKey() {
	schema := encoding.DefaultSchema()
	key, err := schema.ParseRowKey([]byte{0, 0, 1, 0x50, 0xE2, 0x27, 0, 0, 0, 1, 0, 0, 7})
	if err != nil {
		fmt.Println(err)
		return
	}

	fmt.Println("metric", encoding.UIDNumber(key.Metric), "base time", key.BaseTime)
	for _, tag := range schema.AppendPairs(nil, key.Tags) {
		fmt.Println("tagk", tag.K, "tagv", tag.V)
	}

	_, err = schema.ParseRowKey([]byte{0, 0, 1, 0x50})
	fmt.Println(err)
	// Output:
	// metric 1 base time 1356998400
	// tagk 000001 tagv 000007
	// encoding: row key 00 00 01 50 has 4 bytes, want 7 and a multiple of 6 for tags
}

// A single cell: 19.5 at 60 seconds after the base time, on 8 bytes.
func ExampleRowDecoder() {
	var d encoding.RowDecoder
	d.Reset(1356998400)
	if err := d.Add([]byte{0x03, 0xCF}, []byte{0x40, 0x33, 0x80, 0, 0, 0, 0, 0}, 0); err != nil {
		fmt.Println(err)
		return
	}

	printPoints(&d)
	// Output:
	// 1356998460000 19.5
}

// A compacted cell is written and read back. It has the qualifiers of all points in its
// qualifier, and all values and one more byte in its value.
func ExampleRowDecoder_compacted() {
	var b encoding.CellBuilder
	b.Add(encoding.Qualifier{OffsetMS: 0, Width: 1}, []byte{42})
	b.Add(encoding.Qualifier{OffsetMS: 10_000, Width: 2}, []byte{0x01, 0x00})
	qualifier, value := b.Cell()
	fmt.Printf("% X = % X\n", qualifier, value)

	var d encoding.RowDecoder
	d.Reset(1356998400)
	if err := d.Add(qualifier, value, 0); err != nil {
		fmt.Println(err)
		return
	}

	printPoints(&d)
	// Output:
	// 00 00 00 A1 = 2A 01 00 00
	// 1356998400000 42
	// 1356998410000 256
}

// An append column holds points in the order in which they were put. The second
// put at 10 seconds replaces the first one.
func ExampleRowDecoder_append() {
	var value []byte
	value = encoding.AppendEntry(value, encoding.Qualifier{OffsetMS: 10_000, Width: 1}, []byte{1})
	value = encoding.AppendEntry(value, encoding.Qualifier{OffsetMS: 0, Width: 1}, []byte{2})
	value = encoding.AppendEntry(value, encoding.Qualifier{OffsetMS: 10_000, Width: 1}, []byte{3})
	fmt.Printf("% X = % X\n", encoding.AppendColumn, value)

	var d encoding.RowDecoder
	d.Reset(1356998400)
	if err := d.Add(encoding.AppendColumn, value, 0); err != nil {
		fmt.Println(err)
		return
	}

	printPoints(&d)
	// Output:
	// 05 00 00 = 00 A0 01 00 00 02 00 A0 03
	// 1356998400000 2
	// 1356998410000 3
}

func printPoints(d *encoding.RowDecoder) {
	var points encoding.Points
	if err := d.Finish(&points); err != nil {
		fmt.Println(err)
		return
	}
	for i := range points.Len() {
		ms, v := points.At(i)
		fmt.Println(ms, v)
	}
}

// Two cells have different values at one time. Reading the row fails, unless duplicates are
// fixed: then the cell that was written last wins.
func ExampleRowDecoder_duplicates() {
	for _, fix := range []bool{false, true} {
		d := encoding.RowDecoder{FixDuplicates: fix}
		d.Reset(1356998400)
		_ = d.Add([]byte{0x00, 0xA0}, []byte{1}, 1000)             // seconds form
		_ = d.Add([]byte{0xF0, 0x09, 0xC4, 0x00}, []byte{2}, 2000) // milliseconds form
		printPoints(&d)
	}
	// Output:
	// duplicate timestamp at offset 10000 ms: 02 and 01
	// 1356998410000 2
}

// Points at equal distances are summed without being decoded one by one.
func ExampleRowDecoder_OnlyEvenlySpaced() {
	var d encoding.RowDecoder
	even, ok := d.OnlyEvenlySpaced(encoding.AppendColumn, []byte{0x00, 0x00, 42, 0x00, 0xA0, 43, 0x01, 0x40, 0xFF})
	fmt.Println(ok, even.Points, "points every", even.Step, "ms, sum", even.Sum(0, even.Points))
	// Output:
	// true 3 points every 10000 ms, sum 84
}

func ExampleSchema_Describe() {
	cell := encoding.Cell{
		Family:    encoding.FamilyData,
		Row:       []byte{0, 0, 1, 0x50, 0xE2, 0x27, 0, 0, 0, 1, 0, 0, 1},
		Qualifier: []byte{0x03, 0xCF},
		Value:     []byte{0x40, 0x33, 0x80, 0, 0, 0, 0, 0},
	}
	fmt.Printf("%s", encoding.DefaultSchema().Describe(nil, encoding.TableData, cell))
	// Output:
	// row key, 13 bytes
	//      0  00 00 01                 metric 1
	//      3  50 E2 27 00              base time 1356998400, 2013-01-01 00:00:00 UTC
	//      7  00 00 01 00 00 01        tagk 1 = tagv 1
	// qualifier, 2 bytes
	//      0  03 CF                    +60 s, float on 8 bytes
	// value, 8 bytes
	//      0  40 33 80 00 00 00 00 00  19.5
}
