// Package engine answers a query from names to names: it resolves what the query
// names, compiles scan plans, has them executed, merges what the parts return,
// and gives the groups their names back. It is the one way to an answer, for
// HTTP and for live queries alike.
package engine

import (
	"context"
	"log/slog"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/plan"
	"downpour/gateway/uid"
	"downpour/pushdown/operator"
)

// Config is what an engine works with.
type Config struct {
	Names *uid.Dictionary
	Exec  *dispatch.Executor
	// Compile holds the tables' properties and the limits.
	Compile plan.Options
	// Budget is what a sub-query may read; nil for no bound.
	Budget func(context.Context, *query.Query, *query.SubQuery) operator.Budget
	// Log gets what goes wrong inside. Default slog.Default().
	Log *slog.Logger
}

// Engine answers queries. It is for many goroutines.
type Engine struct {
	cfg    Config
	strict refusedPartial
}

// DefaultMaxBytes bounds the memory of one sub-query's result.
const DefaultMaxBytes = 1 << 30

// DropCaches forgets the answers that are remembered, here and on the pushdown
// servers. The error names the servers that may still have theirs.
func (e *Engine) DropCaches(ctx context.Context) error { return e.cfg.Exec.DropCaches(ctx) }

// New fills in defaults.
func New(cfg Config) *Engine {
	if cfg.Compile.MaxBytes == 0 {
		cfg.Compile.MaxBytes = DefaultMaxBytes
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Engine{cfg: cfg}
}

// Stats counts the work of a query's sub-queries.
type Stats struct {
	dispatch.Stats
	Groups, PointsOut int
	// Trace is the work as a tree, of a query that asks for it.
	Trace *Node
	// Queries are the sub-queries' own, by index.
	Queries []dispatch.Stats
}

// parallel is how many sub-queries of one query run at a time.
const parallel = 2

// Run answers all sub-queries, their results in the order of the query. One
// failing sub-query fails the query.
func (e *Engine) Run(ctx context.Context, q *query.Query) ([]Result, Stats, error) {
	plans, err := e.plans(ctx, q)
	if err != nil {
		return nil, Stats{}, err
	}
	groups := make([][]Result, len(plans))
	stats := make([]dispatch.Stats, len(plans))
	trace := newTrace(q)
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(parallel)
	for i, p := range plans {
		work.Go(func() (err error) {
			defer recovered(e.cfg.Log, &err)
			groups[i], stats[i], err = e.runPlan(ctx, q, p, trace.child(i, p))
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, Stats{}, err
	}
	results, total, err := collect(groups, stats)
	total.Trace = trace.end()
	return results, total, err
}

// recovered turns a panic into the failure of its query: it would end the
// process, as no handler stands above a goroutine.
func recovered(log *slog.Logger, err *error) {
	if v := recover(); v != nil {
		*err = &query.Error{Status: 500, Message: "Internal error"}
		log.Error("a query panicked", "panic", v, "stack", string(debug.Stack()))
	}
}

func collect(groups [][]Result, stats []dispatch.Stats) (all []Result, total Stats, err error) {
	for i := range groups {
		all = append(all, groups[i]...)
		total.Stats.Add(stats[i])
	}
	total.Groups, total.Queries = len(all), stats
	for i := range all {
		total.PointsOut += all[i].Points.Len()
	}
	return all, total, nil
}

// planned is a sub-query with its plan.
type planned struct {
	sub *query.SubQuery
	*plan.Compiled
}

// plans resolves and compiles all sub-queries, one after another: the first
// fault in the order of the request is the answer.
func (e *Engine) plans(ctx context.Context, q *query.Query) ([]planned, error) {
	out := make([]planned, len(q.Queries))
	for i := range q.Queries {
		c, err := e.plan(ctx, q, i)
		if err != nil {
			return nil, err
		}
		out[i] = planned{&q.Queries[i], c}
	}
	return out, nil
}

// nothing tells that a plan has no rows to read.
func (p *planned) nothing() bool {
	return p.Nothing != "" || p.sub.Histogram() // a plain metric has no histograms
}

// keep applies the post filter to spans, by way of the dictionary's cache.
func (e *Engine) keep(ctx context.Context, p planned) func(span []byte) (bool, error) {
	if p.PostFilter == nil {
		return nil
	}
	return func(span []byte) (bool, error) {
		return e.keepByNames(ctx, p.PostFilter, e.cfg.Compile.Schema.SpanTags(span))
	}
}

// keepByNames applies a filter on names to the tags of a series.
func (e *Engine) keepByNames(ctx context.Context, f *plan.PostFilter, tags []byte) (keep bool, err error) {
	keep = f.Keep(func(tagk encoding.UID) (string, bool) {
		v, ok := e.cfg.Compile.Schema.Tag(tags, tagk)
		if !ok || err != nil {
			return "", false
		}
		name, nameErr := e.cfg.Names.Name(ctx, encoding.UIDTagV, v)
		if nameErr != nil {
			err = nameErr
		}
		return name, true
	})
	return keep, err
}

// Explained is one sub-query as explain shows it.
type Explained struct {
	Plan  string                 `json:"plan"`
	Parts []dispatch.PlannedPart `json:"parts"`
	// ResultCache is "kept" where the whole answer is remembered: it is given again
	// if no row has changed.
	ResultCache string `json:"resultCache,omitempty"`
}

// Explain tells what Run would do, without reading a row.
func (e *Engine) Explain(ctx context.Context, q *query.Query) ([]Explained, error) {
	plans, err := e.plans(ctx, q)
	if err != nil {
		return nil, err
	}
	var out []Explained
	for _, p := range plans {
		if p.Nothing != "" {
			out = append(out, Explained{Plan: p.Nothing + "\n", Parts: []dispatch.PlannedPart{}})
			continue
		}
		parts, err := e.cfg.Exec.Explain(ctx, p.Plan, e.merging(q, p))
		if err != nil {
			return nil, err
		}
		text := p.Plan.String()
		if p.PostFilter != nil {
			text += p.PostFilter.String()
		}
		x := Explained{Plan: text, Parts: parts}
		if e.cfg.Exec.HoldsPlan(p.Plan, aggregationName(e.merging(q, p))) {
			x.ResultCache = "kept"
		}
		out = append(out, x)
	}
	return out, nil
}
