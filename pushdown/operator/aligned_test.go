package operator_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	account "downpour/pushdown/process/memory"
)

// alignedSeries is a series of a drawn table, whose points are by hour.
type alignedSeries struct {
	tags  []encoding.TagPair
	hours map[int]encoding.Points
	note  string // of its first hour, "" for none
}

// drawAligned draws series that mostly have points at the same times and of the same type.
func drawAligned(t *rapid.T) (all []alignedSeries) {
	often := func(what string) bool { return rapid.IntRange(0, 30).Draw(t, what) > 0 }
	offsets := func(hour int) []int64 {
		return rapid.SliceOfNDistinct(rapid.Int64Range(0, 3_599_999), 1, 3, rapid.ID).Draw(t,
			fmt.Sprint("offsets ", hour))
	}
	float := rapid.Bool().Draw(t, "float")
	common := [][]int64{offsets(0), offsets(1), offsets(2)}
	for i := range rapid.IntRange(1, 5).Draw(t, "series") {
		one := alignedSeries{hours: map[int]encoding.Points{}}
		if often("grouped") {
			one.tags = append(one.tags, operatortest.Tag(1, rapid.IntRange(1, 2).Draw(t, "group")))
		}
		one.tags = append(one.tags, operatortest.Tag(2, i+1))
		if rapid.IntRange(0, 3).Draw(t, "annotated") == 0 {
			one.note = fmt.Sprintf(`{"series":%d}`, i)
		}
		first, last := rapid.SampledFrom([]int{0, 0, 0, 0, 1, 3}).Draw(t, "first"), 3
		if !often("early") {
			last = 2
		}
		for hour := first; hour < last; hour++ {
			at := common[hour]
			if !often("same times") {
				at = offsets(hour)
			}
			if !often("no hole") {
				continue
			}
			at, p := slices.Clone(at), encoding.Points{}
			slices.Sort(at)
			for _, ms := range at {
				v := rapid.IntRange(-40, 40).Draw(t, "value")
				value := encoding.IntValue(int64(v))
				if float == often("same type") {
					value = encoding.FloatValue(float64(v) / 4)
				}
				p.Append((base+int64(hour)*3600)*1000+ms, value)
			}
			one.hours[hour] = p
		}
		all = append(all, one)
	}
	return all
}

// readAligned runs an aligned part, and returns its groups as text, sorted, or nil if it is not aligned.
func readAligned(t *rapid.T, m *operatortest.Store, part *scanplan.Part) (rows []string) {
	op, err := operator.New(m, part, operator.Options{FlushBytes: rapid.SampledFrom([]int{0, 1, 200}).Draw(t, "flush")})
	if err != nil {
		t.Fatal(err)
	}
	refused := false
	if err := operatortest.Drain(t.Context(), op, func(r batch.Record) error {
		reader, err := batch.NewAlignedReader(r)
		if err != nil {
			return err
		}
		var a batch.Aligned
		for i := range reader.Len() {
			if err := reader.At(i, &a); err != nil {
				return err
			}
			refused = refused || a.Kind == batch.AlignedNot
			rows = append(rows, describeAligned(&a))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if slices.Sort(rows); refused {
		if len(rows) != 1 {
			t.Fatalf("%d rows of a part that is not aligned, want one", len(rows))
		}
		return nil
	}
	return rows
}

func describeAligned(a *batch.Aligned) string {
	return fmt.Sprintf("%x kind %d %d %x spans %x %d edges %x %d notes %d %s", a.Group, a.Kind, a.Time, a.Bits, a.Spans,
		a.Flags, a.EdgeBits, a.EdgeFloat, a.NoteSpan, bytes.Join(a.Notes, []byte(" ")))
}

// alignedModel is the group of some series, by ascending spans, as an aligned part answers; ok is false if their points
// are not aligned.
func alignedModel(p *scanplan.Plan, key string, members []alignedSeries) (row batch.Aligned, ok bool) {
	row.Group = []byte(key)
	var hours []int // with points
	types := map[bool]bool{}
	for hour := range 3 {
		var times []int64
		for _, one := range members {
			points, has := one.hours[hour]
			if !has {
				continue
			}
			for _, float := range points.Float {
				types[float] = true
			}
			if times != nil && !slices.Equal(times, points.Time) {
				return row, false
			}
			times = points.Time
		}
		if times != nil {
			hours, row.Time = append(hours, hour), append(row.Time, times...)
		}
	}
	if p.Rate == nil && len(types) > 1 {
		return row, false
	}
	if types[true] || p.Rate != nil && len(hours) > 0 {
		row.Kind = batch.AlignedFloat
	}
	doubles, integers := map[int64][]float64{}, map[int64]int64{}
	for i, one := range members {
		var own encoding.Points
		first, last := -1, -1
		for n, hour := range hours {
			points, has := one.hours[hour]
			if has && first >= 0 && last != n-1 || has && p.Rate != nil && first < 0 && n > 0 {
				return row, false // a hole, or a rate that begins later
			}
			if has && first < 0 {
				first = n
			}
			if has {
				last = n
				own.AppendPoints(points)
			}
		}
		row.Spans = append(row.Spans, []byte(spanOf(one.tags...)))
		if one.note != "" {
			row.NoteSpan, row.Notes = append(row.NoteSpan, int32(i)), append(row.Notes, []byte(one.note))
		}
		flags := map[bool]uint8{true: batch.SpanLate}[first > 0] |
			map[bool]uint8{true: batch.SpanEarly}[last < len(hours)-1]
		if own.Len() == 0 {
			flags = batch.SpanAnnotationsOnly
		}
		row.Flags = append(row.Flags, flags)
		addMember(p, &row, own, flags, doubles, integers)
	}
	for _, at := range row.Time {
		sum := 0.0
		for _, v := range doubles[at] {
			sum += v
		}
		bits := uint64(integers[at])
		if row.Kind == batch.AlignedFloat {
			bits = math.Float64bits(sum)
		}
		row.Bits = append(row.Bits, bits)
	}
	return row, true
}

// addMember adds the points of a series of a row, or its rates, to values by time, and with a rate its edges to the
// row.
func addMember(p *scanplan.Plan, row *batch.Aligned, own encoding.Points, flags uint8, doubles map[int64][]float64,
	integers map[int64]int64) {
	values := own.AppendDoubles(nil)
	for k, v := range values {
		at, last := own.Time[k], k == own.Len()-1 && flags&batch.SpanEarly == 0
		_, value := own.At(k)
		switch {
		case p.Rate == nil:
			doubles[at] = append(doubles[at], v)
			integers[at] += int64(v)
			continue
		case k == 0:
			doubles[at] = append(doubles[at], 0) // the gateway's
			row.AddEdge(value)
		default:
			doubles[at] = append(doubles[at], (v-values[k-1])/(float64(at-own.Time[k-1])/1000))
		}
		if last {
			row.AddEdge(value)
		}
	}
}

// An aligned part answers with the sums of its groups at each time, of values or of rates, and with what its gateway
// needs of each series; or it refuses, if a series has other times, another type or a hole.
func TestAligned_ofSeries(t *testing.T) {
	answered, refused, late := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		all, s := drawAligned(t), encoding.DefaultSchema()
		m := &operatortest.Store{BlockRows: rapid.IntRange(0, 3).Draw(t, "block")}
		plan := operatortest.Plan(s, metric, base, base+3*3600)
		plan.GroupBy = []encoding.UID{operatortest.UID(1)}
		if rapid.Bool().Draw(t, "rate") {
			plan.Rate = &scanplan.Rate{}
		}
		groups := map[string][]alignedSeries{}
		slices.SortFunc(all, func(a, b alignedSeries) int {
			return bytes.Compare([]byte(spanOf(a.tags...)), []byte(spanOf(b.tags...)))
		})
		for _, one := range all {
			for _, points := range one.hours {
				m.Load(s, metric, operatortest.Series{Tags: one.tags, Points: points})
			}
			if one.note != "" {
				m.Cell(s.AppendRowKey(nil, metric, base, s.AppendTags(nil, one.tags)),
					[]byte{encoding.PrefixAnnotation, 0, 0}, []byte(one.note), 1)
			}
			key, ok := plan.AppendGroupKey(nil, []byte(spanOf(one.tags...)))
			if ok && (len(one.hours) > 0 || one.note != "") {
				groups[string(key)] = append(groups[string(key)], one)
			}
		}
		part := whole(plan)
		part.Mode = scanplan.Aligned

		var want []string
		aligned := true
		for _, key := range slices.Sorted(maps.Keys(groups)) {
			row, ok := alignedModel(&plan, key, groups[key])
			aligned = aligned && ok
			want = append(want, describeAligned(&row))
			late += strings.Count(string(row.Flags), string(rune(batch.SpanLate)))
		}
		if !aligned {
			want = nil
			refused++
		} else if len(want) > 0 {
			answered++
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, readAligned(t, m, part)); diff != "" {
			t.Fatalf("-want +got: %s", diff)
		}
	})
	if answered == 0 || refused == 0 || late == 0 {
		t.Errorf("%d parts are aligned, %d are not, %d begin late, want some of each", answered, refused, late)
	}
}

// alignedRows runs an aligned part, and returns its groups as text, those of each record after a line.
func alignedRows(t *testing.T, m *operatortest.Store, part *scanplan.Part, opts operator.Options) (rows []string) {
	t.Helper()
	part.Mode = scanplan.Aligned
	op, err := operator.New(m, part, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := operatortest.Drain(t.Context(), op, func(r batch.Record) error {
		reader, err := batch.NewAlignedReader(r)
		if err != nil {
			return err
		}
		rows = append(rows, "record")
		var a batch.Aligned
		for i := range reader.Len() {
			if err := reader.At(i, &a); err != nil {
				return err
			}
			rows = append(rows, describeAligned(&a))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return rows
}

// Rows that do not come hour by hour, and in an hour series by series, are refused: sums of doubles depend on their
// order.
func TestAligned_order(t *testing.T) {
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+2*3600)
	refused := alignedRows(t, table(
		series(operatortest.Every(base, base+3600, 600, identity), operatortest.Tag(1, 1))), whole(plan),
		operator.Options{}) // of points of two types
	for name, order := range map[string][]int{
		"ascending": {0, 1, 2, 3}, "hours": {2, 3, 0, 1}, "series": {1, 0, 2, 3}, "of the second hour": {0, 1, 3, 2},
	} {
		m := &operatortest.Store{Keep: true}
		sorted := table(
			series(operatortest.Every(base, base+2*3600, 3600, identity), operatortest.Tag(1, 1)),
			series(operatortest.Every(base, base+2*3600, 3600, identity), operatortest.Tag(1, 2))).Rows
		for _, i := range order {
			m.Rows = append(m.Rows, sorted[i])
		}
		rows := alignedRows(t, m, whole(plan), operator.Options{})
		if slices.Equal(rows, refused) != (name != "ascending") {
			t.Errorf("rows in the order of %s: got %s", name, rows)
		}
	}
}

// Times of 1970 are times like others. Only a rate there fails, as in OpenTSDB.
func TestAligned_1970(t *testing.T) {
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, 0, 3600)
	for _, c := range []struct {
		first int64 // s
		rate  bool
		ok    bool
	}{{0, false, true}, {0, true, false}, {1, false, true}, {1, true, true}} {
		if plan.Rate = nil; c.rate {
			plan.Rate = &scanplan.Rate{}
		}
		rows := alignedRows(t, table(series(operatortest.Every(c.first, 3600, 1800, identity), operatortest.Tag(1, 1))),
			whole(plan), operator.Options{})
		if got := strings.Contains(rows[1], fmt.Sprintf("[%d %d]", c.first*1000, (c.first+1800)*1000)); got != c.ok {
			t.Errorf("first point at %d s, rate %t: got %s, want an answer: %t", c.first, c.rate, rows, c.ok)
		}
	}
}

// A record ends with the group that fills it.
func TestAligned_records(t *testing.T) {
	m, all := kinds(8)
	part := all["aligned"].part
	const group = 3 + 6*16 + 2*9 + 9 + 2 // its key, times and values, edges and the name of its series
	for flush, want := range map[int][]int{
		1:           {1, 1, 1, 1, 1, 1, 1, 1},
		2*group - 1: {2, 2, 2, 2}, 2 * group: {2, 2, 2, 2}, 2*group + 1: {3, 3, 2}, 8 * group: {8}, 8*group + 1: {8},
	} {
		var got []int
		for _, row := range alignedRows(t, m, &part, operator.Options{FlushBytes: flush}) {
			if row == "record" {
				got = append(got, 0)
			} else {
				got[len(got)-1]++
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("records of %d bytes have %d groups, want %d", flush, got, want)
		}
	}
}

// A part that has no memory left for the last of its groups is refused, and frees those that it has begun.
func TestAligned_refusedAtLast(t *testing.T) {
	m, all := kinds(600) // each takes more than 100 bytes, all of them more than an account takes at once
	m.BlockRows = 0
	held := account.New(8 << 20).Open(account.Query)
	defer held.Close()
	m.Fail = func(_ context.Context, block int) error {
		for block == 1 && held.Try(1000) {
		}
		return nil
	}
	k := all["aligned"]
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	k.opts = operator.Options{Mem: mem}
	if text, _, err := answer(account.With(t.Context(), held), m, k); !account.Refused(err) || text != "" {
		t.Errorf("got %v after %d bytes of records, want that it is refused", err, len(text))
	}
	if n := mem.CurrentAlloc(); n != 0 {
		t.Errorf("%d bytes leaked", n)
	}
}
