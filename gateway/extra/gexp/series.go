package gexp

import (
	"slices"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/pushdown/operator/aggregate"
)

// Series is one series: a group of a metric's answer, or what functions made of it.
type Series struct {
	Metric string
	// MetricUID is nil once the series has an alias.
	MetricUID encoding.UID
	// Tags are the tags that all members of the group share, ascending by the key's UID.
	Tags          []Tag
	AggregateTags []string
	Points        encoding.Points
	// Origin is what the caller knows the series by that this one was made of. It is
	// NoOrigin for what a function made of several series.
	Origin int
}

// Tag is a tag with its UIDs.
type Tag struct {
	K, V string
	UIDs encoding.TagPair
}

// NoOrigin is the Origin of a series that was made of several.
const NoOrigin = -1

// Env is what expressions are evaluated in.
type Env struct {
	// Start and End are the query's times, in ms, both inclusive. The data reaches
	// farther: some functions see all of it, some only this.
	Start, End int64
	// Guard bounds the memory and the time of an evaluation; nil is no bound.
	Guard aggregate.Guard
}

// Bytes of a point, which are its time, bits and type; of a series without its points; and
// of a series while its partners are looked for.
const (
	pointBytes = 17
	valueBytes = 256
	joinBytes  = 512
)

// checkPoints is after how many points the guard is asked whether to continue.
const checkPoints = 4096

// value is a series while it is computed.
type value struct {
	Series
	// owned reports that nobody else has the columns of the points, so that they can be
	// changed in place.
	owned bool
	// pending makes the points, nil once they are made. OpenTSDB computes the result of a
	// series function point by point while somebody reads it, and answers the error that
	// a reader meets first.
	pending *pairing
	// unnamed reports that the series has no metric that could be looked up, because a
	// series function took a series with an alias.
	unnamed bool
}

// evaluation is the state of one Evaluate.
type evaluation struct {
	Env
	*Expressions
	data [][]Series
	at   []int
}

// Evaluate computes the expressions and returns the series of all of them in order, with
// points of any time: the caller trims them. at[i] is where in data the series of
// Metrics[i] are. The data is not changed. The error is a *query.Error or that of the
// guard.
func (e *Expressions) Evaluate(env Env, data [][]Series, at []int) ([]Series, error) {
	if env.Guard == nil {
		env.Guard = aggregate.Unguarded{}
	}
	ev := &evaluation{Env: env, Expressions: e, data: data, at: at}

	var all []value
	for _, c := range e.Calls {
		values, err := ev.call(c)
		if err != nil {
			return nil, err
		}
		all = append(all, values...)
	}

	// OpenTSDB looks metrics up by their UIDs before it reads points, so this error comes
	// before those of finish.
	for i := range all {
		if all[i].unnamed {
			return nil, query.RunFault("Wrong id.length = 0 which is != 3 required for 'metrics'")
		}
	}
	out := make([]Series, len(all))
	for i := range all {
		if err := ev.finish(&all[i]); err != nil {
			return nil, err
		}
		out[i] = all[i].Series
	}
	return out, nil
}

// call evaluates a function. Source: ExpressionTree.evaluate.
func (ev *evaluation) call(c *Call) ([]value, error) {
	// A fault that OpenTSDB has too: all series must come before the parameters.
	if c.seriesAfterParam {
		return nil, query.RunFault("Unknown parameter type: null in tree: %s", c)
	}

	args := make([][]value, len(c.Args))
	for i, a := range c.Args {
		var err error
		if a.Call != nil {
			args[i], err = ev.call(a.Call)
		} else {
			args[i], err = ev.metric(a.Metric)
		}
		if err != nil {
			return nil, err
		}
	}
	return functions[c.Function](ev, args, c.Params)
}

// metric returns the series of a metric, with their points at the time that they are
// moved to.
func (ev *evaluation) metric(i int) ([]value, error) {
	// OpenTSDB takes series by the number of the metric, but reads equal metrics only once:
	// of a later metric there may be none.
	if ev.at[i] >= len(ev.data) {
		return nil, query.RunFault("Index %d out of bounds for length %d", ev.at[i], len(ev.data))
	}

	series, shift := ev.data[ev.at[i]], ev.Metrics[i].Shift
	if err := ev.Guard.Reserve(int64(len(series)) * valueBytes); err != nil {
		return nil, err
	}
	out := make([]value, len(series))
	for i := range series {
		out[i].Series = series[i]
		if ev.HasTimeShift {
			// Rows that are read for another time begin and end at other places. Series
			// functions would pair what does not belong together.
			out[i].Points = Inside(&series[i].Points, ev.Start-shift, ev.End-shift)
		}
		if shift == 0 {
			continue
		}
		if err := ev.Guard.Reserve(int64(8 * out[i].Points.Len())); err != nil {
			return nil, err
		}
		moved := slices.Clone(out[i].Points.Time) // the data must not change
		for k := range moved {
			moved[k] += shift
		}
		out[i].Points.Time = moved
	}
	return out, nil
}

// finish makes the points of a series if they are pending.
func (ev *evaluation) finish(v *value) (err error) {
	if v.pending != nil {
		v.Points, err = v.pending.points(ev)
		v.pending, v.owned = nil, true
	}
	return err
}

// concat returns the series of all arguments in one list.
func (ev *evaluation) concat(args [][]value) ([]value, error) {
	n := 0
	for _, arg := range args {
		n += len(arg)
	}
	if err := ev.Guard.Reserve(int64(n) * valueBytes); err != nil {
		return nil, err
	}
	return slices.Concat(args...), nil
}

// finishAll makes the pending points of all series, and returns the series of all
// arguments in one list.
func (ev *evaluation) finishAll(args [][]value) ([]value, error) {
	all, err := ev.concat(args)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if err := ev.Guard.Check(); err != nil {
			return nil, err
		}
		if err := ev.finish(&all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// own makes the columns of a series such that they can be changed in place.
func (ev *evaluation) own(v *value) error {
	if v.owned {
		return nil
	}
	p, err := ev.newPoints(v.Points.Len())
	if err != nil {
		return err
	}
	p.AppendPoints(v.Points)
	v.Points, v.owned = p, true
	return nil
}

// newPoints returns empty columns with room for n points.
func (ev *evaluation) newPoints(n int) (encoding.Points, error) {
	if err := ev.Guard.Reserve(int64(n) * pointBytes); err != nil {
		return encoding.Points{}, err
	}
	return encoding.Points{Time: make([]int64, 0, n), Bits: make([]uint64, 0, n), Float: make([]bool, 0, n)}, nil
}

// Inside returns a view of the points from start to end, in ms, both inclusive.
func Inside(p *encoding.Points, start, end int64) encoding.Points {
	i, _ := slices.BinarySearch(p.Time, start)
	j, _ := slices.BinarySearch(p.Time, end+1)
	return p.Slice(i, max(i, j))
}

// check asks the guard at each checkPoints-th step.
func (ev *evaluation) check(step int) error {
	if step%checkPoints != 0 {
		return nil
	}
	return ev.Guard.Check()
}
