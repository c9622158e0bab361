package operator

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding"
	"downpour/encoding/batch"
)

// A series that is larger than a record is cut into records of its own: points before its buckets, buckets, points
// after them, each without a gap. Others share records, as long as these are no larger than the limit. No record is
// empty.
func TestEmitter_records(t *testing.T) {
	const limit = 10 * pointBytes
	type row struct{ before, buckets, after, notes int } // notes are bytes
	for name, c := range map[string]struct {
		rows []row
		want string // a record each: name of the series, points and buckets, bytes of annotations
	}{
		"nothing":            {nil, ""},
		"one":                {[]row{{before: 1}}, "a1+0"},
		"small ones":         {[]row{{before: 1}, {buckets: 2}, {before: 1, notes: 5}}, "a1+0 b0+2 c1+0/5"},
		"as large as can be": {[]row{{before: 4}, {before: 5, notes: 15}}, "a4+0 b5+0/15"},
		"a byte too large":   {[]row{{before: 4}, {before: 5, notes: 16}}, "a4+0|b5+0/16"},
		"large":              {[]row{{before: 1}, {before: 25}, {before: 1}}, "a1+0|b10+0|b10+0|b5+0|c1+0"},
		"of full records":    {[]row{{before: 20}, {before: 20}}, "a10+0|a10+0|b10+0|b10+0"},
		"large buckets":      {[]row{{before: 1}, {buckets: 20}, {before: 1}}, "a1+0|b0+10|b0+10|c1+0"},
		"of all kinds": {[]row{{before: 1}, {before: 2, buckets: 12, after: 1, notes: 3}, {before: 1}},
			"a1+0|b2+0/3|b0+10|b0+2|b1+0|c1+0"},
		"large annotation": {[]row{{before: 1}, {notes: 200}, {before: 1}}, "a1+0|b0+0/200|c1+0"},
	} {
		e := emitter{writer: batch.NewSeriesWriter(memory.DefaultAllocator), limit: limit}
		for i, r := range c.rows {
			s := batch.Series{Span: []byte{'a' + byte(i)}}
			for k := range int64(r.before + r.buckets + r.after) {
				if k < int64(r.before) || k >= int64(r.before+r.buckets) {
					s.Raw.Append(k*k, encoding.IntValue(k))
				} else {
					s.Time, s.Value = append(s.Time, k*k), append(s.Value, float64(k))
				}
			}
			if r.notes > 0 {
				s.Notes = [][]byte{make([]byte, r.notes)}
			}
			e.append(&s)
		}
		e.cut()
		var got []string
		for len(e.ready) > 0 {
			got = append(got, describeRecord(t, e.nextRecord()))
		}
		if text := strings.Join(got, "|"); text != c.want || e.batches != int64(len(got)) {
			t.Errorf("%s: %d records %s, want %s", name, e.batches, text, c.want)
		}
	}
}

// describeRecord is a record in the form of TestEmitter_records.
func describeRecord(t *testing.T, r batch.Record) string {
	t.Helper()
	reader, err := batch.NewSeriesReader(r)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	var s batch.Series
	for i := range reader.Len() {
		if err := reader.At(i, &s); err != nil {
			t.Fatal(err)
		}
		row := fmt.Sprintf("%s%d+%d", s.Span, s.Raw.Len(), len(s.Time))
		if n := len(slices.Concat(s.Notes...)); n > 0 {
			row += fmt.Sprint("/", n)
		}
		rows = append(rows, row)
	}
	return strings.Join(rows, " ")
}
