package limit

import (
	"context"
	"sync/atomic"

	"downpour/pushdown/operator"
)

// Cost is what a query has cost so far, as its limits count it: an answer that is taken from the
// result cache, or from an equal query, costs what it was to read it.
type Cost struct {
	Points int64 // read
	Bytes  int64 // read
	Memory int64 // bytes held now
}

// tally counts what the sub-queries of one query read.
type tally struct{ points, bytes atomic.Int64 }

type tallyKey struct{}

// Cost returns what the query has cost so far. It may be called at any time, also after Close.
func (e *Entry) Cost() Cost {
	return Cost{Points: e.read.points.Load(), Bytes: e.read.bytes.Load(), Memory: e.account.Held()}
}

// talliedBudget adds what is spent to a query's tally.
type talliedBudget struct {
	operator.Budget
	read *tally
}

// Spend counts what was read, before it may wait: what a query waits with is part of its cost.
func (b *talliedBudget) Spend(ctx context.Context, points, bytes int64) error {
	b.read.points.Add(points)
	b.read.bytes.Add(bytes)
	return b.Budget.Spend(ctx, points, bytes)
}

// Refund gives back what was spent on a part that is read again.
func (b *talliedBudget) Refund(points, bytes int64) {
	b.read.points.Add(-points)
	b.read.bytes.Add(-bytes)
	b.Budget.Refund(points, bytes)
}
