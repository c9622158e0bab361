package merge

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	arrowmemory "github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/operator/histogram"
)

// fakeRequest stands for a process's memory and a request that endsAt: it allows maxBytes and
// maxPoints, and its check number endsAt fails.
type fakeRequest struct {
	held, peak, maxBytes int64
	checks, endsAt       int
	late                 int // reservations and checks after the request has ended
	points, maxPoints    int
}

var (
	errFull  = errors.New("no memory is left")
	errEnded = errors.New("the client has left")
	errMany  = errors.New("too many points")
)

func (l *fakeRequest) bounds() Bounds {
	return Bounds{
		Reserve: func(n int64) error {
			if l.endsAt > 0 && l.checks >= l.endsAt {
				l.late++
			}
			if l.held+n > l.maxBytes {
				return errFull
			}
			l.held += n
			l.peak = max(l.peak, l.held)
			return nil
		},
		Release: func(n int64) { l.held -= n },
		Check: func() error {
			if l.checks++; l.endsAt > 0 && l.checks >= l.endsAt {
				if l.checks > l.endsAt {
					l.late++
				}
				return errEnded
			}
			return nil
		},
		Points: func(n int) error {
			if l.points += n; l.points > l.maxPoints {
				return errMany
			}
			return nil
		},
	}
}

// bounded is a case in which the merge has much work: some rows and a plan.
type bounded struct {
	name    string
	plan    *scanplan.Plan
	records []batch.Record
	steps   int // how many values the merge looks at, at least
}

// boundedCases returns cases with few points and many buckets, with many series, with many series
// at different times, and with many groups.
func boundedCases() (out []bounded) {
	s := encoding.DefaultSchema()
	end := int64(base + 100*86400)
	rows := func(n, points int, step func(series, i int) int64) []batch.Record {
		var rows []batch.Series
		for k := range n {
			one := tagged(s, encoding.Points{}, 1, uint64(k+1))
			row := batch.Series{Span: one.span(s)}
			for i := range points {
				row.Raw.Append(step(k, i), encoding.FloatValue(float64(i)))
			}
			rows = append(rows, row)
		}
		return []batch.Record{record(rows...)}
	}
	add := func(name string, to int64, d *scanplan.Downsample, rate *scanplan.Rate, aggregator scanplan.Aggregator,
		steps int, records []batch.Record) {
		p := newPlan(s, uid(1), base*1000, to*1000, d)
		p.Aggregator, p.Rate = aggregator, rate
		out = append(out, bounded{name, p, records, steps})
	}
	two := rows(1, 2, func(_, i int) int64 { return (base + 60 + int64(i)*(end-base-120)) * 1000 })
	buckets := int(end-base) / 10
	fill := &scanplan.Downsample{Interval: 10_000, Function: "avg", Fill: scanplan.FillZero}
	add("two points, buckets filled", end, fill, nil, "sum", buckets, two)
	add("two points, rates of filled buckets", end, fill, &scanplan.Rate{}, "sum", buckets, two)
	add("two points, calendar buckets filled", end,
		&scanplan.Downsample{
			Interval: 60_000,
			Calendar: true,
			Count:    1,
			Unit:     "m",
			Zone:     "Europe/Berlin",
			Function: "avg",
			Fill:     scanplan.FillNaN,
		},
		nil, "max", int(end-base)/60, two)
	months := &scanplan.Downsample{
		Interval: 30 * 86_400_000,
		Calendar: true,
		Count:    1,
		Unit:     "n",
		Zone:     "UTC",
		Function: "avg",
		Fill:     scanplan.FillZero,
	}
	many := func(k, i int) int64 { return (base + int64(i)*10) * 1000 }
	add("many series", base+7200, nil, nil, "p99", 1000*300, rows(1000, 300, many))
	own := func(k, i int) int64 { return (base+int64(i)*10)*1000 + int64(k) }
	add("many series at times of their own", base+7200, nil, nil, "sum", 300*200, rows(300, 200, own))
	add("many groups of one", base+7200, nil, nil, "none", 1000*50, rows(1000, 50, many))
	ready := make([]batch.Series, 200)
	for k := range ready {
		one := tagged(s, encoding.Points{}, 1, uint64(k+1))
		ready[k].Span = one.span(s)
		for i := range 300 {
			ready[k].Time = append(ready[k].Time, many(k, i))
			ready[k].Value = append(ready[k].Value, 1)
		}
	}
	tens := &scanplan.Downsample{Interval: 10_000, Function: "sum", Fill: scanplan.FillNone}
	add("many groups of one series of buckets", base+7200, tens, nil, "none", 200*300,
		[]batch.Record{record(ready...)})
	add("two points, 20 years of months filled", base+7305*86400, months, nil, "sum", 240, two)
	return out
}

// run merges a case within the bounds of a request.
func (c *bounded) run(l *fakeRequest) ([]Group, error) {
	m := New(c.plan, nil)
	m.SetBounds(l.bounds())
	defer m.Free()
	for _, r := range c.records {
		if err := m.Add(c.plan.Ranges[0], r); err != nil {
			return nil, err
		}
	}
	return m.Finish()
}

const plenty = 1 << 40

// The merge checks its request at least every 200,000 values, and ends at the first check that
// fails: it makes no more calls and holds no memory.
func TestBounds_end(t *testing.T) {
	const stepsAtOnce = 200_000
	for _, c := range boundedCases() {
		free := &fakeRequest{maxBytes: plenty, maxPoints: plenty}
		if _, err := c.run(free); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if least := c.steps / stepsAtOnce; free.checks < least {
			t.Errorf("%s: checked %d times in %d steps, want at least %d", c.name, free.checks, c.steps, least)
		}
		for _, ends := range []int{1, 2, free.checks / 2, free.checks} {
			l := &fakeRequest{maxBytes: plenty, maxPoints: plenty, endsAt: max(1, ends)}
			if _, err := c.run(l); !errors.Is(err, errEnded) || l.late > 0 {
				t.Errorf("%s, ended at check %d of %d: got %v and %d more calls, want the end and none", c.name, ends,
					free.checks, err, l.late)
			}
			if l.held != 0 {
				t.Errorf("%s, ended at check %d: %d bytes are still held", c.name, ends, l.held)
			}
		}
	}
}

// The merge reserves about the memory that it takes, and before it allocates it: at whatever
// reservation it is refused, the bytes that Go has allocated are not far above those that were reserved.
func TestBounds_memory(t *testing.T) {
	for _, c := range boundedCases() {
		free := &fakeRequest{maxBytes: plenty, maxPoints: plenty}
		before := allocated()
		groups, err := c.run(free)
		if err != nil {
			t.Fatal(err)
		}
		if took := int64(allocated() - before); free.peak > took*3/2 || took > free.peak*3/2+1<<20 {
			t.Errorf("%s: %d bytes were reserved for the %d that it took", c.name, free.peak, took)
		}
		points := int64(0)
		for i := range groups {
			points += int64(groups[i].Points.Len())
		}
		if free.held != points*PointBytes {
			t.Errorf("%s: %d bytes are held for %d points, want PointBytes for each", c.name, free.held, points)
		}
		groups = nil
		for _, share := range []int64{0, 10, 30, 50, 70, 90, 99} {
			l := &fakeRequest{maxBytes: free.peak * share / 100, maxPoints: plenty}
			before := allocated()
			_, err := c.run(l)
			grown := int64(allocated() - before)
			if !errors.Is(err, errFull) || l.held != 0 {
				t.Errorf("%s with %d %% of the memory: got %v, %d bytes are still held", c.name, share, err, l.held)
			}
			// Columns that grow leave garbage behind, which counts as allocated.
			if most := 2*l.peak + 4<<20; grown > most {
				t.Errorf("%s with %d %% of the memory: %d bytes were allocated, %d reserved", c.name, share, grown,
					l.peak)
			}
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// An answer with too many points is refused; where their number is known before, as with a
// downsampler, no memory is allocated for them. No point counts that the answer does not have.
func TestBounds_points(t *testing.T) {
	for _, c := range boundedCases() {
		free := &fakeRequest{maxBytes: plenty, maxPoints: plenty}
		groups, err := c.run(free)
		if err != nil {
			t.Fatal(err)
		}
		points := 0
		for i := range groups {
			points += groups[i].Points.Len()
		}
		if free.points > points {
			t.Errorf("%s: %d points are counted, the answer has %d", c.name, free.points, points)
		}
		l := &fakeRequest{maxBytes: plenty, maxPoints: points / 2}
		before := allocated()
		_, err = c.run(l)
		if !errors.Is(err, errMany) {
			t.Errorf("%s: got %v, want that there are too many points", c.name, err)
		}
		if grown := allocated() - before; c.plan.Downsample != nil && grown > 2<<20 {
			t.Errorf("%s: %d bytes were allocated for an answer that is refused", c.name, grown)
		}
	}
}

// If groups are made one by one, the memory of a group's points passes to the caller with them, so
// that the merge holds no more than before.
func TestBounds_groups(t *testing.T) {
	c := boundedCases()[5] // many groups of one
	l := &fakeRequest{maxBytes: plenty, maxPoints: plenty}
	m := New(c.plan, nil)
	m.SetBounds(l.bounds())
	for _, r := range c.records {
		if err := m.Add(c.plan.Ranges[0], r); err != nil {
			t.Fatal(err)
		}
	}
	gs, err := m.Groups()
	if err != nil {
		t.Fatal(err)
	}
	before, used := l.held, m.used
	for i := range gs.Described {
		p, err := gs.Points(i)
		if err != nil {
			t.Fatal(err)
		}
		l.held -= int64(p.Len()) * PointBytes // the caller has sent them
		if m.used != used || l.held < used {
			t.Fatalf("after group %d %d bytes count and %d are held, want %d and no less", i, m.used, l.held, used)
		}
	}
	if grown := l.held - before; grown > 1<<20 {
		t.Errorf("%d bytes more are held after %d groups were sent", grown, len(gs.Described))
	}
	for range 2 { // as often as one likes
		if m.Free(); l.held != 0 {
			t.Errorf("%d bytes are held at the end", l.held)
		}
	}
}

// While a merge goes through many members it checks its request for each checkSpans of them, or checkMembers where each
// may touch every bucket.
func TestBounds_members(t *testing.T) {
	const members = 1000
	const each = (members + checkSpans - 1) / checkSpans
	s := encoding.DefaultSchema()
	p := newPlan(s, uid(1), base*1000, (base+3600)*1000-1, &scanplan.Downsample{Interval: 60_000, Function: "sum"})
	p.Aggregator = "sum"
	checks := 0
	bounds := Bounds{Check: func() error { checks++; return nil }}
	f := func(what string, want int, step func() error) {
		t.Helper()
		checks = 0
		if err := step(); err != nil || checks != want {
			t.Errorf("%s: %v, %d checks, want %d", what, err, checks, want)
		}
	}
	var rows []batch.Series
	w := batch.NewHistogramWriter(arrowmemory.DefaultAllocator)
	defer w.Release()
	for i := range members {
		one := tagged(s, encoding.Points{}, 1, uint64(i+1))
		rows = append(rows, batch.Series{Span: one.span(s), Time: []int64{base * 1000}, Value: []float64{1}})
		w.Append(&batch.Histograms{Group: one.span(s), Spans: [][]byte{one.span(s)}})
	}

	m := New(p, nil)
	m.SetBounds(bounds)
	if err := m.Add(p.Ranges[0], record(rows...)); err != nil {
		t.Fatal(err)
	}
	a, err := m.newAggregation()
	if err != nil {
		t.Fatal(err)
	}
	var grouped []groupMembers
	f("division into groups", each, func() (err error) {
		grouped, err = m.groupSeries(m.inSpanOrder())
		return err
	})
	if n := grouped[0].points(); n != 0 {
		t.Errorf("%d stored points of series that have buckets", n)
	}
	var out encoding.Points
	f("partial aggregates", (members+checkMembers-1)/checkMembers,
		func() error { return m.newJoiner(m.fn).group(grouped[0], nil, &out) })
	f("columns", each, func() error { return a.addMembers(&Group{}, grouped[0]) })
	st := &OlderHours{groups: map[string]olderGroup{}}
	f("older hours", each, func() error { return a.addOlderGroup(st, grouped[0], &Group{}) })
	m = New(p, nil)
	m.SetBounds(bounds)
	f("older hours that are continued", each, func() error { return m.Continue(st) })

	p.Downsample, p.Histograms = nil, &scanplan.Histograms{Codec: testCodec}
	m = New(p, nil)
	if err := m.Add(p.Ranges[0], w.Record()); err != nil {
		t.Fatal(err)
	}
	m.SetBounds(bounds)
	if got, want := m.histograms.counted, m.histograms.sums.Bytes(); got != want || m.used < want {
		t.Errorf("%d bytes of sums are counted, and %d in all, want %d", got, m.used, want)
	}
	f("histograms", each, func() error { _, err := m.sumSeries(); return err })
}

// What a merge counts before it makes it: the sums of partial aggregates, and the stored points of all members.
func TestBounds_ahead(t *testing.T) {
	p := saltedPlan("sum")
	m := New(p, nil)
	if err := m.Add(p.Ranges[0], partialBatch(partialRow(p, 0, 1, 0, 1))); err != nil {
		t.Fatal(err)
	}
	used := m.used
	if _, err := m.newAggregation(); err != nil || m.used-used != 4*2*partialBytes {
		t.Errorf("%v, %d bytes are counted for the sums of 4 buckets, want %d", err, m.used-used, 4*2*partialBytes)
	}
	line, h := Group{}, new(histogram.Sums).Group(nil)
	used = m.used
	if _, err := m.newLine(&line, "_suffix", []int64{}, nil, h); err != nil || m.used-used != groupBytes+7 {
		t.Errorf("%v, %d bytes are counted for a line without points", err, m.used-used)
	}
	raw := plan("sum")
	m = New(raw, nil)
	if err := m.Continue(&OlderHours{members: []OlderMember{{Span: []byte("a"), Raw: ints(0, 1)}}}); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(raw.Ranges[0], record(batch.Series{Span: []byte("a"), Raw: ints(1, 1, 2, 1)},
		batch.Series{Span: []byte("b"), Raw: ints(1, 1, 2, 1, 3, 1, 4, 1)})); err != nil {
		t.Fatal(err)
	}
	members := groupMembers{spans: m.kept}
	if n := members.points(); n != 7 {
		t.Errorf("members of 1, 2 and 4 points have %d", n)
	}
}

// What a series adds to a group whose values are all kept is counted, as many buckets as it may have values in.
func TestBounds_gathered(t *testing.T) {
	const each = 12
	for _, c := range []struct {
		function scanplan.Aggregator
		fill     scanplan.Fill
		want     int64
	}{
		{"sum", scanplan.FillNone, 0},
		{"sum", scanplan.FillZero, 0},
		{"p50", scanplan.FillNone, 3 * each}, // from the first to the last one
		{"p50", scanplan.FillZero, 3 * each}, // all that no part covers
	} {
		p := saltedPlan(c.function)
		p.Downsample.Fill = c.fill
		m := New(p, nil)
		j := m.newJoiner(m.fn)
		j.perSeries["\x00"] = []gridSpan{{1, 4}}
		j.mergePartials("")
		used := m.used
		buckets := &segment{time: []int64{p.Start, p.Start + 2*900_000}, value: []float64{1, 2}}
		if err := j.addSeries("\x00", []*segment{buckets, {}}, nil); err != nil || m.used-used != c.want {
			t.Errorf("%s, fill %q: %v, %d bytes are counted, want %d", c.function, c.fill, err, m.used-used, c.want)
		}
	}
}

// Between two parts a series has the values that both edges give it. Where one of them is not known, the order of the
// series has to be known.
func TestPartials_gap(t *testing.T) {
	p := saltedPlan("sum")
	for _, c := range []struct{ knowsLast, knowsFirst bool }{{true, true}, {true, false}, {false, true}} {
		m := New(p, nil)
		j := m.newJoiner(m.fn)
		j.mergePartials("")
		j.addGap(&run{last: p.Start, lastValue: 1, knowsLast: c.knowsLast},
			&run{first: p.Start + 3*900_000, firstValue: 4, knowsFirst: c.knowsFirst})
		j.owners[0] = 1
		j.addValues(0, []float64{1}, realValues) // changes nothing of that
		if known := c.knowsLast && c.knowsFirst; m.needsSpanOrder == known {
			t.Errorf("%+v: needs the order of series: %v", c, m.needsSpanOrder)
		}
	}
	m := New(p, nil)
	j := m.newJoiner(m.fn)
	j.mergePartials("")
	if j.addGap(&run{last: p.Start}, &run{first: p.Start + 900_000}); m.needsSpanOrder {
		t.Error("the order of series is needed where no bucket is between two parts")
	}
	err := j.addUnfilled(nil, []run{{first: 1, last: 5}, {first: 5, last: 9}})
	if err == nil || !strings.Contains(err.Error(), "another goes on until 5") {
		t.Errorf("got %v, want that both parts have time 5", err)
	}
}

// Sums of a bucket are out of order where several parts have members in it, however many, and not where one has.
func TestPartials_owners(t *testing.T) {
	p := saltedPlan("sum")
	for _, parts := range []int{0, 1, 2, 3, 255, 256, 257, 258} {
		m := New(p, nil)
		for i := range parts {
			live := []int32{1, 0, 0, 0}
			if i == 0 {
				live[1] = 1 // no other part has members there
			}
			sent := &buckets{live: live, a: make([]float64, 4), low: make([]int16, 4), high: make([]int16, 4)}
			part := &partialPart{to: 4, groups: map[string]*groupPartial{"": {buckets: sent}}}
			m.partialParts = append(m.partialParts, part)
		}
		j := m.newJoiner(m.fn)
		j.mergePartials("")
		if j.outOfOrder[0] != (parts > 1) || j.outOfOrder[1] {
			t.Fatalf("%d parts: out of order: %v", parts, j.outOfOrder)
		}
	}
}

// A sum that is infinite is an error; where the order of series has to be known it may be finite in that.
func TestPartials_infinite(t *testing.T) {
	p := saltedPlan("sum")
	for _, needsOrder := range []bool{false, true} {
		m := New(p, nil)
		if err := m.Add(p.Ranges[0], partialBatch(partialRow(p, 0, math.Inf(1), 0, 1))); err != nil {
			t.Fatal(err)
		}
		m.needsSpanOrder = needsOrder
		_, err := m.Finish()
		var infinite *aggregate.InfinityError
		if errors.As(err, &infinite) == needsOrder || errors.Is(err, ErrOrder) != needsOrder {
			t.Errorf("needs the order of series: %v: got %v", needsOrder, err)
		}
	}
}

// Before buckets are filled they are counted, of groups that have members, and never more than the answer has.
func TestBounds_filledAhead(t *testing.T) {
	const month = 30 * 86_400_000
	member := []*seriesData{{hasData: true}}
	for _, c := range []struct {
		what   string
		change func(*scanplan.Plan)
		spans  []*seriesData
		want   int
	}{
		{"buckets", func(*scanplan.Plan) {}, member, 12},
		{"rates", func(p *scanplan.Plan) { p.Rate = &scanplan.Rate{} }, []*seriesData{{}, {hasData: true}}, 11},
		{"annotations alone", func(*scanplan.Plan) {}, []*seriesData{{}}, 0},
		{"a begin before the rows", func(p *scanplan.Plan) { p.Start -= 600_000 }, member, 12},
		{"a later begin", func(p *scanplan.Plan) { p.Start += 1_200_000 }, member, 10},
		{"an earlier end", func(p *scanplan.Plan) { p.End -= 1_200_000 }, member, 10},
		{"an end before the begin", func(p *scanplan.Plan) { p.End = p.Start - 600_000 }, member, 0},
		{"31 months, each counted as 30 days", func(p *scanplan.Plan) {
			p.To = p.From + 31*month/1000
			p.End = p.To * 1000
			d := p.Downsample
			d.Interval, d.Calendar, d.Count, d.Unit, d.Zone = month, true, 1, "n", "UTC"
		}, member, 30},
	} {
		p := newPlan(encoding.DefaultSchema(), uid(1), base*1000, (base+7200)*1000,
			&scanplan.Downsample{Interval: 600_000, Function: "sum", Fill: scanplan.FillZero})
		p.From, p.To = base/3600*3600, base/3600*3600+7200
		p.Start, p.End = p.From*1000, p.To*1000
		p.Aggregator = "sum"
		c.change(p)
		got := 0
		m := New(p, nil)
		m.SetBounds(Bounds{Points: func(n int) error { got += n; return nil }})
		a := &aggregation{m: m}
		if err := a.columns.init(p, m); err != nil {
			t.Fatal(err)
		}
		if err := a.countPointsAhead(groupMembers{spans: c.spans}); err != nil || got != c.want {
			t.Errorf("%s: %v, %d points are counted, want %d", c.what, err, got, c.want)
		}
	}
}
