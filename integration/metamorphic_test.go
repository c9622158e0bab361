//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding/seedtest"
	"downpour/integration/compare"
	"downpour/integration/differential"
	"downpour/integration/e2e"
)

// ground is a gateway and the data that it serves.
type ground struct {
	url string
	d   *differential.Data
}

// law says that some ways to ask get the same answer. holds asks in each way and returns the query,
// how the answers differ, "" for not at all, and whether there were points to compare.
type law struct {
	name  string
	holds func(
		ctx context.Context, t *testing.T, g ground, r *rand.Rand,
	) (q differential.Query, difference string, points bool)
}

var laws = []law{
	{"GET = POST", getIsPost},
	{"arrays = map", arraysAreMap},
	{"JSON = Arrow = WebSocket", transportsAgree},
	{"literal list = regexp = wildcard", filtersAgree},
	{"group-by = union of literals", groupsAreUnion},
}

// The same question in other words gets the same answer, on both stores. The embedded store is
// asked ten times as many queries, because each takes a tenth of the time: faults that few queries
// meet (NaN in pairs, explicit tags) need some hundred queries to show.
func TestMetamorphic(t *testing.T) {
	t.Parallel()
	seed := seedtest.Of(t)
	n := randomQueries(40, 800)
	ctx := within(t, 5*time.Minute+time.Duration(n)*10*time.Second)
	for _, on := range []struct {
		name    string
		ground  func(context.Context, *testing.T, uint64) ground
		queries int
	}{{"embedded", embeddedGround, 10 * n}, {"HBase", cellsGround, n}} {
		t.Run(on.name, func(t *testing.T) {
			g := on.ground(ctx, t, seed)
			for i, l := range laws {
				t.Run(l.name, func(t *testing.T) {
					obey(ctx, t, g, l, rand.New(rand.NewPCG(seed, uint64(i))), on.queries)
				})
			}
		})
	}
}

func obey(ctx context.Context, t *testing.T, g ground, l law, r *rand.Rand, n int) {
	t.Helper()
	compared, broken := 0, 0
	for i := range n {
		q, difference, points := l.holds(ctx, t, g, r)
		if points {
			compared++
		}
		if difference == "" {
			continue
		}
		t.Errorf("query %d: %s\n%.3000s", i, q.Curl(g.url), difference)
		if broken++; broken == 3 {
			t.Fatal("3 failures, which are enough")
		}
	}
	if compared*4 < n {
		t.Errorf("%d of %d queries found points, want at least a quarter", compared, n)
	}
	t.Logf("%d queries, %d with points", n, compared)
}

// embeddedGround puts the data's points into an embedded store.
func embeddedGround(ctx context.Context, t *testing.T, seed uint64) ground {
	t.Helper()
	d := differential.Generate(seed, layouts[0].schema())
	g := embedded(t, nil)
	putAll(ctx, t, g.URL, d)
	return ground{g.URL, d}
}

// cellsGround writes the data's cells, of every form, into salted tables.
func cellsGround(ctx context.Context, t *testing.T, seed uint64) ground {
	t.Helper()
	a := arranged(seed)[3] // salted and lenient
	d := differential.Generate(seed+1, a.Schema)
	tables := writeTables(ctx, t, d)
	return ground{a.ours(t, tables, nil).URL, d}
}

// putAll assigns the names in one order and puts the points series by series,
// so that any server gives the same UIDs and later points overwrite the same
// ones.
func putAll(ctx context.Context, t *testing.T, url string, d *differential.Data) {
	t.Helper()
	names := map[string][]string{}
	var points []e2e.Point
	for _, s := range d.Series {
		names["metric"] = append(names["metric"], s.Metric)
		for _, k := range slices.Sorted(maps.Keys(s.Tags)) {
			names["tagk"] = append(names["tagk"], k)
			names["tagv"] = append(names["tagv"], s.Tags[k])
		}
		for _, p := range s.Points {
			at := p.MS
			if !p.Milli {
				at /= 1000
			}
			points = append(points, e2e.Point{Metric: s.Metric, Timestamp: at, Value: p.Text(), Tags: s.Tags})
		}
	}
	names["tagk"] = append(names["tagk"], differential.AbsentKey)
	names["tagv"] = append(names["tagv"], differential.AbsentValue)
	for kind, list := range names {
		seen := map[string]bool{}
		list = slices.DeleteFunc(list, func(n string) bool { was := seen[n]; seen[n] = true; return was })
		a := must[e2e.Answer](t)(e2e.Post(ctx, url+"/api/uid/assign", map[string][]string{kind: list}))
		if a.Status != 200 {
			t.Fatalf("assign: status %d: %s", a.Status, a.Body)
		}
	}
	t.Logf("%d points of %d series", len(points), len(d.Series))
	put(ctx, t, url, points)
}

// named draws a query that asks by names alone, because TSUIDs depend on the table.
func named(r *rand.Rand, d *differential.Data) differential.Query {
	for {
		q := differential.Random(r, d)
		if !slices.ContainsFunc(q.Subs, func(s differential.Sub) bool { return len(s.TSUIDs) > 0 }) {
			return q
		}
	}
}

func asQuestion(q differential.Query) question {
	if q.AsGET {
		return question{path: q.Path()}
	}
	return question{path: q.Path(), body: q.Body()}
}

// hasPoints reports whether an answer has status 200 and at least one point.
func hasPoints(a compare.Answer) bool {
	return a.Status == 200 &&
		(strings.Contains(string(a.Body), `"dps":{"`) || strings.Contains(string(a.Body), `"dps":[[`))
}

// differs compares two answers exactly, except for the details of errors, which
// quote the question.
func differs(want, got compare.Answer) string {
	r, err := compare.Comparer{Permits: compare.Standard[:1]}.Answers(want, got)
	if err == nil && r.Equal() {
		return ""
	}
	return fmt.Sprintf("error %v, %v\n%.1000s\n%.1000s", err, r, want.Body, got.Body)
}

func getIsPost(ctx context.Context, t *testing.T, g ground, r *rand.Rand) (differential.Query, string, bool) {
	q := named(r, g.d)
	ignored := func(s differential.Sub) bool { return strings.HasPrefix(s.Downsample, "all") } // a GET ignores these
	for !q.AsGET || slices.ContainsFunc(q.Subs, ignored) {
		q = named(r, g.d)
	}
	q.ShowQuery = false // it echoes filters in the order written, which a map of tags does not have
	get := ask(ctx, t, g.url, asQuestion(q))
	q.AsGET = false
	post := ask(ctx, t, g.url, asQuestion(q))
	if post.Status != 200 { // the verbs word some errors differently
		if get.Status < 400 {
			return q, fmt.Sprintf("POST %d %s\nGET %d", post.Status, post.Body, get.Status), false
		}
		return q, "", false
	}
	return q, differs(post, get), hasPoints(post)
}

func arraysAreMap(ctx context.Context, t *testing.T, g ground, r *rand.Rand) (differential.Query, string, bool) {
	q := named(r, g.d)
	q.MS, q.Arrays = true, false
	asMap := ask(ctx, t, g.url, asQuestion(q))
	q.Arrays = true
	asArrays := ask(ctx, t, g.url, asQuestion(q))
	if asMap.Status != 200 {
		return q, differs(asMap, asArrays), false
	}
	turned := asArrays
	turned.Body = mapForm(t, asArrays.Body)
	return q, differs(asMap, turned), hasPoints(asMap)
}

// mapForm turns dps from pairs into a map.
func mapForm(t *testing.T, body []byte) []byte {
	t.Helper()
	var results []map[string]json.RawMessage
	if err := json.Unmarshal(body, &results); err != nil {
		t.Fatalf("%v: %.500s", err, body)
	}
	for _, r := range results {
		var pairs [][2]json.RawMessage
		if err := json.Unmarshal(r["dps"], &pairs); err != nil {
			t.Fatalf("%v: %.500s", err, r["dps"])
		}
		dps := map[string]json.RawMessage{}
		for _, p := range pairs {
			dps[string(p[0])] = p[1]
		}
		r["dps"], _ = json.Marshal(dps)
	}
	turned, err := json.Marshal(results)
	if err != nil {
		t.Fatal(err)
	}
	return turned
}

// filtersAgree asks for all values of a tag key by a list, a regular expression and a star.
func filtersAgree(ctx context.Context, t *testing.T, g ground, r *rand.Rand) (differential.Query, string, bool) {
	q, key, values := grouped(r, g.d)
	q.Subs[0].Filters[0].GroupBy = r.IntN(2) == 0
	var quoted []string
	for _, v := range values {
		quoted = append(quoted, regexp.QuoteMeta(v))
	}
	var first compare.Answer
	for i, f := range []differential.Filter{
		{Type: "literal_or", Text: strings.Join(values, "|")},
		{Type: "regexp", Text: "^(" + strings.Join(quoted, "|") + ")$"},
		{Type: "wildcard", Text: "*"},
	} {
		f.TagK, f.GroupBy = key, q.Subs[0].Filters[0].GroupBy
		q.Subs[0].Filters[0] = f
		a := ask(ctx, t, g.url, asQuestion(q))
		if i == 0 {
			first = a
		} else if d := differs(first, a); d != "" {
			return q, f.Type + " and literal_or: " + d, false
		}
	}
	return q, "", hasPoints(first)
}

// grouped draws a query of one sub-query that groups by one key; its first
// filter is that key's.
func grouped(r *rand.Rand, d *differential.Data) (q differential.Query, key string, values []string) {
	for len(values) == 0 {
		q = named(r, d)
		q.AsGET, q.ShowQuery, q.Subs = false, false, q.Subs[:1]
		key = differential.TagKeys[r.IntN(len(differential.TagKeys))]
		values = d.Values(q.Subs[0].Metric, key)
	}
	s := &q.Subs[0]
	s.AsTags = false
	seen := map[string]bool{key: true} // of several filters on a key OpenTSDB forgets some: no law holds
	s.Filters = slices.DeleteFunc(s.Filters, func(f differential.Filter) bool {
		was := seen[f.TagK]
		seen[f.TagK] = true
		return was
	})
	s.Filters = slices.Insert(s.Filters, 0, differential.Filter{Type: "wildcard", TagK: key, Text: "*", GroupBy: true})
	return q, key, values
}

func groupsAreUnion(ctx context.Context, t *testing.T, g ground, r *rand.Rand) (differential.Query, string, bool) {
	q, _, values := grouped(r, g.d)
	all := ask(ctx, t, g.url, asQuestion(q))
	if all.Status != 200 {
		return q, "", false // an error of one group is the whole query's
	}
	want := resultTexts(t, all.Body)
	var got []string
	one := q.Clone()
	for _, v := range values {
		one.Subs[0].Filters[0].Type, one.Subs[0].Filters[0].Text = "literal_or", v
		a := ask(ctx, t, g.url, asQuestion(one))
		if a.Status != 200 {
			return one, fmt.Sprintf("status %d %s, of all groups 200", a.Status, a.Body), false
		}
		got = append(got, resultTexts(t, a.Body)...)
	}
	slices.Sort(want)
	slices.Sort(got)
	return q, cmp.Diff(want, got), hasPoints(all)
}

// choiceIsStrict asks queries for which the planner itself chooses partial aggregates, and again
// with mode=strict: the answers are equal to the last bit. The planner chooses partial aggregates
// only where a server ships them, so the ground must have pushdown servers. It must have no result
// cache, because answers of one mode are also given for the other.
func choiceIsStrict(ctx context.Context, t *testing.T, g ground, r *rand.Rand) (differential.Query, string, bool) {
	for range 200 {
		q := differential.Random(r, g.d)
		chosen, strict, plan := asQuestion(q), asQuestion(q), asQuestion(q)
		strict.path = also(strict.path, "mode=strict")
		plan.path = also(plan.path, "explain=true")
		if !strings.Contains(string(ask(ctx, t, g.url, plan).Body), `"mode":"partial"`) {
			continue
		}
		want := ask(ctx, t, g.url, strict)
		return q, differs(want, ask(ctx, t, g.url, chosen)), hasPoints(want)
	}
	t.Fatal("of 200 queries none is answered with partial aggregates, want at least one")
	return differential.Query{}, "", false
}

// also adds a parameter to a path.
func also(path, parameter string) string {
	if strings.Contains(path, "?") {
		return path + "&" + parameter
	}
	return path + "?" + parameter
}

func resultTexts(t *testing.T, body []byte) (texts []string) {
	t.Helper()
	var results []json.RawMessage
	if err := json.Unmarshal(body, &results); err != nil {
		t.Fatalf("%v: %.500s", err, body)
	}
	for _, r := range results {
		texts = append(texts, string(r))
	}
	return texts
}

// The embedded store and HBase with appends hold the same points, and give the
// same answers.
func TestMetamorphic_embeddedIsHBaseWithAppends(t *testing.T) {
	t.Parallel()
	seed := seedtest.Of(t)
	n := randomQueries(100, 2000)
	ctx := within(t, 3*time.Minute+time.Duration(n)*time.Second)
	g := embeddedGround(ctx, t, seed)
	l := layouts[3]
	other := l.gateway(t, createTables(t), nil)
	putAll(ctx, t, other.URL, g.d)
	sameAnswers(ctx, t, g, other.URL, n, rand.New(rand.NewPCG(seed, 50)), named)
}

// Pushdown servers compute what the gateway computes, whatever form rows have, and
// whether they answer per series or with partial aggregates.
func TestMetamorphic_pushdownIsInProcess(t *testing.T) {
	t.Parallel()
	seed := seedtest.Of(t)
	n := randomQueries(100, 2000)
	ctx := within(t, 3*time.Minute+time.Duration(n)*time.Second)
	a := arranged(seed)[3] // salted and lenient
	d := differential.Generate(seed, a.Schema)
	tables := writeTables(ctx, t, d)
	alone := a.ours(t, tables, nil)
	servers := pushdownServers(ctx, t, a.layout, tables)
	pushed := a.ours(t, tables, map[string]string{
		"DOWNPOUR_PUSHDOWN":     strings.Join(servers, ","),
		"DOWNPOUR_RESULT_CACHE": "off",
	})
	sameAnswers(ctx, t, ground{alone.URL, d}, pushed.URL, n, rand.New(rand.NewPCG(seed, 51)), differential.Random)
	obey(ctx, t, ground{pushed.URL, d}, law{"planner's choice = strict", choiceIsStrict},
		rand.New(rand.NewPCG(seed, 52)), n)
}

func sameAnswers(
	ctx context.Context, t *testing.T, g ground, other string, n int, r *rand.Rand,
	draw func(*rand.Rand, *differential.Data) differential.Query,
) {
	t.Helper()
	same := func(ctx context.Context, t *testing.T, g ground, r *rand.Rand) (differential.Query, string, bool) {
		q := draw(r, g.d)
		want := ask(ctx, t, g.url, asQuestion(q))
		return q, differs(want, ask(ctx, t, other, asQuestion(q))), hasPoints(want)
	}
	obey(ctx, t, g, law{"", same}, r, n)
}
