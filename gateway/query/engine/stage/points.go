package stage

import "sync/atomic"

// AnswerPoints counts the points of a query's answer, of all its sub-queries together,
// while they are made.
type AnswerPoints struct {
	made  atomic.Int64
	check func(points int) error
}

// NewAnswerPoints returns a counter that calls check whenever the answer is about to have more
// points, with their new number: the query fails with its error. Without check it returns nil, which
// counts nothing.
func NewAnswerPoints(check func(points int) error) *AnswerPoints {
	if check == nil {
		return nil
	}
	return &AnswerPoints{check: check}
}

// Plan returns a counter for one plan of the query.
func (a *AnswerPoints) Plan() *Points {
	if a == nil {
		return nil
	}
	return &Points{all: a}
}

// Points counts the points of one plan of a query. Points that are made again in another way count
// once. It is for one goroutine; a nil one counts nothing.
type Points struct {
	all *AnswerPoints
	own int64
}

// Another returns a counter for another plan of the query.
func (p *Points) Another() *Points {
	if p == nil {
		return nil
	}
	return p.all.Plan()
}

// tooManyPoints marks the error with which an answer was refused for its points.
type tooManyPoints struct{ error }

// Unwrap returns the error of the check.
func (e *tooManyPoints) Unwrap() error { return e.error }

// add counts n more points.
func (p *Points) add(n int) error {
	if p == nil {
		return nil
	}
	p.own += int64(n)
	if err := p.all.check(int(p.all.made.Add(int64(n)))); err != nil {
		return &tooManyPoints{err}
	}
	return nil
}

// forget takes back what was counted of the plan.
func (p *Points) forget() {
	if p != nil {
		p.all.made.Add(-p.own)
		p.own = 0
	}
}

// set makes n the points of the plan, in place of those that were counted before.
func (p *Points) set(n int) error {
	p.forget()
	return p.add(n)
}
