// Package query is OpenTSDB's query language: the body of POST /api/query, the
// parameters of GET /api/query, times, durations, downsample specifications,
// rates and tag filters, and the words in which a mistake is refused. It reads
// no clock, resolves no name and asks no store; what a query means for the
// tables is package compile's affair.
//
// Checks come in OpenTSDB's order: body or parameters, then start and end, then
// each sub-query (aggregator, metric, downsample, zone). What the reference
// finds out only while a query runs is kept in SubQuery.RunError.
// Source: TSQuery, TSSubQuery, QueryRpc.parseQuery.
package query

import (
	"strings"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// Limits of what is read. Beyond them a query is refused with status 413.
const (
	// MaxBody bounds the bytes of a POST body.
	MaxBody = 1 << 20
	// MaxSubQueries bounds the sub-queries of one query, equal ones counted, where
	// the parser says nothing.
	MaxSubQueries = 64
	// MaxFilters bounds the filters of one sub-query.
	MaxFilters = 256
	// MaxSteps bounds the steps of all regular expressions of one query, once they
	// are compiled: a repetition makes thousands of a few characters.
	MaxSteps = 50_000
)

// Query is one validated query.
type Query struct {
	// StartText and EndText are the times as the client wrote them; Start and
	// End are what they mean, ms since 1970, both inclusive.
	StartText, EndText string
	Start, End         int64
	// Live tells that the client gave no end: End is then the time of parsing.
	Live bool
	// Timezone is the zone of dates and calendar buckets as written, "" for none.
	Timezone string
	// Queries are the sub-queries, equal ones removed, Index counting from 0.
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
	// Delete asks to delete the rows read; it needs a permission of its own.
	Delete                 bool
	OverrideByteLimit      bool
	OverrideDataPointLimit bool

	URIOptions
}

// URIOptions are the parameters of the request line that hold for GET and POST
// alike. All but Arrays are ours.
type URIOptions struct {
	// Arrays asks for points as pairs; its presence counts, not its value.
	Arrays bool
	// Mode is how parts are merged: "strict", "partial", or "" for the
	// planner's choice.
	Mode string
	// Trace asks for the execution's tree, AllowPartial for an answer even if
	// parts are missing, Explain for the plan instead of an answer.
	Trace, AllowPartial, Explain bool
	// Integers asks an Arrow answer for a column of integers.
	Integers bool
	// Fix lists the known errors that are put right.
	Fix Fixes
}

// SubQuery is one sub-query: one metric, or a list of TSUIDs.
type SubQuery struct {
	// Index is the place among the sub-queries that are left, from 0.
	Index      int
	Aggregator string
	// Metric is a name; it is ignored when there are TSUIDs (hex, as written).
	Metric string
	TSUIDs []string
	// DownsampleText is the specification as written, Downsample what it
	// means, nil for none. Zone is set only for calendar buckets.
	DownsampleText string
	Downsample     *scanplan.Downsample
	Rate           bool
	RateOptions    *scanplan.Rate // nil if not given
	Filters        []Filter
	ExplicitTags   bool

	Percentiles          []float32
	ShowHistogramBuckets bool
	PreAggregate         bool
	RollupUsage          string // upper case, "" if not given
	UseFuzzyFilter       bool
	UseMultiGets         bool

	// FilterTagKs are the UIDs of the filters' tag keys, ascending. Whoever
	// resolves names sets them; only Echo shows them.
	FilterTagKs []encoding.UID
	// RunError is a fault that OpenTSDB reports only when it runs the query,
	// after the names are resolved; nil for none.
	RunError *Error
}

// Histogram tells whether the sub-query asks for histograms, of which a plain
// metric has none. Source: TSSubQuery.isHistogramQuery.
func (s *SubQuery) Histogram() bool {
	return len(s.Percentiles) > 0 || s.ShowHistogramBuckets
}

// EndIsDate tells whether the end is a moment that does not move with the clock.
func (q *Query) EndIsDate() bool {
	text := strings.ToLower(q.EndText)
	return !q.Live && text != "now" && !strings.HasSuffix(text, "-ago")
}

// PlanRate is the rate as a plan states it, nil when no rate is asked for.
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

// Size is about the memory that the query takes, in bytes: clients write long lists
// and expressions.
func (q *Query) Size() (n int64) {
	for i := range q.Queries {
		s := &q.Queries[i]
		n += subBytes + int64(len(s.Metric)+len(s.DownsampleText)+4*len(s.Percentiles))
		for _, t := range s.TSUIDs {
			n += textBytes + int64(len(t))
		}
		for j := range s.Filters {
			n += s.Filters[j].size()
		}
	}
	return n
}

// Bytes of a sub-query, of a text and of a filter beside what is in them.
const (
	subBytes    = 600
	textBytes   = 16
	filterBytes = 200
)

// Parser reads queries.
type Parser struct {
	// Now is the time that relative times count from and that a missing end
	// means.
	Now time.Time
	// Zone is the zone of dates in a query that names none, nil for UTC.
	// Source: tsd.core.timezone.
	Zone *time.Location
	// Fix is what is put right in a query that says nothing of it.
	Fix Fixes
	// SubQueries bounds the sub-queries of one query; 0 is MaxSubQueries.
	SubQueries int
}

func (p Parser) subQueries() int {
	if p.SubQueries > 0 {
		return p.SubQueries
	}
	return MaxSubQueries
}

func tooManySubs(count string, most int) error {
	e := TooMuch("Too many sub queries%s, at most %d", count, most)
	e.Details = "The limit is DOWNPOUR_LIMIT_QUERIES"
	return e
}

// checkSteps refuses expressions that are too much together.
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

// ParseJSON reads the body of POST /api/query. All errors are *Error.
func ParseJSON(body []byte, now time.Time) (*Query, error) {
	return Parser{Now: now}.JSON(body)
}
