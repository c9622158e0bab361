package merge

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	arrowmemory "github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
)

// partialRow returns the partial aggregates of a group with one member in the four buckets of an
// hour. The third one has the given sum with its proof, the others 1.
func partialRow(p *scanplan.Plan, salt byte, sum float64, low, high int16) *batch.Partial {
	span := append([]byte{salt}, append(p.Metric[:3:3], append(uid(1), uid(2)...)...)...)
	return &batch.Partial{
		Live: []int32{1, 1, 1, 1}, A: []float64{1, 1, sum, 1}, Low: []int16{0, 0, low, 0}, High: []int16{1, 1, high, 1},
		Spans: [][]byte{span}, Flags: []uint8{0},
	}
}

func partialBatch(rows ...*batch.Partial) batch.Record {
	w := batch.NewPartialWriter(arrowmemory.DefaultAllocator)
	defer w.Release()
	for _, r := range rows {
		w.Append(r)
	}
	return w.Record()
}

// saltedPlan returns a plan for one hour in four buckets, and four salt buckets.
func saltedPlan(aggregator scanplan.Aggregator) *scanplan.Plan {
	s := encoding.DefaultSchema()
	s.SaltWidth, s.SaltBuckets = 1, 4
	p := newPlan(s, uid(1), base*1000, (base+3600)*1000-1, &scanplan.Downsample{Interval: 900_000, Function: "max"})
	p.From, p.To = base/3600*3600, base/3600*3600+3600
	p.Start, p.End = p.From*1000, p.To*1000-1
	for i := range p.Ranges {
		p.Ranges[i] = scanplan.KeyRange{
			Start: s.AppendRangeKey(nil, i, uid(1), uint32(p.From)),
			Stop:  s.AppendRangeKey(nil, i, uid(1), uint32(p.To)),
		}
	}
	p.Aggregator = aggregator
	return p
}

// A product that is infinite in one part and 0 in another may be 0 in the order of spans, so it
// fails with ErrOrder even if rounding is allowed. A product that becomes infinite fails, too.
func TestPartials_overflow(t *testing.T) {
	for _, c := range []struct {
		first, second float64
		want          error
	}{
		{math.Inf(1), 0, ErrOrder},
		{0, math.Inf(-1), ErrOrder},
		{3, 0, nil},
		{math.MaxFloat64, 2, ErrOrder},
	} {
		p := saltedPlan("mult")
		m := New(p, nil)
		m.AllowRounding()
		for salt, product := range []float64{c.first, c.second} {
			row := partialRow(p, byte(salt), product, 0, 1)
			row.Low, row.High = nil, nil
			if err := m.Add(p.Ranges[salt], partialBatch(row)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := m.Finish(); !errors.Is(err, c.want) {
			t.Errorf("%v times %v: error %v, want %v", c.first, c.second, err, c.want)
		}
	}
}

// The sums of two salts are added up if their proofs show that nothing is rounded. Otherwise the
// second part is refused when it is added, unless rounding is allowed or its time is outside of
// the query.
func TestPartials_proof(t *testing.T) {
	f := func(name string, wantAdd, wantFinish error, change func(*Merger), b *batch.Partial) {
		t.Helper()
		p := saltedPlan("sum")
		m := New(p, nil)
		change(m)
		if err := m.Add(p.Ranges[0], partialBatch(partialRow(p, 0, 1<<51, 0, 52))); err != nil {
			t.Fatal(err)
		}
		if err := m.Add(p.Ranges[1], partialBatch(b)); !errors.Is(err, wantAdd) {
			t.Errorf("%s: %v, want %v", name, err, wantAdd)
		} else if err != nil {
			return
		}
		groups, err := m.Finish()
		if !errors.Is(err, wantFinish) {
			t.Errorf("%s: %v, want %v", name, err, wantFinish)
		}
		if err == nil && groups[0].Points.Len() == 4 {
			if _, v := groups[0].Points.At(2); v.Double() != 1<<51+b.A[2] {
				t.Errorf("%s: got %v, want the sum of both", name, v)
			}
		}
	}
	asIs := func(*Merger) {}
	p := saltedPlan("sum")
	f("no bits in common", nil, nil, asIs, partialRow(p, 1, 1<<20, 20, 21))
	f("a bit that is lost", ErrOrder, nil, asIs, partialRow(p, 1, 0.5, -1, 0))
	f("too many", ErrOrder, nil, asIs, partialRow(p, 1, 1<<52, 0, 53))
	f("infinite", ErrOrder, nil, asIs, partialRow(p, 1, math.Inf(1), 1024, math.MaxInt16))
	f("nothing known", ErrOrder, nil, asIs, func() *batch.Partial {
		r := partialRow(p, 1, 1, 0, 1)
		r.Low, r.High, r.Live[2] = nil, nil, 2
		return r
	}())
	f("known by itself", nil, nil, asIs,
		func() *batch.Partial { r := partialRow(p, 1, 1, 0, 1); r.Low, r.High = nil, nil; return r }())
	f("known not to fit", ErrOrder, nil, asIs,
		func() *batch.Partial { r := partialRow(p, 1, 0.1, 0, 1); r.Low, r.High = nil, nil; return r }())
	f("rounding allowed", nil, nil, (*Merger).AllowRounding, partialRow(p, 1, 0.5, -1, 0))
	f("infinite, rounding allowed", nil, ErrOrder, (*Merger).AllowRounding,
		partialRow(p, 1, math.Inf(1), 1024, math.MaxInt16))
	f("before the query", nil, nil, func(m *Merger) { m.plan.Start += 2*900_000 + 1 }, partialRow(p, 1, 0.5, -1, 0))
	f("at its start", ErrOrder, nil, func(m *Merger) { m.plan.Start += 2 * 900_000 }, partialRow(p, 1, 0.5, -1, 0))
	f("behind the query", nil, nil, func(m *Merger) { m.plan.End -= 2 * 900_000 }, partialRow(p, 1, 0.5, -1, 0))
	f("at its end", ErrOrder, nil, func(m *Merger) { m.plan.End -= 2*900_000 - 1 }, partialRow(p, 1, 0.5, -1, 0))
	f("not live there", nil, nil, asIs,
		func() *batch.Partial { r := partialRow(p, 1, 0, -1, 0); r.Live[2] = 0; return r }())
}

// A sum that a bucket of one part has is not rounded by that of another part that has none there, whichever is first.
func TestPartials_notLive(t *testing.T) {
	p := saltedPlan("sum")
	m := New(p, nil)
	first := partialRow(p, 0, 0, -1, 0)
	first.Live[2] = 0
	for salt, row := range []*batch.Partial{first, partialRow(p, 1, 1<<51, 0, 52)} {
		if err := m.Add(p.Ranges[salt], partialBatch(row)); err != nil {
			t.Errorf("salt %d: %v", salt, err)
		}
	}
}

// The groups of a part that is all of its plan come in the order of their keys, each once, and count as memory.
func TestPartials_whole(t *testing.T) {
	p := saltedPlan("sum")
	p.Ranges = p.Ranges[:1]
	row := func(key byte, members, notes int) *batch.Partial {
		r := partialRow(p, 0, 1, 0, 1)
		r.Group, r.Spans, r.Flags = []byte{key}, nil, nil
		for i := range members {
			one := tagged(p.Schema, encoding.Points{}, 1, uint64(i+1))
			r.Spans, r.Flags = append(r.Spans, one.span(p.Schema)), append(r.Flags, 0)
		}
		for range notes {
			r.Notes, r.NoteSpan = append(r.Notes, []byte("note")), append(r.NoteSpan, 0)
		}
		return r
	}
	m := New(p, nil)
	for _, key := range []byte{2, 1} {
		if err := m.Add(p.Ranges[0], partialBatch(row(key, 1, 0))); err != nil {
			t.Fatal(err)
		}
	}
	err := m.Add(p.Ranges[0], partialBatch(row(2, 1, 0)))
	if err == nil || !strings.Contains(err.Error(), "comes twice") {
		t.Errorf("got %v, want that a group comes twice", err)
	}
	groups, err := m.Finish()
	if err != nil || len(groups) != 2 || groups[0].Key[0] != 1 || groups[1].Key[0] != 2 {
		t.Errorf("got %v, %+v, want groups 1 and 2", err, groups)
	}

	used := func(r *batch.Partial) int64 {
		m := New(p, nil)
		if err := m.Add(p.Ranges[0], partialBatch(r)); err != nil {
			t.Fatal(err)
		}
		return m.used
	}
	full := row(1, 1, 0)
	full.Real, full.N, full.B = make([]bool, 4), full.Live, full.A
	alone := row(1, 3, 0)
	alone.Live, alone.A, alone.Low, alone.High = nil, nil, nil, nil
	for i := range alone.Flags {
		alone.Flags[i] = batch.EdgeAnnotationsOnly
	}
	const span = 1 + 3 + 6
	const buckets = columnsBytes + 4*(4+8+2+2) // of Live, A, Low and High
	for what, c := range map[string]struct{ got, want int64 }{
		"a group":                         {used(row(1, 1, 0)), groupBytes + buckets + span + wholeSpanBytes},
		"a group of three":                {used(row(1, 3, 0)), groupBytes + buckets + 3*(span+wholeSpanBytes)},
		"a group with all columns":        {used(full) - used(row(1, 1, 0)), 4 * (1 + 4 + 8)},
		"two annotations":                 {used(row(1, 1, 2)) - used(row(1, 1, 0)), 2 * (sliceBytes + 4)},
		"a group of members without data": {used(alone), groupBytes + 3*span},
	} {
		if c.got != c.want {
			t.Errorf("%s counts as %d bytes, want %d", what, c.got, c.want)
		}
	}
}

// Where several parts of a salt follow each other, empty buckets are filled only where none of them
// has the series' buckets.
func TestPartials_filledOnce(t *testing.T) {
	p := saltedPlan("min")
	p.To, p.End, p.Downsample.Fill = p.To+3600, p.End+3_600_000, scanplan.FillZero
	m := New(p, nil)
	for _, from := range []int64{p.From, p.From + 3600} {
		part := scanplan.KeyRange{
			Start: p.Schema.AppendRangeKey(nil, 0, uid(1), uint32(from)),
			Stop:  p.Schema.AppendRangeKey(nil, 0, uid(1), uint32(from+3600)),
		}
		row := partialRow(p, 0, 5, 0, 1)
		row.Low, row.High = nil, nil
		if err := m.Add(part, partialBatch(row)); err != nil {
			t.Fatal(err)
		}
	}
	groups, err := m.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := groups[0].Points.AppendDoubles(nil), []float64{1, 1, 5, 1, 1, 1, 5, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Up to three of these sums can be added up without rounding, but not four, although every two can.
//
//fault:salts-added-up > 1 => > 2
func TestPartials_several(t *testing.T) {
	p := saltedPlan("sum")
	for parts := range 5 {
		m := New(p, nil)
		for i := range parts {
			if err := m.Add(p.Ranges[i], partialBatch(partialRow(p, byte(i), 1<<51-1, 0, 51))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := m.Finish(); errors.Is(err, ErrOrder) != (parts == 4) {
			t.Errorf("%d parts: got %v, want ErrOrder for 4 only", parts, err)
		}
	}
}

// Partial aggregates of a function that has none, or without the columns of their function, are an
// error.
func TestPartials_refuses(t *testing.T) {
	f := func(aggregator scanplan.Aggregator, want string) {
		t.Helper()
		p := saltedPlan(aggregator)
		row := partialRow(p, 0, 1, 0, 1)
		row.A, row.Low, row.High = nil, nil, nil
		if err := New(p, nil).Add(p.Ranges[0], partialBatch(row)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", aggregator, err, want)
		}
	}
	f("sum", "columns of sum are missing")
	f("p99", "columns of p99 are missing")
	f("none", "partial aggregates of none, which has none")
	f("nope", "partial aggregates of nope, which has none")
}

// A part of a plan of several lists all members of its groups: others would join with none of theirs.
func TestPartials_membersMissing(t *testing.T) {
	p := saltedPlan("sum")
	row := partialRow(p, 0, 1, 0, 1)
	row.Live = []int32{1, 1, 2, 1}
	err := New(p, nil).Add(p.Ranges[0], partialBatch(row))
	if err == nil || !strings.Contains(err.Error(), "lists 1 members, want 2 or more") {
		t.Errorf("got %v, want an error that a member is missing", err)
	}
}

// A series without points counts in the merge's memory: with a segment and its annotations.
func TestPartials_memoryWithoutPoints(t *testing.T) {
	p := saltedPlan("sum")
	m := New(p, nil)
	row := partialRow(p, 0, 1, 0, 1)
	if err := m.Add(p.Ranges[0], partialBatch(row)); err != nil {
		t.Fatal(err)
	}
	one := m.used

	const size = 1 << 20
	row = partialRow(p, 1, 1, 0, 1)
	row.Live, row.A, row.Low, row.High = nil, nil, nil, nil
	for i := range row.Flags {
		row.Flags[i] |= batch.EdgeAnnotationsOnly
	}
	row.Notes, row.NoteSpan = [][]byte{make([]byte, size)}, []int32{0}
	if err := m.Add(p.Ranges[1], partialBatch(row)); err != nil {
		t.Fatal(err)
	}
	if two := m.used - one; two < size+segmentBytes {
		t.Errorf("%d bytes are counted, want at least those of an annotation of %d bytes and of a segment", two, size)
	}
}
