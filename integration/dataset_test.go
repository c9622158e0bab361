//go:build integration

package integration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"downpour/integration/e2e"
)

// dataStart is the first second of the test data, the start of an hour:
// 2013-01-01 00:00 UTC, base time 50E22700.
const dataStart = 1356998400

// introduce holds points with every name of dataset. Put one by one, they make any server assign
// the same UIDs, because each point brings at most one new name of a kind.
func introduce() (points []e2e.Point) {
	add := func(metric, host, dc string) {
		points = append(points, e2e.Point{
			Metric: metric, Timestamp: dataStart - 7200, Value: json.RawMessage("1"),
			Tags: map[string]string{"host": host, "dc": dc},
		})
	}
	first := func(host string) {
		points = append(points, e2e.Point{
			Metric:    "load.int",
			Timestamp: dataStart - 7200,
			Value:     json.RawMessage("1"),
			Tags:      map[string]string{"host": host},
		})
	}
	first("web01")
	add("load.int", "web01", "lga")
	for _, host := range hosts[1:] {
		add("load.int", host, "lga")
	}
	for _, dc := range dcs[1:] {
		add("load.int", "web01", dc)
	}
	for _, metric := range metrics[1:] {
		add(metric, "web01", "lga")
	}
	return points
}

var (
	metrics = []string{"load.int", "load.float", "load.mixed", "load.counter", "load.ms"}
	hosts   = []string{"web01", "web02", "db01", "db02"}
	dcs     = []string{"lga", "sjc"}
)

// dataset returns two hours of series of every kind of value: integers of each
// width, floats, both mixed in a row, a counter with a reset, milliseconds.
// Points are in order of time, so the rows of all series are written side by
// side, as collectors do; the seed decides values and gaps.
func dataset(seed uint64) (points []e2e.Point) {
	r := rand.New(rand.NewPCG(seed, 1))
	for _, metric := range metrics {
		for h, host := range hosts {
			tags := map[string]string{"host": host, "dc": dcs[h%len(dcs)]}
			counter := r.Int64N(1 << 40)
			for s := int64(r.IntN(90)); s < 7200; s += 20 + r.Int64N(200) {
				at := dataStart + s
				if metric == "load.ms" {
					at = at*1000 + r.Int64N(1000)
				}
				counter += r.Int64N(5000)
				if r.IntN(60) == 0 {
					counter = 0
				}
				points = append(points, e2e.Point{
					Metric:    metric,
					Timestamp: at,
					Value:     value(r, metric, counter),
					Tags:      tags,
				})
			}
		}
	}
	slices.SortStableFunc(points, func(a, b e2e.Point) int { return cmp.Compare(milliseconds(a), milliseconds(b)) })
	return points
}

// milliseconds returns a point's time. It distinguishes seconds from milliseconds by size, as
// OpenTSDB does.
func milliseconds(p e2e.Point) int64 {
	if p.Timestamp > math.MaxUint32 {
		return p.Timestamp
	}
	return p.Timestamp * 1000
}

func value(r *rand.Rand, metric string, counter int64) json.RawMessage {
	float := func() json.RawMessage {
		return strconv.AppendFloat(nil, (r.Float64()-0.3)*float64(int64(1)<<r.IntN(40))+0.5, 'f', 6, 64)
	}
	integer := func() json.RawMessage {
		return strconv.AppendInt(nil, r.Int64N(1<<(1+r.IntN(60)))-r.Int64N(200), 10)
	}
	switch {
	case metric == "load.counter":
		return strconv.AppendInt(nil, counter, 10)
	case metric == "load.float", metric == "load.mixed" && r.IntN(2) == 0:
		return float()
	}
	return integer()
}

// question is a query that is put to both servers; body is a POST, path a GET.
type question struct {
	name, path, body string
}

// questions covers what clients ask of two hours of data: aggregators,
// interpolation, downsampling with every fill, rates, groups, filters, forms of
// the answer, errors. The start lies in the first hour, the end in the second.
func questions() (all []question) {
	sub := func(name, sub string) {
		all = append(all, question{name: name, body: fmt.Sprintf(
			`{"start":%d,"end":%d,"queries":[%s]}`, dataStart+600, dataStart+6600, sub)})
	}
	for _, metric := range metrics {
		for _, agg := range []string{"sum", "avg", "max", "mimmin", "zimsum", "dev", "count", "p90", "none", "first"} {
			sub(metric+" "+agg, fmt.Sprintf(`{"metric":%q,"aggregator":%q}`, metric, agg))
		}
		for _, down := range []string{
			"1m-avg", "5m-sum-zero", "10m-max-nan", "7m-count-null", "30s-last", "0all-sum", "1h-dev",
		} {
			sub(metric+" "+down, fmt.Sprintf(`{"metric":%q,"aggregator":"sum","downsample":%q}`, metric, down))
			sub(metric+" by dc "+down,
				fmt.Sprintf(`{"metric":%q,"aggregator":"avg","downsample":%q,"tags":{"dc":"*"}}`, metric, down))
		}
		sub(metric+" rate", fmt.Sprintf(`{"metric":%q,"aggregator":"sum","rate":true}`, metric))
		sub(metric+" counter rate", fmt.Sprintf(
			`{"metric":%q,"aggregator":"sum","rate":true,"rateOptions":{"counter":true,`+
				`"counterMax":1099511627776,"resetValue":1000}}`, metric))
	}
	filter := func(name, filters string) {
		sub("filter "+name, `{"metric":"load.int","aggregator":"sum","downsample":"5m-avg","filters":[`+filters+`]}`)
	}
	filter("literal_or", `{"type":"literal_or","tagk":"host","filter":"web01|db02","groupBy":true}`)
	filter("not_literal_or", `{"type":"not_literal_or","tagk":"host","filter":"web01|db02","groupBy":false}`)
	filter("wildcard", `{"type":"wildcard","tagk":"host","filter":"web*","groupBy":true}`)
	filter("iwildcard", `{"type":"iwildcard","tagk":"host","filter":"DB*","groupBy":false}`)
	filter("regexp", `{"type":"regexp","tagk":"host","filter":".*0[12]","groupBy":true}`)
	filter("two", `{"type":"wildcard","tagk":"host","filter":"*","groupBy":true},`+
		`{"type":"literal_or","tagk":"dc","filter":"sjc","groupBy":false}`)
	return append(all, forms()...)
}

// forms are questions by GET, with other forms of answers, and questions that are errors.
func forms() []question {
	get := func(name, query string) question {
		return question{name: name, path: fmt.Sprintf("/api/query?start=%d&end=%d&%s",
			dataStart, dataStart+7200, query)}
	}
	return []question{
		get("get", "m=sum:load.int"),
		get("get by host", "m=sum:5m-avg:rate:load.float%7Bhost=*%7D"),
		get("get ms", "ms&m=max:load.ms"),
		get("get arrays", "arrays&m=max:load.mixed%7Bhost=web01%7Cdb01%7D"),
		get("get tsuids", "show_tsuids&m=sum:load.int%7Bdc=lga%7D"),
		get("get two", "m=sum:load.int&m=avg:1m-max:load.mixed%7Bdc=*%7D"),
		get("no such metric", "m=sum:no.such.metric"),
		get("no such tag value", "m=sum:load.int%7Bhost=nobody%7D"),
		get("no such tag key", "m=sum:load.int%7Bnokey=web01%7D"),
		get("no such tag key of any value", "m=sum:load.int%7Bnokey=*%7D"),
		get("no such aggregator", "m=nosuch:load.int"),
		{name: "end before start", path: fmt.Sprintf("/api/query?start=%d&end=%d&m=sum:load.int",
			dataStart+10, dataStart)},
		{name: "nothing there", path: fmt.Sprintf("/api/query?start=%d&end=%d&m=sum:load.int",
			dataStart+86400, dataStart+90000)},
	}
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
