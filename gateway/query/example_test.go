package query_test

import (
	"fmt"
	"net/url"
	"time"

	"downpour/gateway/query"
)

// The parameters of a GET are parsed into a query. Tags in the first pair of braces
// group, those in the second only filter.
func ExampleParseURI() {
	values, err := url.ParseQuery("start=1h-ago&m=sum:5m-avg:sys.cpu.user{host=*}{dc=lga|sjc}")
	if err != nil {
		fmt.Println(err)
		return
	}
	q, err := query.ParseURI(values, time.Unix(1356998400, 0))
	if err != nil {
		fmt.Println(err)
		return
	}

	s := &q.Queries[0]
	fmt.Println("from", q.Start, "to", q.End)
	fmt.Println(s.Aggregator, "of", s.Metric, "by", s.Downsample)
	for _, f := range s.Filters {
		fmt.Printf("%s %s(%s) groups: %t\n", f.TagK, f.Type, f.Text, f.GroupBy)
	}
	// Output:
	// from 1356994800000 to 1356998400000
	// sum of sys.cpu.user by 5m-avg-none
	// dc literal_or(lga|sjc) groups: false
	// host wildcard(*) groups: true
}

// A mistake is refused in OpenTSDB's words.
func ExampleParseURI_mistake() {
	values := url.Values{"start": {"1h-ago"}, "m": {"total:sys.cpu.user"}}
	_, err := query.ParseURI(values, time.Unix(1356998400, 0))
	fmt.Println(err)
	// Output:
	// No such aggregation function: total
}
