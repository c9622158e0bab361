package operator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const base = 1356998400 // 2013-01-01 00:00:00 UTC, an hour

var metric = operatortest.UID(1)

// flat is one span's data over all batches.
type flat struct {
	Time  []int64
	Value []float64
	Raw   encoding.Points
	Notes []string
}

type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// read executes a part and returns its spans and counts. It checks the contract of Operator, and
// uses memory that is poisoned and counted.
func read(t failer, from store.Reader, part *scanplan.Part,
	opts operator.Options) (map[string]flat, operator.Stats, error) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	opts.Mem = operatortest.Poisoned(mem)
	op, err := operator.New(from, part, opts)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	op = operatortest.Checked(op, t.Errorf)
	spans, err := collect(op, func(rows, bytes int) {
		if most := opts.FlushBytes; rows > 1 && most > 0 && bytes > most {
			t.Errorf("a record of %d rows has %d bytes, want at most %d", rows, bytes, most)
		}
	})
	if n := mem.CurrentAlloc(); n != 0 {
		t.Errorf("%d bytes leaked", n)
	}
	return spans, op.Stats(), err
}

// collect returns the spans of an operator. It calls each with the rows and the bytes of each record.
func collect(op operator.Operator, each func(rows, bytes int)) (map[string]flat, error) {
	spans := map[string]flat{}
	err := operatortest.Drain(context.Background(), op, func(r batch.Record) error {
		reader, err := batch.NewSeriesReader(r)
		if err != nil {
			return err
		}
		var s batch.Series
		size := 0
		for i := range reader.Len() {
			if err := reader.At(i, &s); err != nil {
				return err
			}
			size += len(s.Span) + 16*len(s.Time) + 17*s.Raw.Len() + len(slices.Concat(s.Notes...))
			f := spans[string(s.Span)]
			f.Time, f.Value = append(f.Time, s.Time...), append(f.Value, s.Value...)
			f.Raw.AppendPoints(s.Raw)
			for _, n := range s.Notes {
				f.Notes = append(f.Notes, string(n))
			}
			spans[string(s.Span)] = f
		}
		each(reader.Len(), size)
		return nil
	})
	return spans, err
}

func whole(p scanplan.Plan) *scanplan.Part { return &scanplan.Part{Plan: p, Range: p.Ranges[0]} }

func spanOf(tags ...encoding.TagPair) string {
	s := encoding.DefaultSchema()
	return string(s.AppendTags(bytes.Clone(metric), tags))
}

func table(series ...operatortest.Series) *operatortest.Store {
	m := &operatortest.Store{}
	m.Load(encoding.DefaultSchema(), metric, series...)
	return m
}

func series(points encoding.Points, tags ...encoding.TagPair) operatortest.Series {
	return operatortest.Series{Tags: tags, Points: points}
}

func identity(i int) float64 { return float64(i) }

func TestPerSeries_raw(t *testing.T) {
	a := operatortest.Every(base, base+3*3600, 600, identity)
	b := operatortest.Every(base+1800, base+2*3600, 7, identity)
	m := table(series(a, operatortest.Tag(1, 1)), series(b, operatortest.Tag(1, 2)))
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+3*3600)
	want := map[string]flat{spanOf(operatortest.Tag(1, 1)): {Raw: a}, spanOf(operatortest.Tag(1, 2)): {Raw: b}}
	for _, flush := range []int{0, 1, 300} {
		for _, block := range []int{0, 1, 2} {
			m.BlockRows = block
			got, stats, err := read(t, m, whole(plan), operator.Options{FlushBytes: flush})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("flush %d, block %d: %s", flush, block, diff)
			}
			if stats.Rows != 5 || stats.Points != int64(a.Len()+b.Len()) || stats.Spans != 2 || stats.Batches == 0 ||
				stats.ShippedBytes == 0 {
				t.Errorf("stats %+v, want 5 rows, all points, 2 spans, and batches with bytes", stats)
			}
			if flush > 0 && stats.Batches < 5 {
				t.Errorf("flush %d: %d batches, want more", flush, stats.Batches)
			}
		}
	}
	if n := m.Open.Load(); n != 0 {
		t.Errorf("%d scanners are open", n)
	}
}

// 5m-avg of 0, 1, 2 … every 100 s: three points a bucket.
func TestPerSeries_hourly(t *testing.T) {
	m := table(series(operatortest.Every(base, base+3600, 100, identity), operatortest.Tag(1, 1)))
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+3600)
	plan.Downsample = &scanplan.Downsample{
		Interval: 300_000,
		Count:    5,
		Unit:     "m",
		Function: "avg",
		Fill:     scanplan.FillNone,
	}
	got, _, err := read(t, m, whole(plan), operator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var want flat
	for i := range 12 {
		want.Time = append(want.Time, (base+int64(i)*300)*1000)
		want.Value = append(want.Value, float64(3*i+1))
	}
	if diff := cmp.Diff(map[string]flat{spanOf(operatortest.Tag(1, 1)): want}, got); diff != "" {
		t.Error(diff)
	}
}

// With buckets of two hours, a part ships the buckets that are completely in it as values. It ships
// the points of its first and its last bucket, if the plan continues there.
func TestPerSeries_straddling(t *testing.T) {
	points := operatortest.Every(base, base+8*3600, 1800, identity)
	m := table(series(points, operatortest.Tag(1, 1)))
	s := encoding.DefaultSchema()
	plan := operatortest.Plan(s, metric, base, base+8*3600)
	plan.Downsample = &scanplan.Downsample{
		Interval: 7_200_000,
		Count:    2,
		Unit:     "h",
		Function: "sum",
		Fill:     scanplan.FillNone,
	}
	part := func(from, to int64) *scanplan.Part {
		return &scanplan.Part{Plan: plan, Range: scanplan.KeyRange{
			Start: s.AppendRangeKey(nil, 0, metric, uint32(base+from*3600)),
			Stop:  s.AppendRangeKey(nil, 0, metric, uint32(base+to*3600)),
		}}
	}
	sum := func(hour int) float64 { // of the 4 points in the bucket that begins at that hour
		return float64(4*2*hour + 0 + 1 + 2 + 3)
	}
	f := func(p *scanplan.Part, want flat) {
		t.Helper()
		got, _, err := read(t, m, p, operator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]flat{spanOf(operatortest.Tag(1, 1)): want}, got); diff != "" {
			t.Error(diff)
		}
	}
	at := func(hour int64) int64 { return (base + hour*3600) * 1000 }
	join := func(a, b encoding.Points) (p encoding.Points) {
		p.AppendPoints(a)
		p.AppendPoints(b)
		return p
	}
	f(part(0, 8), flat{Time: []int64{at(0), at(2), at(4), at(6)}, Value: []float64{sum(0), sum(2), sum(4), sum(6)}})
	f(part(1, 6), flat{
		Time:  []int64{at(2)},
		Value: []float64{sum(2)},
		Raw:   join(points.Slice(2, 4), points.Slice(8, 12)),
	})
	f(part(0, 3), flat{Time: []int64{at(0)}, Value: []float64{sum(0)}, Raw: points.Slice(4, 6)})
	f(part(5, 8), flat{Time: []int64{at(6)}, Value: []float64{sum(6)}, Raw: points.Slice(10, 12)})
	f(part(3, 4), flat{Raw: points.Slice(6, 8)})
}

// Rows that the store returns beyond the filter, and beyond the part, are not
// part of the answer.
//
//fault:filter-not-checked-again !ok || !admitsValue => !ok && admitsValue
func TestPerSeries_superset(t *testing.T) {
	long := operatortest.Every(base-3600, base+3*3600, 900, identity) // beyond the plan
	all := []operatortest.Series{
		series(long, operatortest.Tag(1, 1), operatortest.Tag(2, 1)),
		series(long, operatortest.Tag(1, 1), operatortest.Tag(2, 2)),
		series(long, operatortest.Tag(1, 2), operatortest.Tag(2, 1)),
		series(long, operatortest.Tag(1, 1)),
		series(long, operatortest.Tag(1, 1), operatortest.Tag(2, 1), operatortest.Tag(3, 1)),
		series(long, operatortest.Tag(2, 1)),
	}
	f := func(name string, change func(*scanplan.Plan), want ...int) {
		t.Helper()
		for _, loose := range []bool{false, true} {
			m := table(all...)
			m.Loose = loose
			m.Load(encoding.DefaultSchema(), operatortest.UID(2), all...) // another metric
			plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+2*3600)
			change(&plan)
			got, stats, err := read(t, m, whole(plan), operator.Options{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			wanted := map[string]flat{}
			for _, i := range want {
				wanted[spanOf(all[i].Tags...)] = flat{Raw: long.Slice(4, 12)}
			}
			if diff := cmp.Diff(wanted, got); diff != "" {
				t.Errorf("%s, loose %t: %s", name, loose, diff)
			}
			if diff := cmp.Diff(keysIn(m, whole(plan), wanted), keysOf(t, m, whole(plan))); diff != "" {
				t.Errorf("%s, loose %t: keys: %s", name, loose, diff)
			}
			if nothing := operator.ChooseAccess(whole(plan), nil).Nothing; loose && !nothing &&
				stats.Rejected != int64(len(m.Rows)-2*len(want)) {
				t.Errorf("%s: %d rows rejected, want all that the plan does not want", name, stats.Rejected)
			}
		}
	}
	tag := func(k int, op scanplan.TagOp, values ...int) scanplan.TagPredicate {
		p := scanplan.TagPredicate{TagK: operatortest.UID(k), Op: op}
		for _, v := range values {
			p.Values = append(p.Values, operatortest.UID(v))
		}
		return p
	}
	f("all", func(p *scanplan.Plan) {}, 0, 1, 2, 3, 4, 5)
	f("in", func(p *scanplan.Plan) { p.Tags = append(p.Tags, tag(2, scanplan.In, 1)) }, 0, 2, 4, 5)
	f("in first", func(p *scanplan.Plan) { p.Tags = append(p.Tags, tag(1, scanplan.In, 1)) }, 0, 1, 3, 4)
	f("in two values", func(p *scanplan.Plan) { p.Tags = append(p.Tags, tag(2, scanplan.In, 1, 2)) }, 0, 1, 2, 4, 5)
	f("in nothing", func(p *scanplan.Plan) { p.Tags = append(p.Tags, tag(2, scanplan.In)) })
	f("present", func(p *scanplan.Plan) { p.Tags = append(p.Tags, tag(2, scanplan.Present)) }, 0, 1, 2, 4, 5)
	f("not in", func(p *scanplan.Plan) { p.Tags = append(p.Tags, tag(2, scanplan.NotIn, 1)) }, 1)
	f("both", func(p *scanplan.Plan) { p.Tags = append(p.Tags, tag(1, scanplan.In, 1), tag(2, scanplan.In, 1)) }, 0, 4)
	f("first in, second present",
		func(p *scanplan.Plan) { p.Tags = append(p.Tags, tag(1, scanplan.In, 1), tag(2, scanplan.Present)) }, 0, 1, 4)
	f("exact", func(p *scanplan.Plan) { p.Tags, p.Exact = append(p.Tags, tag(1, scanplan.In, 1)), true }, 3)
	f("exact two", func(p *scanplan.Plan) {
		p.Tags, p.Exact = append(p.Tags, tag(1, scanplan.In, 1), tag(2, scanplan.In, 1, 2)), true
	}, 0, 1)
	f("exact second", func(p *scanplan.Plan) { p.Tags, p.Exact = append(p.Tags, tag(2, scanplan.In, 1)), true }, 5)
	f("exact present", func(p *scanplan.Plan) { p.Tags, p.Exact = append(p.Tags, tag(1, scanplan.Present)), true }, 3)
	tsuid := func(i int) encoding.UID { return encoding.UID(spanOf(all[i].Tags...)) }
	f("tsuids", func(p *scanplan.Plan) {
		p.TSUIDs = []encoding.UID{tsuid(3), tsuid(0)}
		slices.SortFunc(p.TSUIDs, func(a, b encoding.UID) int { return bytes.Compare(a, b) })
	}, 0, 3)
	f("tsuid of another metric",
		func(p *scanplan.Plan) { p.TSUIDs = []encoding.UID{append(operatortest.UID(2), tsuid(0)[3:]...)} })
	f("tsuid and tag", func(p *scanplan.Plan) {
		p.TSUIDs, p.Tags = []encoding.UID{tsuid(0)}, append(p.Tags, tag(2, scanplan.In, 2))
	})
	f("hours before its ranges", func(p *scanplan.Plan) { p.From, p.To = base-3600, base })
	f("other hours", func(p *scanplan.Plan) { p.TSUIDs, p.From, p.To = []encoding.UID{tsuid(0)}, base-3600, base })
}

func TestPerSeries_annotations(t *testing.T) {
	m := table(series(operatortest.Every(base, base+3600, 1800, identity), operatortest.Tag(1, 1)))
	s := encoding.DefaultSchema()
	tags := s.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, 2)})
	m.Cell(s.AppendRowKey(nil, metric, base, tags), []byte{1, 0, 0}, []byte(`{"startTime":1356998400}`), 1)
	m.Cell(m.Rows[0].Key, []byte{1, 0, 1}, []byte(`{"startTime":1356998401}`), 1)
	m.Cell(m.Rows[0].Key, []byte{9, 9, 9}, []byte(`?`), 1)
	plan := operatortest.Plan(s, metric, base, base+3600)
	plan.Downsample = &scanplan.Downsample{
		Interval: 3_600_000,
		Count:    1,
		Unit:     "h",
		Function: "sum",
		Fill:     scanplan.FillNone,
	}
	want := map[string]flat{
		spanOf(operatortest.Tag(1, 1)): {
			Time:  []int64{base * 1000},
			Value: []float64{1},
			Notes: []string{`{"startTime":1356998401}`},
		},
		spanOf(operatortest.Tag(1, 2)): {Notes: []string{`{"startTime":1356998400}`}},
	}
	for _, flush := range []int{0, 1} {
		m.BlockRows = 1
		got, stats, err := read(t, m, whole(plan), operator.Options{FlushBytes: flush})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if stats.Skipped != 1 {
			t.Errorf("%d cells skipped, want 1", stats.Skipped)
		}
	}
}

// A span whose points are all outside of the buckets has no value. It is shipped with
// one of its points, a presence marker.
func TestPerSeries_presenceMarker(t *testing.T) {
	m := table(series(operatortest.Every(base, base+2*3600, 600, identity), operatortest.Tag(1, 1)))
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+4*3600)
	plan.Downsample = &scanplan.Downsample{All: true, Function: "sum", Fill: scanplan.FillNone}
	plan.Start, plan.End = (base+7200)*1000, (base+7300)*1000
	got, _, err := read(t, m, whole(plan), operator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var raw encoding.Points
	raw.Append(base*1000, encoding.IntValue(0))
	if diff := cmp.Diff(map[string]flat{spanOf(operatortest.Tag(1, 1)): {Raw: raw}}, got); diff != "" {
		t.Error(diff)
	}
}

// A series that is larger than a batch is shipped in several, in order. A point takes 17 bytes.
func TestPerSeries_largeSpan(t *testing.T) {
	points := operatortest.Every(base, base+3600, 1, identity)
	m := table(series(points, operatortest.Tag(1, 1)), series(points.Slice(0, 3), operatortest.Tag(1, 2)))
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+3600)
	got, stats, err := read(t, m, whole(plan), operator.Options{FlushBytes: 5000})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(points, got[spanOf(operatortest.Tag(1, 1))].Raw); diff != "" {
		t.Error(diff)
	}
	if stats.Batches < 3600*17/5000 {
		t.Errorf("%d batches, want at least one for each 5000 bytes", stats.Batches)
	}
}

func TestPerSeries_errors(t *testing.T) {
	s := encoding.DefaultSchema()
	key := s.AppendRowKey(nil, metric, base, s.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, 1)}))
	plan := operatortest.Plan(s, metric, base, base+3600)
	f := func(m *operatortest.Store, plan scanplan.Plan) error {
		t.Helper()
		_, _, err := read(t, m, whole(plan), operator.Options{})
		if n := m.Open.Load(); n != 0 {
			t.Errorf("%d scanners are open", n)
		}
		return err
	}
	duplicate := &operatortest.Store{}
	duplicate.Cell(key, []byte{0x00, 0x10}, []byte{5}, 1)
	duplicate.Cell(key, []byte{0x00, 0x11}, []byte{0x80, 0}, 2)
	var data *operator.DataError
	err := f(duplicate, plan)
	const want = "Duplicate timestamp for key=[0, 0, 1, 80, -30, 39, 0, 0, 0, 1, 0, 0, 1], ms_offset=1000, " +
		"older=[-128, 0], newer=[5]; set tsd.storage.fix_duplicates=true to fix automatically or run Fsck"
	if !errors.As(err, &data) || err.Error() != want || !bytes.Equal(data.Row, key) {
		t.Errorf("got %v, want %s", err, want)
	}
	fixed := plan
	fixed.FixDuplicates = true
	if err := f(duplicate, fixed); err != nil {
		t.Errorf("with fix_duplicates: %v", err)
	}
	corrupt := &operatortest.Store{}
	corrupt.Cell(key, []byte{0x00, 0x10, 0x00, 0x20}, []byte{5}, 1)
	err = f(corrupt, plan)
	if !errors.As(err, &data) || !strings.Contains(err.Error(), fmt.Sprintf("%X", key)) ||
		!strings.Contains(err.Error(), "metric 000001, base time 1356998400, 000001=000001") {
		t.Errorf("got %v, want the row named", err)
	}
	short := &operatortest.Store{}
	short.Cell(key[:9], []byte{0x00, 0x10}, []byte{5}, 1)
	if err = f(short, plan); !errors.As(err, &data) || !strings.Contains(err.Error(), "not a key of salt width 0 and") {
		t.Errorf("got %v, want a data error that says what is no key", err)
	}
	large := table(series(operatortest.Every(base, base+3600, 1, identity), operatortest.Tag(1, 1)))
	bounded := plan
	bounded.MaxBytes = 20_000
	var limit *operator.LimitError
	if err = f(large, bounded); !errors.As(err, &limit) || limit.Limit != 20_000 || limit.Need <= 20_000 {
		t.Errorf("got %v, want a limit error", err)
	}
	broken := table(series(operatortest.Every(base, base+3600, 1, identity), operatortest.Tag(1, 1)))
	broken.Fail = func(_ context.Context, block int) error {
		if block == 1 {
			return store.ErrUnavailable
		}
		return nil
	}
	if err = f(broken, plan); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, store.ErrUnavailable)
	}
}

func TestNew_badPlan(t *testing.T) {
	f := func(change func(*scanplan.Part), want string) {
		t.Helper()
		part := whole(operatortest.Plan(encoding.DefaultSchema(), metric, base, base+3600))
		change(part)
		_, err := operator.New(&operatortest.Store{}, part, operator.Options{})
		if !errors.Is(err, operator.ErrBadPlan) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	tsuid := func(v int) encoding.UID { return encoding.UID(spanOf(operatortest.Tag(1, v))) }
	f(func(p *scanplan.Part) { p.Plan.Version = 2 }, "version 2, want 1")
	f(func(p *scanplan.Part) { p.Range.Start = p.Range.Start[:2] }, "is in none")
	f(func(p *scanplan.Part) { p.Range.Start, p.Plan.Ranges[0].Start = p.Range.Start[:2], p.Range.Start[:2] },
		"starts at")
	f(func(p *scanplan.Part) { p.Range.Stop = nil }, "is in none")
	f(func(p *scanplan.Part) { p.Range.Stop = p.Range.Start }, "is empty")
	f(func(p *scanplan.Part) { p.Plan.TSUIDs = []encoding.UID{tsuid(2), tsuid(1)} }, "out of order")
	f(func(p *scanplan.Part) {
		p.Plan.Downsample = &scanplan.Downsample{Interval: 1000, Function: "nonsense", Fill: "none"}
	}, "nonsense")
	f(func(p *scanplan.Part) {
		p.Mode, p.Plan.Aggregator = scanplan.PartialAggregation, "none"
		p.Plan.Downsample = &scanplan.Downsample{Interval: 60_000, Function: "sum", Fill: scanplan.FillNone}
	}, `aggregator "none" has no partial aggregates`)
	f(func(p *scanplan.Part) { p.Mode, p.Plan.Aggregator = scanplan.Aligned, "median" }, "mode aligned of a plan")
}

// A part may begin with salt and metric alone, which all keys begin with, and not with less.
func TestNew_leastKey(t *testing.T) {
	points := operatortest.Every(base, base+3600, 600, identity)
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+3600)
	plan.Ranges[0].Start = plan.Ranges[0].Start[:3]
	got, _, err := read(t, table(series(points, operatortest.Tag(1, 1))), whole(plan), operator.Options{})
	if diff := cmp.Diff(map[string]flat{spanOf(operatortest.Tag(1, 1)): {Raw: points}}, got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

// Close before the end, and a context that ends, both end the scan. Next then returns the reason,
// every time that it is called.
func TestPerSeries_ends(t *testing.T) {
	m := table(series(operatortest.Every(base, base+4*3600, 1, identity), operatortest.Tag(1, 1)))
	m.BlockRows = 1
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+4*3600)
	open := func() operator.Operator {
		op, err := operator.New(m, whole(plan), operator.Options{FlushBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		return operatortest.Checked(op, t.Errorf)
	}
	next := func(op operator.Operator, ctx context.Context) error {
		r, err := op.Next(ctx)
		if err == nil {
			r.Release()
		}
		return err
	}
	op := open()
	if err := next(op, context.Background()); err != nil {
		t.Fatal(err)
	}
	op.Close()
	if err := next(op, context.Background()); !errors.Is(err, operator.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
	op = open()
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("client is gone")
	cancel(gone)
	for range 2 {
		if err := next(op, ctx); !errors.Is(err, gone) || err.Error() != gone.Error() {
			t.Errorf("cancelled before: %v, want the cause of the cancellation", err)
		}
	}
	op = open()
	ctx, cancel = context.WithCancelCause(context.Background())
	started := make(chan struct{})
	m.Fail = func(ctx context.Context, block int) error {
		if block < 3 {
			return nil
		}
		close(started)
		<-ctx.Done()
		return ctx.Err()
	}
	go func() { <-started; cancel(gone) }()
	var err error
	for err == nil {
		err = next(op, ctx)
	}
	if !errors.Is(err, gone) || strings.Count(err.Error(), gone.Error()) != 1 {
		t.Errorf("cancelled in a scan: %v, want the cause of the cancellation, once", err)
	}

	// The context of a later call ends that call, and the operator with it.
	op = open()
	m.Fail = nil
	if err := next(op, context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancelCause(context.Background())
	m.Fail = func(scan context.Context, _ int) error {
		cancel(gone)
		<-scan.Done()
		return scan.Err()
	}
	for err = nil; err == nil; {
		err = next(op, ctx)
	}
	if !errors.Is(err, gone) {
		t.Errorf("a later call is cancelled: %v, want the cause of the cancellation", err)
	}
	if n := m.Open.Load(); n != 0 {
		t.Errorf("%d scanners are open", n)
	}
	op.Close()
}

// operatortest.Checked reports each violation of Operator's contract.
func TestChecked(t *testing.T) {
	f := func(op operator.Operator, calls func(operator.Operator), want string) {
		t.Helper()
		var reports []string
		calls(operatortest.Checked(op,
			func(format string, args ...any) { reports = append(reports, fmt.Sprintf(format, args...)) }))
		if !slices.ContainsFunc(reports, func(r string) bool { return strings.Contains(r, want) }) {
			t.Errorf("reports %q, want %q", reports, want)
		}
	}
	next := func(op operator.Operator) { _, _ = op.Next(context.Background()) }
	f(&script{}, next, "want one of them")
	f(&script{errs: []error{io.EOF, store.ErrUnavailable}}, func(op operator.Operator) { next(op); next(op) },
		"after error")
	f(&script{errs: []error{io.EOF}}, func(op operator.Operator) { op.Close(); next(op) }, "after Close")
	busy := &script{errs: []error{io.EOF}}
	f(busy, func(op operator.Operator) { busy.during = func() { op.Stats() }; next(op) }, "while another call runs")
}

// script is an operator whose Next returns the given errors, one after the other, and no record.
type script struct {
	errs   []error
	during func()
}

func (s *script) Stats() operator.Stats { return operator.Stats{} }
func (s *script) Close() error          { return nil }
func (s *script) Next(context.Context) (r batch.Record, err error) {
	if s.during != nil {
		s.during()
	}
	if len(s.errs) > 0 {
		err, s.errs = s.errs[0], s.errs[1:]
	}
	return nil, err
}
