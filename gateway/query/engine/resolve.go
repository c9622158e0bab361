package engine

import (
	"cmp"
	"context"
	"errors"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/gateway/query/plan"
	"downpour/gateway/uid"
)

// subPlan is a sub-query with its compiled plan.
type subPlan struct {
	sub *query.SubQuery
	*plan.Compiled
}

// untrimmed returns the sub-query with a plan whose answer has all times of its rows.
func (p subPlan) untrimmed() subPlan {
	c, whole := *p.Compiled, p.Plan.Untrimmed()
	c.Plan = &whole
	return subPlan{p.sub, &c}
}

// text is the plan as a trace shows it.
func (p subPlan) text() string {
	if readsNothing(p.Compiled) {
		return p.Nothing
	}
	return p.Plan.String()
}

// readsNothing reports whether the answer is empty without reading a row.
func readsNothing(p *plan.Compiled) bool { return p.Nothing != "" }

// Compile resolves the names of all sub-queries and compiles their plans without
// executing them, for callers that read the rows themselves. It returns the errors of
// Run.
func (e *Engine) Compile(ctx context.Context, q *query.Query) ([]*plan.Compiled, error) {
	plans, err := e.compileQuery(ctx, q)
	if err != nil {
		return nil, err
	}
	out := make([]*plan.Compiled, len(plans))
	for i, p := range plans {
		out[i] = p.Compiled
	}
	return out, nil
}

// compileQuery compiles all sub-queries. The error for an unknown name has the names near it.
func (e *Engine) compileQuery(ctx context.Context, q *query.Query) ([]subPlan, error) {
	plans, err := e.compileInOrder(ctx, q)
	var unknown *query.UnknownNameError
	if errors.As(err, &unknown) && e.cfg.Near != nil {
		unknown.Near = e.cfg.Near(ctx, unknown.Kind, unknown.Name)
	}
	return plans, err
}

// compileInOrder compiles all sub-queries one after another, because the answer to
// several faults is the first in the order of the request; those that OpenTSDB finds
// later, see plan.RunError, come after the others.
func (e *Engine) compileInOrder(ctx context.Context, q *query.Query) ([]subPlan, error) {
	out := make([]subPlan, len(q.Queries))
	var late error
	for i := range q.Queries {
		c, err := e.compileSubQuery(ctx, q, i)
		if errors.As(err, new(*plan.RunError)) {
			late = cmp.Or(late, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		out[i] = subPlan{&q.Queries[i], c}
		if q.Untrimmed {
			out[i] = out[i].untrimmed()
		}
	}
	if late != nil {
		return nil, late
	}
	return out, nil
}

// compileSubQuery looks up the names of sub-query i and compiles its plan. It sets in q
// what answers with showQuery show of the sub-query. An unknown name is a
// *query.UnknownNameError.
func (e *Engine) compileSubQuery(ctx context.Context, q *query.Query, i int) (*plan.Compiled, error) {
	s := &q.Queries[i]
	names, err := e.lookUpNames(ctx, plan.NeedsOf(s, e.cfg.Compile))
	if err != nil {
		return nil, err
	}

	c, err := plan.Compile(q, i, names, e.compileNow())
	if err != nil {
		return nil, err
	}
	s.FilterTagKs, s.RollupTable = c.FilterTagKs, c.Reads
	return c, e.dropTSUIDsByName(ctx, c)
}

// compileNow returns the options of a plan that is compiled now.
func (e *Engine) compileNow() plan.Options {
	out := e.cfg.Compile
	if out.Rollups != nil {
		r := *out.Rollups
		r.Now = e.cfg.Now().UnixMilli()
		out.Rollups = &r
	}
	return out
}

// lookUpNames looks up what a plan needs. An unknown name is no error here; Compile
// decides what it means.
func (e *Engine) lookUpNames(ctx context.Context, needs plan.Needs) (n plan.Names, err error) {
	if needs.Metric != "" {
		known, err := e.cfg.Names.ResolveMany(ctx, encoding.UIDMetric, []string{needs.Metric})
		if err != nil {
			return n, err
		}
		n.Metric = known[needs.Metric]
	}
	if n.TagKs, err = e.cfg.Names.ResolveMany(ctx, encoding.UIDTagK, needs.TagKs); err != nil {
		return n, err
	}
	if n.TagVs, err = e.cfg.Names.ResolveMany(ctx, encoding.UIDTagV, needs.TagVs); err != nil {
		return n, err
	}

	// The lists of one sub-query are bounded together. A list that is left out counts
	// as incomplete, and its filter is then applied to names.
	n.Lists = make(map[string]plan.List, len(needs.Prefixes))
	bytes := 0
	for _, prefix := range needs.Prefixes {
		if bytes >= uid.MaxListed {
			break
		}
		l, err := e.listTagValues(ctx, prefix, needs.Limit)
		if err != nil {
			return n, err
		}
		n.Lists[prefix] = l
		for _, v := range l.Values {
			bytes += listedValueBytes + len(v.Name)
		}
	}
	return n, nil
}

// listedValueBytes is about the size of a value in a list without its name.
const listedValueBytes = 64

// listTagValues lists up to limit tag values that begin with a prefix.
func (e *Engine) listTagValues(ctx context.Context, prefix string, limit int) (l plan.List, err error) {
	entries, complete, err := e.cfg.Names.Enumerate(ctx, encoding.UIDTagV, prefix, limit)
	l.Complete = complete
	for _, entry := range entries {
		l.Values = append(l.Values, encoding.UIDMapping{Kind: encoding.UIDTagV, Name: entry.Name, UID: entry.UID})
	}
	return l, err
}

// dropTSUIDsByName removes the TSUIDs from a plan that its post filter rejects. Their
// rows are not read then, so that a damaged row among them does not fail the query.
// OpenTSDB, too, applies the filters before it reads a row's cells. A TSUID with a UID
// that has no name is kept, because it is still unknown whether it has rows.
// Source: SaltScanner.ScannerCB.
func (e *Engine) dropTSUIDsByName(ctx context.Context, c *plan.Compiled) error {
	if c.PostFilter == nil || len(c.Plan.TSUIDs) == 0 {
		return nil
	}

	var kept []encoding.UID
	for _, t := range c.Plan.TSUIDs {
		_, tags, err := c.Plan.Schema.SplitTSUID(t)
		if err != nil {
			return err
		}
		keep, err := e.passesPostFilter(ctx, c.PostFilter, tags)
		var nameless *uid.NoSuchIDError
		if err != nil && !errors.As(err, &nameless) {
			return err
		}
		if keep || nameless != nil {
			kept = append(kept, t)
		}
	}
	c.Restrict(kept) // if none is kept, the plan admits no series
	return nil
}

// spanFilter returns the plan's post filter as a function of spans (salt, metric and
// tags), nil if it has none. It looks names up in the dictionary, which caches them.
func (e *Engine) spanFilter(ctx context.Context, p subPlan) func(span []byte) (bool, error) {
	if p.PostFilter == nil {
		return nil
	}
	return func(span []byte) (bool, error) {
		return e.passesPostFilter(ctx, p.PostFilter, e.cfg.Compile.Schema.SpanTags(span))
	}
}

// passesPostFilter applies a filter on names to the tags of a series.
func (e *Engine) passesPostFilter(ctx context.Context, f *plan.PostFilter, tags []byte) (keep bool, err error) {
	keep = f.Keep(func(tagk encoding.UID) (string, bool) {
		v, ok := e.cfg.Compile.Schema.Tag(tags, tagk)
		// After an error the result is void, and no more names are looked up.
		if !ok || err != nil {
			return "", false
		}
		name, nameErr := e.cfg.Names.Name(ctx, encoding.UIDTagV, v)
		if nameErr != nil {
			err = nameErr
		}
		return name, true
	})
	if err == nil {
		err = f.Err()
	}
	return keep, err
}
