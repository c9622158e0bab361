package peer

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"downpour/bench/workload"
)

// m is an m parameter taken apart: aggregator:interval-function:metric{tags}.
type m struct {
	aggregator, function, metric string
	interval                     int64 // seconds
	keys                         []string
	values                       map[string]string // by key; * is any
}

var mForm = regexp.MustCompile(`^(\w+):(\d+)([smhd])-(\w+):([^{}]+)(?:\{([^{}]*)\})?$`)

// parseM takes an m parameter apart. It knows no more than the queries of workloads
// need: no rate, no filters but literal values and *.
func parseM(text string) (p m, err error) {
	f := mForm.FindStringSubmatch(text)
	if f == nil {
		return p, fmt.Errorf("got the query %q, want aggregator:interval-function:metric{tags} for a peer that "+
			"is not OpenTSDB", text)
	}
	p = m{aggregator: f[1], function: f[4], metric: f[5], values: map[string]string{}}
	n, err := strconv.ParseInt(f[2], 10, 64)
	p.interval = n * map[string]int64{"s": 1, "m": 60, "h": 3600, "d": 86400}[f[3]]
	for _, tag := range strings.FieldsFunc(f[6], func(r rune) bool { return r == ',' }) {
		key, value, _ := strings.Cut(tag, "=")
		p.keys = append(p.keys, key)
		p.values[key] = value
	}
	return p, err
}

// prometheusPath asks the same as a query of OpenTSDB does, for times that are
// multiples of the interval. A bucket [t, t+5m) of seconds is the window
// (t-1s, t+5m-1s], which Prometheus names by its end.
func prometheusPath(q workload.Query) (string, error) {
	p, err := parseM(q.M)
	if err != nil {
		return "", err
	}
	selector := fmt.Sprintf(`__name__=%q`, p.metric)
	for _, key := range p.keys {
		if value := p.values[key]; value != "*" { // any value is no condition
			selector += fmt.Sprintf(`,%s=~%q`, key, value) // a|b is a regular expression there, too
		}
	}

	by := ""
	if len(p.keys) > 0 {
		by = " by (" + strings.Join(p.keys, ",") + ")"
	}
	text := fmt.Sprintf("%s(%s_over_time({%s}[%ds]))%s", p.aggregator, p.function, selector, p.interval, by)
	first := q.Start - q.Start%p.interval
	return "/api/v1/query_range?nocache=1&" + url.Values{
		"query": {text}, "step": {fmt.Sprintf("%ds", p.interval)},
		"start": {fmt.Sprint(first + p.interval - 1)}, "end": {fmt.Sprint(q.End)},
	}.Encode(), nil
}

// answer is what one system says: values by group, then by time in seconds.
type answer map[string]map[int64]float64

// readPrometheus reads an answer of query_range and names the buckets by their
// start: Prometheus names a window by its last second.
func readPrometheus(p m, text []byte) (answer, error) {
	return readRange(text, 1-p.interval, p.group)
}

// readSeries reads an answer of query_range, by all labels but the metric's name.
func readSeries(text []byte) (answer, error) {
	return readRange(text, 0, func(labels map[string]string) string {
		delete(labels, "__name__")
		group, _ := json.Marshal(labels)
		return string(group)
	})
}

// readRange reads an answer of query_range, with times that are later by so many seconds.
func readRange(text []byte, later int64, group func(labels map[string]string) string) (answer, error) {
	var a struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Values [][2]json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, err
	}

	out := answer{}
	for _, r := range a.Data.Result {
		points := map[int64]float64{}
		for _, v := range r.Values {
			t, err := strconv.ParseFloat(string(v[0]), 64)
			if err != nil {
				return nil, err
			}
			value, err := strconv.ParseFloat(strings.Trim(string(v[1]), `"`), 64)
			if err != nil {
				return nil, err
			}
			points[int64(t)+later] = value
		}

		out[group(r.Metric)] = points
	}

	return out, nil
}

// readOpenTSDB reads an answer of /api/query.
func readOpenTSDB(p m, text []byte) (answer, error) {
	var results []struct {
		Tags map[string]string
		Dps  map[int64]float64
	}
	if err := json.Unmarshal(text, &results); err != nil {
		return nil, err
	}

	out := answer{}
	for _, r := range results {
		out[p.group(r.Tags)] = r.Dps
	}
	return out, nil
}

// group is the values of the query's tags: what names a group in both APIs. Without a query
// (the zero m, see differValues) it is those of all tags of the answer.
func (p m) group(tags map[string]string) string {
	keys := p.keys
	if p.aggregator == "" {
		keys = slices.Sorted(maps.Keys(tags))
	}

	var b strings.Builder
	for _, key := range keys {
		b.WriteString(key + "=" + tags[key] + " ")
	}
	return strings.TrimSpace(b.String())
}
