package engine

import (
	"context"
	"sync/atomic"
)

// answerPoints counts the points of a query's answer, of all its sub-queries together,
// while they are made.
type answerPoints struct {
	made  atomic.Int64
	check func(points int) error
}

// planPoints counts the points of one plan of a query. What is made again in another
// way counts once. It is for one goroutine; a nil one counts nothing.
type planPoints struct {
	all *answerPoints
	own int64
}

type (
	answerPointsKey struct{}
	planPointsKey   struct{}
)

// WithPoints returns a context for a query whose answer is bounded while it is made.
// Whenever the answer is about to have more points, check is called with their new
// number. If it returns an error, the query fails with that error.
func WithPoints(ctx context.Context, check func(points int) error) context.Context {
	return context.WithValue(ctx, answerPointsKey{}, &answerPoints{check: check})
}

// withPlanPoints returns a context for one plan of a query. The counter is nil if the
// query's points are not bounded.
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

// tooManyPoints marks the error with which an answer was refused for its points.
type tooManyPoints struct{ error }

// Unwrap returns the error of the check.
func (e *tooManyPoints) Unwrap() error { return e.error }

// add counts n more points. p is nil if the query's points are not bounded.
func (p *planPoints) add(n int) error {
	if p == nil {
		return nil
	}
	p.own += int64(n)
	if err := p.all.check(int(p.all.made.Add(int64(n)))); err != nil {
		return &tooManyPoints{err}
	}
	return nil
}

// set makes n the points of the plan, in place of those that were counted before. p is
// nil if the query's points are not bounded.
func (p *planPoints) set(n int) error {
	if p == nil {
		return nil
	}
	p.all.made.Add(-p.own)
	p.own = 0
	return p.add(n)
}
