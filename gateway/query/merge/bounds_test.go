package merge

import (
	"errors"
	"runtime"
	"testing"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
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
	before := l.held
	for i := range gs.Described {
		p, err := gs.Points(i)
		if err != nil {
			t.Fatal(err)
		}
		l.held -= int64(p.Len()) * PointBytes // the caller has sent them
	}
	if grown := l.held - before; grown > 1<<20 {
		t.Errorf("%d bytes more are held after %d groups were sent", grown, len(gs.Described))
	}
	m.Free()
	if l.held != 0 {
		t.Errorf("%d bytes are held at the end", l.held)
	}
}
