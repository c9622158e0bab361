package memory

import "context"

type accountKey struct{}

// With returns a context whose work reserves in a.
func With(ctx context.Context, a *Account) context.Context {
	return context.WithValue(ctx, accountKey{}, a)
}

// Of is the account of a context, nil for none.
func Of(ctx context.Context) *Account {
	a, _ := ctx.Value(accountKey{}).(*Account)
	return a
}

// Reserve reserves in the account of a context, see Account.Reserve.
func Reserve(ctx context.Context, n int64) error { return Of(ctx).Reserve(ctx, n) }

// Release gives back to the account of a context.
func Release(ctx context.Context, n int64) { Of(ctx).Release(n) }

// Lease is the part of an account that one step of a request holds: the step
// gives back what it has taken without having to know how much that was. It also
// tells the step when to end, see Check. It is for one goroutine.
type Lease struct {
	ctx  context.Context
	held int64
}

// NewLease begins a lease of the context's account.
func NewLease(ctx context.Context) *Lease { return &Lease{ctx: ctx} }

// Reserve takes n more bytes, see Account.Reserve.
func (l *Lease) Reserve(n int64) error {
	if err := Reserve(l.ctx, n); err != nil {
		return err
	}
	l.held += max(0, n)
	return nil
}

// Grow makes the lease hold n bytes, if it holds fewer: for a step that tells
// again and again how much it holds by now.
func (l *Lease) Grow(n int64) error { return l.Reserve(n - l.held) }

// Release gives n bytes back.
func (l *Lease) Release(n int64) {
	n = min(n, l.held)
	l.held -= n
	Release(l.ctx, n)
}

// Check returns why the work should end: the cause of the context's end.
func (l *Lease) Check() error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	return nil
}

// Close gives everything back. Leases that are not closed end with their account.
func (l *Lease) Close() { l.Release(l.held) }
