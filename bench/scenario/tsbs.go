package scenario

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/url"
	"strings"

	"downpour/bench/workload"
)

// The size of TSBS's cpu-only set at scale 4,000. No query reads more than 12 hours.
const (
	tsbsHosts   = 4000
	tsbsMetrics = 10
	tsbsHours   = 13
)

// tsbsQuery is a query of TSBS's cpu-only set: so many metrics of some hosts over so many hours, asked of
// all metrics in one request. Others of the set, such as the last point of each host or the hours in which a
// host was busy, cannot be said in OpenTSDB's language.
type tsbsQuery struct {
	name           string
	metrics, hosts int // hosts: 0 is all of them, each a group
	hours          int
	m              string  // with %s for the metric
	published      float64 // ms, GreptimeDB 0.12 on 8 cores: its repository, docs/benchmarks/tsbs/v0.12.0.md
}

var tsbsQueries = []tsbsQuery{
	{"single-groupby-1-1-1", 1, 1, 1, "max:1m-max:%s", 4.06},
	{"single-groupby-1-1-12", 1, 1, 12, "max:1m-max:%s", 4.73},
	{"single-groupby-1-8-1", 1, 8, 1, "max:1m-max:%s", 8.23},
	{"single-groupby-5-1-1", 5, 1, 1, "max:1m-max:%s", 4.61},
	{"single-groupby-5-1-12", 5, 1, 12, "max:1m-max:%s", 5.61},
	{"single-groupby-5-8-1", 5, 8, 1, "max:1m-max:%s", 9.74},
	{"cpu-max-all-1", 10, 1, 8, "max:1h-max:%s", 12.46},
	{"cpu-max-all-8", 10, 8, 8, "max:1h-max:%s", 24.20},
	{"double-groupby-1", 1, 0, 12, "avg:1h-avg:%s{host=*}", 673},
	{"double-groupby-5", 5, 0, 12, "avg:1h-avg:%s{host=*}", 964},
	{"double-groupby-all", 10, 0, 12, "avg:1h-avg:%s{host=*}", 1330},
}

// tsbsQuestions are the questions of a row, each with the published time as its aim.
func tsbsQuestions(row string) (all []question) {
	for _, q := range tsbsQueries {
		all = append(all, question{of: batches(q.asked), name: q.name, what: "TSBS " + q.name + ", embedded, sealed",
			aims: []aim{inTime(row, q.published)}})
	}
	return all
}

// asked is the query of a round, of hosts and a time that are drawn.
func (q tsbsQuery) asked(s *stage, round int) []workload.Query {
	d := s.set.data
	of := fnv.New64a()
	of.Write([]byte(q.name)) // each query has hosts and times of its own
	rng := rand.New(rand.NewPCG(d.Seed^of.Sum64(), uint64(round)))
	m := q.m
	if q.hosts > 0 {
		var names []string
		for _, host := range rng.Perm(d.Hosts)[:q.hosts] {
			names = append(names, workload.HostName(host))
		}
		m += "{}{host=literal_or(" + strings.Join(names, "|") + ")}"
	}
	start := d.Start + rng.Int64N(int64(d.Hours-q.hours)*60+1)*60
	path := fmt.Sprintf("/api/query?start=%d&end=%d", start, start+int64(q.hours)*hour-1)
	for _, metric := range workload.Metrics[:q.metrics] {
		path += "&m=" + url.QueryEscape(fmt.Sprintf(m, metric.Name))
	}
	return []workload.Query{{Path: path, Name: q.name}}
}

// tsbsData is the data set, whatever the scale.
func tsbsData(c *Config, _ string) workload.Devops {
	d := c.Data
	d.Hosts, d.MetricCount, d.Hours = tsbsHosts, tsbsMetrics, tsbsHours
	return d
}
