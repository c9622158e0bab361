package operator_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
)

// drawOffHour draws points in a table with off-hour rows, and the same points in a table whose rows are
// all of full hours.
func drawOffHour(t *rapid.T, s encoding.Schema) (crooked, straight *operatortest.Store) {
	crooked = &operatortest.Store{BlockRows: rapid.IntRange(0, 3).Draw(t, "block")}
	straight = &operatortest.Store{}
	put := func(m *operatortest.Store, rowBase, at int64, tags []byte, note bool) {
		q, value := operatortest.Encode(at*1000, encoding.IntValue(at%100))
		q.OffsetMS = int32(at-rowBase) * 1000
		column := encoding.AppendQualifier(nil, q)
		if note {
			column = []byte{encoding.PrefixAnnotation, byte((at - rowBase) >> 8), byte(at - rowBase)}
			value = []byte(`{"description":"` + string(rune('a'+at%26)) + `"}`)
		}
		m.Cell(s.AppendRowKey(nil, metric, uint32(rowBase), tags), column, value, 1)
	}
	times := map[string]map[int64]bool{} // of each series
	for range rapid.IntRange(1, 5).Draw(t, "series") {
		tags := s.AppendTags(nil, drawSeries(t))
		if times[string(tags)] == nil {
			times[string(tags)] = map[int64]bool{}
		}
		seen := times[string(tags)]
		for range rapid.IntRange(0, 6).Draw(t, "rows") {
			hour := int64(base + 3600*rapid.IntRange(-2, 4).Draw(t, "hour"))
			rowBase := hour + rapid.SampledFrom([]int64{0, 0, 1, 1800, 3599}).Draw(t, "late")
			note := rapid.IntRange(0, 4).Draw(t, "annotation") == 0
			for range rapid.IntRange(1, 3).Draw(t, "cells") {
				at := rowBase + rapid.SampledFrom([]int64{0, 1, 1799, 1800, 3598, 3599}).Draw(t, "offset")
				if seen[at] {
					continue
				}
				seen[at] = true
				put(crooked, rowBase, at, tags, note)
				put(straight, encoding.Hour(at), at, tags, note)
			}
		}
	}
	return crooked, straight
}

// A part that splits its off-hour rows answers as if their points were in rows of full hours, wherever
// the part begins and ends. Without the split it fails if it has such a row, or one of its hours has
// points in a row before it that no other part reads, and only then.
//
//fault:off-hour-row-passed-over begins || =>
func TestOffHour(t *testing.T) {
	refused, moved := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := encoding.DefaultSchema()
		if rapid.Bool().Draw(t, "salted") {
			s.SaltWidth, s.SaltBuckets = 1, 2
		}
		crooked, straight := drawOffHour(t, s)
		// A row of another metric is neither of the part nor refused.
		crooked.Cell(s.AppendRowKey(nil, operatortest.UID(2), base+1, nil), []byte{0, 0}, []byte{1}, 1)
		plan := drawPlan(t, s)
		if rapid.IntRange(0, 3).Draw(t, "by TSUID") == 0 && len(crooked.Rows) > 1 {
			tags := crooked.Rows[0].Key[s.BaseTimeAt()+encoding.BaseTimeWidth:]
			plan.TSUIDs, plan.Tags, plan.Exact = []encoding.UID{slices.Concat(metric, tags)}, nil, false
		}
		if rapid.Bool().Draw(t, "downsampled") {
			plan.Downsample = &scanplan.Downsample{Interval: 600_000, Function: "sum", Fill: scanplan.FillNone}
		}
		for _, part := range cutParts(t, plan) {
			want, before, err := read(t, straight, part, operator.Options{})
			if err != nil {
				t.Fatal(err)
			}
			from := store.Reader(crooked)
			if rapid.Bool().Draw(t, "store without filters") {
				from = reading{crooked}
			}

			split := *part
			split.Plan.SplitOffHour = true
			got, after, err := read(t, from, &split, operator.Options{})
			if diff := cmp.Diff(want, got); diff != "" || err != nil || after.Points != before.Points {
				t.Fatalf("part %s to %s of %s: %v, %d points, want %d%s", part.Range.Start, part.Range.Stop, &part.Plan,
					err, after.Points, before.Points, diff)
			}
			if from != (reading{crooked}) && after.Rejected > before.Rejected {
				t.Fatalf("%d rows were split that are not in the part", after.Rejected-before.Rejected)
			}

			has := slices.ContainsFunc(crooked.Rows, func(r store.Row) bool {
				reads := plan.Reads(part.Range)
				return operator.IsOffHour(&plan, r.Key) && operator.Admits(&plan, s.AppendSpan(nil, r.Key)) &&
					store.KeyRange{Start: reads.Start, Stop: reads.Stop}.Contains(r.Key)
			})
			_, _, err = read(t, from, part, operator.Options{})
			var offHour *operator.OffHourError
			if errors.As(err, &offHour) != has || !has && err != nil {
				t.Fatalf("part %s to %s of %s has an off-hour row: %t; got %v", part.Range.Start, part.Range.Stop,
					&part.Plan, has, err)
			}
			if has {
				refused++
				moved += int(min(after.Points, 1))
			}
		}
	})
	if refused == 0 || moved == 0 {
		t.Errorf("%d parts were refused, %d of them have points, want some of both", refused, moved)
	}
}

// Off-hour rows are searched by one scan for some thousand hours, which begins at the next row of any kind, and lets
// the store leave out the keys and series that cannot be wanted.
func TestOffHour_scans(t *testing.T) {
	m := &operatortest.Store{}
	s := encoding.DefaultSchema()
	for _, at := range []uint32{base + 1, base + 3600*5000 + 1, base + 3600*5001} {
		m.Cell(s.AppendRowKey(nil, metric, at, s.AppendTags(nil, []encoding.TagPair{operatortest.Tag(2, 1)})),
			[]byte{0, 0}, []byte{1}, 1)
	}
	plan := operatortest.Plan(s, metric, base, base+3600*6000)
	plan.SplitOffHour = true
	for name, c := range map[string]struct {
		change func(*scanplan.Plan)
		points int
		want   [3]int // searches, ranges and patterns
	}{
		"tag": {func(p *scanplan.Plan) {
			p.Tags = []scanplan.TagPredicate{{TagK: operatortest.UID(2), Op: scanplan.In,
				Values: []encoding.UID{operatortest.UID(1)}}}
		}, 3, [3]int{2, 2048 + 1000, 2}},
		"TSUID": {func(p *scanplan.Plan) {
			p.TSUIDs = []encoding.UID{encoding.UID(spanOf(operatortest.Tag(2, 1)))}
		}, 3, [3]int{2, 2048 + 1000, 0}},
		"hours of one scan": {func(p *scanplan.Plan) {
			p.To = base + 2048*3600
			p.Ranges[0].Stop = p.HourKey(p.Ranges[0], p.To)
		}, 1, [3]int{1, 2048, 0}},
	} {
		p := plan
		p.Ranges = slices.Clone(plan.Ranges)
		c.change(&p)
		from := &scanLog{Store: m}
		spans, _, err := read(t, from, whole(p), operator.Options{})
		if len(spans[spanOf(operatortest.Tag(2, 1))].Raw.Time) != c.points || err != nil {
			t.Errorf("%s: %v, got %+v, want %d points", name, err, spans, c.points)
		}
		var searches, patterns, ranges int
		for _, scan := range from.scans {
			if scan.KeysOnly {
				searches++
			} else if !scan.Sealed {
				ranges += len(scan.Filter.Ranges)
				if scan.Filter.Pattern != nil {
					patterns++
				}
			}
		}
		if got := [3]int{searches, ranges, patterns}; got != c.want {
			t.Errorf("%s: %d searches, %d ranges, %d patterns, want %d", name, searches, ranges, patterns, c.want)
		}
	}
}

// The cells of an off-hour row go into rows of their hours. An hour without cells has no row, and times after the last
// that a key can hold are left out.
func TestSplitOffHourRow(t *testing.T) {
	s := encoding.DefaultSchema()
	const last = encoding.MaxTime - encoding.MaxTime%3600 // the base time of the last hour, which has 55 minutes
	for _, c := range []struct {
		base    uint32
		minutes []byte // of its points
		want    []uint32
	}{
		{base + 1800, []byte{0, 29}, []uint32{base}},
		{base + 1800, []byte{30}, []uint32{base + 3600}},
		{base + 1800, []byte{0, 45}, []uint32{base, base + 3600}},
		{last + 60, []byte{0, 59}, []uint32{last}},
	} {
		row := store.Row{Key: s.AppendRowKey(nil, metric, c.base, nil)}
		for _, minute := range c.minutes {
			q := encoding.Qualifier{OffsetMS: int32(minute) * 60_000, Width: 1}
			row.Cells = append(row.Cells,
				store.Cell{Qualifier: encoding.AppendQualifier(nil, q), Value: []byte{minute}})
		}
		rows, err := operator.SplitOffHourRow(s, &row)
		var got []uint32
		for _, r := range rows {
			key, keyErr := s.ParseRowKey(r.Key)
			got, err = append(got, key.BaseTime), errors.Join(err, keyErr)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d with minutes %d: %v, rows of %d, want %d", c.base, c.minutes, err, got, c.want)
		}
	}
}

// The cells of a row that an off-hour row has points and annotations of, too, are in the order of their times.
func TestOffHour_order(t *testing.T) {
	s, m := encoding.DefaultSchema(), &operatortest.Store{}
	for _, c := range []struct {
		at     uint32
		minute byte
		text   string
	}{{base, 0, "a"}, {base, 45, "c"}, {base + 600, 20, "b"}, {base + 600, 50, "d"}} {
		offset := uint16(c.minute) * 60
		m.Cell(s.AppendRowKey(nil, metric, c.at, nil),
			[]byte{encoding.PrefixAnnotation, byte(offset >> 8), byte(offset)}, []byte(c.text), 1)
	}
	plan := operatortest.Plan(s, metric, base, base+2*3600)
	plan.SplitOffHour = true
	spans, _, err := read(t, m, whole(plan), operator.Options{})
	if notes := spans[spanOf()].Notes; err != nil || !slices.Equal(notes, []string{"a", "b", "c", "d"}) {
		t.Errorf("%v, got %s, want them in order", err, notes)
	}
}

// What the rows take into which off-hour rows are split counts against the plan's bound: keys and cells with their
// contents.
func TestOffHour_memory(t *testing.T) {
	for _, c := range []struct{ cells, value int }{{1, 1}, {1, 100}, {3, 100}} {
		m := &operatortest.Store{}
		for i := range c.cells {
			m.Cell(encoding.DefaultSchema().AppendRowKey(nil, metric, base+1, nil),
				[]byte{encoding.PrefixAnnotation, 0, byte(i)}, bytes.Repeat([]byte("?"), c.value), 1)
		}
		plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+3600)
		plan.SplitOffHour, plan.MaxBytes = true, 1
		_, _, err := read(t, m, whole(plan), operator.Options{})
		var limit *operator.LimitError
		want := int64(unsafe.Sizeof(store.Row{})) + 3 + 4 +
			int64(c.cells)*(int64(unsafe.Sizeof(store.Cell{}))+3+int64(c.value))
		if !errors.As(err, &limit) || limit.Need != want {
			t.Errorf("%d cells of %d bytes: %v, want a LimitError of %d bytes", c.cells, c.value, err, want)
		}
		if plan.MaxBytes = want; limit != nil {
			_, _, err = read(t, m, whole(plan), operator.Options{})
			if errors.As(err, &limit) && limit.Need == want {
				t.Errorf("%d cells of %d bytes: %v, want that they may take as many", c.cells, c.value, err)
			}
		}
	}
}
