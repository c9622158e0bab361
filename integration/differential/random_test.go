package differential

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway/query"
	"downpour/pushdown/operator/aggregate"
)

// Random draws every aggregator, downsampling function, fill policy, filter and option of the query
// language. At most a tenth of its queries cannot be parsed.
func TestRandom_covers(t *testing.T) {
	d := Generate(1, schemas[0])
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{}
	const n = 3000
	unread := 0
	for range n {
		q := Random(r, d)
		count(q, seen)
		if _, err := (query.Parser{Now: time.Now()}).JSON([]byte(q.Body())); err != nil {
			unread++
		}
	}
	want := []string{
		"get", "tags", "tsuids", "explicit", "zone", "two on a key", "two sub-queries",
		"rate", "counter", "counterMax", "resetValue", "dropResets",
		"fill none", "fill nan", "fill null", "fill zero", "all", "calendar", "group", "no group",
	}
	for _, f := range query.FilterTypes() {
		want = append(want, "filter "+f)
	}
	for _, name := range aggregate.Names() {
		want = append(want, "aggregator "+name, "downsample "+name)
	}
	for _, w := range want {
		if seen[w] < 3 {
			t.Errorf("%s: drawn %d times of %d, want at least 3", w, seen[w], n)
		}
	}
	if unread*10 > n {
		t.Errorf("%d of %d queries cannot be parsed, want at most a tenth", unread, n)
	}
}

func count(q Query, seen map[string]int) {
	add := func(on bool, name string) {
		if on {
			seen[name]++
		}
	}
	add(q.AsGET, "get")
	add(q.Timezone != "", "zone")
	add(len(q.Subs) > 1, "two sub-queries")
	for _, s := range q.Subs {
		add(true, "aggregator "+s.Aggregator)
		add(s.AsTags, "tags")
		add(len(s.TSUIDs) > 0, "tsuids")
		add(s.ExplicitTags, "explicit")
		add(s.Rate, "rate")
		if o := s.Options; o != nil {
			add(o.Counter, "counter")
			add(o.CounterMax > 0, "counterMax")
			add(o.ResetValue > 0, "resetValue")
			add(o.DropResets, "dropResets")
		}
		if parts := strings.Split(s.Downsample, "-"); len(parts) > 1 {
			add(true, "downsample "+parts[1])
			add(len(parts) > 2, "fill "+strings.ToLower(parts[len(parts)-1]))
			add(strings.HasSuffix(parts[0], "all"), "all")
			add(strings.HasSuffix(parts[0], "c"), "calendar")
		}
		for i, f := range s.Filters {
			add(true, "filter "+f.Type)
			add(f.GroupBy, "group")
			add(!f.GroupBy, "no group")
			add(slices.ContainsFunc(s.Filters[:i], func(g Filter) bool { return g.TagK == f.TagK }), "two on a key")
		}
	}
}

// A query that a GET can express means the same as a GET and as a POST.
func TestQuery_getIsPost(t *testing.T) {
	d := Generate(2, schemas[0])
	r := rand.New(rand.NewPCG(2, 2))
	compared := 0
	for range 1500 {
		q := Random(r, d)
		// A GET ignores a downsampler that does not begin with a digit, keeps an order of filters
		// that a map of tags does not have, and joins equal filters.
		incomparable := func(s Sub) bool {
			return s.AsTags || len(s.TSUIDs) > 0 && len(s.Filters) > 0 || strings.HasPrefix(s.Downsample, "all") ||
				len(s.Filters) > len(onePerKey(s.Filters))
		}
		if !q.AsGET || slices.ContainsFunc(q.Subs, incomparable) {
			continue
		}
		parameters, err := url.ParseQuery(strings.SplitN(q.Path(), "?", 2)[1])
		if err != nil {
			t.Fatalf("%s: %v", q.Path(), err)
		}
		get, err1 := query.ParseURI(parameters, time.Time{})
		post, err2 := query.Parser{Now: time.Time{}}.JSON([]byte(q.Body()))
		if err1 != nil || err2 != nil {
			continue // both forms word their errors differently
		}
		for i := range get.Queries { // without counter the other options of a rate mean nothing
			if o := post.Queries[i].RateOptions; o == nil || !o.Counter {
				get.Queries[i].RateOptions, post.Queries[i].RateOptions = nil, nil
			}
		}
		compared++
		if d := cmp.Diff(meaning(get), meaning(post)); d != "" {
			t.Fatalf("%s\n%s\n-GET +POST\n%s", q.Path(), q.Body(), d)
		}
	}
	if compared < 200 {
		t.Errorf("compared %d queries, want at least 200", compared)
	}
}

// meaning is what a query asks for: its times, its options, and what showQuery shows.
func meaning(q *query.Query) []any {
	all := []any{q.Start, q.End, q.MSResolution, q.ShowTSUIDs, q.NoAnnotations, q.GlobalAnnotations}
	for i := range q.Queries {
		all = append(all, q.Echo(i))
	}
	return all
}
