// Package engine answers a query from names to names. It is the one way to an
// answer, for HTTP and for live queries alike. The steps, and their files, are
//
//	resolve.go    resolve the names of each sub-query and compile its scan plan
//	subqueries.go answer the sub-queries, two at a time
//	stage         make the groups of each plan
//	name.go       give the groups their names
//
// and the same in other forms
//
//	answer.go     for an answer that is written group by group
//	slices.go     for one of these that is large, which is also read group by group
//	untrimmed.go  for functions of several series
//	prepare.go    for a live query, which compiles and executes apart
//	exp.go        for the metrics of expressions
package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine/stage"
	"downpour/gateway/query/plan"
	"downpour/gateway/query/trace"
	"downpour/gateway/uid"
	"downpour/pushdown/operator"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/rollupjob"
)

// Config is what an engine works with.
type Config struct {
	Names *uid.Dictionary
	Exec  *dispatch.Executor
	// Compile holds the properties of the tables, and the limits of plans.
	Compile plan.Options
	// RollupProver proves computed rollups; nil if there are none.
	RollupProver *rollupjob.Prover
	// Budget returns what a sub-query may read; nil for no bound.
	Budget func(context.Context, *query.Query, *query.SubQuery) operator.Budget
	// Near returns names that may be meant by one that does not exist; nil for none.
	Near func(ctx context.Context, kind encoding.UIDKind, name string) []string
	// Slices are the sizes of slices in which a large answer is read.
	Slices SliceSizes
	// Now returns the time by which rollups are late. Default time.Now.
	Now func() time.Time
	// Log receives panics. Default slog.Default().
	Log *slog.Logger
}

// Options of a query that are not part of its text. Zero values bound and collect nothing.
type Options struct {
	// Points bounds the answer while it is made: whenever it is about to have more points, Points is
	// called with their new number, and the query fails with its error.
	Points func(points int) error
	// Proofs takes the proofs that answers from the result cache still wait for. If it is nil,
	// they are proven before they are given.
	Proofs *resultcache.Proofs
	// Plans collects the scan plans.
	Plans *Plans
}

// Engine answers queries. Its methods may be called from many goroutines.
type Engine struct {
	cfg    Config
	stages *stage.Stages
}

// DefaultMaxBytes bounds the memory of one sub-query's result.
const DefaultMaxBytes = 1 << 30

// New returns an engine. It fills in defaults.
func New(cfg Config) *Engine {
	if cfg.Compile.MaxBytes == 0 {
		cfg.Compile.MaxBytes = DefaultMaxBytes
	}
	cfg.Slices = cfg.Slices.withDefaults()
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	stages := stage.New(stage.Config{Exec: cfg.Exec, RollupProver: cfg.RollupProver, Log: cfg.Log})
	return &Engine{cfg: cfg, stages: stages}
}

// SharedAnswers returns how many sub-queries were answered by the execution of another one.
func (e *Engine) SharedAnswers() int64 { return e.stages.SharedAnswers() }

// DropCaches empties the result caches of this process and of the pushdown servers.
// The error names the servers that may not have emptied theirs.
func (e *Engine) DropCaches(ctx context.Context) error { return e.cfg.Exec.DropCaches(ctx) }

// Stats counts the work of a query.
type Stats struct {
	dispatch.Stats
	Groups, PointsOut int // of the answer
	// Trace is the work as a tree, nil unless the query requests it.
	Trace *trace.Node
	// Queries are the counts of each sub-query, by index.
	Queries []dispatch.Stats
}

// Run answers all sub-queries. Results are in the order of the sub-queries, and of
// the groups within each. If one sub-query fails, the query fails; if several do, with
// the error of the first.
func (e *Engine) Run(ctx context.Context, q *query.Query, opts Options) ([]Result, Stats, error) {
	plans, err := e.compileQuery(ctx, q)
	if err != nil {
		return nil, Stats{}, err
	}
	opts.Plans.add(plans)

	groups := make([][]Result, len(plans))
	stats := make([]dispatch.Stats, len(plans))
	points := stage.NewAnswerPoints(opts.Points)
	var steps *trace.Tree
	if q.Trace {
		steps = trace.New()
	}
	err = e.forEach(ctx, len(plans), func(ctx context.Context, i int) (err error) {
		r := e.request(ctx, q, plans[i])
		r.Points, r.Proofs = points.Plan(), opts.Proofs
		if steps != nil {
			r.Trace = steps.AddSubQuery(i, plans[i].text())
		}
		groups[i], stats[i], err = e.answerSubQuery(ctx, r)
		return err
	})
	if err != nil {
		return nil, Stats{}, err
	}

	results, total := collect(groups, stats)
	total.Trace = steps.End()
	return results, total, nil
}

// request returns the request for the groups of a plan, without a bound of its points.
func (e *Engine) request(ctx context.Context, q *query.Query, p subPlan) *stage.Request {
	return &stage.Request{
		Compiled:  p.Compiled,
		Query:     q,
		Sub:       p.sub,
		Keep:      e.spanFilter(ctx, p),
		NewBudget: func() operator.Budget { return e.budget(ctx, q, p.sub) },
	}
}

// budget returns what one try at a sub-query may read, nil for no bound.
func (e *Engine) budget(ctx context.Context, q *query.Query, s *query.SubQuery) operator.Budget {
	if e.cfg.Budget == nil {
		return nil
	}
	return e.cfg.Budget(ctx, q, s)
}

// answerSubQuery answers one request and names its groups.
func (e *Engine) answerSubQuery(ctx context.Context, r *stage.Request) ([]Result, dispatch.Stats, error) {
	if readsNothing(r.Compiled) {
		return nil, dispatch.Stats{}, nil
	}
	a, err := e.groups(ctx, r)
	if r.Plan.Window != nil && mayBeSliced(r) && needsSlices(err) {
		if r.Plan.Window.Groups != nil {
			return nil, a.Stats, fmt.Errorf("%w: %w", plan.ErrUngrouped, err)
		}
		return e.windowsInSlices(ctx, r, err)
	}
	if err != nil {
		return nil, a.Stats, err
	}
	named := r.Trace.Begin("name")
	results, err := e.nameGroups(ctx, r.Query, subPlan{r.Sub, a.Plan}, a.Groups)
	named(map[string]any{"groups": len(results)})
	return results, a.Stats, err
}

// groups has the stages answer a request. If that panics, the log names the plan.
func (e *Engine) groups(ctx context.Context, r *stage.Request) (stage.Answer, error) {
	defer e.logPlan(r)
	a, err := e.stages.Groups(ctx, r)
	if err == nil && a.Stats.Damaged > 0 {
		e.cfg.Log.Warn("damaged rows were left out of an answer, as fix=damaged asks", "rows", a.Stats.Damaged,
			"first", a.Stats.DamagedRow)
	}
	return a, err
}

// logPlan is deferred: if the goroutine panics, it logs the plan that it works on.
func (e *Engine) logPlan(r *stage.Request) {
	if v := recover(); v != nil {
		part, _ := json.Marshal(r.Plan)
		e.cfg.Log.Error("a query panicked, which is a fault of the program", "panic", v, "plan", string(part), "stack",
			string(debug.Stack()))
		panic(v) // see recovered
	}
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
