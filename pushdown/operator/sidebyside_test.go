package operator_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
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

// readGroups executes a part with partial aggregation, and returns the rows of its groups, those
// of each record after a line.
func readGroups(t failer, from *operatortest.Store, part *scanplan.Part,
	opts operator.Options) (rows []string, stats operator.Stats, err error) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	opts.Mem = operatortest.Poisoned(mem)
	op, err := operator.New(from, part, opts)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	op = operatortest.Checked(op, t.Errorf)
	last := 0 // about the bytes of the last record
	err = operatortest.Drain(context.Background(), op, func(r batch.Record) error {
		reader, err := batch.NewPartialReader(r)
		if err != nil {
			return err
		}
		rows = append(rows, "record")
		if limit := opts.FlushBytes; limit > 0 && last > 0 && last < limit {
			t.Errorf("a record of %d bytes is not the last, want at least %d", last, limit)
		}
		var p batch.Partial
		last = 0
		for i := range reader.Len() {
			if err := reader.At(i, &p); err != nil {
				return err
			}
			if limit := opts.FlushBytes; limit > 0 && i > 0 && last >= limit {
				t.Errorf("a record goes on after %d bytes, want a new one from %d on", last, limit)
			}
			last += len(p.Group) + 29*len(p.Live) + 16*len(p.EdgeTime) + 8*len(p.Spans) +
				len(slices.Concat(slices.Concat(p.Spans...), slices.Concat(p.Notes...)))
			rows = append(rows, describeGroup(&p))
		}
		return nil
	})
	stats = op.Stats()
	if n := mem.CurrentAlloc(); n != 0 {
		t.Errorf("%d bytes leaked", n)
	}
	if n := from.Open.Load(); n != 0 {
		t.Errorf("%d scanners are open", n)
	}
	return rows, stats, err
}

// drawSparse makes a table of several series, of one or two tags, each with points or annotations
// in some hours, and a plan with partial aggregation over it.
func drawSparse(t *rapid.T) drawn {
	s := encoding.DefaultSchema()
	if rapid.Bool().Draw(t, "salted") {
		s.SaltWidth, s.SaltBuckets = 1, 2
	}
	m := &operatortest.Store{BlockRows: rapid.IntRange(0, 3).Draw(t, "block"), Sealed: rapid.Bool().Draw(t, "sealed")}
	seen := map[string]bool{}
	for range rapid.IntRange(0, 8).Draw(t, "series") {
		var tags []encoding.TagPair
		for k := 1; k <= 3; k++ {
			if rapid.IntRange(0, 3).Draw(t, "has tag") > 0 {
				tags = append(tags, operatortest.Tag(k, rapid.IntRange(1, 3).Draw(t, "value")))
			}
		}
		if name := string(s.AppendTags(nil, tags)); seen[name] {
			continue
		} else {
			seen[name] = true
		}
		one := operatortest.Series{Tags: tags, Appended: rapid.Bool().Draw(t, "appended")}
		for h := range hours {
			at := int64(base+h*3600) * 1000
			if rapid.IntRange(0, 3).Draw(t, "annotated") == 0 {
				key := s.AppendRowKey(nil, metric, uint32(base+h*3600), s.AppendTags(nil, tags))
				m.Cell(key, []byte{encoding.PrefixAnnotation, 0, 0}, []byte(fmt.Sprintf(`{"h":%d}`, h)), 1)
			}
			for range rapid.IntRange(0, 3).Draw(t, "points") {
				at += rapid.SampledFrom([]int64{1000, 60_000, 420_000, 1_000_000}).Draw(t, "gap")
				one.Points.Append(at,
					encoding.FloatValue(rapid.SampledFrom([]float64{0.1, 0.2, 1e16, -1e16, 3, 1e-300}).Draw(t,
						"number")))
			}
		}
		m.Load(s, metric, one)
	}
	p := operatortest.Plan(s, metric, base, base+hours*3600)
	p.Aggregator = rapid.SampledFrom(mergeable()).Draw(t, "aggregator")
	p.Downsample = &scanplan.Downsample{
		Interval: rapid.SampledFrom([]int64{60_000, 300_000, 3_600_000}).Draw(t, "interval"),
		Function: rapid.SampledFrom([]scanplan.Aggregator{"sum", "avg", "count", "p95"}).Draw(t, "function"),
		Fill:     rapid.SampledFrom(scanplan.Fills).Draw(t, "fill"),
	}
	for k := 1; k <= 3; k++ {
		if rapid.IntRange(0, 3).Draw(t, "group by") == 0 {
			p.GroupBy = append(p.GroupBy, operatortest.UID(k))
		}
		if rapid.IntRange(0, 5).Draw(t, "predicate") == 0 {
			p.Tags = append(p.Tags,
				scanplan.TagPredicate{
					TagK:   operatortest.UID(k),
					Op:     scanplan.In,
					Values: []encoding.UID{operatortest.UID(1), operatortest.UID(2)},
				})
		}
	}
	p.Exact = rapid.IntRange(0, 5).Draw(t, "exact") == 0
	return drawn{m, p}
}

// Hours that are read side by side make the same records, to the last bit, as hours that are read
// one after the other: for all blocks, hours in which a series has rows, and liberties of the
// store.
func TestSideBySide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawSparse(t)
		d.store.Loose = rapid.Bool().Draw(t, "loose")
		opts := operator.Options{FlushBytes: rapid.SampledFrom([]int{0, 1, 500}).Draw(t, "flush")}
		for _, r := range d.plan.Ranges {
			from := rapid.IntRange(0, hours-1).Draw(t, "from")
			to := rapid.IntRange(from+1, hours).Draw(t, "to")
			r.Start, r.Stop = d.plan.HourKey(r, base+int64(from)*3600), d.plan.HourKey(r, base+int64(to)*3600)
			part := &scanplan.Part{Plan: d.plan, Range: r, Mode: scanplan.PartialAggregation}

			opts.SideBySide = false
			want, before, err := readGroups(t, d.store, part, opts)
			if err != nil {
				t.Fatal(err)
			}
			opts.SideBySide = true
			got, after, err := readGroups(t, d.store, part, opts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("hours %d to %d: one after the other -, side by side +: %s", from, to, diff)
			}
			if before.Points != after.Points || before.ShippedBytes != after.ShippedBytes ||
				!d.store.Loose && before.Rows != after.Rows {
				t.Fatalf("counts %+v, want %+v", after, before)
			}
		}
	})
}

// mergeable are the aggregators that have partial aggregates.
func mergeable() (names []scanplan.Aggregator) {
	for _, name := range aggregate.Names() {
		if f, _ := aggregate.Lookup(scanplan.Aggregator(name)); f.Mergeable() {
			names = append(names, f.Name)
		}
	}
	return names
}

// sparsePart is a part of three hours of n series with two points each.
func sparsePart(n int) (*operatortest.Store, *scanplan.Part) {
	m := &operatortest.Store{BlockRows: 2}
	for i := range n {
		m.Load(encoding.DefaultSchema(), metric,
			series(operatortest.Every(base, base+3*3600, 1800, identity), operatortest.Tag(1, i+1)))
	}
	p := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+3*3600)
	p.Downsample = &scanplan.Downsample{Interval: 300_000, Function: "avg", Fill: scanplan.FillNone}
	return m, &scanplan.Part{Plan: p, Range: p.Ranges[0], Mode: scanplan.PartialAggregation}
}

// A part whose store fails in one hour fails with that error, and one that is closed, or whose
// context ends, stops. No scanner and no goroutine stays.
func TestSideBySide_ends(t *testing.T) {
	broken := errors.New("disk on fire")
	for block := range 6 {
		m, part := sparsePart(9)
		m.Fail = func(_ context.Context, n int) error {
			if n == block {
				return broken
			}
			return nil
		}
		if _, _, err := readGroups(t, m, part, operator.Options{SideBySide: true}); (err == nil) != (block > 5) ||
			block <= 5 && !errors.Is(err, broken) {
			t.Errorf("block %d fails: got %v", block, err)
		}
	}

	m, part := sparsePart(9)
	m.Fail = func(context.Context, int) error { panic("oops") }
	if _, _, err := readGroups(t, m, part, operator.Options{SideBySide: true}); err == nil {
		t.Error("a panic in an hour: got no error")
	}

	// The context ends in an hour after the first block: in its next block, for which the store waits, or just before
	// it says that there are no more rows. An hour may see that and end without a word, so it is tried often.
	for _, waits := range []bool{true, false} {
		for range 20 {
			m, part = sparsePart(9)
			if !waits { // else another hour sees it
				m.BlockRows, part.Range.Stop = 9, part.Plan.HourKey(part.Range, base+3600)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			m.Fail = func(ctx context.Context, n int) error {
				if n < 1 {
					return nil
				}
				if cancel(broken); !waits {
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}
			op, err := operator.New(m, part, operator.Options{SideBySide: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := op.Next(ctx); !errors.Is(err, broken) {
				t.Errorf("the context ends, waits %t: got %v", waits, err)
			}
			op.Close()
			if n := m.Open.Load(); n != 0 {
				t.Errorf("%d scanners are open", n)
			}
		}
	}
}

// Rows out of order would tear a series in two: they are refused.
func TestSideBySide_order(t *testing.T) {
	m, part := sparsePart(4)
	m.Keep = true
	m.Rows[0], m.Rows[1] = m.Rows[1], m.Rows[0]
	_, _, err := readGroups(t, m, part, operator.Options{SideBySide: true})
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("after")) {
		t.Errorf("got %v, want an error", err)
	}
	slices.SortFunc(m.Rows, func(a, b store.Row) int { return bytes.Compare(a.Key, b.Key) })
	m.Rows[1].Key = m.Rows[0].Key
	if _, _, err := readGroups(t, m, part, operator.Options{SideBySide: true}); err == nil {
		t.Error("a row twice: got no error")
	}
}

// A part takes some blocks for each hour, and for each series its name; all of it is reserved, and
// what it keeps counts against the plan's bound.
func TestSideBySide_memory(t *testing.T) {
	const n = 3000
	m, part := sparsePart(n)
	part.Plan.MaxBytes = n * 100
	if _, _, err := readGroups(t, m, part, operator.Options{SideBySide: true}); err != nil {
		t.Errorf("%d bytes for %d series: %v", part.Plan.MaxBytes, n, err)
	}
	part.Plan.MaxBytes = n * 20
	var limit *operator.LimitError
	if _, _, err := readGroups(t, m, part, operator.Options{SideBySide: true}); !errors.As(err, &limit) ||
		limit.What != operator.Memory {
		t.Errorf("%d bytes for %d series: got %v, want a LimitError", part.Plan.MaxBytes, n, err)
	}
}

// A part with a great many groups is refused as one of too large states, so that it is executed
// series by series instead.
func TestSideBySide_groups(t *testing.T) {
	m, part := sparsePart(100)
	part.Plan.Downsample.Interval, part.Plan.Aggregator = 1000, "sum" // 10,800 buckets, some 500 KB for each group
	if _, _, err := readGroups(t, m, part, operator.Options{SideBySide: true}); err != nil {
		t.Error(err)
	}
	part.Plan.GroupBy = []encoding.UID{operatortest.UID(1)}
	var limit *operator.LimitError
	if _, _, err := readGroups(t, m, part, operator.Options{SideBySide: true}); !errors.As(err, &limit) ||
		limit.What != operator.States {
		t.Errorf("100 groups of 10,800 buckets: got %v, want a LimitError of states", err)
	}
}

// blockLog is a store that records how many bytes its scans return at once.
type blockLog struct {
	*operatortest.Store
	mu     sync.Mutex
	blocks []int
}

func (*blockLog) Features() store.Features { return store.Features{} }

func (l *blockLog) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.blocks = append(l.blocks, s.BlockBytes)
	return l.Store.Scan(ctx, s)
}

// All hours together hold as much as one scan would, unless a size is given. At most 32 hours are read side by side.
func TestSideBySide_blocks(t *testing.T) {
	m, part := sparsePart(4)
	for given, want := range map[int]int{0: 512 << 10 / 3, 1000: 1000} {
		from := &blockLog{Store: m}
		op, err := operator.New(from, part, operator.Options{SideBySide: true, BlockBytes: given})
		if err != nil {
			t.Fatal(err)
		}
		if err := operatortest.Drain(t.Context(), op, func(batch.Record) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(from.blocks, []int{want, want, want}) {
			t.Errorf("with %d: the scans of three hours return %v bytes at once, want %d", given, from.blocks, want)
		}
	}
	for hours, want := range map[int64]int{32: 32, 33: 1} {
		part.Plan.To = base + hours*3600
		part.Plan.Ranges[0].Stop = part.Plan.HourKey(part.Range, part.Plan.To)
		part.Range = part.Plan.Ranges[0]
		from := &blockLog{Store: m}
		if _, _, err := answer(t.Context(), from, kind{part: *part, opts: operator.Options{SideBySide: true,
			BlockBytes: 1000}}); err != nil || len(from.blocks) != want || from.blocks[0] != 1000 {
			t.Errorf("%d hours: %v, scans of %d bytes at once, want %d", hours, err, from.blocks, want)
		}
	}
}

// What a part needs by the count of its plan's bound, and what it reserves when it has read all and returns its first
// record: partial aggregates, names and annotations, of series that are listed. Blocks of rows are given back then.
func TestSideBySide_figures(t *testing.T) {
	for name, c := range map[string]struct {
		change         func(*operatortest.Store, *scanplan.Part)
		need, returned int64
	}{
		"one group": {func(*operatortest.Store, *scanplan.Part) {}, 16668, 12151},
		"groups": {func(_ *operatortest.Store, p *scanplan.Part) {
			p.Plan.GroupBy = []encoding.UID{operatortest.UID(1)}
		}, 533340, 864958},
		"nameless": {func(_ *operatortest.Store, p *scanplan.Part) {
			p.Mode = scanplan.PartialWithoutNames
		}, 5188, 4612},
		// The first and last values of series make records larger than all that is kept.
		"edges": {func(m *operatortest.Store, p *scanplan.Part) {
			p.Range.Start, p.Range.Stop = p.Plan.HourKey(p.Range, base+3600), p.Plan.HourKey(p.Range, base+2*3600)
			m.Rows = nil
			for i := range 300 {
				m.Load(p.Plan.Schema, metric, series(operatortest.Every(base+3600+600, base+2*3600, 1200, identity),
					operatortest.Tag(2, i+1)))
			}
		}, 13602, 222},
	} {
		m, part := sparsePart(300)
		for i := range m.Rows[:20] {
			m.Rows[i].Cells = append(m.Rows[i].Cells, store.Cell{Family: []byte(encoding.FamilyData),
				Qualifier: []byte{encoding.PrefixAnnotation, 0, 0}, Value: bytes.Repeat([]byte("?"), 100)})
		}
		c.change(m, part)
		held := account.New(1 << 40).Open(account.Query)
		op, err := operator.New(m, part, operator.Options{SideBySide: true})
		if err != nil {
			t.Fatal(err)
		}
		r, err := op.Next(account.With(t.Context(), held))
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
		if n := held.Held(); n != c.returned {
			t.Errorf("%s: %d bytes are reserved at the first record, want %d", name, n, c.returned)
		}
		op.Close()
		held.Close()
		part.Plan.MaxBytes = 1
		for { // each refusal says how much is needed so far
			_, _, err := readGroups(t, m, part, operator.Options{SideBySide: true})
			if err == nil {
				break
			}
			var limit *operator.LimitError
			if !errors.As(err, &limit) || limit.Limit != part.Plan.MaxBytes || limit.Need <= limit.Limit {
				t.Fatalf("%s with %d bytes: %v", name, part.Plan.MaxBytes, err)
			}
			part.Plan.MaxBytes = limit.Need
		}
		if n := part.Plan.MaxBytes; n != c.need {
			t.Errorf("%s: needs %d bytes, want %d", name, n, c.need)
		}
	}
}

// The memory of a block is reserved before it is read: rows as the store estimates them, at first those that off-hour
// rows were split into, then as they were, and what three blocks of the hour hold; twice that for a larger estimate.
func TestSideBySide_blocksReserved(t *testing.T) {
	for name, c := range map[string]struct {
		rows, points, note int // in the hour; in each row; bytes of an annotation in each row
		splits             bool
		next               []int64 // what the store estimates before each block, of the last one also for others
		want               []int64 // reserved when each block is requested
		reader             int64   // reserves at most so much at any time
	}{
		"small rows": {1200, 1, 0, false, []int64{0}, []int64{0, 122_880, 122_880, 122_880}, 5000},
		"estimates": {400, 60, 0, false, []int64{80_000, 80_000, 300_000},
			[]int64{110_000, 1_512_540, 1_963_740, 1_963_740, 1_963_740}, 5000},
		"annotations": {30, 1, 2000, false, []int64{0}, []int64{0, 105_544, 105_544, 105_544}, 70_000},
		"off-hour": {100, 1, 0, true, []int64{0},
			[]int64{6: 14_400, 7: 14_400, 8: 14_400, 9: 14_400, 10: 14_400}, 5000},
	} {
		s := encoding.DefaultSchema()
		m := &operatortest.Store{BlockRows: c.rows / 3, NextBytes: c.next[0]}
		for i := range c.rows {
			tags := s.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, i+1)})
			key := s.AppendRowKey(nil, metric, uint32(base+map[bool]int{true: 1}[c.splits]), tags)
			for minute := range c.points {
				m.Cell(key, binary.BigEndian.AppendUint16(nil, uint16(minute*60<<4)), []byte{1}, 1)
			}
			if c.note > 0 {
				m.Cell(key, []byte{encoding.PrefixAnnotation, 0, 0}, make([]byte, c.note), 1)
			}
		}
		p := operatortest.Plan(s, metric, base, base+3600)
		p.Downsample = &scanplan.Downsample{Interval: 60_000, Function: "sum", Fill: scanplan.FillNone}
		p.SplitOffHour = c.splits
		part := whole(p)
		part.Mode = scanplan.PartialWithoutNames
		held := account.New(1 << 40).Open(account.Query)
		var got []int64
		m.Fail = func(context.Context, int) error {
			got = append(got, held.Held())
			m.NextBytes = c.next[min(len(got), len(c.next)-1)]
			return nil
		}
		op, err := operator.New(m, part, operator.Options{SideBySide: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := operatortest.Drain(account.With(t.Context(), held), op,
			func(batch.Record) error { return nil }); err != nil {
			t.Fatal(err)
		}
		held.Close()
		if !slices.EqualFunc(got, c.want, func(got, want int64) bool { return want <= got && got <= want+c.reader }) {
			t.Errorf("%s: %d bytes are reserved before each block, want %d, at most %d more", name, got,
				c.want, c.reader)
		}
	}
}

// An hour that may not have the memory of its rows fails its part. A great many series whose names are not kept take
// little memory.
func TestSideBySide_bounds(t *testing.T) {
	m, part := sparsePart(9)
	m.NextBytes = 1 << 30
	held := account.New(1 << 20).Open(account.Query)
	defer held.Close()
	if _, _, err := answer(account.With(t.Context(), held), m,
		kind{part: *part, opts: operator.Options{SideBySide: true}}); !account.Refused(err) {
		t.Errorf("a block of 1 GiB in 1 MiB: got %v, want that it is refused", err)
	}

	m, part = sparsePart(5000)
	m.BlockRows, part.Mode = 0, scanplan.PartialWithoutNames
	want, _, err := answer(t.Context(), m, kind{part: *part})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, _, err := answer(t.Context(), m, kind{part: *part, opts: operator.Options{SideBySide: true}})
	if runtime.ReadMemStats(&after); err != nil || got != want {
		t.Errorf("series without names: %v, got\n%s\nwant\n%s", err, got, want)
	}
	if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 50 {
		t.Errorf("%d MiB are allocated for names, want less", n)
	}
}
