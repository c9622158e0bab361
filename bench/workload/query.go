package workload

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Query is one question in OpenTSDB's words.
type Query struct {
	Start, End int64  // seconds, both inclusive
	M          string // the m parameter, such as sum:5m-avg:cpu.user{region=*}
	// Path is a recorded request whole, "/api/query?…", instead of the above.
	Path string
	// JSON is the body of a recorded POST to /api/query, instead of the above.
	JSON string
	// Arrow asks for the answer as an Arrow stream.
	Arrow bool
	// Name is what reports call the query, however its times vary; "" is Label's choice.
	Name string
	// Expression is the body of a POST to /api/query/exp with %d for start and end, instead
	// of M, which then only names it.
	Expression string
	// PromQL is an expression, asked every Step seconds from Start to End of Prometheus' API, instead of M.
	PromQL string
	Step   int64
}

// Body is the body of a POST, "" for a GET.
func (q Query) Body() string {
	if q.Expression == "" {
		return q.JSON
	}
	return fmt.Sprintf(q.Expression, q.Start, q.End)
}

// String is the query as the path and query of a URL.
func (q Query) String() string {
	if q.Path != "" {
		return q.Path
	}
	if q.Expression != "" {
		return "/api/query/exp"
	}
	if q.JSON != "" {
		return "/api/query"
	}
	if q.PromQL != "" { // VictoriaMetrics has it under this path, too, and would else answer from its cache
		return fmt.Sprintf("/prometheus/api/v1/query_range?nocache=1&start=%d&end=%d&step=%d&query=%s", q.Start, q.End,
			q.Step, url.QueryEscape(q.PromQL))
	}
	return fmt.Sprintf("/api/query?start=%d&end=%d&m=%s", q.Start, q.End, url.QueryEscape(q.M))
}

// Vary yields the query again and again with its start moved forth and its end
// moved back by less than slack seconds, in multiples of unit, not the same pair
// twice in a row: a cache of whole answers has nothing to give. The same seed
// gives the same sequence, so two systems are asked the same.
func (q Query) Vary(slack, unit int64, seed uint64) iter.Seq[Query] {
	return func(yield func(Query) bool) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		steps := slack / unit
		// Start and end together move by half of the span at most, so that each query has points.
		if span := q.span(); span > 0 {
			steps = min(steps, span/4/unit)
		}
		steps = max(steps, 2) // with one step the same query would come again and again
		for i := int64(0); ; i++ {
			if !yield(q.moved(i%steps*unit, rnd.Int64N(steps)*unit)) {
				return
			}
		}
	}
}

// moved is the query with its start later by forth seconds, and its end earlier by back seconds. Times of a
// recorded one that are relative stay: they are never the same twice anyway.
func (q Query) moved(forth, back int64) Query {
	switch {
	case q.Path != "":
		u, values := q.parameters()
		for name, by := range map[string]int64{"start": forth, "end": -back} {
			if t, ok := shifted(values.Get(name), by); ok {
				values.Set(name, t)
			}
		}
		u.RawQuery = values.Encode()
		q.Path = u.String()
	case q.JSON != "":
		members := q.members()
		for name, by := range map[string]int64{"start": forth, "end": -back} {
			if t, ok := shifted(timeText(members[name]), by); ok {
				members[name] = json.RawMessage(strconv.Quote(t)) // OpenTSDB takes a time as text, too
			}
		}
		if text, err := json.Marshal(members); err == nil {
			q.JSON = string(text)
		}
	default:
		q.Start, q.End = q.Start+forth, q.End-back
	}
	return q
}

// shifted is an absolute time by so many seconds later; ok is false for one that is relative or a date.
func shifted(text string, by int64) (_ string, ok bool) {
	t, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return text, false
	}
	if inMS(t) {
		by *= 1000
	}
	return strconv.FormatInt(t+by, 10), true
}

// inMS reports whether an absolute time is in milliseconds.
func inMS(t int64) bool { return t > 1<<32 }

// parameters are those of a recorded request; none of one that is no URL, which Recorded does not read.
func (q Query) parameters() (*url.URL, url.Values) {
	u, err := url.Parse(q.Path)
	if err != nil {
		u = &url.URL{Path: q.Path}
	}
	return u, u.Query()
}

// members are those of a recorded body; none of one that is no object, which Recorded does not read.
func (q Query) members() map[string]json.RawMessage {
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal([]byte(q.JSON), &members)
	return members
}

// timeText is a time as a body has it: a number, or text.
func timeText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// span is how many seconds the query reaches over; 0 is unknown.
func (q Query) span() int64 {
	var start, end string
	switch {
	case q.Path != "":
		_, values := q.parameters()
		start, end = values.Get("start"), values.Get("end")
	case q.JSON != "":
		members := q.members()
		start, end = timeText(members["start"]), timeText(members["end"])
	default:
		return q.End - q.Start
	}
	if absolute(start) == 0 || absolute(end) == 0 {
		return 0
	}
	return absolute(end) - absolute(start)
}

// absolute is a time in seconds, 0 for one that is relative or a date.
func absolute(text string) int64 {
	t, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	if inMS(t) {
		return t / 1000
	}
	return t
}

// Whole is a query over all of a data set. text is an m parameter with %s for
// the metric.
func (d Devops) Whole(text string) Query {
	return Query{Start: d.Start, End: d.End() - 1, M: strings.Replace(text, "%s", d.Metric(), 1)}
}

// OneHost asks for the whole time of one host.
func (d Devops) OneHost(host int) Query {
	return d.Whole("sum:5m-avg:%s{host=" + HostName(host) + "}")
}

// Dashboard is the panels of one dashboard over a stretch of hours, from so many seconds
// after the start of the data: all together, by region, the busiest of each data centre, and
// three hosts, the first being host.
func (d Devops) Dashboard(from, hours int64, host int) []Query {
	start := d.Start + from
	end := min(start+hours*3600, d.End()) - 1
	panels := []string{"sum:5m-avg:%s", "avg:5m-avg:%s{region=*}", "max:5m-max:%s{dc=*}"}
	for i := range 3 {
		panels = append(panels, "sum:1m-avg:%s{host="+HostName((host+i*37)%d.Hosts)+"}")
	}

	out := make([]Query, len(panels))
	for i, p := range panels {
		q := d.Whole(p)
		q.Start, q.End = start, end
		out[i] = q
	}
	return out
}

// Mixed yields an endless mix as TSBS asks it: one host, some hosts, groups and
// all hosts, over one hour to the whole time, at random places.
func (d Devops) Mixed(seed uint64) iter.Seq[Query] {
	forms := []string{
		"sum:1m-avg:%s{host=HOST}", "max:1m-max:%s{host=HOST|HOST|HOST|HOST|HOST|HOST|HOST|HOST}",
		"avg:5m-avg:%s{region=*}", "sum:5m-avg:%s", "avg:1h-avg:%s{dc=*}", "max:5m-max:%s{host=*,region=region-3}",
	}
	return func(yield func(Query) bool) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		for {
			form := forms[rnd.IntN(len(forms))]
			name := form
			for strings.Contains(form, "HOST") {
				form = strings.Replace(form, "HOST", HostName(rnd.IntN(d.Hosts)), 1)
			}

			// The forms name three tags. Where hosts have fewer, only all together are requested.
			if d.Tags < 3 {
				form = "sum:5m-avg:%s"
				name = form
			}
			q := d.Whole(form)
			q.Name = d.Whole(name).M
			span := int64(1+rnd.IntN(d.Hours)) * 3600
			q.Start += rnd.Int64N(max(q.End-q.Start-span, 1))
			q.End = min(q.Start+span, q.End)
			if !yield(q) {
				return
			}
		}
	}
}

// Take returns the first n of a sequence.
func Take[T any](n int, all iter.Seq[T]) []T {
	var out []T
	for v := range all {
		if len(out) == n {
			break
		}
		out = append(out, v)
	}
	return slices.Clip(out)
}
