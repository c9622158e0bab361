package exp

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"downpour/encoding"
	_ "downpour/encoding/seedtest" // gives rapid its seed
)

// unbounded allows everything.
var unbounded = Bounds{
	Reserve: func(int64) error { return nil },
	Release: func(int64) {},
	Check:   func() error { return nil },
	Points:  func(int) error { return nil },
}

// group makes a series with a tag host, or without tags for "", from values by time.
func group(metric, host string, values map[int64]float64) Group {
	g := Group{Labels: Labels{Metrics: []string{metric}}}
	if host != "" {
		g.Tags = []Tag{{"host", host, encoding.TagPair{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, 0, host[0]}}}}
	}
	var times []int64
	for ms := range values {
		times = append(times, ms)
	}
	slices.Sort(times)
	for _, ms := range times {
		g.Points.Append(ms, encoding.FloatValue(values[ms]))
	}
	return g
}

// rows returns the rows of a table as "time: value value …".
func rows(t *Table) (out []string) {
	for i, ms := range t.Times {
		row := fmt.Sprint(ms, ":")
		for _, c := range t.Columns {
			row += fmt.Sprint(" ", c[i])
		}
		out = append(out, row)
	}
	return out
}

func tables(t *testing.T, r *Request, start, end int64, groups ...[]Group) []Table {
	t.Helper()
	out, err := r.Tables(groups, start, end, unbounded)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func twoVariables(expressions, outputs string) []string {
	return []string{
		aTime, `"metrics":[{"id":"a","metric":"m"},{"id":"b","metric":"n","fillPolicy":{"policy":"scalar","value":7}}]`,
		`"expressions":` + expressions, `"outputs":` + outputs}
}

var (
	onHosts = []Group{group("m", "x", map[int64]float64{1: 10, 2: 20, 4: 40}),
		group("m", "y", map[int64]float64{1: 11})}
	onOne = []Group{group("n", "x", map[int64]float64{2: 2, 3: math.NaN()})}
)

// In a union a series without a point at a time has the fill value of its metric, by default 0, and
// a variable without a series has 0. NaN counts as no point. Rows outside of the query are cut off.
func TestTables_union(t *testing.T) {
	r := request(t, twoVariables(`[{"id":"e","expr":"a + b"}]`, `[{"id":"e","alias":"sum"}]`)...)
	got := tables(t, r, 2, 3, onHosts, onOne)[0]
	if d := cmp.Diff([]string{"2: 22 0", "3: 7 0"}, rows(&got)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got.First != 2 || got.Last != 3 || *got.Alias != "sum" ||
		!slices.Equal(got.Series[0].Metrics, []string{"m", "n"}) {
		t.Errorf("got %+v, want the times 2 to 3, the alias sum and the metrics m and n", got)
	}
}

// An intersection has rows only at the times of the series that all variables have.
func TestTables_intersection(t *testing.T) {
	r := request(t, twoVariables(`[{"id":"e","expr":"a + b","join":{"operator":"intersection"}}]`, `[]`)...)
	got := tables(t, r, 0, 9, append(slices.Clone(onHosts), group("m", "z", map[int64]float64{5: 1})), onOne)[0]
	if d := cmp.Diff([]string{"1: 17", "2: 22", "3: 7", "4: 47"}, rows(&got)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	_, err := r.Tables([][]Group{onHosts, {group("n", "q", nil)}}, 0, 9, unbounded)
	if err == nil || err.Error() != "No intersections found: a has 2 series, b has 1 series" {
		t.Errorf("error %v", err)
	}
	if got := tables(t, r, 0, 9, nil, nil)[0]; len(got.Series)+len(got.Times) > 0 {
		t.Errorf("without series: got %+v, want an empty table", got)
	}
}

// If two series of a variable have the same key, the later one replaces the earlier one. An
// intersection then still has rows at the times of the earlier one, without its values.
func TestTables_replaced(t *testing.T) {
	r := request(
		t, twoVariables(
			`[{"id":"e","expr":"a","join":{"operator":"intersection","useQueryTags":true}},`+
				`{"id":"f","expr":"a + b","join":{"operator":"intersection"}}]`, `[]`)...)
	twice := []Group{group("m", "x", map[int64]float64{7: 70}), onHosts[0]}
	got := tables(t, r, 0, 9, twice, onOne)
	want := [][]string{{"1: 10", "2: 20", "4: 40", "7: 0"}, {"1: 17", "2: 22", "3: 7", "4: 47", "7: 7"}}
	if d := cmp.Diff(want, [][]string{rows(&got[0]), rows(&got[1])}); d != "" {
		t.Errorf("-want +got\n%s", d)
	}

	// One variable has a series y twice, which the other one lacks. Only if that is a, the first
	// variable, the intersection has the times of its earlier y.
	y := func(metric string, at int64) Group { return group(metric, "y", map[int64]float64{at: 1}) }
	got = tables(t, r, 0, 9, []Group{onHosts[0], y("m", 5), y("m", 6)}, onOne)
	if d := cmp.Diff([]string{"1: 17", "2: 22", "3: 7", "4: 47", "5: 7"}, rows(&got[1])); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	got = tables(t, r, 0, 9, onHosts[:1], []Group{onOne[0], y("n", 5), y("n", 6)})
	if d := cmp.Diff([]string{"1: 17", "2: 22", "3: 7", "4: 47"}, rows(&got[1])); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// A group that has only annotations is a series of the output of its metric, but not of an
// expression.
func TestTables_bare(t *testing.T) {
	bare := Group{Labels: Labels{Metrics: []string{"m"}}, NotesOnly: true}
	groups := []Group{group("m", "p", map[int64]float64{1: 5}), bare}
	r := request(t, aTime, `"metrics":[{"id":"a","metric":"m"}]`, `"expressions":[{"id":"e","expr":"a + 1"}]`,
		`"outputs":[{"id":"a"},{"id":"e"}]`)
	tables, err := r.Tables([][]Group{groups}, 0, 9, unbounded)
	if err != nil || len(tables) != 2 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	if a := tables[0]; len(a.Series) != 2 || len(a.Columns) != 2 || len(a.Series[1].Tags) != 0 || a.Columns[0][0] != 5 {
		t.Errorf("the metric: %+v, want two series, the second without tags", a)
	}
	if e := tables[1]; len(e.Series) != 1 || e.Columns[0][0] != 6 {
		t.Errorf("the expression: %+v, want one series", e)
	}
}

// A variable whose id has capital letters is not found, as in OpenTSDB, and an intersection without
// common series is refused. Joinable knows the former without any groups.
func TestTables_errors(t *testing.T) {
	f := func(want, metrics, expressions string, groups ...[]Group) {
		t.Helper()
		r := request(t, aTime, `"metrics":`+metrics, `"expressions":`+expressions)
		if _, err := r.Tables(groups, 0, 9, unbounded); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		// Errors that do not depend on the groups are known without them.
		if err := r.Joinable(); (err != nil) != strings.HasPrefix(want, "Missing") ||
			err != nil && err.Error() != want {
			t.Errorf("joinable: error %v, that of the tables is %s", err, want)
		}
	}
	a, b := `{"id":"a","metric":"m"}`, `{"id":"b","metric":"n"}`
	f("Missing results for variable Cpu", `[{"id":"Cpu","metric":"m"}]`, `[{"id":"e","expr":"Cpu + 1"}]`, onHosts)
	f("Missing results for variable E0", `[`+a+`]`, `[{"id":"E0","expr":"a"},{"id":"f","expr":"E0"}]`, onHosts)
	f("No intersections found: e has 2 series, b has 1 series", `[`+a+`,`+b+`]`,
		`[{"id":"e","expr":"a > 0 ? 1 : a"},{"id":"f","expr":"e + b","join":{"operator":"intersection"}}]`, onHosts,
		[]Group{group("n", "q", nil)})
}

// An expression that is used in another one has its values at its own times, and elsewhere the
// value of its fill policy, NaN by default.
func TestTables_nested(t *testing.T) {
	r := request(
		t, twoVariables(`[{"id":"e","expr":"b * 2","fillPolicy":{"policy":"scalar","value":100}},`+
			`{"id":"f","expr":"b * 2"},{"id":"g","expr":"a + e"},{"id":"h","expr":"a + f"}]`,
			`[{"id":"g"},{"id":"h"}]`)...)
	got := tables(t, r, 1, 3, onHosts[:1], []Group{group("n", "x", map[int64]float64{2: 2, 3: 3})})
	if d := cmp.Diff([][]string{{"1: 110", "2: 24", "3: 6"}, {"1: NaN", "2: 24", "3: 6"}},
		[][]string{rows(&got[0]), rows(&got[1])}); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// A metric that is an output has all its points, also outside of the query, and 0 elsewhere. An
// expression that is an output twice has its rows only once, and Last is 0 if there is one row.
func TestTables_outputs(t *testing.T) {
	r := request(t, twoVariables(`[{"id":"e","expr":"b"}]`,
		`[{"id":"b"},{"id":"zz"},{"id":"e"},{"id":"e"},{"id":"b"},{}]`)...)
	got := tables(t, r, 2, 2, onHosts, append(slices.Clone(onOne), group("n", "y", map[int64]float64{9: 9})))
	var ids []string
	for i := range got {
		ids = append(ids, fmt.Sprint(got[i].ID, rows(&got[i]), got[i].First, got[i].Last, len(got[i].Series)))
	}
	want := []string{"b[2: 2 0 3: NaN 0 9: 0 9] 2 9 2", "e[2: 2 7] 2 0 2", "e[] 0 0 2",
		"b[2: 2 0 3: NaN 0 9: 0 9] 2 9 2"}
	if d := cmp.Diff(want, ids); d != "" {
		t.Errorf("-want +got\n%s", d)
	}

	r = request(t, aTime, `"metrics":[{"id":"a","metric":"m"}]`)
	if got := tables(t, r, 0, 9, nil)[0]; got.ID != "a" || got.First != math.MaxInt64 || got.Last != 0 {
		t.Errorf("a metric without series: %+v", got)
	}
}

// The memory of every column is reserved before it is made, a refusal ends the work, and the points
// of all outputs are counted.
func TestTables_bounds(t *testing.T) {
	r := request(t, twoVariables(`[{"id":"e","expr":"a + b"}]`, `[{"id":"e"},{"id":"a"}]`)...)
	groups := [][]Group{onHosts, onOne}
	refused := errors.New("refused")
	reservations, checks, held := 0, 0, int64(0)
	b := unbounded
	b.Reserve = func(n int64) error { reservations++; held += n; return nil }
	b.Release = func(n int64) { held -= n }
	b.Check = func() error { checks++; return nil }
	// Three series are joined to two with four times. The output of the metric has two columns at
	// three times, whose list is that of a series and takes no memory.
	const want = 3*labelBytes + 4*8 + 2*4*8 + 2*3*8
	if _, err := r.Tables(groups, 0, 9, b); err != nil || held != want || checks < reservations {
		t.Fatalf("%d bytes held after %d reservations, %d checks, error %v, want %d", held, reservations, checks, err,
			want)
	}

	for last := range reservations {
		n := 0
		b := unbounded
		b.Reserve = func(int64) error {
			if n++; n > last {
				return refused
			}
			return nil
		}
		if _, err := r.Tables(groups, 0, 9, b); !errors.Is(err, refused) {
			t.Errorf("after %d reservations: %v", last, err)
		}
	}
	points := 0
	b.Points = func(n int) error { points += n; return nil }
	if _, err := r.Tables(groups, 2, 3, b); err != nil || points != 2*2+3*2 {
		t.Errorf("%d points, error %v, want 2 by 2 of the expression and 3 by 2 of the metric", points, err)
	}
}

// drawGroups draws series of some hosts.
func drawGroups(t *rapid.T, metric string) (out []Group) {
	for _, host := range []string{"x", "y", "z"} {
		if rapid.Bool().Draw(t, "there") {
			values := rapid.MapOfN(rapid.Int64Range(0, 9), rapid.SampledFrom([]float64{0, 1, 2, -3, math.NaN()}), 0,
				6).Draw(t, metric+host)
			out = append(out, group(metric, host, values))
		}
	}
	return out
}

// filled is the value of a series at a time: 0 without a series, and fill without a point there.
func filled(points map[int64]float64, ms int64, fill float64) float64 {
	v, ok := points[ms]
	switch {
	case points == nil:
		return 0
	case !ok || math.IsNaN(v):
		return fill
	}
	return v
}

// A table has the values that a look-up of each point by host and time gives.
func TestTablesArePoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		operator := rapid.SampledFrom([]string{"union", "intersection"}).Draw(t, "operator")
		r, err := Parse([]byte(`{`+aTime+
			`,"metrics":[{"id":"a","metric":"m"},{"id":"b","metric":"n","fillPolicy":{"policy":"scalar",`+
			`"value":7}}],"expressions":[{"id":"e","expr":"a * 10 + b","join":{"operator":"`+operator+`"}}]}`), parser)
		if err != nil {
			t.Fatal(err)
		}
		groups := [][]Group{drawGroups(t, "m"), drawGroups(t, "n")}
		got, err := r.Tables(groups, 2, 7, unbounded)

		// By host, by variable: the points.
		hosts := map[string][2]map[int64]float64{}
		for v, list := range groups {
			for _, g := range list {
				pair := hosts[g.Tags[0].V]
				pair[v] = map[int64]float64{}
				for i := range g.Points.Len() {
					ms, value := g.Points.At(i)
					pair[v][ms] = value.Double()
				}
				hosts[g.Tags[0].V] = pair
			}
		}
		var names []string
		steps := map[int64]bool{}
		for host, pair := range hosts {
			if operator == "union" || pair[0] != nil && pair[1] != nil {
				names = append(names, host)
				for _, points := range pair {
					for ms := range points {
						steps[ms] = true
					}
				}
			}
		}
		slices.Sort(names)
		if len(names) == 0 && len(hosts) > 0 {
			if err == nil {
				t.Fatal("an empty intersection has a table, want an error")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var want [][]float64
		for ms := int64(2); ms <= 7; ms++ {
			if !steps[ms] {
				continue
			}
			row := []float64{float64(ms)}
			for _, host := range names {
				row = append(row, filled(hosts[host][0], ms, 0)*10+filled(hosts[host][1], ms, 7))
			}
			want = append(want, row)
		}
		var have [][]float64
		for i, ms := range got[0].Times {
			row := []float64{float64(ms)}
			for _, c := range got[0].Columns {
				row = append(row, c[i])
			}
			have = append(have, row)
		}
		if d := cmp.Diff(want, have, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("%s: -want +got\n%s", operator, d)
		}
	})
}

// An intersection has the series of the union that all variables have, in the same order. If
// several series of a variable have the same key, the last one is the member.
func TestJoin_laws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var variables []*variable
		for i, name := range []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "variables")] {
			v := &variable{id: name}
			for _, g := range drawGroups(t, name) {
				v.series = append(v.series, series{labels: g.Labels})
			}
			if i == 0 && rapid.Bool().Draw(t, "doubled") {
				v.series = append(v.series, v.series...)
			}
			variables = append(variables, v)
		}
		all, _, err := join(Join{Operator: "union", IncludeAggTags: true}, variables)
		if err != nil {
			t.Fatal(err)
		}
		common := slices.DeleteFunc(slices.Clone(all), func(r row) bool { return slices.Contains(r.members, -1) })
		got, _, err := join(Join{Operator: "intersection", IncludeAggTags: true}, variables)
		if (err != nil) != (len(common) == 0 && len(all) > 0) {
			t.Fatalf("%d series of %d: error %v", len(common), len(all), err)
		}
		if d := cmp.Diff(common, got, cmp.AllowUnexported(row{}), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("-want +got\n%s", d)
		}
		for _, r := range all {
			for i, member := range r.members {
				// Of series with the same key the last one is the member.
				last := -1
				for s := range variables[i].series {
					if variables[i].series[s].labels.key(Join{}, nil) == r.key {
						last = s
					}
				}
				if member != last {
					t.Fatalf("member %d of %q is %d, want %d", i, r.key, member, last)
				}
			}
		}
	})
}

func TestLabels_key(t *testing.T) {
	l := Labels{
		Tags: []Tag{{"dc", "lga", encoding.TagPair{K: encoding.UID{1}, V: encoding.UID{2}}},
			{"host", "x", encoding.TagPair{K: encoding.UID{3}, V: encoding.UID{4}}}},
		Aggregated: []TagKey{{"rack", encoding.UID{5}}},
	}
	f := func(j Join, want string, filterTags ...filterTag) {
		t.Helper()
		if got := l.key(j, filterTags); got != want {
			t.Errorf("%+v, %v: key %q, want %q", j, filterTags, got, want)
		}
	}
	f(Join{}, "\x01\x02\x03\x04")
	f(Join{IncludeAggTags: true}, "\x01\x02\x03\x04\x05")
	f(Join{UseQueryTags: true}, "\x03\x04", filterTag{"host", false}, filterTag{"rack", true})
	f(Join{UseGroupTags: true}, "\x01\x02", filterTag{"host", false}, filterTag{"dc", true})
	f(Join{UseGroupTags: true, UseQueryTags: true}, "", filterTag{"host", false})
	f(Join{UseQueryTags: true, IncludeAggTags: true}, "\x05")
	l.Tags = nil
	f(Join{IncludeAggTags: true}, "")
}
