package operator

import (
	"context"
	"sync/atomic"
)

// Budget bounds what all parts of one sub-query read together, in this process and on
// servers: see Options. Like a deadline a budget is not in the plan, because it changes no
// answer. It is sent with the ticket, where a server that does not know it may ignore it.
//
// NewBudget returns a budget of points and bytes. Callers may implement their own,
// which for example waits for other queries to end. It is for many goroutines.
type Budget interface {
	// Spend counts what was read. It may wait. Its error ends the part; it is a
	// *LimitError if the budget is used up.
	Spend(ctx context.Context, points, bytes int64) error
	// Refund gives back what was spent on a part that failed and will be read again.
	Refund(points, bytes int64)
	// Left returns what may still be read, 0 for no bound. If nothing is left it returns 1, which
	// cannot be confused with no bound.
	Left() (points, bytes int64)
	// Refusal returns the error of a server, which knows only what was left, with the
	// figures of the whole budget.
	Refusal(e *LimitError) *LimitError
}

// ReadBudget is a Budget of points and bytes.
type ReadBudget struct{ points, bytes meter }

// meter counts one resource.
type meter struct {
	limit int64 // 0 is no bound
	spent atomic.Int64
}

// NewBudget returns a budget of points and bytes; 0 is no bound.
func NewBudget(points, bytes int64) *ReadBudget {
	return &ReadBudget{points: meter{limit: points}, bytes: meter{limit: bytes}}
}

// Spend counts what was read; see Budget.
func (b *ReadBudget) Spend(_ context.Context, points, bytes int64) error {
	// Both are counted even if one is refused, because Refund gives back both.
	total := b.points.spent.Add(points)
	read := b.bytes.spent.Add(bytes)
	switch {
	case b.points.limit > 0 && total > b.points.limit:
		return &LimitError{What: Points, Limit: b.points.limit, Need: total}
	case b.bytes.limit > 0 && read > b.bytes.limit:
		return &LimitError{What: Bytes, Limit: b.bytes.limit, Need: read}
	}
	return nil
}

// Spent returns the number of points read so far.
func (b *ReadBudget) Spent() (points int64) { return b.points.spent.Load() }

// Refund gives back what was spent; see Budget.
func (b *ReadBudget) Refund(points, bytes int64) {
	b.points.spent.Add(-points)
	b.bytes.spent.Add(-bytes)
}

// Left returns what may still be read; see Budget.
func (b *ReadBudget) Left() (points, bytes int64) { return b.points.left(), b.bytes.left() }

// left returns what is left of one resource, 0 for no bound.
func (m *meter) left() int64 {
	if m.limit <= 0 {
		return 0
	}
	return max(1, m.limit-m.spent.Load())
}

// Refusal returns a server's error with the figures of b; see Budget. The server has
// counted one part, which is not among what b has spent.
func (b *ReadBudget) Refusal(e *LimitError) *LimitError {
	switch {
	case e.What == Points && b.points.limit > 0:
		return &LimitError{What: Points, Limit: b.points.limit, Need: b.points.spent.Load() + e.Need}
	case e.What == Bytes && b.bytes.limit > 0:
		return &LimitError{What: Bytes, Limit: b.bytes.limit, Need: b.bytes.spent.Load() + e.Need}
	}
	return e
}

type queryKey struct{}

// WithQuery returns a context whose parts belong to the query with a name: a server
// shares its workers among queries.
func WithQuery(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, queryKey{}, id)
}

// QueryOf returns the name of a context's query, "" for none.
func QueryOf(ctx context.Context) string {
	id, _ := ctx.Value(queryKey{}).(string)
	return id
}

// spending is what one part has spent of its budget.
type spending struct{ points, bytes int64 }

// spend spends of b what the part has read since the last call.
func (s *spending) spend(ctx context.Context, b Budget, read Stats) error {
	points, bytes := read.Points-s.points, read.Bytes-s.bytes
	s.points, s.bytes = read.Points, read.Bytes
	return b.Spend(ctx, points, bytes)
}
