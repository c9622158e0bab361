package builds

import (
	"fmt"
	"net/url"

	"downpour/bench/workload"
	"downpour/encoding/batch"
)

// question is a query, or several, that both builds are asked many times, each time a
// little different.
type question struct {
	row, what string
	accept    string // media type of the answer, empty for JSON
	// of returns the queries of the i-th time.
	of func(d workload.Devops, i int) []workload.Query
	// warm is how often it is asked before it is measured, at least once.
	warm int
	// opaque is set if answers may differ between two servers, such as by times of
	// writing. They are not compared.
	opaque bool
	// living is set if a point is put to the last hour before each time, which does not count.
	living bool
}

// slack is by how many seconds the times of queries vary: inside the first and the last
// hour of the data, so that each query reads the same rows.
const slack = 3600

// variants is the number of different queries; then the first one comes again.
const variants = 60

// whole returns a query over the whole time of the data.
func whole(m string) func(workload.Devops, int) []workload.Query {
	return func(d workload.Devops, i int) []workload.Query {
		all := workload.Take(i%variants+1, d.Whole(m).Vary(slack, 1, d.Seed))
		return all[len(all)-1:]
	}
}

// lines selects the points of a ninth of the hosts, not aggregated.
const lines = "none:%s{region=region-3}"

// questions are asked with the result cache off, so each of them reads every row.
var questions = []question{
	{row: "all", what: "sum:5m-avg", of: whole("sum:5m-avg:%s")},
	{row: "groups", what: "sum:5m-avg{host=*}", of: whole("sum:5m-avg:%s{host=*}")},
	{row: "maxima", what: "avg:5m-max{host=*}", of: whole("avg:5m-max:%s{host=*}")},
	{row: "fill", what: "avg:1m-avg-zero{dc=*}", of: whole("avg:1m-avg-zero:%s{dc=*}")},
	{row: "rate", what: "sum:rate:5m-avg{region=*}", of: whole("sum:rate:5m-avg:%s{region=*}")},
	{row: "raw", what: "sum, without downsampling", of: whole("sum:%s")},
	{row: "lines", what: "none{region=…}, every point", of: whole(lines)},
	{
		row:  "one-host",
		what: "sum:5m-avg{host=…}, another host each time",
		of: func(d workload.Devops, i int) []workload.Query {
			return []workload.Query{d.OneHost((i*389 + 17) % d.Hosts)}
		},
	},
	{
		row:    "arrow-groups",
		what:   "sum:5m-avg{host=*} as Arrow",
		accept: batch.StreamMediaType,
		of:     whole("sum:5m-avg:%s{host=*}"),
	},
	{
		row:    "arrow-lines",
		what:   "none{region=…}, every point, as Arrow",
		accept: batch.StreamMediaType,
		of:     whole(lines),
	},
	{
		row:    "lookup",
		what:   "search/lookup of a region's series",
		opaque: true,
		of: func(d workload.Devops, i int) []workload.Query {
			m := fmt.Sprintf("%s{region=region-%d}", d.Metric(), i%workload.Regions)
			return []workload.Query{{Path: "/api/search/lookup?limit=10000&m=" + url.QueryEscape(m)}}
		},
	},
}

// windows is the number of positions of a dashboard's window.
const windows = 12

// cacheableQuestions are the questions that may be answered from the result cache.
var cacheableQuestions = []question{
	{
		row:  "dashboards",
		what: "a dashboard of 6 panels again and again, its window moved",
		warm: windows,
		of: func(d workload.Devops, i int) []workload.Query {
			return d.Dashboard(int64(i%windows)*300, int64(max(d.Hours-1, 1)), 11)
		},
	},
	{
		row:    "living",
		what:   "sum:5m-avg again and again, with a put to the last hour before each time",
		warm:   6,
		living: true,
		of: func(d workload.Devops, i int) []workload.Query {
			q := d.Whole("sum:5m-avg:%s")
			q.Start += int64(i%windows) * 300
			return []workload.Query{q}
		},
	},
}
