// Package gexp evaluates the expressions of /api/query/gexp, which are Graphite's form:
// scale(sum:5m-avg:cpu.user{host=*},100). It parses them, and computes their functions on
// the series that the caller hands in for each metric. It reads nothing, resolves no name
// and knows no clock.
//
// Functions do what those of OpenTSDB 2.4.1 do, to the last bit. timeShift and shift, which
// are errors there, move data of an earlier time to the time of the query. For what the
// functions see: absolute, scale, alias and the series functions have all points that the
// rows of the query hold, movingAverage and the highest ones those of its times alone. In
// a request that moves data all functions have the points of its times alone.
// Source: net.opentsdb.query.expression.
package gexp

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"downpour/gateway/java"
	"downpour/gateway/query"
)

// function computes a function of its series arguments and its parameters.
type function func(ev *evaluation, args [][]value, params []string) ([]value, error)

// functions are those of ExpressionFactory. It is filled by init because a call looks the
// functions of its arguments up in it.
var functions map[string]function

func init() {
	functions = map[string]function{
		"absolute":       absolute,
		"scale":          scale,
		"alias":          alias,
		"movingAverage":  movingAverage,
		"highestCurrent": highestCurrent,
		"highestMax":     highestMax,
		"timeShift":      timeShift,
		"shift":          timeShift,
	}
	for names, operator := range map[string]operator{
		"sum sumSeries": add, "difference diffSeries": subtract, "multiply multiplySeries": multiply,
		"divide divideSeries": divide,
	} {
		for name := range strings.FieldsSeq(names) {
			functions[name] = func(ev *evaluation, args [][]value,
				_ []string) ([]value, error) {
				return ev.pairs(operator, args)
			}
		}
	}
}

// absolute makes values positive. The smallest integer has no positive counterpart and
// stays, as in Java. Source: Absolute.
func absolute(ev *evaluation, args [][]value, _ []string) ([]value, error) {
	all, err := ev.finishAll(args)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if err := ev.makeAbsolute(&all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// makeAbsolute makes the values of a series positive; of a double, NaN too, it clears the sign.
func (ev *evaluation) makeAbsolute(v *value) error {
	if err := ev.own(v); err != nil {
		return err
	}
	p := &v.Points
	for i, bits := range p.Bits {
		switch {
		case p.Float[i]:
			p.Bits[i] = bits &^ (1 << 63)
		case int64(bits) < 0:
			p.Bits[i] = -bits
		}
	}
	return nil
}

// scale multiplies values by a factor. Integers stay integers, and wrap, if the factor is
// whole. Source: Scale.
func scale(ev *evaluation, args [][]value, params []string) ([]value, error) {
	factor, err := scaleFactor(params)
	if err != nil {
		return nil, err
	}
	all, err := ev.finishAll(args)
	if err != nil {
		return nil, err
	}

	whole := factor == math.Trunc(factor) && math.Abs(factor) < 1<<63
	for i := range all {
		if err := ev.own(&all[i]); err != nil {
			return nil, err
		}
		p := &all[i].Points
		for k, bits := range p.Bits {
			switch {
			case p.Float[k]:
				p.Bits[k] = math.Float64bits(math.Float64frombits(bits) * factor)
			case whole:
				p.Bits[k] = bits * uint64(int64(factor))
			default:
				p.Bits[k], p.Float[k] = math.Float64bits(float64(int64(bits))*factor), true
			}
		}
	}
	return all, nil
}

// scaleFactor reads the factor of scale.
func scaleFactor(params []string) (float64, error) {
	if len(params) == 0 {
		return 0, query.RunFault("Missing scaling factor")
	}
	// OpenTSDB's message shows the factor before it is read.
	if strings.Trim(params[0], "-0123456789.") != "" {
		return 0, query.RunFault("Unparseable scale factor value: 0.0")
	}
	factor, err := java.ParseDouble(params[0])
	if err != nil {
		return 0, query.RunFault("Invalid parameter, must be an integer or floating point")
	}
	return factor, nil
}

// alias names series after a template, in which @tagk stands for a value. They lose their
// tags, and their values become absolute, as in OpenTSDB. Source: Alias.
func alias(ev *evaluation, args [][]value, params []string) ([]value, error) {
	if len(params) == 0 {
		return nil, query.RunFault("Missing the alias")
	}
	template := strings.Join(params, ",")

	all, err := ev.concat(args)
	if err != nil {
		return nil, err
	}
	for i := range all {
		v := &all[i]
		if v.pending != nil {
			// OpenTSDB asks a series function for the number of its points, which it
			// does not know: -1.
			return nil, query.RunFault("-1")
		}
		if err := ev.makeAbsolute(v); err != nil {
			return nil, err
		}
		// A short template makes long names of long values.
		if err := ev.Guard.Reserve(expandedBytes(template, v.Tags)); err != nil {
			return nil, err
		}
		v.Metric, v.MetricUID, v.Tags, v.AggregateTags = expand(template, v.Tags), nil, nil, nil
	}
	return all, nil
}

// expandedBytes bounds the length of what expand returns: each @ becomes the longest value.
func expandedBytes(template string, tags []Tag) int64 {
	longest := 0
	for _, t := range tags {
		longest = max(longest, len(t.V))
	}
	return int64(len(template)) + int64(strings.Count(template, "@"))*int64(longest)
}

// expand replaces each @tagk by the tag's value. Where one key begins another, the longer
// one counts; OpenTSDB replaces them in the order of a hash map.
func expand(template string, tags []Tag) string {
	byLength := slices.Clone(tags)
	slices.SortStableFunc(byLength, func(a, b Tag) int { return cmp.Compare(len(b.K), len(a.K)) })

	var replacements []string
	for _, t := range byLength {
		replacements = append(replacements, "@"+t.K, t.V)
	}
	return strings.NewReplacer(replacements...).Replace(template)
}
