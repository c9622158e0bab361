package ask

import (
	"context"

	"downpour/gateway/compile"
	"downpour/gateway/query"
)

// Plans resolves and compiles all sub-queries of a query without running them,
// for callers that read the rows themselves. Errors are those of Run.
func (e *Engine) Plans(ctx context.Context, q *query.Query) ([]*compile.Compiled, error) {
	plans, err := e.plans(ctx, q)
	if err != nil {
		return nil, err
	}
	out := make([]*compile.Compiled, len(plans))
	for i, p := range plans {
		out[i] = p.Compiled
	}
	return out, nil
}
