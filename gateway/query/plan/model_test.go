package plan

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	_ "downpour/encoding/seedtest" // gives rapid its seed
	"downpour/gateway/query"
)

// model selects series as OpenTSDB does, step by step as in TsdbQuery.findGroupBys: by a pattern of
// row keys, and by filters on names after the scan.
type model struct {
	pattern  map[string][]string // by tag key the values; an empty list admits any value
	groupBys []string
	postScan []*query.Filter
}

type modelFilter struct {
	f        *query.Filter
	resolved []string // values that have a UID
	post     bool
}

func newModel(filters []query.Filter, limit int, known []string) *model {
	m := &model{pattern: map[string][]string{}}
	var list []*modelFilter
	for i := range filters {
		s := &modelFilter{f: &filters[i], post: filters[i].Text != "*"}
		if s.f.Type == query.LiteralOr && len(s.f.Literals()) <= limit {
			for _, v := range s.f.Literals() {
				if slices.Contains(known, v) {
					s.resolved = append(s.resolved, v)
				}
			}
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b *modelFilter) int { return strings.Compare(a.f.TagK, b.f.TagK) })
	count, at := 0, 0
	for at < len(list) {
		first, literals, group := list[0].f.TagK, map[string]bool{}, false
		var took []*modelFilter
		key := ""
		for {
			s := list[at]
			at++
			key = s.f.TagK
			group = group || s.f.GroupBy
			for _, v := range s.resolved {
				literals[v] = true
			}
			if len(s.resolved) > 0 {
				took = append(took, s)
			}
			if at == len(list) || list[at].f.TagK != first || key != first {
				break
			}
		}
		if group && !slices.Contains(m.groupBys, key) {
			m.groupBys = append(m.groupBys, key)
		}
		switch {
		case len(literals) == 0:
			m.pattern[key] = nil
		case len(literals)+count <= limit:
			m.pattern[key] = nil
			for v := range literals {
				m.pattern[key] = append(m.pattern[key], v)
			}
			count += len(literals)
			for _, s := range took {
				s.post = false
			}
		}
	}
	for _, s := range list {
		if s.post {
			m.postScan = append(m.postScan, s.f)
		}
	}
	return m
}

func (m *model) admits(series map[string]string) bool {
	for k, values := range m.pattern {
		v, ok := series[k]
		if !ok || len(values) > 0 && !slices.Contains(values, v) {
			return false
		}
	}
	for _, f := range m.postScan {
		if v, ok := series[f.TagK]; ok && !f.Match(v) || !ok && !f.Negative() {
			return false
		}
	}
	return true
}

// admits reports whether a plan and its post filter admit a series.
func admits(c *Compiled, d dictionary, series map[string]string) bool {
	uids := map[string]encoding.UID{}
	for k, v := range series {
		uids[string(uid(d.tagks, k))] = uid(d.tagvs, v)
	}
	for _, p := range c.Plan.Tags {
		v, ok := uids[string(p.TagK)]
		in := slices.ContainsFunc(p.Values, func(u encoding.UID) bool { return bytes.Equal(u, v) })
		if !ok || p.Op == scanplan.In && !in || p.Op == scanplan.NotIn && in {
			return false
		}
	}
	if c.Plan.Exact && len(series) != len(c.Plan.Tags) {
		return false
	}
	return c.PostFilter == nil || c.PostFilter.Keep(func(k encoding.UID) (string, bool) {
		v, ok := uids[string(k)]
		if !ok {
			return "", false
		}
		return d.tagvs[encoding.UIDNumber(v)-1], true
	})
}

// For any filters and limits, a plan with its post filter admits the series that the model of
// OpenTSDB admits, and groups by the same keys.
func TestCompile_model(t *testing.T) {
	d := dictionary{metrics: []string{"m"}, tagks: []string{"a", "b", "c"}, tagvs: []string{"v1", "v2", "V1", "w1"}}
	texts := []string{"v1", "v2", "v1|v2", "v1|w1|v2", "nobody", "v1|nobody", "||", "V1"}
	patterns := []string{"*", "v*", "*1", "V*", "x*", "*v*1*"}
	rapid.Check(t, func(t *rapid.T) {
		var filters []query.Filter
		for i := range rapid.IntRange(0, 5).Draw(t, "filters") {
			kind := rapid.SampledFrom(query.FilterTypes()).Draw(t, fmt.Sprint("type", i))
			from := texts
			switch kind {
			case query.Wildcard, query.IWildcard:
				from = patterns
			case query.Regexp:
				from = []string{"1$", "^v", "^v1$|w", "(?i)v"}
			}
			f, err := query.NewFilter(kind, rapid.SampledFrom(d.tagks).Draw(t, fmt.Sprint("key", i)),
				rapid.SampledFrom(from).Draw(t, fmt.Sprint("text", i)), rapid.Bool().Draw(t, fmt.Sprint("group", i)))
			if err != nil {
				t.Fatal(err)
			}
			filters = append(filters, f)
		}
		opt := Options{
			Schema:         encoding.DefaultSchema(),
			SkipUnresolved: true,
			ExpansionLimit: rapid.IntRange(1, 6).Draw(t, "limit"),
		}
		q := &query.Query{
			Start:   1000,
			End:     2000,
			Queries: []query.SubQuery{{Aggregator: "sum", Metric: "m", Filters: filters}},
		}
		needs := NeedsOf(&q.Queries[0], opt)
		c, err := Compile(q, 0, d.look(needs), opt)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Plan.Validate(); err != nil {
			t.Fatal(err)
		}
		m := newModel(filters, opt.ExpansionLimit, d.tagvs)
		values := append([]string{""}, d.tagvs...)
		for _, a := range values {
			for _, b := range values {
				for _, k := range values {
					series := map[string]string{}
					for i, v := range []string{a, b, k} {
						if v != "" {
							series[d.tagks[i]] = v
						}
					}
					if got, want := admits(c, d, series), m.admits(series); got != want {
						t.Errorf("%v: %t, want %t\n%s%v", series, got, want, c.Plan, c.PostFilter)
					}
				}
			}
		}
		var groupBys []string
		for _, k := range c.Plan.GroupBy {
			groupBys = append(groupBys, d.tagks[encoding.UIDNumber(k)-1])
		}
		slices.Sort(m.groupBys)
		if !slices.Equal(groupBys, m.groupBys) {
			t.Errorf("groups by %v, want %v", groupBys, m.groupBys)
		}
	})
}

// A filter whose list of names is missing becomes a post filter, and its tag predicate only wants
// the key.
func TestCompile_withoutLists(t *testing.T) {
	q, err := query.ParseURI(map[string][]string{"start": {"1"},
		"m": {"sum:sys.cpu{host=web*,dc=not_iliteral_or(LGA)}"}}, time.Unix(1e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Schema: encoding.DefaultSchema()}
	names := names3.look(NeedsOf(&q.Queries[0], opt))
	names.Lists = nil
	c, err := Compile(q, 0, names, opt)
	if err != nil {
		t.Fatal(err)
	}
	if c.PostFilter == nil || len(c.PostFilter.TagKs()) != 2 || c.Plan.Tags[0].Op != scanplan.Present {
		t.Errorf("got %s%v, want a post filter on both keys, and a predicate that wants the first one", c.Plan,
			c.PostFilter)
	}
	// If a query has a metric, the post filter does not keep a series without the key.
	if c.PostFilter.Keep(func(encoding.UID) (string, bool) { return "", false }) {
		t.Error("a series without the keys is kept")
	}
}

func TestNeedsOf(t *testing.T) {
	q, err := query.ParseURI(map[string][]string{"start": {"1"}, "m": {
		"sum:sys.cpu{host=web01|web02,host=web01,dc=web*,rack=regexp(^r)}{rack=not_literal_or(r1||" +
			"r2),dc=iliteral_or(X),host=*}"}}, time.Unix(1e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	f := func(opt Options, want string) {
		t.Helper()
		if got := fmt.Sprintf("%+v", NeedsOf(&q.Queries[0], opt)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	f(Options{}, "{Metric:sys.cpu TagKs:[rack dc host] TagVs:[r1 r2 web01 web02] Prefixes:[ r] Limit:4096}")
	f(Options{ExpansionLimit: 1}, "{Metric:sys.cpu TagKs:[rack dc host] TagVs:[web01] Prefixes:[ r] Limit:1}")
}

func TestScanRange(t *testing.T) {
	f := func(start, end int64, d *scanplan.Downsample, wantFrom, wantTo int64) {
		t.Helper()
		if from, to := ScanRange(start, end, d); from != wantFrom || to != wantTo {
			t.Errorf("%d to %d by %v: [%d, %d), want [%d, %d)", start, end, d, from, to, wantFrom, wantTo)
		}
	}
	every := func(ms int64) *scanplan.Downsample { return &scanplan.Downsample{Interval: ms} }
	f(1600000000_000, 1600002000_000, nil, 1599998400, 1600005600)
	f(1600000000_000, 1600001998_999, nil, 1599998400, 1600002000)
	f(1600000000_000, 1600001999_000, nil, 1599998400, 1600005600) // OpenTSDB reads one second more
	f(1600000000_000, 1600001999_000, every(3600_000), 1599998400, 1600005600)
	f(1600000000_000, 1600001998_000, every(3600_000), 1599998400, 1600002000)
	f(1600000000_000, 1600001999_000, every(60_000), 1599998400, 1600005600)
	f(1600000000_000, 1600001900_000, every(60_000), 1599998400, 1600002000)
	f(1600000000_000, 1600001940_000, every(60_000), 1599998400, 1600002000)
	f(1600000000_000, 1600001999_000, &scanplan.Downsample{All: true, Interval: 5}, 1599998400, 1600005600)
	f(1600000000_000, 1600001000_000, every(7*60_000), 1599998400, 1600002000)
	f(1600002100_000, 1600002200_000, every(90*60_000), 1599998400, 1600005600)
	f(1000, 2000, nil, 0, 3600)
	f(0, 1, every(500), 0, 3600)
	f(0, 9999999999_000, every(1<<62), 0, 4294969200)
	f(9999999999_000, 9999999999_999, nil, 4294965600, 4294969200)
}

// The scan range is made of hours, and holds the query and the bucket of its start.
func TestScanRange_laws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64Range(0, 4294960000_000).Draw(t, "start")
		end := start + rapid.Int64Range(1, 1e11).Draw(t, "length")
		var d *scanplan.Downsample
		if ms := rapid.Int64Range(0, 1e10).Draw(t, "interval"); ms > 0 {
			d = &scanplan.Downsample{Interval: ms}
		}
		from, to := ScanRange(start, end, d)
		if from < 0 || from%3600 != 0 || to%3600 != 0 || from*1000 > start || to*1000 <= min(end, 4294969199_999) {
			t.Fatalf("got [%d, %d), want whole hours that hold the query", from, to)
		}
		if d != nil && (start-start%d.Interval < from*1000-999) && start-start%d.Interval >= 0 {
			t.Errorf("the bucket at %d begins before row %d", start-start%d.Interval, from)
		}
	})
}
