package engine

import (
	"context"
	"reflect"

	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/gateway/query/plan"
)

// Prepared is one sub-query, resolved and compiled, for callers that keep its
// answer up to date themselves and need the steps of Run one by one.
type Prepared struct {
	*plan.Compiled
	engine *Engine
	query  *query.Query
	sub    *query.SubQuery
}

// Prepare resolves and compiles all sub-queries. Errors are those of Run.
func (e *Engine) Prepare(ctx context.Context, q *query.Query) ([]Prepared, error) {
	plans, err := e.plans(ctx, q)
	if err != nil {
		return nil, err
	}
	out := make([]Prepared, len(plans))
	for i, p := range plans {
		out[i] = Prepared{Compiled: p.Compiled, engine: e, query: q, sub: p.sub}
	}
	return out, nil
}

// Empty tells that no row can add to the answer.
func (p *Prepared) Empty() bool { return p.Nothing != "" || p.sub.Histogram() }

// Index is the sub-query's place in the query.
func (p *Prepared) Index() int { return p.sub.Index }

// Run answers the sub-query as Engine.Run does, and counts the reading.
func (p *Prepared) Run(ctx context.Context) (results []Result, stats dispatch.Stats, err error) {
	defer recovered(p.engine.cfg.Log, &err)
	return p.engine.runPlan(ctx, p.query, planned{p.sub, p.Compiled}, nil)
}

// Keep is the filter on names that the plan cannot express, nil for none. It
// holds as long as ctx.
func (p *Prepared) Keep(ctx context.Context) func(span []byte) (bool, error) {
	return p.engine.keep(ctx, planned{p.sub, p.Compiled})
}

// Execute gives the sink what all parts of the plan find, and counts the reading.
func (p *Prepared) Execute(ctx context.Context, sink dispatch.Sink) (dispatch.Stats, error) {
	return p.engine.cfg.Exec.Run(ctx, p.Plan, sink)
}

// Named gives groups their names.
func (p *Prepared) Named(ctx context.Context, groups []merge.Group) ([]Result, error) {
	return p.engine.name(ctx, p.query, planned{p.sub, p.Compiled}, groups)
}

// Same tells whether two preparations of a sub-query read the same rows and make
// the same of them: they differ in nothing but the bounds that the answer is
// trimmed to.
func (p *Prepared) Same(o *Prepared) bool {
	a, b := *p.Plan, *o.Plan
	a.Start, a.End, b.Start, b.End = 0, 0, 0, 0
	return p.Empty() == o.Empty() && p.Index() == o.Index() && reflect.DeepEqual(&a, &b) && samePostFilter(p.PostFilter, o.PostFilter)
}

func samePostFilter(a, b *plan.PostFilter) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.String() == b.String() && reflect.DeepEqual(a.TagKs(), b.TagKs())
}
