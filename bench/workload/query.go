package workload

import (
	"bufio"
	"fmt"
	"io"
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
	// Expression is the body of a POST to /api/query/exp with %d for start and end, instead
	// of M, which then only names it.
	Expression string
}

// Body is the body of a POST, "" for a GET.
func (q Query) Body() string {
	if q.Expression == "" {
		return ""
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
			v, forth, back := q, i%steps*unit, rnd.Int64N(steps)*unit
			if q.Path != "" {
				v.Path = varyPath(q.Path, forth, back)
			} else {
				v.Start, v.End = q.Start+forth, q.End-back
			}
			if !yield(v) {
				return
			}
		}
	}
}

// span is how many seconds the query reaches over; 0 is unknown.
func (q Query) span() int64 {
	if q.Path == "" {
		return q.End - q.Start
	}
	u, err := url.Parse(q.Path)
	if err != nil {
		return 0
	}

	start, end := absolute(u.Query().Get("start")), absolute(u.Query().Get("end"))
	if start == 0 || end == 0 {
		return 0
	}
	return end - start
}

// absolute is a time in seconds, 0 for one that is relative or a date.
func absolute(text string) int64 {
	t, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	if t > 1<<32 { // in ms
		return t / 1000
	}
	return t
}

// varyPath moves the absolute times of a recorded request: its start later by forth seconds,
// its end earlier by back seconds.
func varyPath(path string, forth, back int64) string {
	u, err := url.Parse(path)
	if err != nil {
		return path
	}
	values := u.Query()
	for name, by := range map[string]int64{"start": forth, "end": -back} {
		t, err := strconv.ParseInt(values.Get(name), 10, 64)
		if err != nil {
			continue // relative, and so never the same twice anyway
		}
		if t > 1<<32 { // in ms
			by *= 1000
		}
		values.Set(name, strconv.FormatInt(t+by, 10))
	}

	u.RawQuery = values.Encode()
	return u.String()
}

// Recorded reads requests, one "/api/query?…" a line; empty lines and those
// that begin with # are passed over. A whole URL counts by its path and query,
// so an access log's column will do.
func Recorded(r io.Reader) ([]Query, error) {
	var all []Query
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		u, err := url.Parse(text)
		if err != nil || !strings.HasPrefix(u.Path, "/") || u.Query().Get("start") == "" {
			return nil, fmt.Errorf("line %d: got %.80q, want a request such as /api/query?start=…&m=…", n, text)
		}
		all = append(all, Query{Path: u.RequestURI()})
	}

	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no request in it")
	}

	return all, nil
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
// three hosts, of which host is the first.
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
			for strings.Contains(form, "HOST") {
				form = strings.Replace(form, "HOST", HostName(rnd.IntN(d.Hosts)), 1)
			}

			// The forms name three tags. Where hosts have fewer, only all together are asked for.
			if d.Tags < 3 {
				form = "sum:5m-avg:%s"
			}
			q := d.Whole(form)
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
