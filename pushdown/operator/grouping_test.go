package operator_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/operator/operatortest"
	account "downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// The partial aggregates of a part are those of its series when each is read by itself.
func TestGroups_ofSeries(t *testing.T) {
	edges := 0
	rapid.Check(t, func(t *rapid.T) {
		d := drawSparse(t)
		for _, r := range d.plan.Ranges {
			from := rapid.IntRange(0, hours-1).Draw(t, "from")
			to := rapid.IntRange(from+1, hours).Draw(t, "to")
			r.Start, r.Stop = d.plan.HourKey(r, base+int64(from)*3600), d.plan.HourKey(r, base+int64(to)*3600)
			part := &scanplan.Part{Plan: d.plan, Range: r}
			spans, _, err := read(t, d.store, part, operator.Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := groupsOf(&d.plan, spans, base+int64(from)*3600, base+int64(to)*3600, &edges)

			part.Mode = scanplan.PartialAggregation
			got, _, err := readGroups(t, d.store, part, operator.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got = slices.DeleteFunc(got, func(row string) bool { return row == "record" })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s, hours %d to %d: %s", &d.plan, from, to, diff)
			}
		}
	})
	if edges == 0 {
		t.Error("no part has an edge")
	}
}

// A record of groups ends with the one that fills it, by the bytes of its columns, names and edges; see
// readGroups, which checks that.
func TestGroups_records(t *testing.T) {
	m, part := sparsePart(8)
	part.Plan.GroupBy = []encoding.UID{operatortest.UID(1)}
	part.Range.Start = part.Plan.HourKey(part.Range, base+3600)
	part.Range.Stop = part.Plan.HourKey(part.Range, base+2*3600) // so that there are edges
	for i := range m.Rows {
		m.Rows[i].Cells = append(m.Rows[i].Cells, store.Cell{Family: []byte(encoding.FamilyData),
			Qualifier: []byte{encoding.PrefixAnnotation, 0, 0}, Value: []byte(`{"description":"ten"}`)})
	}
	const row = 3 + 12*29 + 16 + 9 + 8 + 21 // group, buckets, edge, name, annotation
	for flush := row - 3; flush <= 2*row+3; flush++ {
		rows, _, err := readGroups(t, m, part, operator.Options{FlushBytes: flush})
		groups := (flush + row - 1) / row // that fill a record
		if want := 8 + (8+groups-1)/groups; err != nil || len(rows) != want {
			t.Errorf("%d bytes a record: %v, %d rows and records, want %d", flush, err, len(rows), want)
		}
	}
}

// The proof that sums are exact is sent by each part that is to be merged with others, and not by one that is all of
// its plan: of an unsalted table, from its first hour to its last.
func TestGroups_proof(t *testing.T) {
	for _, salted := range []bool{false, true} {
		s := encoding.DefaultSchema()
		if salted {
			s.SaltWidth, s.SaltBuckets = 1, 1
		}
		m := &operatortest.Store{}
		for v := range 3 {
			m.Load(s, metric, series(operatortest.Every(base, base+3*3600, 1800, identity), operatortest.Tag(1, 1+v)))
		}
		plan := operatortest.Plan(s, metric, base, base+3*3600)
		plan.Downsample = &scanplan.Downsample{Interval: 3600_000, Function: "sum", Fill: scanplan.FillNone}
		for _, cut := range [][2]int64{{0, 3}, {0, 2}, {1, 3}, {1, 2}} {
			part := &scanplan.Part{Plan: plan, Range: plan.Ranges[0], Mode: scanplan.PartialAggregation}
			part.Range.Start = plan.HourKey(part.Range, base+cut[0]*3600)
			part.Range.Stop = plan.HourKey(part.Range, base+cut[1]*3600)
			op, err := operator.New(m, part, operator.Options{})
			if err != nil {
				t.Fatal(err)
			}
			groups := 0
			if err := operatortest.Drain(t.Context(), op, func(r batch.Record) error {
				reader, err := batch.NewPartialReader(r)
				if err != nil {
					return err
				}
				var p batch.Partial
				for i := range reader.Len() {
					if err := reader.At(i, &p); err != nil {
						return err
					}
					groups++
					if whole := !salted && cut == [2]int64{0, 3}; (len(p.Low) == 0) != whole {
						t.Errorf("salted %t, hours %d: a proof of %d sums, whole %t", salted, cut, len(p.Low), whole)
					}
				}
				return nil
			}); err != nil || groups != 1 {
				t.Errorf("salted %t, hours %d: %v, %d groups, want one", salted, cut, err, groups)
			}
		}
	}
}

// A series whose rows hold neither points nor annotations is in no group, however they are read. A row like that after
// others takes no series out of its group.
func TestGroups_unknownCells(t *testing.T) {
	for _, later := range []bool{false, true} {
		m, all := kinds(3)
		s := encoding.DefaultSchema()
		key := s.AppendRowKey(nil, metric, base, s.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, 9)}))
		if later {
			last := len(m.Rows) - 1
			key, m.Rows = m.Rows[last].Key, m.Rows[:last]
		}
		want := map[string]string{}
		for name, k := range all {
			k.part.Plan.GroupBy = nil
			text, _, err := answer(t.Context(), m, k)
			if err != nil {
				t.Fatal(err)
			}
			want[name] = text
		}
		m.Cell(key, []byte{9, 9, 9}, []byte("?"), 1)
		for name, k := range all {
			k.part.Plan.GroupBy = nil
			got, stats, err := answer(t.Context(), m, k)
			endsEarly := name == "unaligned" || later && name == "aligned"
			if err != nil || got != want[name] || stats.Skipped != 1 && !endsEarly {
				t.Errorf("%s, later %t: %v, %d cells skipped, got\n%s, want\n%s", name, later, err, stats.Skipped, got,
					want[name])
			}
		}
	}
}

// The memory of groups is reserved, also of those that hold annotations alone: 600 bytes each, and 800 more for what
// the members have in common. A part that cannot have as much as it reserves without a bound is refused.
func TestGroups_memory(t *testing.T) {
	run := func(m *operatortest.Store, part *scanplan.Part, total int64) (most int64, err error) {
		held := account.New(total).Open(account.Query)
		defer held.Close()
		op, err := operator.New(m, part, operator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return most, operatortest.Drain(account.With(t.Context(), held), op, func(batch.Record) error {
			most = max(most, held.Held())
			return nil
		})
	}
	for name, c := range map[string]struct {
		groups   int64
		points   bool
		interval int64
	}{
		"annotations":  {300, false, 300_000},
		"points":       {300, true, 300_000},
		"many buckets": {1, true, 1000},
	} {
		m, part := sparsePart(0)
		part.Plan.Downsample.Interval = c.interval
		for v := range int(c.groups) {
			one := series(operatortest.Every(base, base+3600, 1800, identity), operatortest.Tag(1, 1+v))
			if c.points {
				m.Load(part.Plan.Schema, metric, one)
			} else {
				key := part.Plan.Schema.AppendRowKey(nil, metric, base, part.Plan.Schema.AppendTags(nil, one.Tags))
				m.Cell(key, []byte{encoding.PrefixAnnotation, 0, 0}, []byte("?"), 1)
			}
		}
		part.Plan.GroupBy = []encoding.UID{operatortest.UID(1)}
		for mode, each := range map[scanplan.Mode]int64{
			scanplan.PartialAggregation: 600, scanplan.PartialWithoutNames: 600 + 800,
		} {
			part.Mode = mode
			most, err := run(m, part, 1<<40)
			if err != nil || most < c.groups*each || !c.points && most > c.groups*(each+800) {
				t.Errorf("%s, %s: %v, %d bytes were reserved for a group", name, mode, err, most/c.groups)
			}
			for total := int64(1 << 17); ; total += total / 50 {
				got, err := run(m, part, total)
				if err == nil && got != most || err != nil && !account.Refused(err) {
					t.Errorf("%s, %s: %v, %d bytes were reserved, want %d", name, mode, err, got, most)
				}
				if err == nil {
					break
				}
			}
		}
	}
}

// The states of groups may take as much as the plan says, and not a byte more: 48 bytes for each bucket, and 12 for
// each value that is gathered.
func TestGroups_states(t *testing.T) {
	for _, sideBySide := range []bool{false, true} {
		for aggregator, want := range map[scanplan.Aggregator]int64{
			"sum":    4 * 36 * 48,
			"count":  4 * 36 * 48,
			"median": 4*36*48 + 4*31*12,
		} {
			m, part := sparsePart(4)
			part.Plan.Aggregator, part.Plan.GroupBy = aggregator, []encoding.UID{operatortest.UID(1)}
			opts := operator.Options{SideBySide: sideBySide}
			part.Plan.MaxBytes = 1
			var need int64
			for { // each refusal says how much is needed so far
				_, _, err := readGroups(t, m, part, opts)
				if err == nil {
					break
				}
				var limit *operator.LimitError
				if !errors.As(err, &limit) || limit.Limit != part.Plan.MaxBytes || limit.Need <= limit.Limit {
					t.Fatalf("%s with %d bytes: %v", aggregator, part.Plan.MaxBytes, err)
				}
				if part.Plan.MaxBytes = limit.Need; limit.What == operator.States {
					need = limit.Need
				}
			}
			if need != want {
				t.Errorf("%s, side by side %t: states need %d bytes, want %d", aggregator, sideBySide, need, want)
			}
		}
	}
}

// groupsOf makes the rows of groups, as readGroups prints them, of the series of a part of the hours
// [from, to), in s. It counts edges.
func groupsOf(p *scanplan.Plan, spans map[string]flat, from, to int64, edges *int) (rows []string) {
	var grid []int64
	for at := from * 1000; at < to*1000; at += p.Downsample.Interval {
		grid = append(grid, at)
	}
	fn, _ := aggregate.Lookup(p.Aggregator)
	missing, fills := p.Downsample.Fill.Value()
	partials, groups, order := map[string]*aggregate.Partial{}, map[string]*batch.Partial{}, []string(nil)
	for _, span := range slices.Sorted(maps.Keys(spans)) {
		key, ok := p.AppendGroupKey(nil, []byte(span))
		if !ok {
			continue
		}
		s, row := spans[span], groups[string(key)]
		if row == nil {
			row = &batch.Partial{Group: key}
			groups[string(key)], order = row, append(order, string(key))
		}
		for _, n := range s.Notes {
			row.NoteSpan, row.Notes = append(row.NoteSpan, int32(len(row.Spans))), append(row.Notes, []byte(n))
		}
		row.Spans = append(row.Spans, []byte(span))
		if len(s.Time) == 0 {
			row.Flags = append(row.Flags, batch.EdgeAnnotationsOnly)
			continue
		}
		if partials[string(key)] == nil {
			partials[string(key)] = fn.NewPartial(len(grid))
		}

		flags, last := uint8(0), len(s.Time)-1
		edge := func(bit uint8, i int) {
			*edges++
			flags |= bit
			row.EdgeTime, row.EdgeValue = append(row.EdgeTime, s.Time[i]), append(row.EdgeValue, s.Value[i])
		}
		if !fills && from > p.From && s.Time[0] > grid[0] {
			edge(batch.EdgeFirst, 0)
		}
		if !fills && to < p.To && s.Time[last] < grid[len(grid)-1] {
			edge(batch.EdgeLast, last)
		}
		row.Flags = append(row.Flags, flags)

		member := aggregate.Series{Time: s.Time, Value: s.Value}
		if fills {
			member = aggregate.Series{Time: grid}
			for _, at := range grid {
				v := missing
				if i, ok := slices.BinarySearch(s.Time, at); ok {
					v = s.Value[i]
				}
				member.Value = append(member.Value, v)
			}
		}
		fn.AddMember(partials[string(key)], grid, member, nil)
	}
	for _, key := range order {
		row, sums := groups[key], partials[key]
		if sums != nil {
			setSums(row, fn, sums)
		}
		if whole := from == p.From && to == p.To && p.Schema.SaltWidth == 0; whole { // it needs no proof
			row.Low, row.High = nil, nil
		}
		rows = append(rows, describeGroup(row))
	}
	return rows
}

// setSums sets those columns of a row that do not follow from others.
func setSums(row *batch.Partial, fn *aggregate.Function, sums *aggregate.Partial) {
	n, a, b := fn.Columns()
	fn.Settle(sums)
	row.Live = sums.Live
	if slices.Contains(sums.Real, false) {
		row.Real = sums.Real
	}
	if n && !slices.Equal(sums.N, sums.Live) {
		row.N = sums.N
	}
	if a {
		row.A = sums.A
	}
	if b {
		row.B = sums.B
	}
	row.Low, row.High = sums.Shipped()
}

// describeGroup is a row of a group as text. %b has all bits of a double, and distinguishes NaN and -0 from others.
func describeGroup(p *batch.Partial) string {
	return fmt.Sprintf("%x %v %v %v %b %b %v %v %x %v %v %b %v %s", p.Group, p.Real, p.Live, p.N, p.A, p.B, p.Low,
		p.High, p.Spans, p.Flags, p.EdgeTime, p.EdgeValue, p.NoteSpan, bytes.Join(p.Notes, []byte(" ")))
}
