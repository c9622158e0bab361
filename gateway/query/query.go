// Package query parses OpenTSDB's query language: the body of POST /api/query, the
// parameters of GET /api/query, times, durations, downsample specifications, rates and
// tag filters. It words its errors as OpenTSDB does. It reads no clock, resolves no name
// and asks no store; package plan knows what a query means for the tables.
//
// Checks come in OpenTSDB's order: body or parameters, then start and end, then each
// sub-query (aggregator, metric, downsample, zone). A mistake that OpenTSDB finds only
// while a query runs is kept in SubQuery.RunError.
// Source: TSQuery, TSSubQuery, QueryRpc.parseQuery.
package query

import (
	"strings"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// Limits of a query's text. A query beyond them is refused with status 413.
const (
	// MaxBody bounds the bytes of a POST body.
	MaxBody = 1 << 20
	// MaxSubQueries is the default of Parser.SubQueries. Equal sub-queries count.
	MaxSubQueries = 64
	// MaxFilters bounds the filters of one sub-query.
	MaxFilters = 256
	// MaxSteps bounds the instructions of all compiled regular expressions of one query:
	// with a repetition a few characters compile to thousands.
	MaxSteps = 50_000
)

// Query is one validated query.
type Query struct {
	// StartText and EndText are the times as the client wrote them; Start and
	// End are what they mean, ms since 1970, both inclusive.
	StartText, EndText string
	Start, End         int64
	// NoEnd reports that the client gave no end: End is then the time of parsing.
	NoEnd bool
	// Timezone is the zone of dates and calendar buckets as written, "" for none.
	Timezone string
	// Untrimmed asks for the points at all times of the rows that are read, and not only
	// from Start to End. No parser sets it: expressions are computed of such points.
	Untrimmed bool
	// WholeSeconds says that the times are whole seconds, as OpenTSDB has those of /q. Then
	// rows are read up to End, and not, as for times in ms, up to a second later.
	WholeSeconds bool
	// Queries are the sub-queries in order, without those that equal an earlier one.
	Queries []SubQuery

	UseCalendar       bool
	Padding           bool
	NoAnnotations     bool
	GlobalAnnotations bool
	MSResolution      bool
	ShowTSUIDs        bool
	ShowSummary       bool
	ShowStats         bool
	ShowQuery         bool
	// Delete asks to delete the rows that are read, which needs a permission of its own.
	Delete                 bool
	OverrideByteLimit      bool
	OverrideDataPointLimit bool

	URIOptions

	ignored []string // see Ignored
}

// URIOptions are the parameters of the request line, for GET and POST alike. OpenTSDB has
// only arrays among them.
type URIOptions struct {
	// Arrays asks for points as pairs of time and value. The parameter's presence counts,
	// not its value.
	Arrays bool
	// Mode is what parts answer with: "strict" for per-series aggregation, "partial" for
	// partial aggregation, or "" for the planner's choice.
	Mode string
	// Trace asks for the steps of the execution as a tree, AllowPartial for an answer even
	// if key ranges are missing, Explain for the plan instead of an answer.
	Trace, AllowPartial, Explain bool
	// Integers asks for an integer column in an Arrow answer.
	Integers bool
	// Fix are the errors of OpenTSDB that the answer is made without.
	Fix Fixes
}

// SubQuery is one sub-query: one metric, or a list of TSUIDs.
type SubQuery struct {
	// Index is the place in Query.Queries, from 0.
	Index      int
	Aggregator string
	// Metric is a name. It is ignored if there are TSUIDs, which are hex as written.
	Metric string
	TSUIDs []string
	// DownsampleText is the specification as written, and Downsample what it means, nil
	// for none. Its Zone is set only for calendar buckets.
	DownsampleText string
	Downsample     *scanplan.Downsample
	Rate           bool
	RateOptions    *scanplan.Rate // nil if not given
	// Window has the query answer with values of windows of points. No parser sets it: PromQL asks for them.
	Window       *scanplan.Window
	Filters      []Filter
	ExplicitTags bool

	Percentiles          []float32
	ShowHistogramBuckets bool
	PreAggregate         bool
	RollupUsage          string // one of the Rollup constants, "" if not given
	UseFuzzyFilter       bool
	UseMultiGets         bool

	// FilterTagKs are the UIDs of the filters' tag keys, ascending. The query engine sets
	// them; only Echo shows them.
	FilterTagKs []encoding.UID
	// RollupTable names the rollup interval that was read, "" or raw for none. The query
	// engine sets it; only Echo shows it.
	RollupTable string
	// RunError is a mistake that OpenTSDB reports only when it runs the query, after the
	// names are resolved; nil for none.
	RunError *Error

	ignored []string // see Query.Ignored
}

// The values of SubQuery.RollupUsage: read raw data; read rollups and nothing else, which
// is the default; when they have no data, go on to the next shorter interval, or to raw
// data at once. Source: TsdbQuery.ROLLUP_USAGE.
const (
	RollupRaw         = "ROLLUP_RAW"
	rollupNoFallback  = "ROLLUP_NOFALLBACK"
	RollupFallback    = "ROLLUP_FALLBACK"
	RollupFallbackRaw = "ROLLUP_FALLBACK_RAW"
)

// Histogram reports whether the sub-query asks for histograms. A plain metric has
// none. Source: TSSubQuery.isHistogramQuery.
func (s *SubQuery) Histogram() bool {
	return len(s.Percentiles) > 0 || s.ShowHistogramBuckets
}

// EndIsDate reports whether the end is a fixed time: neither missing nor relative to now.
func (q *Query) EndIsDate() bool {
	text := strings.ToLower(q.EndText)
	return !q.NoEnd && text != "now" && !strings.HasSuffix(text, "-ago")
}

// Earlier returns an untrimmed query of sub-query i alone, for times that lie ms earlier.
// It shares the sub-query. The error is an *Error.
func (q *Query) Earlier(i int, ms int64) (*Query, error) {
	e := *q
	e.Queries = q.Queries[i : i+1 : i+1]
	e.Start, e.End, e.Untrimmed = q.Start-ms, q.End-ms, true
	return &e, e.checkBounds()
}

// PlanRate returns the rate options of the plan, nil if no rate is requested.
func (s *SubQuery) PlanRate() *scanplan.Rate {
	if !s.Rate {
		return nil
	}
	if s.RateOptions == nil {
		r := defaultRate()
		return &r
	}
	r := *s.RateOptions
	return &r
}

// Size estimates the memory of the query, in bytes. Clients may write long lists and
// expressions.
func (q *Query) Size() (n int64) {
	for i := range q.Queries {
		s := &q.Queries[i]
		n += subQueryBytes + int64(len(s.Metric)+len(s.DownsampleText)+4*len(s.Percentiles))
		for _, t := range s.TSUIDs {
			n += textBytes + int64(len(t))
		}
		for j := range s.Filters {
			n += s.Filters[j].size()
		}
	}
	return n
}

// Bytes of a sub-query, of a string and of a filter without their contents.
const (
	subQueryBytes = 600
	textBytes     = 16
	filterBytes   = 200
)

// Parser reads queries.
type Parser struct {
	// Now is the time that relative times count from. It is the end of a query that gives
	// none.
	Now time.Time
	// Zone is the time zone of dates in a query that names none, nil for UTC.
	// Source: tsd.core.timezone.
	Zone *time.Location
	// Fix are the fixes of a query that does not name any.
	Fix Fixes
	// SubQueries bounds the sub-queries of one query; 0 means MaxSubQueries.
	SubQueries int
}

// MaxSubQueries returns the bound of sub-queries of one query.
func (p Parser) MaxSubQueries() int {
	if p.SubQueries > 0 {
		return p.SubQueries
	}
	return MaxSubQueries
}

// tooManySubQueries is the 413 for a query with more sub-queries than limit. count is
// ": n" where their number n is known, else "".
func tooManySubQueries(count string, limit int) error {
	e := TooMuch("Too many sub queries%s, at most %d", count, limit)
	e.Details = "The limit is DOWNPOUR_LIMIT_QUERIES"
	return e
}

// checkSteps returns an error if the regular expressions of all sub-queries have more
// than MaxSteps together.
func checkSteps(subs []SubQuery) error {
	steps := 0
	for i := range subs {
		steps += stepsOf(subs[i].Filters)
	}
	if steps > MaxSteps {
		return tooManySteps()
	}
	return nil
}

func tooManySteps() error {
	return TooMuch("The regular expressions of the query take more than %d steps together", MaxSteps)
}
