package exp

import (
	"math"
	"slices"
	"strings"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/gateway/query/expression"
)

// Group is one group of a metric's sub-query.
type Group struct {
	Labels
	// Points are those at all times of the rows that were read.
	Points encoding.Points
	// NotesOnly groups have annotations alone, and so no points and no tags. As in OpenTSDB they
	// are series of a metric that is an output; there is nothing to join them by.
	NotesOnly bool
}

// Table is one output: rows by time, a column for each series.
type Table struct {
	ID    string
	Alias *string
	// Times are in ms, ascending. Columns are as long, in the order of Series.
	Times   []int64
	Columns [][]float64
	Series  []Labels
	// First and Last are the times that the answer names, with the values that OpenTSDB
	// gives them where there are few rows.
	First, Last int64
}

// variable is a metric or an expression as other expressions see it.
type variable struct {
	id         string
	series     []series
	filterTags []filterTag
	fill       float64
}

// labelBytes is about the size of the labels of a series, without shared parts.
const labelBytes = 300

// Tables computes the outputs of a request. groups[i] are the groups of metric i. Rows of expressions
// are those from start to end, in ms, both inclusive. It does not change the groups, and the times of
// a table may share memory with those of a group. The error is one of the bounds, or a *DataError.
func (r *Request) Tables(groups [][]Group, start, end int64, b Bounds) ([]Table, error) {
	c := &computation{
		request:  r,
		bounds:   b,
		metrics:  make([]*variable, len(r.Metrics)),
		computed: make([]*table, len(r.Expressions)),
	}
	for i := range r.Metrics {
		c.metrics[i] = r.metricVariable(i, withoutNotesOnly(groups[i]))
	}

	// All are joined before one is evaluated: an empty intersection is an error whether an output
	// needs it or not, and OpenTSDB reports it before errors of evaluation.
	for _, i := range r.order {
		if err := c.join(i); err != nil {
			return nil, err
		}
	}
	needed := r.needed()
	for _, i := range r.order {
		if !needed[i] {
			continue // OpenTSDB does not evaluate it either, so it cannot fail
		}
		if err := c.evaluate(i, r.isOutput(*r.Expressions[i].ID), start, end); err != nil {
			return nil, err
		}
	}

	var tables []Table
	written := map[int]bool{} // expressions that an output before has written
	for _, out := range r.outputs() {
		var t Table
		if i := r.metric(*out.ID); i >= 0 {
			var err error
			if t, err = c.metricOutput(i, groups[i]); err != nil {
				return nil, err
			}
		} else {
			i := r.expression(*out.ID)
			t = c.computed[i].trimmed(start, end)
			if written[i] {
				// OpenTSDB steps through an expression once: a second output of it has no rows.
				t.Times, t.Columns, t.First, t.Last = nil, make([][]float64, len(t.Series)), 0, 0
			}
			written[i] = true
		}
		t.ID, t.Alias = *out.ID, out.Alias
		tables = append(tables, t)
	}
	return tables, nil
}

// metricOutput returns the table of a metric that is an output: all its groups are series, also those
// that have annotations alone, which c.metrics does not have.
func (c *computation) metricOutput(i int, groups []Group) (Table, error) {
	v := c.metrics[i]
	if len(v.series) < len(groups) {
		v = c.request.metricVariable(i, groups)
	}
	return c.metricTable(v)
}

// withoutNotesOnly returns the groups that are not NotesOnly: usually all, as they are.
func withoutNotesOnly(groups []Group) []Group {
	if !slices.ContainsFunc(groups, func(g Group) bool { return g.NotesOnly }) {
		return groups
	}
	return slices.DeleteFunc(slices.Clone(groups), func(g Group) bool { return g.NotesOnly })
}

// outputs returns the existing outputs: the requested ones, or all expressions, or all metrics if
// there are none.
func (r *Request) outputs() (out []OutputRef) {
	for _, o := range r.Outputs {
		if o.ID != nil && (r.metric(*o.ID) >= 0 || r.expression(*o.ID) >= 0) {
			out = append(out, o)
		}
	}
	// A request for outputs counts, even if none of them exists.
	if len(r.Outputs) > 0 {
		return out
	}

	for i := range r.Expressions {
		out = append(out, OutputRef{ID: r.Expressions[i].ID})
	}
	if len(out) > 0 {
		return out
	}
	for i := range r.Metrics {
		out = append(out, OutputRef{ID: r.Metrics[i].ID})
	}
	return out
}

func (r *Request) isOutput(id string) bool {
	return slices.ContainsFunc(r.outputs(), func(o OutputRef) bool { return *o.ID == id })
}

// needed reports for each expression whether an output needs its values.
func (r *Request) needed() []bool {
	needed := make([]bool, len(r.Expressions))
	// Users before what they use.
	for _, i := range slices.Backward(r.order) {
		if needed[i] = needed[i] || r.isOutput(*r.Expressions[i].ID); !needed[i] {
			continue
		}
		for _, name := range r.Expressions[i].parsed.Variables {
			if j := r.expression(name); j >= 0 {
				needed[j] = true
			}
		}
	}
	return needed
}

// metricVariable returns metric i as a variable: its groups as series, 0 where one has no point
// unless a fill policy sets another value, and the keys that its filter names, for joins.
func (r *Request) metricVariable(i int, groups []Group) *variable {
	m := &r.Metrics[i]
	v := &variable{id: *m.ID, series: make([]series, len(groups))}
	if m.Fill != nil {
		v.fill = m.Fill.Value
	}
	if f := r.filter(value(m.Filter)); f != nil {
		for i := range f.Tags {
			v.filterTags = append(v.filterTags, filterTag{f.Tags[i].TagK, f.Tags[i].GroupBy})
		}
	}
	for i := range groups {
		g := &groups[i]
		v.series[i] = series{labels: g.Labels, times: g.Points.Time, points: &g.Points}
	}
	return v
}

// computation is the work for one request.
type computation struct {
	request  *Request
	bounds   Bounds
	metrics  []*variable
	computed []*table // by expression
}

// table is an expression: joined, then evaluated with all its times.
type table struct {
	variable // whose series have the columns

	variables []*variable // its operands
	rows      []row       // the rows of its series
	steps     []*series
	times     []int64
}

// variable returns the metric or expression with an id.
func (c *computation) variable(id string) *variable {
	if i := c.request.metric(id); i >= 0 {
		return c.metrics[i]
	}
	return &c.computed[c.request.expression(id)].variable
}

// join makes the series of expression i, without values.
func (c *computation) join(i int) error {
	e := &c.request.Expressions[i]
	t := &table{variable: variable{id: *e.ID, fill: math.NaN()}}
	if e.Fill != nil {
		t.fill = e.Fill.Value
	}
	c.computed[i] = t

	total := 0
	if err := e.joinable(); err != nil {
		return err
	}
	for _, name := range e.parsed.Variables {
		v := c.variable(name)
		t.variables = append(t.variables, v)
		total += len(v.series)
	}
	if err := c.bounds.begin(int64(total) * labelBytes); err != nil {
		return err
	}

	var err error
	if t.rows, t.steps, err = join(e.Join, t.variables); err != nil {
		return err
	}
	t.series = make([]series, len(t.rows))
	for k := range t.rows {
		t.series[k].labels = joinLabels(t.rows[k], t.variables)
	}
	return nil
}

// Joinable returns the error of Tables for any groups, nil if none.
func (r *Request) Joinable() error {
	for _, i := range r.order {
		if err := r.Expressions[i].joinable(); err != nil {
			return err
		}
	}
	return nil
}

// joinable returns the error of a variable whose results are never found.
func (e *Expression) joinable() error {
	for _, name := range e.parsed.Variables {
		// OpenTSDB looks results up in lower case, and finds none with such a name. Here they could
		// be found, but then a request would depend on which of the two answers it.
		if name != strings.ToLower(name) {
			return query.RunFault("Missing results for variable %s", name)
		}
	}
	return nil
}

// evaluate computes the values of expression i into c.computed[i]. The expressions that it uses have
// theirs already. With output its points from start to end, in ms, count as points of the answer.
func (c *computation) evaluate(i int, output bool, start, end int64) error {
	e, t := &c.request.Expressions[i], c.computed[i]
	times := make([][]int64, len(t.steps))
	for k, s := range t.steps {
		times[k] = s.times
	}

	var err error
	// The table keeps its times, so what was reserved for them is not given back.
	if t.times, _, err = unionOf(times, c.bounds); err != nil {
		return err
	}
	if output { // values that are only used are none of the answer
		from, to := within(t.times, start, end)
		if err := c.bounds.Points((to - from) * len(t.rows)); err != nil {
			return err
		}
	}
	return c.fillTable(t, e)
}

// fillTable evaluates the expression series by series.
func (c *computation) fillTable(t *table, e *Expression) error {
	n := len(t.times)
	scratch := int64(len(t.variables)+1)*int64(n)*8 + expression.ScratchBytes
	if err := c.bounds.begin(scratch); err != nil {
		return err
	}
	defer c.bounds.Release(scratch)
	aligned := make([][]float64, len(t.variables))
	for i := range aligned {
		aligned[i] = make([]float64, n)
	}

	none := make([]float64, n) // values of a variable without the series, with any fill policy
	columns := make([][]float64, len(t.variables))

	for k, r := range t.rows {
		if err := c.bounds.begin(int64(n) * 8); err != nil {
			return err
		}
		for i, member := range r.members {
			columns[i] = none
			if member >= 0 {
				columns[i] = aligned[i]
				t.variables[i].series[member].align(aligned[i], t.times, t.variables[i].fill)
			}
		}
		s := &t.series[k]
		s.times, s.values = t.times, make([]float64, n)
		if err := e.parsed.Evaluate(s.values, columns); err != nil {
			return &DataError{err.Error()}
		}
	}
	return nil
}

// within returns the half-open range of indexes of the times from start to end.
func within(times []int64, start, end int64) (from, to int) {
	from, _ = slices.BinarySearch(times, start)
	to, _ = slices.BinarySearch(times, end+1)
	return from, max(from, to)
}

// trimmed returns the table as an output. Without times it has no series.
func (t *table) trimmed(start, end int64) Table {
	if len(t.times) == 0 {
		return Table{}
	}

	from, to := within(t.times, start, end)
	out := Table{Times: t.times[from:to]}
	for i := range t.series {
		out.Series = append(out.Series, t.series[i].labels)
		out.Columns = append(out.Columns, t.series[i].values[from:to])
	}

	if n := len(out.Times); n > 0 {
		out.First = out.Times[0]
		if n > 1 { // of a single row OpenTSDB does not set it
			out.Last = out.Times[n-1]
		}
	}
	return out
}

// metricTable returns a metric as an output: all its points, and 0 where a series has none, with
// any fill policy.
func (c *computation) metricTable(v *variable) (Table, error) {
	t := Table{First: math.MaxInt64} // what OpenTSDB gives where there is no point
	lists := make([][]int64, len(v.series))
	for i := range v.series {
		lists[i] = v.series[i].times
	}
	var err error
	if t.Times, _, err = unionOf(lists, c.bounds); err != nil {
		return t, err
	}
	if n := len(t.Times); n > 0 {
		t.First, t.Last = t.Times[0], t.Times[n-1]
	}
	if err := c.bounds.Points(len(t.Times) * len(v.series)); err != nil {
		return t, err
	}

	for i := range v.series {
		if err := c.bounds.begin(int64(len(t.Times)) * 8); err != nil {
			return t, err
		}
		column := make([]float64, len(t.Times))
		v.series[i].scatter(column, t.Times)
		t.Columns = append(t.Columns, column)
		t.Series = append(t.Series, v.series[i].labels)
	}
	return t, nil
}
