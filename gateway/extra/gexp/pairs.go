package gexp

import (
	"maps"
	"math"
	"slices"
	"strings"

	"downpour/encoding"
	"downpour/gateway/query"
)

// operator joins two values of a series function.
type operator func(a, b float64) float64

func add(a, b float64) float64      { return a + b }
func subtract(a, b float64) float64 { return a - b }
func multiply(a, b float64) float64 { return a * b }

// divide is 0 where b is 0, as in JEXL.
func divide(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// maxArguments is how many letters name the arguments in OpenTSDB.
const maxArguments = 26

// pairs joins the series of its arguments that have equal tags. A series that an argument
// lacks counts as zeros. Source: SumSeries and the others like it, UnionIterator.
func (ev *evaluation) pairs(operator operator, args [][]value) ([]value, error) {
	if n := len(args); n < 2 || n > maxArguments {
		return nil, query.RunFault("Must have 2 to %d series, got %d instead", maxArguments, n)
	}

	series := 0
	for _, arg := range args {
		series += len(arg)
	}
	if err := ev.Guard.Reserve(int64(series) * joinBytes); err != nil {
		return nil, err
	}

	joined := map[string]*pairing{}
	for i, arg := range args {
		for k := range arg {
			key := joinKey(arg[k].Tags)
			if joined[key] == nil {
				joined[key] = &pairing{operator: operator, series: make([]*value, len(args))}
			}
			// Of several series with one key the last one counts.
			joined[key].series[i] = &arg[k]
		}
	}

	keys := slices.Sorted(maps.Keys(joined))
	out := make([]value, len(keys))
	for i, key := range keys {
		out[i] = joined[key].result()
	}
	return out, nil
}

// joinKey is the UIDs of the tags.
func joinKey(tags []Tag) string {
	var b strings.Builder
	for _, t := range tags {
		b.Write(t.UIDs.K)
		b.Write(t.UIDs.V)
	}
	return b.String()
}

// pairing is one series of each argument; nil where an argument has none.
type pairing struct {
	operator operator
	series   []*value
}

// result describes the series that a pairing makes. It has the metric with the lowest UID,
// and the tags of the first argument.
func (g *pairing) result() value {
	v := value{pending: g}
	v.Origin = NoOrigin
	if first := g.series[0]; first != nil {
		v.Tags = first.Tags
	}

	for _, s := range g.series {
		if s == nil {
			continue
		}
		v.unnamed = v.unnamed || s.unnamed || s.MetricUID == nil
		if v.MetricUID == nil || string(s.MetricUID) < string(v.MetricUID) {
			v.Metric, v.MetricUID = s.Metric, s.MetricUID
		}
		for _, k := range s.AggregateTags {
			if !slices.Contains(v.AggregateTags, k) {
				v.AggregateTags = append(v.AggregateTags, k)
			}
		}
	}
	return v
}

// points joins the first points of all series, then the second ones, and so on, whatever
// their times are, as OpenTSDB does. The time is the earliest of them. Series of
// different lengths have no result.
func (g *pairing) points(ev *evaluation) (out encoding.Points, err error) {
	length := 0
	for _, s := range g.series {
		if s == nil {
			continue
		}
		if err := ev.finish(s); err != nil {
			return out, err
		}
		length = max(length, s.Points.Len())
	}
	for _, s := range g.series {
		if s != nil && s.Points.Len() < length {
			return out, query.RunFault("No more elements")
		}
	}

	if out, err = ev.newPoints(length); err != nil {
		return out, err
	}
	for i := range length {
		if err := ev.check(i); err != nil {
			return out, err
		}
		t, v := g.at(i)
		out.Append(t, encoding.FloatValue(v))
	}
	return out, nil
}

// at joins the points number i.
func (g *pairing) at(i int) (t int64, result float64) {
	t = math.MaxInt64
	for k, s := range g.series {
		v := 0.0
		if s != nil {
			ms, point := s.Points.At(i)
			t = min(t, ms)
			if !isNaN(point) { // else it counts as 0, as a series does that is not there
				v = point.Double()
			}
		}
		if k == 0 {
			result = v
		} else {
			result = g.operator(result, v)
		}
	}
	return t, result
}
