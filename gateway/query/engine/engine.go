// Package engine answers a query from names to names. It is the one way to an
// answer, for HTTP and for live queries alike. The steps, and their files, are
//
//	resolve.go    resolve the names of each sub-query and compile its scan plan
//	subqueries.go answer the sub-queries, two at a time
//	rollup.go     choose among rollups and raw data
//	made.go       read rollups that we make ourselves, where they are proven
//	cached.go     look the plan's answer up in the result cache
//	share.go      share one execution among equal queries
//	execute.go    have the plan executed and merge what its parts return
//	name.go       give the groups their names
//	answer.go     the same for an answer that is written group by group
//	untrimmed.go  the same for functions of several series
//	prepare.go    the same for a live query, which compiles and executes apart
//	exp.go        groups as the metrics of expressions
package engine

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/plan"
	"downpour/gateway/uid"
	"downpour/pushdown/operator"
	"downpour/pushdown/rollupjob"
)

// Config is what an engine works with.
type Config struct {
	Names *uid.Dictionary
	Exec  *dispatch.Executor
	// Compile holds the properties of the tables, and the limits of plans.
	Compile plan.Options
	// Made proves the rollups that we make ourselves; nil if there are none.
	Made *rollupjob.Prover
	// Budget returns what a sub-query may read; nil for no bound.
	Budget func(context.Context, *query.Query, *query.SubQuery) operator.Budget
	// Now returns the time by which rollups are late. Default time.Now.
	Now func() time.Time
	// Log receives panics. Default slog.Default().
	Log *slog.Logger
}

// Engine answers queries. Its methods may be called from many goroutines.
type Engine struct {
	cfg     Config
	refused refusedPlans // plans that partial aggregation did not answer lately
	small   refusedPlans // plans whose groups had hardly more than one series lately
	unkept  refusedPlans // plans whose stretches were made and could not be cached lately
	many    refusedPlans // plans with too many series for a stretch
	crooked sync.Map     // metrics with rows of no full hour that the log has told of

	stretchSeries int64 // maxStretchSeries

	sharing *sharing
}

// DefaultMaxBytes bounds the memory of one sub-query's result.
const DefaultMaxBytes = 1 << 30

// New returns an engine. It fills in defaults.
func New(cfg Config) *Engine {
	if cfg.Compile.MaxBytes == 0 {
		cfg.Compile.MaxBytes = DefaultMaxBytes
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Engine{cfg: cfg, many: refusedPlans{lasts: manySeriesFor}, stretchSeries: maxStretchSeries, sharing: newSharing()}
}

// DropCaches empties the result caches of this process and of the pushdown servers.
// The error names the servers that may not have emptied theirs.
func (e *Engine) DropCaches(ctx context.Context) error { return e.cfg.Exec.DropCaches(ctx) }

// Stats counts the work of a query.
type Stats struct {
	dispatch.Stats
	Groups, PointsOut int // of the answer
	// Trace is the work as a tree, nil unless the query asks for it.
	Trace *Node
	// Queries are the counts of each sub-query, by index.
	Queries []dispatch.Stats
}

// Run answers all sub-queries. Results are in the order of the sub-queries, and of
// the groups within each. If one sub-query fails, the query fails; if several do, with
// the error of the first.
func (e *Engine) Run(ctx context.Context, q *query.Query) ([]Result, Stats, error) {
	plans, err := e.compileQuery(ctx, q)
	if err != nil {
		return nil, Stats{}, err
	}

	groups := make([][]Result, len(plans))
	stats := make([]dispatch.Stats, len(plans))
	trace := newTrace(q)
	err = e.forEach(ctx, len(plans), func(ctx context.Context, i int) (err error) {
		groups[i], stats[i], err = e.answerSubQuery(ctx, q, plans[i], trace.addSubQuery(i, plans[i]))
		return err
	})
	if err != nil {
		return nil, Stats{}, err
	}

	results, total := collect(groups, stats)
	total.Trace = trace.end()
	return results, total, nil
}

// recovered turns a panic into the error of its query. The goroutines of a query
// have no HTTP handler above them that would recover, so a panic would end the
// process.
func recovered(log *slog.Logger, err *error) {
	if v := recover(); v != nil {
		*err = &query.Error{Status: 500, Message: "Internal error"}
		log.Error("a query panicked", "panic", v, "stack", string(debug.Stack()))
	}
}

// collect joins the results of the sub-queries and adds up their counts.
func collect(groups [][]Result, stats []dispatch.Stats) (all []Result, total Stats) {
	for i := range groups {
		all = append(all, groups[i]...)
		total.Stats.Add(stats[i])
	}
	total.Groups, total.Queries = len(all), stats
	for i := range all {
		total.PointsOut += all[i].Points.Len()
	}
	return all, total
}
