package gexp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	_ "downpour/encoding/seedtest" // gives rapid its seed
	"downpour/gateway/query"
)

// series makes a series with the tag host, or without tags for "", whose points are at 10 s, 20 s
// and so on. An int makes an integer, a float64 a float, and nil no point.
func series(metric byte, host string, values ...any) Series {
	s := Series{Metric: string('a' + metric - 1), MetricUID: encoding.UID{0, 0, metric}, AggregateTags: []string{"dc"}}
	if host != "" {
		s.Tags = []Tag{{"host", host, encoding.TagPair{K: encoding.UID{0, 0, 1}, V: encoding.UID(host)}}}
	}
	for i, v := range values {
		t := int64(10_000 * (i + 1))
		switch v := v.(type) {
		case int:
			s.Points.Append(t, encoding.IntValue(int64(v)))
		case float64:
			s.Points.Append(t, encoding.FloatValue(v))
		}
	}
	return s
}

// evaluate computes one expression with the data of its metrics in order, for the times
// from 0 to 1000 s.
func evaluate(text string, data ...[]Series) ([]Series, error) {
	return evaluateIn(Env{End: 1_000_000}, text, data...)
}

func evaluateIn(env Env, text string, data ...[]Series) ([]Series, error) {
	e, err := Parse([]string{text}, 64)
	if err != nil {
		return nil, err
	}
	at := make([]int, len(e.Metrics))
	for i := range at {
		at[i] = i
	}
	return e.Evaluate(env, data, at)
}

// show writes series in a line each: metric{tags}[aggregated] second:value…
func show(all []Series, err error) string {
	if err != nil {
		return err.Error()
	}
	var lines []string
	for i := range all {
		s := &all[i]
		var tags, points []string
		for _, t := range s.Tags {
			tags = append(tags, t.K+"="+t.V)
		}
		for k := range s.Points.Len() {
			t, v := s.Points.At(k)
			points = append(points, fmt.Sprintf("%d:%v", t/1000, v))
		}
		lines = append(lines, fmt.Sprintf("%s{%s}%v %s", s.Metric, strings.Join(tags, ","), s.AggregateTags,
			strings.Join(points, " ")))
	}
	return strings.Join(lines, "\n")
}

func TestEvaluate(t *testing.T) {
	nan := math.NaN()
	mixed := func() []Series { return []Series{series(1, "x", -1, 2.5, -3, nan)} }
	two := func() []Series { return []Series{series(1, "x", 1, 5, 2), series(1, "y", 4, 4, 3)} }
	f := func(text, want string, data ...[]Series) {
		t.Helper()
		if diff := cmp.Diff(want, show(evaluate(text, data...))); diff != "" {
			t.Errorf("%s: want -, got +:\n%s", text, diff)
		}
	}

	f("absolute(sum:a)", "a{host=x}[dc] 10:1 20:2.5 30:3 40:NaN", mixed())
	f("absolute(sum:a)", "a{}[dc] 10:-9223372036854775808", []Series{series(1, "", math.MinInt64)})
	f("scale(sum:a,2)", "a{host=x}[dc] 10:-2 20:5.0 30:-6 40:NaN", mixed())
	f("scale(sum:a,0.5)", "a{host=x}[dc] 10:-0.5 20:1.25 30:-1.5 40:NaN", mixed())
	f("scale(sum:a,2)", "a{}[dc] 10:-2", []Series{series(1, "", math.MaxInt64)})
	f("alias(sum:a,cpu.@host,@rack)", "cpu.x,@rack{}[] 10:1 20:2.5 30:3 40:NaN", mixed())

	f("movingAverage(sum:a,2)", "a{host=x}[dc] 10:0.0 20:0.75 30:-0.25 40:-0.25", mixed())
	f("movingAverage(sum:a,'20sec')", "a{}[dc] 10:0.0 20:0.0 30:2.5 40:3.5", []Series{series(1, "", 1, 2, 3, 4)})
	f("movingAverage(sum:a,9)", "a{}[dc] 10:0.0 20:0.0", []Series{series(1, "", 1, 2)})

	f("highestMax(sum:a,1)", "a{host=x}[dc] 10:1 20:5 30:2", two())
	f("highestMax(sum:a,9)", "a{host=x}[dc] 10:1 20:5 30:2\na{host=y}[dc] 10:4 20:4 30:3", two())
	f("highestCurrent(sum:a,1)", "a{host=y}[dc] 10:4 20:4 30:3", two())
	f("highestCurrent(sum:a,2)", "a{host=x}[dc] 10:1", []Series{series(1, "", nil), series(1, "x", 1)})
	// At the last time x has no point: as in OpenTSDB it then has the value of y, and comes first.
	f("highestCurrent(sum:a,1)", "a{host=x}[dc] 10:9", []Series{series(1, "x", 9), series(1, "y", 1, 2)})
	f("sum(sum:b,sum:a)", "a{host=x}[dc] 10:5.0 20:7.0", []Series{series(2, "x", 1, 2)},
		[]Series{series(1, "x", 4, 5.0)})
	f("diffSeries(sum:a,sum:b)", "a{host=x}[dc] 10:1.0\nb{}[dc] 10:-2.0", []Series{series(1, "x", 1)},
		[]Series{series(2, "y", 2)})
	f("divide(sum:a,sum:b)", "a{host=x}[dc] 10:0.0 20:0.5 30:0.0", []Series{series(1, "x", 7, 1, nan)},
		[]Series{series(2, "x", 0, 2, 3)})
	f("multiply(sum:a,sum:b)", "a{}[dc] 10:2.0 30:6.0", []Series{series(1, "", 1, nil, 2)},
		[]Series{series(2, "", nil, 2, 3)})
	f("sum(sum:a,sum:b)", "No more elements", []Series{series(1, "", 1)}, []Series{series(2, "", 2, 3)})
	f("alias(sum(sum:a,sum:b),x)", "-1", []Series{series(1, "", 1)}, []Series{series(2, "", 2, 3)})
	f("alias(absolute(sum(sum:a,sum:b)),x)", "x{}[] 10:1.0", []Series{series(1, "", 1)}, []Series{series(2, "", -2)})
	f("sum(alias(sum:a,x),sum:b)", "Wrong id.length = 0 which is != 3 required for 'metrics'",
		[]Series{series(1, "", 1)}, []Series{series(2, "", 2, 3)})

	f("timeShift(sum:a,'1min')", "a{}[dc] 70:1 80:2", []Series{series(1, "", 1, 2)})
	f("timeShift(sum:a,'1000sec')", "a{}[dc] ", []Series{series(1, "", 1, 2)})
	f("shift(timeShift(sum:a,'5min'),'1min')", "a{}[dc] 370:1", []Series{series(1, "", 1)})
}

// highestCurrent interpolates towards points after the query's end. Between two integers the value
// is an integer, so that both series are equal here and the first one wins; otherwise it is a
// double.
func TestHighestCurrent_interpolates(t *testing.T) {
	f := func(want string, data ...Series) {
		t.Helper()
		got, err := evaluateIn(Env{End: 20_000}, "highestCurrent(sum:a,1)", data)
		if err != nil || got[0].Tags[0].V != want {
			t.Errorf("%s, want %s first", show(got, err), want)
		}
	}
	f("x", series(1, "x", nil, 1), series(1, "y", 0, nil, 3))
	f("y", series(1, "x", nil, 1), series(1, "y", 0, nil, 3.0))
	f("x", series(1, "x", nil, 1), series(1, "y", nil, nil, 3))
}

// Bad parameters are refused with OpenTSDB's messages. The data has no series, so that nothing
// else can be wrong.
func TestEvaluate_parameters(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if diff := cmp.Diff(want, show(evaluate(text, nil, nil))); diff != "" {
			t.Errorf("%s: want -, got +:\n%s", text, diff)
		}
	}
	f("scale(10,sum:a)", "Unknown parameter type: null in tree: scale(a)")
	f("scale(10,absolute(sum:1m-avg:a{b=c}))", "Unknown parameter type: null in tree: scale(absolute(a))")
	f("scale(sum:a,-.)", "Invalid parameter, must be an integer or floating point")
	f("movingAverage(sum:a,'0min')", "Moving average window must be an integer greater than zero")
	f("movingAverage(sum:a,')", "Unparseable window size: '")
	f("movingAverage(sum:a,'')", "Invalid moving window parameter: ''")
	f("movingAverage(sum:a,99999999999)", "Unparseable window size: 99999999999")
	f("highestMax(sum:a,99999999999)", "Unparseable top n value: 99999999999")
	f("timeShift(sum:a,'0min')", "timeshift <= 0")
	f("timeShift(sum:a,'min')", "Invalid timeshift parameter: 'min'")
	f("timeShift(sum:a,'10m')", "unknown time unit=m'")
}

// Evaluate does not change the series that it is given.
func TestEvaluate_leavesData(t *testing.T) {
	data := []Series{series(1, "x", -1, -2)}
	before := show(data, nil)
	for _, text := range []string{"absolute(sum:a)", "scale(sum:a,3)", "alias(sum:a,x)", "timeShift(sum:a,'1min')",
		"absolute(timeShift(sum:a,'1min'))"} {
		if _, err := evaluate(text, data); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, show(data, nil)); diff != "" {
			t.Fatalf("%s changes its data: %s", text, diff)
		}
	}
}

// An expression whose metrics have fewer results than it needs fails with OpenTSDB's message.
func TestEvaluate_outOfBounds(t *testing.T) {
	e, err := Parse([]string{"sum(sum:a,sum:a)"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got := show(e.Evaluate(Env{}, [][]Series{nil}, []int{0, 1})); got != "Index 1 out of bounds for length 1" {
		t.Error(got)
	}
}

// Parse knows by how much functions shift their metrics. A bad amount counts as 0, and only the
// evaluation refuses it.
func TestParse_shifts(t *testing.T) {
	f := func(text string, want int64) {
		t.Helper()
		e, err := Parse([]string{text}, 1)
		if err != nil || e.Metrics[0].Shift != want || !e.HasTimeShift {
			t.Errorf("%s: %+v %v, want %d ms", text, e, err, want)
		}
	}
	f("shift(sum:a,'1sec')", 1000)
	f("shift(sum:a,'2min')", 120_000)
	f("scale(shift(absolute(sum:a),'3hr'),2)", 3*3600_000)
	f("shift(shift(sum:a,'1day'),'2days')", 3*86400_000)
	f("timeShift(timeShift(sum:a,'1week'),'2weeks')", 21*86400_000)
	f("timeShift(sum:a,'2147483647weeks')", 2147483647*7*86400_000)
	f("timeShift(sum:a,'2147483648sec')", 0)
	f("timeShift(sum:a,10min)", 0)
}

// limited is a guard that allows left bytes and ends with ctx.
type limited struct {
	ctx  context.Context
	left *int64
}

var errMemory = errors.New("too much memory")

func (l limited) Reserve(n int64) error {
	if *l.left -= n; *l.left < 0 {
		return errMemory
	}
	return nil
}

func (l limited) Check() error { return l.ctx.Err() }

// Every function reserves the memory of its result, and ends with its request.
func TestEvaluate_isBounded(t *testing.T) {
	const n = 10_000
	long := series(1, "x")
	for i := range n {
		long.Points.Append(int64(i), encoding.IntValue(int64(i)))
	}
	data := [][]Series{{long}, {long}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	for _, text := range []string{"absolute(sum:a)", "scale(sum:a,2)", "alias(sum:a,x)", "movingAverage(sum:a,3)",
		"sum(sum:a,sum:b)"} {
		left := int64(n*pointBytes - 1)
		if _, err := evaluateIn(Env{End: n, Guard: limited{t.Context(), &left}}, text,
			data...); !errors.Is(err, errMemory) {
			t.Errorf("%s: %v, want an error about memory", text, err)
		}
	}
	for _, text := range []string{"movingAverage(sum:a,3)", "sum(sum:a,sum:b)", "highestMax(sum:a,1)",
		"scale(sum:a,2)"} {
		left := int64(math.MaxInt64)
		if _, err := evaluateIn(Env{End: n, Guard: limited{ended, &left}}, text,
			data...); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want that the context has ended", text, err)
		}
	}
}

// alias reserves the memory of its name, which can be long even if the template is short.
func TestAlias_namesAreReserved(t *testing.T) {
	s := series(1, "x")
	s.Tags = []Tag{{K: "k", V: strings.Repeat("v", 1000)}}
	text := "alias(sum:a," + strings.Repeat("@k", 100) + ")"

	left := int64(100_000)
	if _, err := evaluateIn(Env{Guard: limited{t.Context(), &left}}, text, []Series{s}); !errors.Is(err, errMemory) {
		t.Errorf("%v, want an error about memory", err)
	}
	left = 200_000
	named, err := evaluateIn(Env{Guard: limited{t.Context(), &left}}, text, []Series{s})
	if err != nil || len(named[0].Metric) != 100_000 {
		t.Errorf("error %v, want a name of 100,000 bytes", err)
	}
}

func drawValues(t *rapid.T, label string, n int) []any {
	return rapid.SliceOfN(rapid.Map(rapid.IntRange(-100, 100), func(v int) any {
		if v%3 == 0 {
			return float64(v) / 4
		}
		return v
	}), n, n).Draw(t, label)
}

// A moving average equals the mean of each point and the points before it.
func TestMovingAverage_equalsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := drawValues(t, "values", rapid.IntRange(0, 20).Draw(t, "length"))
		n := rapid.IntRange(1, 6).Draw(t, "n")
		in := series(1, "", values...)
		got, err := evaluate(fmt.Sprintf("movingAverage(sum:a,%d)", n), []Series{in})
		if err != nil {
			t.Fatal(err)
		}

		var want encoding.Points
		for i := range in.Points.Len() {
			mean := 0.0
			if i+1 >= n {
				for k := i; k > i-n; k-- {
					_, v := in.Points.At(k)
					mean += v.Double()
				}
				mean /= float64(n)
			}
			want.Append(in.Points.Time[i], encoding.FloatValue(mean))
		}
		if diff := cmp.Diff(show([]Series{{Points: want}}, nil),
			show([]Series{{Points: got[0].Points}}, nil)); diff != "" {
			t.Fatalf("want -, got +: %s", diff)
		}
	})
}

// If all series have points at all times, highestMax returns those with the largest values.
func TestHighestMax_equalsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.IntRange(1, 8).Draw(t, "length")
		var data []Series
		for i := range rapid.IntRange(1, 6).Draw(t, "series") {
			s := series(1, fmt.Sprint(i))
			for k := range length {
				s.Points.Append(int64(k), encoding.IntValue(rapid.Int64Range(-9, 9).Draw(t, "value")))
			}
			data = append(data, s)
		}
		n := rapid.IntRange(1, 7).Draw(t, "n")
		got, err := evaluate(fmt.Sprintf("highestMax(sum:a,%d)", n), data)
		if err != nil {
			t.Fatal(err)
		}

		maximum := func(s Series) (m int64) {
			m = math.MinInt64
			for _, bits := range s.Points.Bits {
				m = max(m, int64(bits))
			}
			return m
		}
		slices.SortStableFunc(data, func(a, b Series) int { return int(maximum(b) - maximum(a)) })
		if diff := cmp.Diff(show(data[:min(n, len(data))], nil), show(got, nil)); diff != "" {
			t.Fatalf("want -, got +: %s", diff)
		}
	})
}

func ExampleParse() {
	e, err := Parse([]string{"diffSeries(sum:5m-avg:cpu.user{host=*},timeShift(sum:5m-avg:cpu.user{host=*},'1week'))"},
		query.MaxSubQueries)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range e.Metrics {
		fmt.Println(m.Text, m.Shift)
	}
	// Output:
	// sum:5m-avg:cpu.user{host=*} 0
	// sum:5m-avg:cpu.user{host=*} 604800000
}
