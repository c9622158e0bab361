package changefeed

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"downpour/encoding"
	"downpour/gateway/live"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/exp"
	"downpour/pushdown/process/memory"
)

// expQuestion is a live query of /api/query/exp. Its sub-queries are its metrics, at all
// times of their rows. It keeps a description of their groups; their points stay in the
// views.
type expQuestion struct {
	body     json.RawMessage
	lastRead *engine.Expressions // at the last tick

	groups     []map[string]*engine.Result // by sub-query and key, without points
	start, end int64                       // of the query whose tables were computed last, ms
	outputs    int                         // of that
}

func (x *expQuestion) read(ctx context.Context, parser query.Parser) (_ *query.Query, err error) {
	if x.lastRead, err = engine.ReadExpressions(ctx, x.body, parser); err != nil {
		return nil, err
	}
	// Over HTTP this error comes after those of the data. Here it would come with each
	// subscription, each time after loading views for nothing.
	return x.lastRead.Query, x.lastRead.Request.Joinable()
}

// groupBytes is about what is remembered of a group.
const groupBytes = 600

func (x *expQuestion) bytes() (n int64) {
	for _, groups := range x.groups {
		n += groupBytes * int64(len(groups))
	}
	return n
}

// answer computes all tables again if any group has changed, or if the bounds of the
// rows have passed a point.
func (x *expQuestion) answer(ctx context.Context, subs []*subQuery, all []news, whole bool) (live.Answer, error) {
	for i := range all {
		whole = whole || !all[i].empty()
	}
	x.take(all)
	results := x.results(subs, all)
	if !whole && !x.passed(results) {
		return x.unchanged(), nil
	}

	shown, outputs, err := TableResults(ctx, x.lastRead, results)
	if err != nil {
		return live.Answer{}, err
	}
	x.start, x.end, x.outputs = x.lastRead.Query.Start, x.lastRead.Query.End, outputs
	return live.Answer{Results: shown}, nil
}

// unchanged returns the answer that keeps all outputs.
func (x *expQuestion) unchanged() live.Answer {
	a := live.Answer{Kept: map[int]bool{}}
	for i := range x.outputs {
		a.Kept[i] = true
	}
	return a
}

// take remembers the groups among the news of the sub-queries, without their points: these
// come from the views, see results.
func (x *expQuestion) take(all []news) {
	if len(x.groups) != len(all) {
		x.groups = make([]map[string]*engine.Result, len(all))
	}
	for i := range all {
		if all[i].all {
			x.groups[i] = map[string]*engine.Result{}
		}
		for _, r := range all[i].groups {
			r.Points = encoding.Points{}
			x.groups[i][r.Key] = &r
		}
	}
}

// results returns the groups of all sub-queries with their points: those of the view, or
// those that came with the news. They are in the order of the engine's answers, which
// decides which of two equally named series counts.
func (x *expQuestion) results(subs []*subQuery, all []news) (out []engine.Result) {
	for i, sub := range subs {
		if sub.view == nil { // its news are all groups, always
			out = append(out, all[i].groups...)
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(x.groups[i])) {
			r := *x.groups[i][key]
			r.Points = sub.view.Points(key)
			out = append(out, r)
		}
	}
	return out
}

// passed reports whether a point has left the rows of expressions at their start, or come
// into them at their end, since tables were computed last.
func (x *expQuestion) passed(results []engine.Result) bool {
	between := func(times []int64, from, to int64) bool { // from inclusive, to exclusive
		i, _ := slices.BinarySearch(times, from)
		return i < len(times) && times[i] < to
	}
	now := x.lastRead.Query
	return slices.ContainsFunc(results, func(r engine.Result) bool {
		return between(r.Points.Time, x.start, now.Start) || between(r.Points.Time, x.end+1, now.End+1)
	})
}

// resultBytes is about the size of a result without its points.
const resultBytes = 500

// TableResults computes the outputs of a request from the results of its query, and returns
// them as groups of a live answer, one for each series of an output: Metric is the output's
// id, QueryIndex its place. outputs is the number of outputs. As for other live queries, memory
// alone bounds the answer. Errors are those of engine.Expressions.Tables.
func TableResults(ctx context.Context, x *engine.Expressions,
	results []engine.Result) (out []live.Result, outputs int, err error) {
	anyNumber := func(int) error { return nil }
	tables, err := x.Tables(ctx, results, anyNumber)
	if err != nil {
		return nil, 0, err
	}

	for i := range tables {
		t := &tables[i]
		seen := map[string]int{} // number of series with these tags in this table
		for k := range t.Series {
			// 17 bytes: a point's time, its value, and whether it is a float.
			if err := memory.Reserve(ctx, resultBytes+int64(len(t.Columns[k]))*17); err != nil {
				return nil, 0, err
			}

			r := live.Result{
				QueryIndex: i,
				Metric:     t.ID,
				Tags:       map[string]string{},
				Points:     columnPoints(t.Times, t.Columns[k]),
			}
			for _, tag := range t.Series[k].Tags {
				r.Tags[tag.K] = tag.V
			}
			for _, tag := range t.Series[k].Aggregated {
				r.AggregateTags = append(r.AggregateTags, tag.Name)
			}

			// A number distinguishes series with equal tags.
			name := seriesKey(&t.Series[k])
			seen[name]++
			r.Key = strconv.Itoa(seen[name]) + "\x00" + name
			out = append(out, r)
		}
	}
	return out, len(tables), nil
}

// columnPoints returns a column of a table as separate points.
func columnPoints(times []int64, column []float64) encoding.Points {
	// An output that is repeated has no times and no values.
	n := len(column)
	p := encoding.Points{Time: slices.Clone(times[:n]), Bits: make([]uint64, n), Float: make([]bool, n)}
	for i, v := range column {
		p.Bits[i], p.Float[i] = math.Float64bits(v), true
	}
	return p
}

// seriesKey returns a text that is equal for series with the same tags.
func seriesKey(l *exp.Labels) string {
	var b strings.Builder
	for _, t := range l.Tags {
		b.WriteString(t.K + "\x00" + t.V + "\x00")
	}
	for _, t := range l.Aggregated {
		b.WriteString("\x00" + t.Name)
	}
	return b.String()
}
