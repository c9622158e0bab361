package queryroutes

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
)

// AddGlobalAnnotations adds the global annotations that start inside the query's
// time range to all its results, if the query requests them.
// Source: QueryRpc.GlobalCB, HttpJsonSerializer.formatQueryAsyncV1.
func (h *Handlers) AddGlobalAnnotations(ctx context.Context, q *query.Query, results []engine.Result) error {
	if !q.GlobalAnnotations || q.NoAnnotations || len(results) == 0 { // they are shown at results only
		return nil
	}

	found, err := h.Annotations.Global(ctx, q.Start/1000, q.End/1000)
	if err != nil || len(found) == 0 {
		return err
	}
	slices.SortStableFunc(found, func(a, b encoding.Annotation) int { return cmp.Compare(a.StartTime, b.StartTime) })

	inside := []json.RawMessage{}
	for _, n := range found {
		// Global also finds annotations after the end, in its hour. An annotation always encodes.
		if text, err := json.Marshal(n); err == nil && startsInside(n, q) {
			inside = append(inside, text)
		}
	}
	for i := range results {
		results[i].GlobalAnnotations = inside
	}
	return nil
}

// startsInside reports whether an annotation starts in the query's time range. Its
// start is in seconds if it fits 32 bits, else in milliseconds.
func startsInside(n encoding.Annotation, q *query.Query) bool {
	start := n.StartTime
	if start>>32 == 0 {
		start *= 1000
	}
	return start >= q.Start && start <= q.End
}
