package engine

import (
	"context"

	"downpour/gateway/query"
)

// Series returns the series that each sub-query with the aggregator none reads, by the keys of their rows alone: those
// that have rows in the hours of the query, though perhaps no point in its times. The results have no points. Errors
// are those of Run, and of the memory for the list.
func (e *Engine) Series(ctx context.Context, q *query.Query, opts Options) (all []Result, err error) {
	plans, err := e.compileQuery(ctx, q)
	if err != nil {
		return nil, err
	}
	opts.Plans.add(plans)
	lists := make([][]Result, len(plans))
	err = e.forEach(ctx, len(plans), func(ctx context.Context, i int) error {
		r := e.request(ctx, q, plans[i])
		if readsNothing(r.Compiled) {
			return nil
		}
		list, _, err := e.listSeries(ctx, r)
		if err != nil {
			return err
		}
		lists[i], err = e.nameGroups(ctx, q, plans[i], describeSeries(r.Plan.Schema, list))
		return err
	})
	for _, l := range lists {
		all = append(all, l...)
	}
	return all, err
}
