package extra_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	prom "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"

	"downpour/gateway/extra/prometheus/promql"
)

// promPeer is Prometheus' engine over the same points, which it finds by its own matchers in a list.
type promPeer struct {
	engine *prom.Engine
	series []promSeries
	tsdb   *tsdbPeer // read in place of series; nil is none
}

type promSeries struct {
	labels labels.Labels
	points []prom.FPoint
}

func newPromPeer() *promPeer { return &promPeer{engine: newPromEngine(false)} }

// newPromEngine returns Prometheus' engine; with its flag promql-delayed-name-removal if late is set.
func newPromEngine(late bool) *prom.Engine {
	return prom.NewEngine(prom.EngineOpts{
		MaxSamples: 10_000_000, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
		EnableDelayedNameRemoval: late,
		Parser:                   parser.NewParser(promql.ParserOptions),
	})
}

// add adds a series, which keeps the order of labels: that of sums.
func (p *promPeer) add(l labels.Labels, points []prom.FPoint) {
	p.series = append(p.series, promSeries{l, points})
	slices.SortStableFunc(p.series, func(a, b promSeries) int { return labels.Compare(a.labels, b.labels) })
}

// Querier returns what reads the list.
func (p *promPeer) Querier(mint, maxt int64) (storage.Querier, error) {
	return peerQuerier{storage.NoopQuerier(), p}, nil
}

type peerQuerier struct {
	storage.Querier
	peer *promPeer
}

// Select returns the series that match.
func (q peerQuerier) Select(_ context.Context, _ bool, hints *storage.SelectHints,
	matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, s := range q.peer.choose(hints.Start, hints.End, matchers) {
		var points []chunks.Sample
		for _, p := range s.points {
			points = append(points, peerPoint{p})
		}
		found = append(found, storage.NewListSeries(s.labels, points))
	}
	return &peerSet{found, -1}
}

// choose returns the series that match, with their points of these times.
func (p *promPeer) choose(start, end int64, matchers []*labels.Matcher) (found []promSeries) {
	if p.tsdb != nil {
		return p.tsdb.choose(start, end, matchers)
	}
	for _, s := range p.series {
		if slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
			continue
		}
		var points []prom.FPoint
		for _, p := range s.points {
			if p.T >= start && p.T <= end {
				points = append(points, p)
			}
		}
		if len(points) > 0 {
			found = append(found, promSeries{s.labels, points})
		}
	}
	return found
}

// peerSet is a list of series.
type peerSet struct {
	list []storage.Series
	at   int
}

func (s *peerSet) Next() bool         { s.at++; return s.at < len(s.list) }
func (s *peerSet) At() storage.Series { return s.list[s.at] }
func (s *peerSet) Err() error         { return nil }

func (s *peerSet) Warnings() annotations.Annotations { return nil }

// peerPoint is a point as Prometheus' lists have it.
type peerPoint struct{ prom.FPoint }

func (p peerPoint) T() int64                      { return p.FPoint.T }
func (p peerPoint) ST() int64                     { return 0 }
func (p peerPoint) F() float64                    { return p.FPoint.F }
func (p peerPoint) H() *histogram.Histogram       { return nil }
func (p peerPoint) FH() *histogram.FloatHistogram { return nil }
func (p peerPoint) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p peerPoint) Copy() chunks.Sample           { return p }

// promQuestion is a query, in ms. It is an instant query if step is 0.
type promQuestion struct {
	text             string
	start, end, step int64
	lookback         int64 // 0 is the default
}

func (q promQuestion) String() string {
	return fmt.Sprintf("%s from %d to %d step %d lookback %d", q.text, q.start, q.end, q.step, q.lookback)
}

// path is the question to a gateway.
func (q promQuestion) path() string {
	seconds := func(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64) }
	v := url.Values{"query": {q.text}}
	if q.lookback != 0 {
		v.Set("lookback_delta", seconds(q.lookback))
	}
	if q.step == 0 {
		v.Set("time", seconds(q.start))
		return "prometheus/api/v1/query?" + v.Encode()
	}
	v.Set("start", seconds(q.start))
	v.Set("end", seconds(q.end))
	v.Set("step", seconds(q.step))
	return "prometheus/api/v1/query_range?" + v.Encode()
}

// promAnswer is an answer: the bits of each point by series and time, in the order of the answer.
type promAnswer struct {
	kind   string
	series []string // labels as JSON
	points [][]string
	text   string // of a string
	failed bool
	notes  []string
}

// ask answers a question by the peer.
func (p *promPeer) ask(ctx context.Context, q promQuestion) promAnswer {
	var query prom.Query
	var err error
	opts := prom.NewPrometheusQueryOpts(false, time.Duration(q.lookback)*time.Millisecond, nil)
	if q.step == 0 {
		query, err = p.engine.NewInstantQuery(ctx, p, opts, q.text, time.UnixMilli(q.start))
	} else {
		query, err = p.engine.NewRangeQuery(ctx, p, opts, q.text, time.UnixMilli(q.start), time.UnixMilli(q.end),
			time.Duration(q.step)*time.Millisecond)
	}
	if err != nil {
		return promAnswer{failed: true, text: err.Error()}
	}
	defer query.Close()
	r := query.Exec(ctx)
	if r.Err != nil {
		return promAnswer{failed: true, text: r.Err.Error()}
	}
	a := promAnswer{kind: string(r.Value.Type())}
	warnings, infos := r.Warnings.AsStrings(q.text, 10, 10)
	a.notes = slices.Sorted(slices.Values(append(warnings, infos...)))
	add := func(l labels.Labels, points ...prom.FPoint) {
		text, _ := json.Marshal(l.Map())
		a.series = append(a.series, string(text))
		var all []string
		for _, p := range points {
			all = append(all, promPoint(float64(p.T)/1000, p.F))
		}
		a.points = append(a.points, all)
	}
	switch v := r.Value.(type) {
	case prom.Matrix:
		for _, s := range v {
			add(s.Metric, s.Floats...)
		}
	case prom.Vector:
		for _, s := range v {
			add(s.Metric, prom.FPoint{T: s.T, F: s.F})
		}
	case prom.Scalar:
		add(labels.EmptyLabels(), prom.FPoint{T: v.T, F: v.V})
	case prom.String:
		a.text = v.V
	}
	return a
}

// uncertain reports whether the peer has several answers to a question. Its engine keeps the results of some functions
// in a map, so that topk chooses among equals, and stdvar adds up, in another order each time.
func (p *promPeer) uncertain(ctx context.Context, q promQuestion, first promAnswer) bool {
	for range 50 {
		if p.ask(ctx, q).differs(first) != "" {
			return true
		}
	}
	return false
}

// promPoint is a time and the bits of a value; every NaN is one.
func promPoint(seconds, v float64) string {
	if math.IsNaN(v) {
		return fmt.Sprintf("%.3f NaN", seconds)
	}
	return fmt.Sprintf("%.3f %016x %v", seconds, math.Float64bits(v), v)
}

// askGateway answers a question by a gateway.
func askGateway(b *bench, q promQuestion) promAnswer {
	b.Helper()
	return readPromAnswer(b.T, b.Get(q.path()))
}

func readPromAnswer(t *testing.T, got answer) (a promAnswer) {
	t.Helper()
	var all struct {
		Status, ErrorType, Error string
		Data                     struct {
			ResultType string
			Result     json.RawMessage
		}
		Warnings, Infos []string
	}
	if err := json.Unmarshal([]byte(got.Body), &all); err != nil {
		t.Fatalf("%d %.300s: %v", got.Status, got.Body, err)
	}
	if (all.Status == "success") != (got.Status == http.StatusOK) {
		t.Errorf("status %d with %s", got.Status, all.Status)
	}
	if all.Status != "success" {
		return promAnswer{failed: true, text: all.Error}
	}
	a.kind, a.notes = all.Data.ResultType, slices.Sorted(slices.Values(append(all.Warnings, all.Infos...)))
	read := func(into any) {
		if err := json.Unmarshal(all.Data.Result, into); err != nil {
			t.Fatalf("%.300s: %v", all.Data.Result, err)
		}
	}
	point := func(p [2]any) string {
		v, err := strconv.ParseFloat(p[1].(string), 64)
		if err != nil {
			t.Fatal(err)
		}
		return promPoint(p[0].(float64), v)
	}
	switch a.kind {
	case "matrix", "vector":
		var series []struct {
			Metric map[string]string
			Value  *[2]any
			Values [][2]any
		}
		read(&series)
		for _, s := range series {
			text, _ := json.Marshal(s.Metric)
			a.series = append(a.series, string(text))
			if s.Value != nil {
				s.Values = append(s.Values, *s.Value)
			}
			var points []string
			for _, p := range s.Values {
				points = append(points, point(p))
			}
			a.points = append(a.points, points)
		}
	case "scalar":
		var p [2]any
		read(&p)
		a.series, a.points = []string{"{}"}, [][]string{{point(p)}}
	case "string":
		var p [2]any
		read(&p)
		a.text = p[1].(string)
	}
	return a
}

// differs returns how two answers differ, "" if they do not. A vector may have any order where an expression does not
// sort it, so it is compared by series.
func (a promAnswer) differs(o promAnswer) string {
	if a.failed || o.failed {
		if a.failed != o.failed {
			return fmt.Sprintf("failed %t (%s), want %t (%s)", a.failed, a.text, o.failed, o.text)
		}
		return ""
	}
	if a.kind != o.kind || a.text != o.text {
		return fmt.Sprintf("got %s %q, want %s %q", a.kind, a.text, o.kind, o.text)
	}
	if got, want := a.lines(), o.lines(); !slices.Equal(got, want) {
		return fmt.Sprintf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !slices.Equal(a.notes, o.notes) {
		return fmt.Sprintf("notes %q, want %q", a.notes, o.notes)
	}
	return ""
}

func (a promAnswer) lines() (lines []string) {
	for i, s := range a.series {
		lines = append(lines, s+" "+strings.Join(a.points[i], "; "))
	}
	slices.Sort(lines)
	return lines
}

// promPut puts the series of a peer into a gateway.
func promPut(b *bench, series []promSeries) {
	b.Helper()
	var points []string
	flush := func() {
		if a := b.Post("api/put", "["+strings.Join(points, ",")+"]"); a.Status != http.StatusNoContent {
			b.Fatalf("put: %d %.500s", a.Status, a.Body)
		}
		points = points[:0]
	}
	for _, s := range series {
		tags := s.labels.Map()
		delete(tags, model.MetricNameLabel)
		text, err := json.Marshal(tags)
		if err != nil {
			b.Fatal(err)
		}
		name, _ := json.Marshal(s.labels.Get(model.MetricNameLabel))
		for _, p := range s.points {
			points = append(points, fmt.Sprintf(`{"metric":%s,"timestamp":%d,"value":%s,"tags":%s}`, name, p.T,
				promValue(p.F), text))
			if len(points) == 2000 {
				flush()
			}
		}
	}
	if len(points) > 0 {
		flush()
	}
}

// promValue is a value in the JSON of a put, with its bits.
func promValue(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 && !(v == 0 && math.Signbit(v)) {
		return strconv.FormatInt(int64(v), 10)
	}
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}
