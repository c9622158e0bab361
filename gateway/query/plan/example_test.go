package plan_test

import (
	"fmt"
	"net/url"
	"time"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/gateway/query/plan"
)

// A query is compiled in two steps: NeedsOf lists the names to look up, and Compile makes
// a scan plan of their UIDs.
func ExampleCompile() {
	values := url.Values{"start": {"1356998400"}, "end": {"1357002000"},
		"m": {"sum:1m-avg:sys.cpu.user{host=web01|web02}"}}
	q, err := query.ParseURI(values, time.Unix(1357002000, 0))
	if err != nil {
		fmt.Println(err)
		return
	}

	opt := plan.Options{Schema: encoding.DefaultSchema(), Table: "tsdb"}
	needs := plan.NeedsOf(&q.Queries[0], opt)
	fmt.Println("needs", needs.Metric, needs.TagKs, needs.TagVs)

	names := plan.Names{
		Metric: encoding.UID{0, 0, 1},
		TagKs:  map[string]encoding.UID{"host": {0, 0, 2}},
		TagVs:  map[string]encoding.UID{"web01": {0, 0, 3}, "web02": {0, 0, 4}},
	}
	c, err := plan.Compile(q, 0, names, opt)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(c.Plan)

	// A name that is not known is an error of its own type.
	delete(names.TagVs, "web02")
	_, err = plan.Compile(q, 0, names, opt)
	fmt.Printf("%T: %v\n", err, err)
	// Output:
	// needs sys.cpu.user [host] [web01 web02]
	// scan tsdb metric 000001 rows [1356998400, 1357005600) query [1356998400000 ms, 1357002000000 ms]
	// range [00000150e22700, 00000150e24320)
	// tag 000002 in 000003 000004
	// downsample 1m-avg-none
	// aggregate sum by 000002
	// *query.UnknownNameError: No such name for 'tagv': 'web02'
}

// A filter whose values are not known, because their list is incomplete, becomes a post
// filter on names.
func ExampleCompiled_postFilter() {
	values := url.Values{"start": {"1356998400"}, "end": {"1357002000"}, "m": {"sum:sys.cpu.user{host=wildcard(web*)}"}}
	q, err := query.ParseURI(values, time.Unix(1357002000, 0))
	if err != nil {
		fmt.Println(err)
		return
	}

	names := plan.Names{Metric: encoding.UID{0, 0, 1}, TagKs: map[string]encoding.UID{"host": {0, 0, 2}}}
	c, err := plan.Compile(q, 0, names, plan.Options{Schema: encoding.DefaultSchema(), Table: "tsdb"})
	if err != nil {
		fmt.Println(err)
		return
	}

	fmt.Print(c.PostFilter)
	for _, name := range []string{"web01", "db01"} {
		keep := c.PostFilter.Keep(func(encoding.UID) (string, bool) { return name, true })
		fmt.Println(name, keep)
	}
	// Output:
	// name of host (000002) wildcard(web*)
	// web01 true
	// db01 false
}
