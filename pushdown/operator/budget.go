package operator

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Resource is what a limit bounds.
type Resource string

// What a query can have too much of. Memory and States are the plan's own bound;
// the others are those of a Budget.
const (
	Memory  Resource = ""        // bytes of the result
	States  Resource = "states"  // bytes of groups' states; series by series may take less
	Points  Resource = "points"  // data points read from the store
	Bytes   Resource = "bytes"   // bytes of rows read from the store
	Queries Resource = "queries" // heavy queries at once
)

// Budget bounds what all parts of one sub-query read together, in this process
// and on servers. Like a deadline it is no part of the plan, for it changes no
// answer: it travels in the context, and over the wire beside the ticket, where
// a server that does not know it may ignore it. Nil is no bound. It is for many
// goroutines.
type Budget struct {
	points, bytes meter
	// HeavyAt, if more than 0, is the number of points beyond which Heavy is
	// asked, before each further block of rows: it may wait for other queries
	// to end. Its error ends the part.
	HeavyAt int64
	Heavy   func(context.Context) error
}

// meter counts one resource.
type meter struct {
	limit int64 // 0 is no bound
	spent atomic.Int64
}

// NewBudget returns a budget of points and bytes; 0 is no bound.
func NewBudget(points, bytes int64) *Budget {
	return &Budget{points: meter{limit: points}, bytes: meter{limit: bytes}}
}

// Spend counts what was read. It returns a *LimitError over the budget, and what
// Heavy says.
func (b *Budget) Spend(ctx context.Context, points, bytes int64) error {
	if b == nil {
		return nil
	}
	total := b.points.spent.Add(points)
	read := b.bytes.spent.Add(bytes)
	switch {
	case b.points.limit > 0 && total > b.points.limit:
		return &LimitError{What: Points, Limit: b.points.limit, Need: total}
	case b.bytes.limit > 0 && read > b.bytes.limit:
		return &LimitError{What: Bytes, Limit: b.bytes.limit, Need: read}
	case b.HeavyAt > 0 && total > b.HeavyAt:
		return b.Heavy(ctx)
	}
	return nil
}

// Refund gives back what a part had spent that failed and will be read again.
func (b *Budget) Refund(points, bytes int64) {
	if b != nil {
		b.points.spent.Add(-points)
		b.bytes.spent.Add(-bytes)
	}
}

// Left is what may still be read, 0 for no bound; what is used up is 1, so that
// nobody takes it for unbounded.
func (b *Budget) Left() (points, bytes int64) {
	if b == nil {
		return 0, 0
	}
	return b.points.left(), b.bytes.left()
}

func (m *meter) left() int64 {
	if m.limit <= 0 {
		return 0
	}
	return max(1, m.limit-m.spent.Load())
}

// Refusal is a server's refusal in the words of the whole budget: a server knows
// only what was left of it.
func (b *Budget) Refusal(e *LimitError) *LimitError {
	switch {
	case b == nil:
	case e.What == Points && b.points.limit > 0:
		return &LimitError{What: Points, Limit: b.points.limit, Need: b.points.spent.Load() + e.Need}
	case e.What == Bytes && b.bytes.limit > 0:
		return &LimitError{What: Bytes, Limit: b.bytes.limit, Need: b.bytes.spent.Load() + e.Need}
	}
	return e
}

type budgetKey struct{}

// WithBudget returns a context whose operators spend of b.
func WithBudget(ctx context.Context, b *Budget) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}

// BudgetOf is the budget of a context, nil for none.
func BudgetOf(ctx context.Context) *Budget {
	b, _ := ctx.Value(budgetKey{}).(*Budget)
	return b
}

type queryKey struct{}

// WithQuery names the query that a context's parts belong to: servers give each
// query its share.
func WithQuery(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, queryKey{}, id)
}

// QueryOf is the name of a context's query, "" for none.
func QueryOf(ctx context.Context) string {
	id, _ := ctx.Value(queryKey{}).(string)
	return id
}

// spending is what one part has spent.
type spending struct{ points, bytes int64 }

// spend brings the part's account up to what it has read so far.
func (s *spending) spend(ctx context.Context, read Stats) error {
	points, bytes := read.Points-s.points, read.Bytes-s.bytes
	s.points, s.bytes = read.Points, read.Bytes
	return BudgetOf(ctx).Spend(ctx, points, bytes)
}

// LimitError is returned when a query needs more than it may have.
type LimitError struct {
	What        Resource
	Limit, Need int64 // Need is what it was when the work was given up
}

// Error tells what there is too much of, and both figures.
func (e *LimitError) Error() string {
	switch e.What {
	case Points, Bytes:
		return fmt.Sprintf("the query reads more than %d %s from the store, at least %d", e.Limit, e.What, e.Need)
	case Queries:
		return fmt.Sprintf("%d queries that read much are running, and none of them has ended in time", e.Limit)
	}
	return fmt.Sprintf("the result takes more than %d bytes of memory, at least %d", e.Limit, e.Need)
}
