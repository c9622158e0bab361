package engine

import (
	"context"

	"downpour/gateway/query"
	"downpour/gateway/query/plan"
)

// Plans resolves and compiles all sub-queries of a query without running them,
// for callers that read the rows themselves. Errors are those of Run.
func (e *Engine) Plans(ctx context.Context, q *query.Query) ([]*plan.Compiled, error) {
	plans, err := e.plans(ctx, q)
	if err != nil {
		return nil, err
	}
	out := make([]*plan.Compiled, len(plans))
	for i, p := range plans {
		out[i] = p.Compiled
	}
	return out, nil
}
