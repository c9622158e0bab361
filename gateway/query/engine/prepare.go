package engine

import (
	"context"
	"reflect"

	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine/stage"
	"downpour/gateway/query/merge"
	"downpour/gateway/query/plan"
	"downpour/pushdown/operator"
)

// Prepared is one sub-query with its compiled plan, for callers that keep its answer
// up to date themselves and need the steps of Run one by one.
type Prepared struct {
	*plan.Compiled
	engine *Engine
	query  *query.Query
	sub    *query.SubQuery
	names  uint64 // generation of the names when it was compiled
}

// Prepare compiles all sub-queries. It returns the errors of Run, and an error for a query
// that reads rollups: what changes an answer then is not what changes raw data.
func (e *Engine) Prepare(ctx context.Context, q *query.Query) ([]Prepared, error) {
	// Taken before anything is resolved: a change in between makes the next preparation another.
	names := e.cfg.Names.Generation()
	plans, err := e.compileQuery(ctx, q)
	if err != nil {
		return nil, err
	}
	if err := refuseRollups(plans, "is kept up to date"); err != nil {
		return nil, err
	}
	out := make([]Prepared, len(plans))
	for i, p := range plans {
		out[i] = Prepared{Compiled: p.Compiled, engine: e, query: q, sub: p.sub, names: names}
	}
	return out, nil
}

func (p *Prepared) subPlan() subPlan { return subPlan{p.sub, p.Compiled} }

func (p *Prepared) request(ctx context.Context) *stage.Request {
	return p.engine.request(ctx, p.query, p.subPlan())
}

// unbounded returns the request without a budget: what a live query reads again and again is bounded
// by its caller.
func (p *Prepared) unbounded(ctx context.Context) *stage.Request {
	r := p.request(ctx)
	r.NewBudget = func() operator.Budget { return nil }
	return r
}

// Empty reports whether the answer is empty for any rows.
func (p *Prepared) Empty() bool { return p.Nothing != "" }

// Index returns the sub-query's place in the query.
func (p *Prepared) Index() int { return p.sub.Index }

// Run answers the sub-query as Engine.Run does, and counts the work.
func (p *Prepared) Run(ctx context.Context) (results []Result, stats dispatch.Stats, err error) {
	defer recovered(p.engine.cfg.Log, &err)
	return p.engine.answerSubQuery(ctx, p.request(ctx))
}

// Keep returns the plan's post filter as a function of spans (salt, metric and tags),
// nil if it has none. The function may be called until ctx ends.
func (p *Prepared) Keep(ctx context.Context) func(span []byte) (bool, error) {
	return p.engine.spanFilter(ctx, p.subPlan())
}

// Execute executes the plan with per-series aggregation, passes the records of its parts to the
// sink, and counts the work.
func (p *Prepared) Execute(ctx context.Context, sink dispatch.Sink) (dispatch.Stats, error) {
	return p.engine.stages.Execute(ctx, p.unbounded(ctx), sink)
}

// OlderHours returns the hours of the plan that are over, with their merged groups; nil if there is
// none: the caller executes the whole plan then. Close comes after the last use of it.
func (p *Prepared) OlderHours(ctx context.Context) (*stage.OlderHours, error) {
	return p.engine.stages.Older(ctx, p.unbounded(ctx))
}

// ExecuteNewer executes the plan on the rows after the older hours, as Execute does.
func (p *Prepared) ExecuteNewer(ctx context.Context, older *stage.OlderHours,
	sink dispatch.Sink) (dispatch.Stats, error) {
	return p.engine.stages.ExecuteNewer(ctx, p.unbounded(ctx), older, sink)
}

// Named returns groups with names in place of their UIDs.
func (p *Prepared) Named(ctx context.Context, groups []merge.Group) ([]Result, error) {
	return p.engine.nameGroups(ctx, p.query, p.subPlan(), groups)
}

// Same reports whether two preparations of a sub-query read the same rows and make the
// same of them, so that they differ at most in the times that the answer is trimmed to.
// After any change of names, here or by another process, they do not: names of groups,
// and those that a filter on names admits, may have changed.
func (p *Prepared) Same(o *Prepared) bool {
	a, b := *p.Plan, *o.Plan
	a.Start, a.End, b.Start, b.End = 0, 0, 0, 0
	return p.names == o.names && p.Empty() == o.Empty() && p.Index() == o.Index() && reflect.DeepEqual(&a, &b) &&
		samePostFilter(p.PostFilter, o.PostFilter)
}

func samePostFilter(a, b *plan.PostFilter) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.String() == b.String() && reflect.DeepEqual(a.TagKs(), b.TagKs())
}
