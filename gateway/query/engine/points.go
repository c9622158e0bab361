package engine

import (
	"context"
	"sync/atomic"
)

// answerPoints counts the points of a query's answer, of all its sub-queries
// together, while they are made.
type answerPoints struct {
	made atomic.Int64
	may  func(points int) error
}

// planPoints are those of one of its plans: what is made again in another way
// counts once. It is for one goroutine; nil counts nothing.
type planPoints struct {
	all *answerPoints
	own int64
}

type (
	answerPointsKey struct{}
	planPointsKey   struct{}
)

// WithPoints returns a context whose query is asked whether its answer may have
// so many points, each time it is about to have more: an answer that is too large
// ends before it is made. The error of may is the query's.
func WithPoints(ctx context.Context, may func(points int) error) context.Context {
	return context.WithValue(ctx, answerPointsKey{}, &answerPoints{may: may})
}

// withPlanPoints returns a context of one plan of a query.
func withPlanPoints(ctx context.Context) (context.Context, *planPoints) {
	all, _ := ctx.Value(answerPointsKey{}).(*answerPoints)
	if all == nil {
		return ctx, nil
	}
	p := &planPoints{all: all}
	return context.WithValue(ctx, planPointsKey{}, p), p
}

func planPointsOf(ctx context.Context) *planPoints {
	p, _ := ctx.Value(planPointsKey{}).(*planPoints)
	return p
}

// tooManyPoints marks the refusal of an answer for its points.
type tooManyPoints struct{ error }

// Unwrap is the refusal.
func (e *tooManyPoints) Unwrap() error { return e.error }

// add counts n more points.
func (p *planPoints) add(n int) error {
	if p == nil {
		return nil
	}
	p.own += int64(n)
	if err := p.all.may(int(p.all.made.Add(int64(n)))); err != nil {
		return &tooManyPoints{err}
	}
	return nil
}

// set makes n the points of the plan, whatever was counted before.
func (p *planPoints) set(n int) error {
	if p == nil {
		return nil
	}
	p.all.made.Add(-p.own)
	p.own = 0
	return p.add(n)
}
