package engine

import (
	"context"

	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
)

// Explained is one sub-query as explain shows it.
type Explained struct {
	Plan  string                 `json:"plan"`
	Parts []dispatch.PlannedPart `json:"parts"`
	// ResultCache is "kept" if the answer of the whole plan is in the result cache: it
	// is given again if no row has changed.
	ResultCache string `json:"resultCache,omitempty"`
	// Rollups describes which of our own rollups are read in place of raw rows, and why not others;
	// it is empty if none are made.
	Rollups string `json:"rollups,omitempty"`
	// Ignored is what the whole query has that means nothing, see query.Query.Ignored; it stands with the first
	// sub-query.
	Ignored []string `json:"ignored,omitempty"`
}

// Explain returns what Run would do, sub-query by sub-query, without reading a row.
func (e *Engine) Explain(ctx context.Context, q *query.Query) ([]Explained, error) {
	plans, err := e.compileQuery(ctx, q)
	if err != nil {
		return nil, err
	}

	var out []Explained
	for _, p := range plans {
		if p.Nothing != "" {
			out = append(out, Explained{Plan: p.Nothing + "\n", Parts: []dispatch.PlannedPart{}})
			continue
		}

		forecast := e.stages.Forecast(ctx, e.request(ctx, q, p))
		parts, err := e.cfg.Exec.Explain(ctx, p.Plan, forecast.Aggregation, forecast.Unnamed)
		if err != nil {
			return nil, err
		}
		text := p.Plan.String()
		if p.PostFilter != nil {
			text += p.PostFilter.String()
		}
		x := Explained{Plan: text, Parts: parts, Rollups: forecast.Rollups}
		if forecast.Kept {
			x.ResultCache = "kept"
		}
		out = append(out, x)
	}
	if len(out) > 0 {
		out[0].Ignored = q.Ignored()
	}
	return out, nil
}
