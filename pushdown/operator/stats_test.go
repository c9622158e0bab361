package operator_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
)

// The counts of a part are those of its rows, of what is in them and of the records that were returned,
// however the part aggregates. Rows that a store returns although the plan does not admit them are
// rejected.
func TestStats(t *testing.T) {
	rejected := 0
	rapid.Check(t, func(t *rapid.T) {
		d := drawSparse(t)
		d.store.Loose, d.store.Sealed = rapid.Bool().Draw(t, "loose"), false
		d.plan.Tags, d.plan.Exact, d.plan.GroupBy = nil, false, nil
		if rapid.Bool().Draw(t, "predicate") {
			d.plan.Tags = []scanplan.TagPredicate{{TagK: operatortest.UID(2),
				Op:     rapid.SampledFrom([]scanplan.TagOp{scanplan.In, scanplan.NotIn}).Draw(t, "op"),
				Values: []encoding.UID{operatortest.UID(1)}}}
		}
		from := rapid.Int64Range(0, hours-1).Draw(t, "from")
		r := d.plan.Ranges[0]
		r.Start = d.plan.HourKey(r, base+from*3600)
		r.Stop = d.plan.HourKey(r, base+rapid.Int64Range(from+1, hours).Draw(t, "to")*3600)
		part := &scanplan.Part{Plan: d.plan, Range: r}
		opts := operator.Options{FlushBytes: rapid.SampledFrom([]int{0, 1, 500}).Draw(t, "flush")}
		switch rapid.SampledFrom([]string{"raw", "series", "groups", "side by side"}).Draw(t, "kind") {
		case "raw":
			part.Plan.Downsample = nil
		case "side by side":
			opts.SideBySide = true
			d.store.Loose = false // each hour would get all rows
			fallthrough
		case "groups":
			part.Mode = scanplan.PartialAggregation
		}

		op, err := operator.New(d.store, part, opts)
		if err != nil {
			t.Fatal(err)
		}
		want := rowCounts(part, d.store)
		if err := operatortest.Drain(t.Context(), op, func(rec batch.Record) error {
			want.Batches++
			want.ShippedBytes += operator.RecordBytes(rec)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		got := op.Stats()
		got.ScanTime, got.DecodeTime, got.EmitTime, got.RPCs, got.Ranges = 0, 0, 0, 0, 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s to %s of %s, loose %t: %s", part.Range.Start, part.Range.Stop, &part.Plan, d.store.Loose, diff)
		}
		rejected += int(got.Rejected)
	})
	if rejected == 0 {
		t.Error("no row was rejected")
	}
}

// Every count of another part is added, and the description of a damaged row is that of the first one.
func TestStats_add(t *testing.T) {
	var one, other, sum operator.Stats
	set := func(s *operator.Stats, times int64, text string) {
		for i := range reflect.TypeFor[operator.Stats]().NumField() {
			switch f := reflect.ValueOf(s).Elem().Field(i); f.Kind() {
			case reflect.String:
				f.SetString(text)
			default:
				f.SetInt(times * int64(i+1))
			}
		}
	}
	set(&one, 1, "first")
	set(&other, 100, "second")
	set(&sum, 101, "first")
	got := operator.Stats{}
	got.Add(one)
	if diff := cmp.Diff(one, got); diff != "" {
		t.Errorf("added to none: %s", diff)
	}
	got.Add(other)
	if diff := cmp.Diff(sum, got); diff != "" {
		t.Errorf("added to others: %s", diff)
	}
}

// rowCounts counts what a store returns of a part, and which of that is the part's.
func rowCounts(part *scanplan.Part, m *operatortest.Store) (s operator.Stats) {
	p, spans := &part.Plan, map[string]bool{}
	inPart := store.KeyRange{Start: part.Range.Start, Stop: part.Range.Stop}
	filter := operator.ChooseFilter(part).Filter
	for _, r := range m.Rows {
		span := p.Schema.AppendSpan(nil, r.Key)
		wanted := inPart.Contains(r.Key) && operator.Admits(p, span)
		if m.Loose || inPart.Contains(r.Key) {
			s.RowsScanned++
		}
		if !m.Loose && !(inPart.Contains(r.Key) && filter.Matches(r.Key)) {
			continue
		}
		s.Rows++
		for _, c := range r.Cells {
			s.Cells++
			s.Bytes += int64(len(r.Key) + len(c.Qualifier) + len(c.Value))
		}
		if !wanted {
			s.Rejected++
			continue
		}
		spans[string(span)] = true
		key, _ := p.Schema.ParseRowKey(r.Key)
		var d encoding.RowDecoder
		var points encoding.Points
		d.Reset(key.BaseTime)
		for _, c := range r.Cells {
			_ = d.Add(c.Qualifier, c.Value, c.Timestamp) // the operator reads the same cells without an error
		}
		_ = d.Finish(&points)
		s.Points += int64(points.Len())
	}
	s.Spans = int64(len(spans))
	return s
}

// The bytes of a record are those of its columns, also of lists in them: a point takes a number, its type and perhaps
// its time.
func TestRecordBytes(t *testing.T) {
	size := func(points int64) (bytes int64) {
		m := table(series(operatortest.Every(base, base+points, 1, identity), operatortest.Tag(1, 1)))
		op, err := operator.New(m, whole(operatortest.Plan(encoding.DefaultSchema(), metric, base, base+3600)),
			operator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := operatortest.Drain(t.Context(), op, func(r batch.Record) error {
			bytes += operator.RecordBytes(r)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	if one, many := size(1), size(1001); many-one < 1000*8 || many-one > 1000*18 {
		t.Errorf("1,000 more points take %d more bytes, want 8 to 18 for each", many-one)
	}
}

// A part in which no row can be wanted reads none, whether it begins its plan or not.
func TestStats_nothingWanted(t *testing.T) {
	m := table(series(operatortest.Every(base, base+4*3600, 600, identity), operatortest.Tag(1, 1)))
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+4*3600)
	plan.Tags = []scanplan.TagPredicate{{TagK: operatortest.UID(1), Op: scanplan.In}}
	part := whole(plan)
	for _, start := range []int64{base, base + 3600} {
		part.Range.Start = plan.HourKey(part.Range, start)
		spans, stats, err := read(t, m, part, operator.Options{})
		if err != nil || len(spans) != 0 || stats.Rows != 0 {
			t.Errorf("from %d on: %d series of %d rows, %v, want none", start, len(spans), stats.Rows, err)
		}
	}
}
