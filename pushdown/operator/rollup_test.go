package operator_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
)

var sumColumn, countColumn = encoding.RollupColumn{ID: 0, Name: "sum"}, encoding.RollupColumn{ID: 1, Name: "count"}

// rollupTable holds random sums and counts of some series, and what a model makes of
// them.
type rollupTable struct {
	store  *operatortest.Store
	layout encoding.RollupLayout
	from   int64
	to     int64
	sums   map[string]map[int64]float64 // by span and time in s
	counts map[string]map[int64]float64
}

func newRollupTable(r *rand.Rand, l encoding.RollupLayout, rows int) *rollupTable {
	s := encoding.DefaultSchema()
	t := &rollupTable{
		store:  &operatortest.Store{},
		layout: l,
		sums:   map[string]map[int64]float64{},
		counts: map[string]map[int64]float64{},
	}
	t.from = l.Span.BaseTime(base + r.Int64N(400*86400))
	for t.to = t.from; rows > 0; rows-- {
		t.to = l.Span.Next(t.to)
	}

	for v := range 3 {
		tags := s.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, v+1)})
		span := string(append(slices.Clone(metric), tags...))
		t.sums[span], t.counts[span] = map[int64]float64{}, map[int64]float64{}
		for at := t.from; at < t.to; at += l.Interval {
			row, index, err := l.Split(at)
			if err != nil {
				continue
			}
			key := s.AppendRowKey(nil, metric, uint32(row), tags)
			at := row + int64(index)*l.Interval
			if r.IntN(4) > 0 {
				n := r.IntN(1000)
				t.sums[span][at] = float64(n)
				value := encoding.AppendInt(nil, int64(n))
				t.store.Cell(key, encoding.AppendRollupQualifier(nil, sumColumn.ID, index, false, len(value)), value, 1)
			}
			if r.IntN(4) > 0 {
				n := r.IntN(3)
				t.counts[span][at] = float64(n)
				// A count that was written as a float is cut to a whole number.
				t.store.Cell(key, encoding.AppendRollupQualifier(nil, countColumn.ID, index, true, 8),
					encoding.AppendDouble(nil, float64(n)+0.75), 1)
			}
		}
	}
	return t
}

// buckets returns what the model makes of a span: buckets of a width in seconds, with sums or
// averages.
func (t *rollupTable) buckets(span string, width int64, average bool) (out flat) {
	sums, counts, first := map[int64]float64{}, map[int64]float64{}, (t.from+width-1)/width*width
	for at, v := range t.sums[span] {
		n, ok := t.counts[span][at]
		if at < first || average && !ok {
			continue
		}
		sums[at/width*width] += v
		counts[at/width*width] += n
	}
	for at := range sums {
		out.Time = append(out.Time, at*1000)
	}
	slices.Sort(out.Time)
	for _, ms := range out.Time {
		v := sums[ms/1000]
		if n := counts[ms/1000]; average && n == 0 {
			v = 0
		} else if average {
			v /= n
		}
		out.Value = append(out.Value, v)
	}
	return out
}

// A plan over rollups gives what a model does, wherever its rows are cut, and whichever way
// they are selected.
func TestRollup_model(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	layouts := []encoding.RollupLayout{{Interval: 300, Span: encoding.RowSpan{Count: 1, Unit: "h"}},
		{Interval: 600, Span: encoding.RowSpan{Count: 6, Unit: "h"}},
		{Interval: 3600, Span: encoding.RowSpan{Count: 1, Unit: "d"}},
		{Interval: 86400, Span: encoding.RowSpan{Count: 1, Unit: "n"}},
		{Interval: 86400, Span: encoding.RowSpan{Count: 1, Unit: "y"}},
		{Interval: 1500, Span: encoding.RowSpan{Count: 6, Unit: "h"}}}
	cuts := 0
	for range 300 {
		data := newRollupTable(r, layouts[r.IntN(len(layouts))], 1+r.IntN(5))
		width := data.layout.Interval * []int64{1, 2, 3, 4, 7, 24}[r.IntN(6)]
		average := r.IntN(2) == 0

		plan := operatortest.Plan(encoding.DefaultSchema(), metric, data.from, data.to)
		plan.Rollup = &scanplan.Rollup{Layout: data.layout, Column: sumColumn}
		plan.Downsample = &scanplan.Downsample{Interval: width * 1000, Function: "sum", Fill: scanplan.FillNone}
		if average {
			plan.Rollup.Count, plan.Downsample.Function = &countColumn, "avg"
		}
		wanted := []int{1, 2, 3}
		switch r.IntN(3) {
		case 0:
			wanted = []int{2}
			plan.Tags = []scanplan.TagPredicate{{
				TagK:   operatortest.UID(1),
				Op:     scanplan.In,
				Values: []encoding.UID{operatortest.UID(2)},
			}}
		case 1:
			wanted = []int{1, 3}
			for _, v := range wanted {
				plan.TSUIDs = append(plan.TSUIDs, encoding.UID(spanOf(operatortest.Tag(1, v))))
			}
		}

		want, got := map[string]flat{}, map[string]flat{}
		for _, v := range wanted {
			span := spanOf(operatortest.Tag(1, v))
			if f := data.buckets(span, width, average); len(f.Time) > 0 {
				want[span] = f
			}
		}
		for _, part := range cutRows(r, &plan) {
			spans, _, err := read(t, data.store, part, operator.Options{FlushBytes: 1 + r.IntN(2000)})
			if err != nil {
				t.Fatal(err)
			}
			cuts++
			for span, f := range spans {
				all := got[span]
				all.Time, all.Value = append(all.Time, f.Time...), append(all.Value, f.Value...)
				got[span] = all
			}
		}
		for span, f := range got {
			if len(f.Time) == 0 { // a presence marker
				delete(got, span)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%+v, %d s, average %t: -model +parts\n%s", data.layout, width, average, diff)
		}
	}
	if cuts < 350 {
		t.Errorf("%d parts of 300 plans, want at least 350: too few plans are cut", cuts)
	}
}

// cutRows cuts a plan between some of its rows, if it may be cut.
func cutRows(r *rand.Rand, p *scanplan.Plan) (parts []*scanplan.Part) {
	start := p.Ranges[0].Start
	for at := p.NextRow(p.From); at < p.To && p.BucketsInRows(); at = p.NextRow(at) {
		if r.IntN(2) == 0 {
			key := binary.BigEndian.AppendUint32(slices.Clone(start[:p.Schema.BaseTimeAt()]), uint32(at))
			parts = append(parts, &scanplan.Part{Plan: *p, Range: scanplan.KeyRange{Start: start, Stop: key}})
			start = key
		}
	}
	return append(parts, &scanplan.Part{Plan: *p, Range: scanplan.KeyRange{Start: start, Stop: p.Ranges[0].Stop}})
}

// scanLog is a store that records its scans.
type scanLog struct {
	*operatortest.Store
	scans []store.Scan
}

func (*scanLog) Features() store.Features { return store.Features{} }

func (l *scanLog) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	l.scans = append(l.scans, s)
	return l.Store.Scan(ctx, s)
}

// A plan reads each of its columns by ID and by name, as ranges of qualifiers. If an ID is the
// first letter of a name, one range covers both, so that no cell is read twice.
func TestRollup_columns(t *testing.T) {
	data := newRollupTable(rand.New(rand.NewPCG(2, 2)),
		encoding.RollupLayout{Interval: 3600, Span: encoding.RowSpan{Count: 1, Unit: "d"}}, 1)
	for _, test := range []struct {
		sum, count byte
		want       string
	}{
		{0, 1, "00-01 01-02 636f756e743a-636f756e743b 73756d3a-73756d3b"},
		{3, 1, "01-02 03-04 636f756e743a-636f756e743b 73756d3a-73756d3b"},
		{'s', 'c', "63-64 73-74"},
		{'c', 127, "63-64 73756d3a-73756d3b 7f-80"},
	} {
		plan := operatortest.Plan(encoding.DefaultSchema(), metric, data.from, data.to)
		plan.Downsample = &scanplan.Downsample{Interval: 3600_000, Function: "avg", Fill: scanplan.FillNone}
		plan.Rollup = &scanplan.Rollup{
			Layout: data.layout,
			Column: encoding.RollupColumn{ID: test.sum, Name: "sum"},
			Count:  &encoding.RollupColumn{ID: test.count, Name: "count"},
		}
		from := &scanLog{Store: data.store}
		op, err := operator.New(from, whole(plan), operator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = op.Next(t.Context())
		}
		op.Close()

		var got []string
		for _, r := range from.scans[0].Columns {
			got = append(got, fmt.Sprintf("%x-%x", r.Start, r.Stop))
		}
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("sum in %d, count in %d: -want +got\n%s", test.sum, test.count, diff)
		}
	}
}

// The rows of given series are read by their keys: one key for each row span, here a month, not
// one for each hour.
func TestChooseAccess_rollupRows(t *testing.T) {
	from, to := int64(1356998400), int64(1388534400) // 2013
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, from, to)
	plan.Downsample = &scanplan.Downsample{Interval: 86_400_000, Function: "sum", Fill: scanplan.FillNone}
	plan.Rollup = &scanplan.Rollup{
		Layout: encoding.RollupLayout{Interval: 86400, Span: encoding.RowSpan{Count: 1, Unit: "n"}},
		Column: sumColumn,
	}
	plan.TSUIDs = []encoding.UID{encoding.UID(spanOf(operatortest.Tag(1, 1)))}
	if got := len(operator.ChooseAccess(whole(plan), nil).Filter.Ranges); got != 12 {
		t.Errorf("%d ranges, want 12", got)
	}
}

// A part that cuts buckets of rollups is refused: an average cannot be finished elsewhere.
func TestNew_rollupCut(t *testing.T) {
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+4*86400)
	plan.Downsample = &scanplan.Downsample{Interval: 7 * 3600_000, Function: "sum", Fill: scanplan.FillNone}
	plan.Rollup = &scanplan.Rollup{
		Layout: encoding.RollupLayout{Interval: 3600, Span: encoding.RowSpan{Count: 1, Unit: "d"}},
		Column: sumColumn,
	}
	part := whole(plan)
	part.Range.Stop = binary.BigEndian.AppendUint32(slices.Clone(part.Range.Start[:3]), base+86400)
	if _, err := operator.New(&operatortest.Store{}, part, operator.Options{}); err == nil ||
		!strings.Contains(err.Error(), "a part of a rollup cuts buckets") {
		t.Errorf("got %v, want an error that the part cuts buckets", err)
	}
}

// A damaged cell, here of interval 32 in a row of 24, fails the part, also an average, which has another column. Cells
// of the columns of a plan are not skipped.
func TestRollup_damaged(t *testing.T) {
	data := newRollupTable(rand.New(rand.NewPCG(1, 1)),
		encoding.RollupLayout{Interval: 3600, Span: encoding.RowSpan{Count: 1, Unit: "d"}}, 1)
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, data.from, data.to)
	plan.Downsample = &scanplan.Downsample{Interval: 3600_000, Function: "sum", Fill: scanplan.FillNone}
	plan.Rollup = &scanplan.Rollup{Layout: data.layout, Column: sumColumn}
	average := plan
	average.Downsample = &scanplan.Downsample{Interval: 3600_000, Function: "avg", Fill: scanplan.FillNone}
	average.Rollup = &scanplan.Rollup{Layout: data.layout, Column: sumColumn, Count: &countColumn}
	if _, stats, err := read(t, data.store, whole(average), operator.Options{}); err != nil || stats.Skipped != 0 {
		t.Errorf("%v, %d cells are skipped, want none", err, stats.Skipped)
	}

	key := encoding.DefaultSchema().AppendRowKey(nil, metric, uint32(data.from),
		encoding.DefaultSchema().AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, 1)}))
	data.store.Cell(key, []byte{0, 0x02, 0x00}, []byte{1}, 1)
	for _, p := range []scanplan.Plan{plan, average} {
		if _, _, err := read(t, data.store, whole(p), operator.Options{}); err == nil ||
			!strings.Contains(err.Error(), "beyond the row's span") {
			t.Errorf("%s: got %v, want an error about the row's span", p.Downsample.Function, err)
		}
	}
}

// A series whose values are all outside of the buckets is shipped with one of them, a presence marker. Buckets that
// reach over rows stay open until the part ends, with what their function holds: that is reserved.
func TestRollup_open(t *testing.T) {
	layout := encoding.RollupLayout{Interval: 3600, Span: encoding.RowSpan{Count: 1, Unit: "d"}}
	const day, days, series = base - base%86400, 10, 20
	s := encoding.DefaultSchema()
	m := &operatortest.Store{}
	for v := range series {
		tags := s.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, v+1)})
		for hour := range days * 24 {
			m.Cell(s.AppendRowKey(nil, metric, uint32(day+hour/24*86400), tags),
				encoding.AppendRollupQualifier(nil, sumColumn.ID, hour%24, false, 1), []byte{byte(hour)}, 1)
		}
	}
	plan := operatortest.Plan(s, metric, day, day+days*86400)
	plan.Rollup = &scanplan.Rollup{Layout: layout, Column: sumColumn}
	plan.Downsample = &scanplan.Downsample{Interval: 400 * 86400_000, Function: "sum", Fill: scanplan.FillNone}
	spans, _, err := read(t, m, whole(plan), operator.Options{})
	if f := spans[spanOf(operatortest.Tag(1, 1))]; err != nil || len(spans) != series || len(f.Time) != 0 ||
		!slices.Equal(f.Raw.Time, []int64{day * 1000}) {
		t.Errorf("a bucket that begins before: %v, %d series, the first has %+v, want its first value", err, len(spans),
			f)
	}

	for function, want := range map[scanplan.Aggregator]int64{"sum": 22168, "median": 42648} {
		plan.Downsample = &scanplan.Downsample{Interval: 5 * 86400_000, Function: function, Fill: scanplan.FillNone}
		if held, _ := heldAtMost(t, m, 3, whole(plan), operator.Options{}); held != want {
			t.Errorf("%s: %d bytes are reserved at most, want %d", function, held, want)
		}
	}
}

// A part of rollups may use the memory of a part before it. It ships no annotations of that
// part's last row and counts none of its skipped cells.
func TestRollup_afterOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	data := newRollupTable(r, encoding.RollupLayout{Interval: 3600, Span: encoding.RowSpan{Count: 1, Unit: "d"}}, 1)
	rolled := operatortest.Plan(encoding.DefaultSchema(), metric, data.from, data.to)
	rolled.Downsample = &scanplan.Downsample{Interval: 3600_000, Function: "sum", Fill: scanplan.FillNone}
	rolled.Rollup = &scanplan.Rollup{Layout: data.layout, Column: sumColumn}

	s := encoding.DefaultSchema()
	noted := &operatortest.Store{}
	row := s.AppendRowKey(nil, metric, base, s.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, 1)}))
	noted.Cell(row, []byte{0, 0}, []byte{1}, 1)
	noted.Cell(row, []byte{1, 0, 0}, []byte(`{"startTime":1356998400}`), 1) // an annotation
	noted.Cell(row, []byte{9, 0, 0}, []byte{1}, 1)                          // of an unknown kind
	raw := operatortest.Plan(s, metric, base, base+3600)

	for range 20 { // several times, because a part does not always get the memory of the one before
		if spans, stats, err := read(t, noted, whole(raw), operator.Options{}); err != nil || len(spans) != 1 ||
			stats.Skipped != 1 {
			t.Fatalf("raw part: spans %v, %+v, %v, want one span and one skipped cell", spans, stats, err)
		}
		spans, stats, err := read(t, data.store, whole(rolled), operator.Options{})
		if err != nil || stats.Skipped != stats.Cells-stats.Points { // counts are skipped
			t.Fatalf("part of rollups: %+v, %v, want only counts skipped", stats, err)
		}
		for span, f := range spans {
			if len(f.Notes) > 0 {
				t.Fatalf("span %x has annotations of another part: %q", span, f.Notes)
			}
		}
	}
}
