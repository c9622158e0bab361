package differential

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"downpour/gateway/query"
	"downpour/pushdown/aggregate"
)

// Random draws a query about the data. Few of them are errors, and many of the
// others ask at the edges: of hours, of buckets, of points.
func Random(r *rand.Rand, d *Data) Query {
	q := Query{AsGET: r.IntN(3) == 0}
	for range 1 + max(0, r.IntN(7)-4) {
		q.Subs = append(q.Subs, randomSub(r, d))
	}
	if q.AsGET { // which reads TSUIDs before metrics, wherever they stand
		slices.SortStableFunc(q.Subs, func(a, b Sub) int { return cmp.Compare(min(1, len(b.TSUIDs)), min(1, len(a.TSUIDs))) })
	}
	one := func(in int) bool { return r.IntN(in) == 0 }
	q.MS, q.Arrays, q.ShowTSUIDs, q.ShowQuery = one(2), one(4), one(4), one(8)
	q.NoAnnotations, q.GlobalAnnotations = one(6), one(8)
	if !q.AsGET {
		q.UseCalendar = one(15)
		if one(3) {
			q.Timezone = pick(r, zones)
		}
	}
	randomTimes(r, d, &q)
	for i := range q.Subs {
		s := &q.Subs[i]
		if q.AsGET {
			s.othersFirst()
		}
		s.Downsample = randomDownsample(r, s.slow(d), q.span())
	}
	return q
}

// zones are some that change their clocks at odd hours or by odd amounts.
var zones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe",
	"America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Apia", "Africa/Casablanca",
}

var aggregators = aggregate.Names()

func randomSub(r *rand.Rand, d *Data) Sub {
	s := Sub{Aggregator: randomAggregator(r), Metric: randomMetric(r, d)}
	if r.IntN(3) == 0 {
		s.Rate = true
		s.Options = randomRate(r)
	}
	if r.IntN(10) == 0 {
		if r.IntN(3) == 0 { // a POST may filter them further, by names alone
			s.Filters = randomFilters(r, d, s.Metric)
		}
		s.TSUIDs, s.Metric = randomTSUIDs(r, d.Of(s.Metric)), ""
		return s
	}
	s.Filters = randomFilters(r, d, s.Metric)
	if of := d.Of(s.Metric); r.IntN(4) > 0 { // most queries should find something
		target := pick(r, of)
		s.Filters = slices.DeleteFunc(s.Filters, func(f Filter) bool { return !admits(f, target.Tags) })
	}
	s.ExplicitTags = r.IntN(8) == 0
	if r.IntN(5) == 0 {
		s.AsTags = true
		s.Filters = onePerKey(s.Filters)
	}
	return s
}

func randomAggregator(r *rand.Rand) string {
	if r.IntN(200) == 0 {
		return "nosuch"
	}
	if r.IntN(3) == 0 {
		return pick(r, []string{"sum", "avg", "max", "none"})
	}
	return pick(r, aggregators)
}

// randomMetric seldom takes those whose queries often end in an error.
func randomMetric(r *rand.Rand, d *Data) string {
	for {
		m := pick(r, d.Metrics())
		if m != Duplicated && m != "diff.edge" || r.IntN(2) == 0 {
			return m
		}
	}
}

func randomRate(r *rand.Rand) *RateOptions {
	if r.IntN(3) == 0 {
		return nil
	}
	return &RateOptions{
		Counter:    r.IntN(4) > 0,
		CounterMax: pick(r, []int64{0, 0, 65535, 1<<32 - 1, 1 << 40}),
		ResetValue: pick(r, []int64{0, 0, 1, 100, 100000}),
		DropResets: r.IntN(3) == 0,
	}
}

func randomTSUIDs(r *rand.Rand, of []Series) (tsuids []string) {
	for range 1 + r.IntN(3) {
		tsuid := pick(r, of).TSUID
		if r.IntN(4) == 0 {
			tsuid = strings.ToLower(tsuid)
		}
		tsuids = append(tsuids, tsuid)
	}
	return tsuids
}

func randomFilters(r *rand.Rand, d *Data, metric string) (filters []Filter) {
	keys := slices.Clone(TagKeys)
	r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, key := range keys[:pick(r, []int{0, 1, 1, 1, 2, 2, 3})] {
		filters = append(filters, randomFilter(r, d, metric, key))
		if r.IntN(7) == 0 {
			filters = append(filters, randomFilter(r, d, metric, key))
		}
	}
	if r.IntN(60) == 0 {
		filters = append(filters, Filter{Type: "wildcard", TagK: pick(r, []string{AbsentKey, "unknown"}), Text: "*"})
	}
	return filters
}

// admits tells whether a filter lets a series through, as far as a guess goes:
// the judges are the servers.
func admits(f Filter, tags map[string]string) bool {
	value, there := tags[f.TagK]
	if !there {
		return false
	}
	g, err := query.NewFilter(f.Type, f.TagK, f.Text, f.GroupBy)
	return err == nil && g.Match(value)
}

func randomFilter(r *rand.Rand, d *Data, metric, key string) Filter {
	kind := pick(r, []string{
		"literal_or", "literal_or", "literal_or", "iliteral_or", "not_literal_or", "not_iliteral_or",
		"wildcard", "wildcard", "iwildcard", "regexp",
	})
	f := Filter{Type: kind, TagK: key, GroupBy: r.IntN(2) == 0}
	switch kind {
	case "wildcard", "iwildcard":
		f.Text = randomWildcard(r, pick(r, tagValues[key]))
	case "regexp":
		f.Text = randomRegexp(r, pick(r, tagValues[key]))
	default:
		f.Text = randomLiterals(r, d, metric, key)
	}
	return f
}

func randomLiterals(r *rand.Rand, d *Data, metric, key string) string {
	var values []string
	for range 1 + r.IntN(4) {
		switch used := d.Values(metric, key); {
		case len(used) > 0 && r.IntN(4) > 0:
			values = append(values, pick(r, used))
		default:
			values = append(values, pick(r, tagValues[key]))
		}
	}
	if r.IntN(30) == 0 {
		values = append(values, pick(r, []string{AbsentValue, AbsentValue, "unknown"}))
	}
	return strings.Join(values, "|")
}

// randomWildcard keeps pieces of a value and puts stars between them.
func randomWildcard(r *rand.Rand, v string) string {
	cut := r.IntN(len(v) + 1)
	return pick(r, []string{
		"*", "*", "*", v[:cut] + "*", "*" + v[cut:], "*" + v[cut:] + "*", v[:cut] + "*" + v[cut:],
		v[:1] + "*" + v[len(v)-1:], "*" + v[:1] + "*" + v[len(v)-1:] + "*", "**" + v[cut:],
	})
}

func randomRegexp(r *rand.Rand, v string) string {
	cut := r.IntN(len(v) + 1)
	return pick(r, []string{
		".*", ".", "^" + v[:cut], v[cut:] + "$", "^(" + v + "|web02)$", "[a-z]+[0-9]", "(?i)" + v, "^[^w]", "b.*b|a", "^$", `\d\d$`, "0[12]",
	})
}

// onePerKey keeps each key's last filter, as a map does, and lets all group.
func onePerKey(filters []Filter) (kept []Filter) {
	for i, f := range filters {
		f.GroupBy = true
		if !slices.ContainsFunc(filters[i+1:], func(g Filter) bool { return g.TagK == f.TagK }) {
			kept = append(kept, f)
		}
	}
	return kept
}

// othersFirst orders the filters as a GET's are read: those that do not group
// come first. The order decides between several filters on one key.
func (s *Sub) othersFirst() {
	slices.SortStableFunc(s.Filters, func(a, b Filter) int {
		switch {
		case a.GroupBy == b.GroupBy:
			return 0
		case b.GroupBy:
			return -1
		}
		return 1
	})
}

// asked are the series of a sub-query, whatever its filters say.
func (d *Data) asked(s Sub) []Series {
	if len(s.TSUIDs) == 0 {
		return d.Of(s.Metric)
	}
	var all []Series
	for _, o := range d.Series {
		if slices.ContainsFunc(s.TSUIDs, func(t string) bool { return strings.EqualFold(t, o.TSUID) }) {
			all = append(all, o)
		}
	}
	return all
}

// slow tells whether the sub-query is about points hours apart.
func (s Sub) slow(d *Data) bool { return d.asked(s)[0].Metric == Slow }

// randomTimes sets start and end.
func randomTimes(r *rand.Rand, d *Data, q *Query) {
	slow := slices.ContainsFunc(q.Subs, func(s Sub) bool { return s.slow(d) })
	span, lengths := int64(FineSpan), []int64{second, hour / 6, hour, hour, 2 * hour, 2 * hour, 3*hour + 7, 6 * hour, 8 * hour}
	if slow {
		span, lengths = SlowSpan, []int64{3 * hour, day, 7 * day, 20 * day, 45 * day, 80 * day}
	}
	start := d.Era*1000 - hour/2 + r.Int64N(span*3/4)
	if r.IntN(2) == 0 {
		s := pick(r, d.asked(q.Subs[0]))
		start = pick(r, s.Points).MS + pick(r, []int64{-1, 0, 0, 1})
	} else if r.IntN(3) == 0 {
		start = d.Era * 1000
	}
	end := start + pick(r, lengths)
	grain := pick(r, []int64{1, second, second, 60 * second, 300 * second, hour})
	start, end = start-start%grain, end-end%grain
	if r.IntN(6) == 0 {
		end -= end % hour // as the last hour ends
		end -= pick(r, []int64{1, second, 0})
	}
	if end <= start && r.IntN(30) > 0 {
		end = start + second
	}
	q.Start, q.End = writeTime(r, start, q), writeTime(r, end, q)
}

// writeTime writes ms in one of the forms that can hold it. A date stands for
// another time in every zone, so the reading is up to the servers.
func writeTime(r *rand.Rand, ms int64, q *Query) string {
	switch {
	case ms%second == 0 && r.IntN(8) == 0:
		return time.UnixMilli(ms).UTC().Format("2006/01/02-15:04:05")
	case ms%(60*second) == 0 && r.IntN(8) == 0:
		return time.UnixMilli(ms).UTC().Format("2006/01/02 15:04")
	case ms%second == 0 && r.IntN(2) == 0:
		return strconv.FormatInt(ms/second, 10)
	case r.IntN(8) == 0:
		return fmt.Sprintf("%d.%03d", ms/second, ms%second)
	case r.IntN(12) == 0:
		return strconv.FormatInt(ms, 10) + "ms"
	}
	return strconv.FormatInt(ms, 10)
}

// span is about how long the query's range is, ms.
func (q Query) span() int64 { return max(readTime(q.End)-readTime(q.Start), second) }

// readTime reads what writeTime writes, dates as UTC.
func readTime(text string) int64 {
	text = strings.TrimSuffix(text, "ms")
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n < 1<<33 {
			n *= second
		}
		return n
	}
	if whole, fraction, ok := strings.Cut(text, "."); ok {
		return readTime(whole) + readTime(fraction)/second
	}
	for _, layout := range []string{"2006/01/02-15:04:05", "2006/01/02 15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UnixMilli()
		}
	}
	return 0
}

// maxBuckets bounds what a filled answer holds for each group.
const maxBuckets = 3000

var (
	fineIntervals = []string{"1s", "10s", "500ms", "1500ms", "30s", "1m", "1m", "5m", "5m", "7m", "90s", "13m", "1h", "1h", "2h", "5h", "1d", "0all", "all",
		"1mc", "5mc", "7mc", "1hc", "5hc", "7hc", "1dc", "1wc", "40sc"}
	slowIntervals = []string{"1h", "6h", "7h", "36h", "1d", "3d", "1w", "2w", "1n", "1y", "0all",
		"1dc", "3dc", "1wc", "2wc", "1nc", "2nc", "5nc", "1yc", "12hc", "7hc"}
	nominal = map[byte]int64{'s': second, 'm': 60 * second, 'h': hour, 'd': day, 'w': 7 * day, 'n': 30 * day, 'y': 365 * day}
)

func randomDownsample(r *rand.Rand, slow bool, span int64) string {
	if r.IntN(3) == 0 {
		return ""
	}
	intervals := fineIntervals
	if slow {
		intervals = slowIntervals
	}
	interval := pick(r, intervals)
	function := pick(r, aggregators)
	if function == "none" && r.IntN(20) > 0 || r.IntN(3) == 0 {
		function = pick(r, []string{"avg", "sum", "max", "count"})
	}
	fill := pick(r, []string{"", "", "-none", "-nan", "-null", "-zero", "-NaN"})
	if (span+2*hour)/intervalMS(interval) > maxBuckets {
		fill = ""
	}
	return fmt.Sprintf("%s-%s%s", interval, function, fill)
}

// intervalMS is the nominal length of an interval.
func intervalMS(interval string) int64 {
	if strings.HasSuffix(interval, "all") {
		return 1 << 62
	}
	interval = strings.TrimSuffix(interval, "c")
	if n, ok := strings.CutSuffix(interval, "ms"); ok {
		count, _ := strconv.ParseInt(n, 10, 64)
		return count
	}
	count, _ := strconv.ParseInt(interval[:len(interval)-1], 10, 64)
	return count * nominal[interval[len(interval)-1]]
}
