package hostile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"downpour/pushdown/operator/aggregate"
)

// question is a query as it is drawn, before it is written as GET or POST.
type question struct {
	start, end string
	subs       []sub
	flags      []string // of a GET; of a POST those that it knows by another name
	options    parameters
	arrow      bool
	zone       string
	calendar   bool
	fixed      bool // no part of the answer depends on the clock or on other queries
}

// sub is a sub-query.
type sub struct {
	aggregator, downsample, metric string
	rate, percentiles              string // as a GET writes them
	explicit                       bool
	filters                        []filter
	tsuids                         []string
}

type filter struct {
	kind, key, text string
	group           bool
}

var aggregators = aggregate.Names()

// intervals of downsampling, from the usual to the impossible.
var (
	usualIntervals = []string{"10s", "1m", "5m", "10m", "1h"}
	intervals      = []string{"1ms", "7ms", "1s", "7s", "40s", "1m", "11m", "1h", "7h", "1d", "1w", "1n", "1y",
		"30y", "1000y", "0all", "1sc", "7mc", "1hc", "1dc", "2wc", "1nc", "1yc", "99999dc",
		"9223372036854775807ms", "9223372036854776s", "292271023y", "1.5m", "0s", "-1s", "1q"}
	usualFills = []string{"", "", "-none", "-nan", "-null", "-zero"}
	fills      = append(slices.Clone(usualFills), "-scalar") // which is refused
	rates      = []string{
		"rate", "rate{counter}", "rate{counter,65535}", "rate{counter,%d}",
		"rate{counter,9223372036854775807,1}", "rate{dropcounter,100}", "rate{counter,x}",
	}
)

// query is one as dashboards send it, over some hours of one metric or several.
func (d *drawing) query() Request {
	q := question{fixed: true}
	for range 1 + max(0, d.r.IntN(6)-3) {
		q.subs = append(q.subs, d.usualSub())
	}
	m := metricNamed(q.subs[0].metric)
	begin := m.Start/1000 + d.r.Int64N(max(1, (m.End()-m.Start)/1000))
	lasts := int64(pick(d, []int{60, 600, 3600, 2 * 3600}))
	q.start, q.end = strconv.FormatInt(begin, 10), strconv.FormatInt(begin+lasts, 10)
	d.decorate(&q)
	return d.written(&q)
}

func metricNamed(name string) *Metric {
	i := slices.IndexFunc(metrics, func(m Metric) bool { return m.Name == name })
	return &metrics[max(i, 0)]
}

func (d *drawing) metric() *Metric { return &metrics[d.r.IntN(len(metrics))] }

func (d *drawing) usualSub() sub {
	m := d.metric()
	s := sub{
		aggregator: pick(d, []string{"sum", "avg", "max", "min", "count", "none", "p95", "dev", "zimsum", "last"}),
		metric:     m.Name,
	}
	if !d.one(4) {
		s.downsample = pick(d, usualIntervals) + "-" + pick(d, []string{"avg", "sum", "max", "count", "p99", "last"}) +
			pick(d, usualFills)
	}
	if d.one(4) {
		s.rate = d.rate()
	}
	if d.one(2) {
		s.filters = append(s.filters, d.filter(m))
	}
	if d.one(12) {
		s.tsuids = d.tsuids(m, 1+d.r.IntN(20))
		s.filters = nil
	}
	return s
}

func (d *drawing) rate() string {
	// The last of rates is malformed.
	if text := pick(d, rates[:6]); !strings.Contains(text, "%d") {
		return text
	}
	return fmt.Sprintf("rate{counter,%d}", 1000+d.r.IntN(1000))
}

func (d *drawing) tsuids(m *Metric, n int) (out []string) {
	for range n {
		out = append(out, d.world.tsuid(m, d.r.IntN(m.Series)))
	}
	return out
}

// filter is one that some series pass.
func (d *drawing) filter(m *Metric) filter {
	f := filter{key: pick(d, []string{"host", "host", "dc"}), group: d.one(2)}
	some := func() string {
		if f.key == "dc" {
			return centre(d.r.IntN(centres))
		}
		return host(d.r.IntN(m.Series))
	}
	f.kind = pick(d, []string{
		"literal_or", "literal_or", "iliteral_or", "not_literal_or", "not_iliteral_or", "wildcard", "wildcard",
		"iwildcard", "regexp",
	})
	switch f.kind {
	case "wildcard", "iwildcard":
		f.text = pick(d, []string{"*", "*", "web0*", "*1", "*e*0*", "w*0*0*1*", "**"})
	case "regexp":
		f.text = pick(d, []string{".*", "^web0000[0-9]$", "[13579]$", "(0|1)+$", "^(web|dc)", "0{2}"})
	default:
		var values []string
		for range 1 + d.r.IntN(5) {
			values = append(values, some())
		}
		f.text = strings.Join(values, "|")
	}
	return f
}

// decorate adds options that do not change what is read.
func (d *drawing) decorate(q *question) {
	q.arrow = d.one(4)
	for _, f := range []string{"ms", "arrays", "show_tsuids", "show_query", "no_annotations", "padding"} {
		if d.one(4) {
			q.flags = append(q.flags, f)
		}
	}
	for _, f := range []string{"show_stats", "show_summary", "global_annotations", "trace=true", "explain=true"} {
		if d.one(20) { // they show times, sizes, or what others put
			q.flags, q.fixed = append(q.flags, f), false
		}
	}
	switch {
	case d.one(10):
		q.options.add("jsonp", pick(d, []string{"f", "a.b", "alert(1)//", strings.Repeat("x", d.size(4096))}))
	case d.one(10):
		q.options.add("mode", pick(d, []string{"strict", "partial"}))
		q.fixed = q.fixed && q.options[len(q.options)-1] == "mode=strict"
	case d.one(10):
		q.options.add("allowPartial", "true")
		q.fixed = false
	}
	if q.arrow && d.one(2) {
		q.options.add("compression", pick(d, []string{"lz4", "zstd"}))
	}
	if q.arrow && d.one(3) {
		q.options.add("integers", "true")
	}
	if d.one(8) {
		q.zone = pick(d, []string{"Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "nowhere"})
		q.calendar = d.one(2)
	}
}

// largeQuery reads or makes much, and may be answered.
func (d *drawing) largeQuery() Request {
	q := question{fixed: true}
	q.start, q.end = strconv.FormatInt(Era, 10), strconv.FormatInt(Era+36_000, 10)
	for i := range pick(d, []int{1, 1, 2, 4, 16}) {
		m := d.metric()
		s := sub{aggregator: pick(d, aggregators), metric: m.Name}
		switch d.r.IntN(4) {
		case 0:
			s.rate = fmt.Sprintf("rate{counter,%d}", 1000+i) // of equal sub-queries one would be left
		case 1:
			// Up to 1hc; behind it come days by the calendar and what is no interval.
			s.downsample = pick(d, intervals[:19]) + "-" + pick(d, aggregators) + pick(d, fills)
		case 2:
			s.filters = []filter{{kind: "wildcard", key: "host", text: "*", group: true}}
			s.downsample = pick(d, usualIntervals) + "-avg" + pick(d, fills)
		}
		if d.one(3) {
			s.aggregator = "none"
		}
		q.subs = append(q.subs, s)
	}
	if d.one(3) {
		q.start = pick(d, []string{"0", "1", "1000", strconv.FormatInt(metricNamed("hostile.slow").Start/1000, 10)})
	}
	d.decorate(&q)
	return d.written(&q)
}

// mostText is about how many bytes of filters a query has, a few more than are
// read of a body.
const mostText = 2 << 20

// absurdQuery asks for what nobody can have, or for little at a great price.
func (d *drawing) absurdQuery() Request {
	q := question{fixed: true}
	q.start = pick(d, []string{
		"0", "1", "999", "1000", "1ms", "1970/01/01-00:00:00", "1000000000.5", "200y-ago", "1h-ago",
		"9999999999999", "-1", "now",
	})
	q.end = pick(d, []string{
		"", "", "now", "1ms-ago", "1700000000", "4294967295", "9999999999999", "9223372036854775807", "0",
	})
	q.fixed = q.end != "" && !strings.Contains(q.start+q.end, "ago") && !strings.Contains(q.start+q.end, "now")
	left := mostText
	for i := range pick(d, []int{1, 1, 1, 2, 8, 60, 64, 65, 300}) {
		m := d.metric()
		if d.one(3) {
			m = metricNamed(two) // two points 50 years apart
		}
		s := sub{aggregator: pick(d, aggregators), metric: m.Name}
		if !d.one(4) {
			s.downsample = pick(d, intervals) + "-" + pick(d, aggregators) + pick(d, fills)
		}
		if d.one(3) {
			s.rate = fmt.Sprintf("rate{counter,%d}", i+1) // of equal sub-queries one would be left
		}
		if d.one(6) {
			s.percentiles = pick(d, []string{
				"percentiles[50,99.9]", "percentiles[-1]", "percentiles[1e30]", "show-histogram-buckets",
			})
		}
		s.explicit = d.one(8)
		for range pick(d, []int{0, 0, 1, 2, 50}) {
			if left <= 0 {
				break
			}
			f := d.absurdFilter(m)
			s.filters = append(s.filters, f)
			left -= len(f.text) + len(f.key)
		}
		if d.one(10) {
			s.tsuids, s.filters = d.tsuids(m, d.size(4096)), nil
		}
		q.subs = append(q.subs, s)
	}
	d.decorate(&q)
	return d.written(&q)
}

// absurdFilter is one that is long, or costly to look at.
func (d *drawing) absurdFilter(m *Metric) filter {
	f := d.filter(m)
	switch d.r.IntN(5) {
	case 0:
		f.kind, f.text = "regexp", pick(d, []string{
			"(a{1000}){4}", "((((.*)*)*)*)*b", "(.|w)*(.|e)*(.|b)*$", "(?i)[^x]{900}", `\p{L}{500}`,
			strings.Repeat("(", 1000), strings.Repeat("a|", 2000), "(x+x+)+y", `(a)\1`})
	case 1:
		f.kind, f.text = "wildcard", strings.Repeat("*0", 1+d.size(2048))
	case 2:
		var values []string
		for range d.size(4096) {
			values = append(values, host(d.r.IntN(30_000)))
		}
		f.kind, f.text = pick(d, []string{"literal_or", "iliteral_or", "not_literal_or"}), strings.Join(values, "|")
	case 3:
		f.key = pick(d, []string{"nosuch", strings.Repeat("k", d.size(8192)), "\x00", "host "})
	}
	return f
}

// mostLine is the longest request line that a gateway takes, about.
const mostLine = 30_000

// written writes a question in one of its forms.
func (d *drawing) written(q *question) Request {
	m := message{method: "GET", path: q.get()}
	if d.one(2) || len(m.path) > mostLine && !d.one(8) {
		m.method, m.body = "POST", q.body(d.one(4))
		var p parameters
		// A body can say neither arrays, nor flags with a value, nor options.
		for _, f := range q.flags {
			p.flag(f == "arrays" || strings.Contains(f, "="), f)
		}
		m.path = append(p, q.options...).on("/api/query")
	}
	if q.arrow {
		m.set("Accept", "application/vnd.apache.arrow.stream")
	}
	if d.one(4) {
		m.set("Accept-Encoding", pick(d, []string{"gzip", "zstd", "gzip, zstd", "br;q=1, *;q=0"}))
	}
	out := m.request()
	out.Exact, out.Arrow = q.fixed, q.arrow
	return out
}

// get is the question as a request line.
func (q *question) get() string {
	p := parameters{}
	p.add("start", q.start)
	if q.end != "" {
		p.add("end", q.end)
	}
	if q.zone != "" {
		p.add("timezone", q.zone)
	}
	for _, f := range q.flags {
		p.flag(true, f)
	}
	p = append(p, q.options...)
	for i := range q.subs {
		p.add(q.subs[i].parameter())
	}
	return p.on("/api/query")
}

// parameter is the sub-query as m=… or tsuid=….
func (s *sub) parameter() (name, value string) {
	parts := []string{s.aggregator}
	for _, p := range []string{s.downsample, s.rate, s.percentiles} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if len(s.tsuids) > 0 {
		return "tsuid", strings.Join(append(parts, strings.Join(s.tsuids, ",")), ":")
	}
	if s.explicit {
		parts = append(parts, "explicit_tags")
	}
	return "m", strings.Join(append(parts, s.metric+s.braces(true)+s.braces(false)), ":")
}

func (s *sub) braces(group bool) string {
	var tags []string
	for _, f := range s.filters {
		if f.group == group {
			tags = append(tags, f.key+"="+f.kind+"("+f.text+")")
		}
	}
	if tags == nil && (!group || len(s.filters) == 0) {
		return ""
	}
	return "{" + strings.Join(tags, ",") + "}"
}

// body is the question as the body of a POST. Of an odd one keys stand twice and
// numbers are text.
func (q *question) body(odd bool) []byte {
	var b strings.Builder
	text := func(s string) string {
		quoted, _ := json.Marshal(s) // strings
		return string(quoted)
	}
	b.WriteString(`{"start":` + text(q.start))
	if q.end != "" {
		b.WriteString(`,"end":` + text(q.end))
	}
	if q.zone != "" {
		b.WriteString(`,"timezone":` + text(q.zone))
	}
	names := map[string]string{
		"ms":                 "msResolution",
		"show_tsuids":        "showTSUIDs",
		"show_query":         "showQuery",
		"show_stats":         "showStats",
		"show_summary":       "showSummary",
		"no_annotations":     "noAnnotations",
		"global_annotations": "globalAnnotations",
		"padding":            "padding",
	}
	for _, f := range q.flags {
		if name := names[f]; name != "" {
			fmt.Fprintf(&b, ",%q:true", name)
		}
	}
	if q.calendar {
		b.WriteString(`,"useCalendar":"true"`)
	}
	if odd {
		b.WriteString(`,"start":` + text(q.start) + `,"nobodyKnowsThis":[{"a":[[[]]]}],"padding":"  "`)
	}
	b.WriteString(`,"queries":[`)
	for i := range q.subs {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(q.subs[i].object(odd))
	}
	b.WriteString("]}")
	return []byte(b.String())
}

// object is the sub-query as JSON.
func (s *sub) object(odd bool) string {
	o := map[string]any{"aggregator": s.aggregator}
	if len(s.tsuids) > 0 {
		o["tsuids"] = s.tsuids
	} else {
		o["metric"] = s.metric
	}
	if s.downsample != "" {
		o["downsample"] = s.downsample
	}
	if s.rate != "" {
		o["rate"] = true
		if _, inner, found := strings.Cut(strings.TrimSuffix(s.rate, "}"), "{"); found {
			o["rateOptions"] = rateOptions(strings.Split(inner, ","), odd)
		}
	}
	// The text is of a GET alone, and may ask for buckets: a POST always asks for these.
	if s.percentiles != "" {
		o["percentiles"] = []any{99.9, "50", 1e30}
	}
	if s.explicit {
		o["explicitTags"] = true
	}
	list := []map[string]any{}
	for _, f := range s.filters {
		list = append(list, map[string]any{"type": f.kind, "tagk": f.key, "filter": f.text, "groupBy": f.group})
	}
	if len(list) > 0 {
		o["filters"] = list
	}
	text, _ := json.Marshal(o) // texts, numbers and flags
	return string(text)
}

func rateOptions(words []string, asText bool) map[string]any {
	o := map[string]any{"counter": true, "dropResets": words[0] == "dropcounter"}
	for i, name := range []string{"counterMax", "resetValue"} {
		if len(words) <= i+1 {
			break
		}
		n, err := strconv.ParseInt(words[i+1], 10, 64)
		if o[name] = n; asText || err != nil {
			o[name] = words[i+1]
		}
	}
	return o
}

// malformedQuery is no query, at some length.
func (d *drawing) malformedQuery() Request {
	n := d.size(1 << 20)
	good := `{"start":"0","queries":[{"aggregator":"sum","metric":"` + Light + `"}]}`
	m := message{method: "POST", path: "/api/query"}
	m.body = []byte(pick(d, []func() string{
		func() string { return strings.Repeat("[", n) },
		func() string { return strings.Repeat(`{"queries":`, n/11+1) },
		func() string { return strings.Repeat(`{"a":[`, n/6+1) },
		func() string { return good[:d.r.IntN(len(good))] },
		func() string { return strings.Repeat(" ", n) + good },
		func() string { return strings.Replace(good, Light, strings.Repeat("m", n), 1) },
		func() string { return strings.Replace(good, "0", strings.Repeat("0", n), 1) },
		func() string { return `{"queries":[` + strings.Repeat(`{},`, n/3) + `{}]}` },
		func() string { return `{"start":1e` + strings.Repeat("9", n) + `}` },
		func() string { return `{"` + strings.Repeat(`\u0000`, n/6+1) + `":1}` },
		func() string { return "\xFF\xFE" + good },
		func() string { return "" },
	})())
	switch d.r.IntN(5) {
	case 0:
		m.method = pick(d, []string{"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"})
	case 1:
		m.path = "/api/v" + pick(d, []string{"0", "1", "2", "99999999999999999999"}) + "/query"
	case 2:
		m.path = "/api/query?" + strings.Repeat("m=sum:"+Light+"&", d.size(1024)) + "start=0&serializer=" +
			pick(d, []string{"json", "x"})
	case 3:
		m.set("X-Long", strings.Repeat("h", d.size(64<<10)))
	}
	return m.request()
}
