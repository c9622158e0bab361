package differential

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"

	"downpour/pushdown/operator/aggregate"
)

// Random draws a query about the data. Few of them are errors, and many of the
// others ask at the edges: of hours, of buckets, of points.
func Random(r *rand.Rand, d *Data) Query {
	q := Query{AsGET: r.IntN(3) == 0}
	for range 1 + max(0, r.IntN(7)-4) {
		q.Subs = append(q.Subs, randomSub(r, d))
	}
	if q.AsGET { // which reads TSUIDs before metrics, wherever they stand
		slices.SortStableFunc(q.Subs, func(a, b Sub) int {
			return cmp.Compare(min(1, len(b.TSUIDs)), min(1, len(a.TSUIDs)))
		})
	}
	one := func(in int) bool { return r.IntN(in) == 0 }
	q.MS, q.Arrays, q.ShowTSUIDs, q.ShowQuery = one(2), one(4), one(4), one(8)
	q.NoAnnotations, q.GlobalAnnotations = one(6), one(8)
	if !q.AsGET { // which is written without these two
		q.UseCalendar = one(15)
		if one(3) {
			q.Timezone = pick(r, zones)
		}
	}
	// What is filled must suit the range, so times are drawn before downsamples.
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
		if r.IntN(3) == 0 { // a POST may have filters as well, which are applied to names
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

// randomMetric takes a metric whose queries often end in an error half as often as another.
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
			tsuid = strings.ToLower(tsuid) // servers take either case
		}
		tsuids = append(tsuids, tsuid)
	}
	return tsuids
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

// slow reports whether the sub-query is about points hours apart.
func (s Sub) slow(d *Data) bool { return d.asked(s)[0].Metric == Slow }
