package differential

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	"downpour/encoding"
)

// HistogramCodec is the number of the codec in HistogramConfig.
const HistogramCodec = 42

// HistogramConfig is tsd.core.histograms.config for Histograms.
var HistogramConfig = fmt.Sprintf(`{"net.opentsdb.core.SimpleHistogramDecoder": %d}`, HistogramCodec)

// bounds are the buckets of a metric's histograms.
type bounds struct {
	name   string
	series int
	edges  []float32
	same   bool // all histograms have all buckets
}

var histogramMetrics = []bounds{
	{name: "hist.lat", series: 6, edges: []float32{0, 1.75, 3.5, 10, 50, 100, 1000}, same: true},
	{name: "hist.size", series: 4, edges: []float32{0, 0.1, 0.25, 0.5, 1, 2.5, 5}},
	{name: "hist.odd", series: 5, edges: []float32{-10, 0, 0.333, 10, 20}},
	{name: "hist.one", series: 1, edges: []float32{0, 1}, same: true},
}

// Histograms draws histograms, and the series that they make.
func Histograms(seed uint64) (*Data, []Put) {
	r := rand.New(rand.NewPCG(seed, 3)) // 1, 2 and 3 keep Generate, Rollups and Histograms apart
	d := &Data{Era: eras[r.IntN(len(eras))]}
	var points []json.RawMessage
	for _, m := range histogramMetrics {
		for _, s := range distinctSeries(r, m.name, m.series) {
			times := fineTimes(r)
			for len(times) == 0 {
				times = fineTimes(r)
			}
			// A row's cells are all in seconds or all in ms: OpenTSDB leaves both kinds in the
			// order of their qualifiers, in which those of ms come first.
			milli := r.IntN(4) == 0
			for _, at := range times {
				if milli {
					at += 1 + r.Int64N(second-1)
				}
				// Queries draw their times from Points, which need no values.
				s.Points = append(s.Points, Point{MS: d.Era*1000 + at})
				points = append(points, m.put(r, s, d.Era*1000+at))
			}
			d.Series = append(d.Series, s)
		}
	}
	return d, bodies(map[string][]json.RawMessage{"/api/histogram": points})
}

// put is one histogram, in one of the two forms of the API.
func (m bounds) put(r *rand.Rand, s Series, ms int64) json.RawMessage {
	count := func() int64 {
		if r.IntN(3) == 0 {
			return r.Int64N(1 << (1 + r.IntN(20)))
		}
		return r.Int64N(6)
	}
	h := encoding.Histogram{Underflow: count(), Overflow: count()}
	for i, lower := range m.edges[:len(m.edges)-1] {
		if m.same || i == 0 || r.IntN(4) > 0 { // the first always, for one must be there
			h.Buckets = append(h.Buckets, encoding.HistogramBucket{Lower: lower, Upper: m.edges[i+1], Count: count()})
		}
	}

	point := map[string]any{"metric": m.name, "tags": s.Tags, "timestamp": ms}
	if ms%second == 0 {
		point["timestamp"] = ms / second
	}
	if r.IntN(2) == 0 {
		point["id"] = HistogramCodec
		point["value"] = base64.StdEncoding.EncodeToString(encoding.AppendHistogram(nil, &h))
	} else {
		buckets := map[string]int64{}
		for _, b := range h.Buckets {
			buckets[fmt.Sprintf("%v,%v", b.Lower, b.Upper)] = b.Count
		}
		point["buckets"], point["underflow"], point["overflow"] = buckets, h.Underflow, h.Overflow
	}
	text, err := json.Marshal(point)
	if err != nil {
		panic(err) // nothing in it can fail
	}
	return text
}

// RandomHistogramQuery draws a query of percentiles or buckets. On salted tables OpenTSDB
// shows each hour of a series by itself unless series are summed.
func RandomHistogramQuery(r *rand.Rand, d *Data, salted bool) Query {
	q := Query{MS: r.IntN(2) == 0, Arrays: r.IntN(4) == 0, ShowQuery: r.IntN(6) == 0, AsGET: r.IntN(4) == 0}
	q.setTimes(r, d, 4*hour, []int64{hour / 6, hour, 2 * hour, 2 * hour, 6 * hour, 6 * hour})
	for range 1 + max(0, r.IntN(6)-4) {
		m := pick(r, histogramMetrics)
		s := Sub{
			Aggregator: pick(r, []string{"sum", "sum", "none"}),
			Metric:     m.name,
			Filters:    randomFilters(r, d, m.name),
			Rate:       r.IntN(6) == 0,
		}
		if salted {
			s.Aggregator = "sum"
		}
		if r.IntN(30) == 0 { // which is refused, as 5m-avg below
			s.Aggregator = "avg"
		}
		if r.IntN(10) > 0 { // most queries should find something
			target := pick(r, d.Of(m.name))
			s.Filters = slices.DeleteFunc(s.Filters, func(f Filter) bool { return !admits(f, target.Tags) })
		}
		if r.IntN(2) == 0 {
			s.RollupUsage = "ROLLUP_RAW" // OpenTSDB looks for histograms among rollups otherwise
			s.Downsample = pick(r, []string{"1m", "5m", "7m", "10m", "20m", "1h", "1hc", "40s"}) + "-sum" +
				pick(r, []string{"", "", "-nan", "-zero"})
			if r.IntN(30) == 0 {
				s.Downsample = "5m-avg"
			}
		}
		for range r.IntN(4) {
			s.Percentiles = append(s.Percentiles, pick(r, []float64{50, 90, 99, 99.9, 75.5, 0, 1, 100, 0.5, 12.25}))
		}
		s.ShowBuckets = len(s.Percentiles) == 0 || r.IntN(3) == 0
		if q.AsGET {
			s.othersFirst()
		}
		q.Subs = append(q.Subs, s)
	}
	return q
}
