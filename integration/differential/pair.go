package differential

import "downpour/integration/compare"

// Request is a question as it is sent: a POST of Body, or without one a GET.
type Request struct{ Path, Body string }

// Request returns the query as it is sent.
func (q Query) Request() Request {
	if q.AsGET {
		return Request{Path: q.Path()}
	}
	return Request{q.Path(), q.Body()}
}

// Request returns the request of /api/query/exp as it is sent.
func (e Exp) Request() Request { return Request{"/api/query/exp", e.Body()} }

// Pair is OpenTSDB, the reference, and a gateway on the same rows, by how they are asked.
type Pair struct {
	Theirs, Ours func(Request) compare.Answer
	Salted       bool // OpenTSDB's answers may lack a bucket, see compare.LostBucket
}

// Compare asks both servers the same, and again without a name that one of them misses.
func (p Pair) Compare(q Query) Comparison {
	return Compare(q, func(q Query) (c Comparison) {
		c.Got = p.Ours(q.Request())
		p.judge(&c, q.Request(), func(want compare.Answer) (compare.Report, []string, error) {
			return compare.WithReference(want, c.Got)
		})
		return c
	})
}

// CompareExp is Compare for a request of /api/query/exp.
func (p Pair) CompareExp(e Exp) Comparison {
	return Compare(e, func(e Exp) (c Comparison) {
		c.Got = p.Ours(e.Request())
		p.judge(&c, e.Request(), func(want compare.Answer) (compare.Report, []string, error) {
			r, rule, err := compare.Comparer{Permits: compare.Standard}.Expressions(e.Body(), want,
				c.Got, func(body string) []byte {
					return p.Ours(Request{"/api/query/exp", body}).Body
				})
			if rule == "" {
				return r, nil, err
			}
			return r, []string{rule}, err
		})
		return c
	})
}

// judge asks OpenTSDB, on salted tables again where it may have lost a bucket, and judges what it answers.
func (p Pair) judge(c *Comparison, q Request, judge func(want compare.Answer) (compare.Report, []string, error)) {
	if p.Salted {
		c.Want, c.Report, c.Rules, c.Err = compare.Salted(func() compare.Answer { return p.Theirs(q) }, judge)
		return
	}
	c.Want = p.Theirs(q)
	c.Report, c.Rules, c.Err = judge(c.Want)
}
