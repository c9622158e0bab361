package operator

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"downpour/encoding"
	_ "downpour/encoding/seedtest" // gives rapid its seed
)

// TestSeriesTable_anyOrder: whatever the order of rows, a span is made once, for the
// rows of its series only, and not for those that are refused.
//
//fault:span-of-the-next-row-not-compared bytes.Equal(t.spans[t.next].id, t.key) => true
func TestSeriesTable_anyOrder(t *testing.T) {
	s := encoding.DefaultSchema()
	rapid.Check(t, func(t *rapid.T) {
		var table seriesTable
		known := map[string]*series{}
		var order []string
		for hour := range rapid.IntRange(1, 4).Draw(t, "hours") {
			series := rapid.SliceOfN(rapid.ByteRange(0, 40), 0, 60).Draw(t, "series")
			if rapid.IntRange(0, 4).Draw(t, "sorted") > 0 { // as stores return rows
				slices.Sort(series)
			}
			for _, n := range series {
				key := s.AppendRowKey(nil, encoding.UID{0, 0, 1}, uint32(hour*3600), []byte{0, 0, 1, 0, 0, n})
				id := string(s.AppendSpan(nil, key))
				got := table.find(s, key, func(span []byte) bool {
					if known[id] != nil || string(span) != id {
						t.Fatalf("asked about %x for a row of %x", span, id)
					}
					return n%7 != 0
				})
				switch {
				case n%7 == 0:
					if got != nil {
						t.Fatalf("%x is refused, but a series was returned for it", id)
					}
				case known[id] == nil:
					known[id] = got
					order = append(order, id)
				}
				if got != known[id] || got != nil && string(got.id) != id {
					t.Fatalf("series %x was returned for span %x", got.id, id)
				}
			}
		}
		bytes := int64(0)
		for i, sp := range table.spans {
			bytes += int64(len(sp.id)) + spanOverhead
			if string(sp.id) != order[i] || sp.first != -1 || sp.last != -1 {
				t.Fatalf("span %d is %x, want %x", i, sp.id, order[i])
			}
		}
		if len(table.spans) != len(order) || table.bytes != bytes {
			t.Fatalf("%d spans of %d bytes, want %d of %d", len(table.spans), table.bytes, len(order), bytes)
		}
	})
}

// BenchmarkSpanTable finds the spans of 1,000 series in 6 hours: without holes, and
// with a series missing here and there.
func BenchmarkSpanTable(b *testing.B) {
	s := encoding.DefaultSchema()
	for _, every := range []int{1 << 30, 10} {
		var keys [][]byte
		for hour := range 6 {
			for i := range 1000 {
				if (i+hour)%every != every-1 {
					keys = append(keys,
						s.AppendRowKey(nil, encoding.UID{0, 0, 1}, uint32(hour*3600),
							[]byte{0, 0, 1, 0, byte(i >> 8), byte(i)}))
				}
			}
		}
		b.Run(fmt.Sprintf("missing=%d", 6000-len(keys)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var table seriesTable
				for _, key := range keys {
					table.find(s, key, func([]byte) bool { return true })
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(keys)), "ns/row")
		})
	}
}
