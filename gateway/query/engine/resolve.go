package engine

import (
	"context"
	"errors"
	"strings"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/gateway/query/plan"
	"downpour/gateway/uid"
)

// plan looks up the names that a sub-query needs and compiles it.
func (e *Engine) plan(ctx context.Context, q *query.Query, i int) (*plan.Compiled, error) {
	s := &q.Queries[i]
	names, err := e.names(ctx, plan.NeedsOf(s, e.cfg.Compile))
	if err != nil {
		return nil, err
	}
	c, err := plan.Compile(q, i, names, e.cfg.Compile)
	if err != nil {
		return nil, unknownName(err)
	}
	s.FilterTagKs = c.FilterTagKs
	return c, e.narrow(ctx, c)
}

// narrow takes TSUIDs that a filter on names refuses out of the plan: their rows
// are not read, so nothing that is wrong with them fails the query. OpenTSDB,
// too, asks the filters before it looks at a row's cells. A TSUID with a value
// that has no name stays: whether it has rows is not known yet.
// Source: SaltScanner.ScannerCB.
func (e *Engine) narrow(ctx context.Context, c *plan.Compiled) error {
	if c.PostFilter == nil || len(c.Plan.TSUIDs) == 0 {
		return nil
	}
	var kept []encoding.UID
	for _, t := range c.Plan.TSUIDs {
		_, tags, err := c.Plan.Schema.SplitTSUID(t)
		if err != nil {
			return err
		}
		keep, err := e.keepByNames(ctx, c.PostFilter, tags)
		var nameless *uid.NoSuchIDError
		if err != nil && !errors.As(err, &nameless) {
			return err
		}
		if keep || nameless != nil {
			kept = append(kept, t)
		}
	}
	c.Restrict(kept)
	return nil
}

// names answers needs. That a name is unknown is no error here.
func (e *Engine) names(ctx context.Context, needs plan.Needs) (n plan.Names, err error) {
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
	n.Lists = make(map[string]plan.List, len(needs.Prefixes))
	for bytes, i := 0, 0; i < len(needs.Prefixes) && bytes < uid.MaxListed; i++ {
		// A list that is left out is incomplete: its filter is applied to names.
		l, err := e.list(ctx, needs.Prefixes[i], needs.Limit)
		if err != nil {
			return n, err
		}
		n.Lists[needs.Prefixes[i]] = l
		for _, v := range l.Values {
			bytes += valueBytes + len(v.Name)
		}
	}
	return n, nil
}

// valueBytes is what a value takes in a list beside its name, about.
const valueBytes = 64

// list finds the tag values that begin with a prefix.
func (e *Engine) list(ctx context.Context, prefix string, limit int) (l plan.List, err error) {
	entries, complete, err := e.cfg.Names.Enumerate(ctx, encoding.UIDTagV, prefix, limit)
	l.Complete = complete
	for _, entry := range entries {
		l.Values = append(l.Values, encoding.UIDMapping{Kind: encoding.UIDTagV, Name: entry.Name, UID: entry.UID})
	}
	return l, err
}

// UnknownNameError is the refusal of a name that has no UID; the next point put
// may give it one.
type UnknownNameError struct{ refusal *query.Error }

// Error is the refusal's message.
func (e *UnknownNameError) Error() string { return e.refusal.Message }

// Unwrap is the refusal as the API answers it.
func (e *UnknownNameError) Unwrap() error { return e.refusal }

func unknownName(err error) error {
	var refusal *query.Error
	if errors.As(err, &refusal) && strings.HasPrefix(refusal.Message, "No such name for ") {
		return &UnknownNameError{refusal}
	}
	return err
}
