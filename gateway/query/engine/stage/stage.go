// Package stage answers one compiled sub-query with groups of UIDs. Each stage answers a request
// itself, or by the next stage: for the same plan, for another one, or a second time. New puts them
// in order; each has a file of its own:
//
//	inturn.go      again, when the query has the turn, if other queries hold the memory
//	tables.go      from a table of rollups, then from the next one; raw rows after a cut
//	offhour.go     executes the plan again with rows split at full hours, if the table has off-hour rows
//	cached.go      from the result cache, and into it
//	rollups.go     from computed rollups, where they are proven
//	shared.go      by one execution for equal queries
//	split.go       older hours from the result cache, newer ones from their rows
//	aggregation.go by partial aggregates or per series, and per series if partial aggregates fail
//	scan.go        by executing the plan, and merging the answers of its parts
package stage

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/gateway/query/plan"
	"downpour/gateway/query/trace"
	"downpour/pushdown/operator"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/rollupjob"
)

// Stage returns the groups of a request. With an error the answer has the counts of the work
// that was done, and the request's account holds no memory for it, except where a stage
// documents it.
type Stage interface {
	Groups(ctx context.Context, r *Request) (Answer, error)
}

// Answer is what a plan's rows give.
type Answer struct {
	// Groups may be shared with the result cache and must not be changed.
	Groups []merge.Group
	Stats  dispatch.Stats
	// Plan is the one whose groups they are: that of the request, or one of its fallbacks.
	Plan *plan.Compiled
}

// Request is one plan of a query, to be answered within the bounds of the query. A stage that
// changes it changes a copy, see With. The memory account of the query is that of the context,
// because all layers below reserve from it as well.
type Request struct {
	*plan.Compiled
	Query *query.Query
	Sub   *query.SubQuery

	// Trace gets the steps of the answer; nil for none.
	Trace *trace.Node
	// Points counts the points of the answer, within the bound of the query's; nil for none.
	Points *Points
	// Proofs takes the proofs that answers from the result cache still wait for. If it is nil
	// they are proven before they are given.
	Proofs *resultcache.Proofs
	// Keep is the plan's filter on names, of spans (salt, metric and tags); nil for none.
	Keep func(span []byte) (bool, error)
	// NewBudget returns a budget for one try at the plan, nil for no bound. It must be set, so that
	// no limit is lifted by oversight.
	NewBudget func() operator.Budget
	// Uncached keeps the parts of the plan out of the result cache, see dispatch.Options.
	Uncached bool

	budget  operator.Budget // of a try that reads in several steps; nil for a new one
	proving bool            // see dispatch.Options

	lookup *resultcache.PlanLookup // see find
	// share gives the answer to the queries that wait for this execution, nil if they must execute for
	// themselves; it is nil if there are none.
	share func(*cachedGroups)
}

// With returns the request for another plan.
func (r *Request) With(p *plan.Compiled) *Request {
	out := *r
	out.Compiled = p
	return &out
}

// WithScan returns the request for another scan plan.
func (r *Request) WithScan(p *scanplan.Plan) *Request {
	c := *r.Compiled
	c.Plan = p
	return r.With(&c)
}

// Untrimmed returns the request for all times that the plan's rows have.
func (r *Request) Untrimmed() *Request {
	p := r.Plan.Untrimmed()
	return r.WithScan(&p)
}

// InOneBudget returns the request with one budget for all steps of a try.
func (r *Request) InOneBudget() *Request {
	out := *r
	out.budget = r.currentBudget()
	return &out
}

// currentBudget returns the budget of the try that the request is part of, or else a new one.
func (r *Request) currentBudget() operator.Budget {
	if r.budget == nil {
		return r.NewBudget()
	}
	return r.budget
}

// spend spends the original cost of an answer from memory: whether a query is refused must not
// depend on earlier queries.
func (r *Request) spend(ctx context.Context, s *dispatch.Stats) error {
	if b := r.currentBudget(); b != nil {
		return b.Spend(ctx, s.Points, s.Bytes)
	}
	return nil
}

// rounded reports whether the query accepts sums whose last bits differ.
func (r *Request) rounded() bool {
	return r.PostFilter == nil && !r.Query.AllowPartial &&
		dispatch.Aggregation(r.Query.Mode) == dispatch.PartialAggregation
}

// unnamed reports whether the answer names no series, but what those of a group have in common.
func (r *Request) unnamed() bool { return !r.Query.ShowTSUIDs && r.Keep == nil }

// cacheable reports whether the result cache may have an answer. A post filter depends on names,
// which no version token covers, and an answer that may be incomplete is not the plan's.
func (r *Request) cacheable() bool {
	return r.PostFilter == nil && !r.Query.AllowPartial && r.Plan.Fix&scanplan.FixDamaged == 0
}

// Config is what the stages work with.
type Config struct {
	Exec *dispatch.Executor
	// RollupProver proves computed rollups; nil if there are none.
	RollupProver *rollupjob.Prover
	Log          *slog.Logger

	// SharePatience is how long a query waits for an execution that has begun before it came. Then the next
	// one begins while that one runs, so a slow plan is begun at most that often. Default 1 s.
	SharePatience time.Duration
	// MaxOlderSeries is the most series for which older hours are kept merged, with some 300 bytes for
	// each series, if the hours can be read side by side instead, which keeps nothing. Default 50,000.
	MaxOlderSeries int64
}

// Stages are all stages in their order. Its methods may be called from many goroutines.
type Stages struct {
	first Stage

	find        *find
	rollups     *rollups
	sharing     *sharing
	split       *planSplit
	aggregation *aggregation
	scan        *scan
}

// New returns the stages. Their order is read from the bottom up.
func New(cfg Config) *Stages {
	s := &Stages{scan: &scan{exec: cfg.Exec}, sharing: newSharing(cmp.Or(cfg.SharePatience, time.Second))}
	s.aggregation = &aggregation{exec: cfg.Exec, scan: s.scan}
	s.split = newPlanSplit(&cfg, s.scan, s.aggregation)
	read := s.split.whole

	caching := &caching{split: s.split, whole: read}
	again := &find{exec: cfg.Exec, next: caching}
	shared := &shared{sharing: s.sharing, alone: caching, batch: again}
	s.rollups = &rollups{prover: cfg.RollupProver, scan: s.scan, next: shared}
	s.find = &find{exec: cfg.Exec, next: s.rollups}

	table := &splitOffHour{log: cfg.Log, next: s.find, split: read}
	tables := &behindCut{next: &fallback{next: table}, raw: table}
	s.first = &inTurn{next: tables}
	return s
}

// Groups answers a request by all stages.
func (s *Stages) Groups(ctx context.Context, r *Request) (Answer, error) {
	return s.first.Groups(ctx, r)
}

// Found returns the answer to a request if the result cache has it.
func (s *Stages) Found(ctx context.Context, r *Request) (a Answer, ok bool, err error) {
	return r.lookedUp(s.find.lookUp(ctx, r)).found(ctx, time.Now())
}

// Scan executes the plan of a request per series, and returns a merger with what its parts
// returned. The merger holds memory until Free, also after an error.
func (s *Stages) Scan(ctx context.Context, r *Request) (*merge.Merger, dispatch.Stats, error) {
	return s.scan.merged(ctx, r, dispatch.PerSeries)
}

// Execute executes the plan of a request per series, and passes the records of its parts to the
// sink.
func (s *Stages) Execute(ctx context.Context, r *Request, sink dispatch.Sink) (dispatch.Stats, error) {
	return s.scan.into(ctx, r, dispatch.PerSeries, sink)
}

// Older returns the hours of a request's plan that are over, with their merged groups, for a caller that
// continues it itself; nil if there are none. Close comes after the last use of it.
func (s *Stages) Older(ctx context.Context, r *Request) (*OlderHours, error) {
	if !r.cacheable() {
		return nil, nil
	}
	return s.split.olderHours(ctx, r.Untrimmed(), r.Plan.End)
}

// Sharing returns how many plans are being executed that others may share, and how many requests wait
// for the next execution of one.
func (s *Stages) Sharing() (plans, waiting int) { return s.sharing.count() }

// SharedAnswers returns how many requests were answered by the execution of another one.
func (s *Stages) SharedAnswers() int64 { return s.sharing.answered.Load() }

// Forecast is how a request would be answered now.
type Forecast struct {
	Aggregation dispatch.Aggregation
	Unnamed     bool   // see dispatch.Options
	Kept        bool   // in the result cache, should no row have changed
	Rollups     string // that are read, and why not others; empty without any
}

// Forecast determines how a request would be answered, without reading a row of it.
func (s *Stages) Forecast(ctx context.Context, r *Request) Forecast {
	made := s.rollups.choose(ctx, r)
	return Forecast{
		Aggregation: s.aggregation.choose(r),
		Unnamed:     r.unnamed(),
		Kept:        s.find.exec.HoldsPlan(r.Plan, r.answerName()),
		Rollups:     made.String(),
	}
}

// AggregatesPartially reports whether a request's parts would return partial aggregates.
func (s *Stages) AggregatesPartially(ctx context.Context, r *Request) bool {
	return s.scan.exec.AggregatesPartially(ctx, r.Plan, s.aggregation.choose(r))
}
