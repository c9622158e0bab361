package memory

import "context"

type accountKey struct{}

// With returns a context that carries an account.
func With(ctx context.Context, a *Account) context.Context {
	return context.WithValue(ctx, accountKey{}, a)
}

// Of returns the account of a context, nil if it has none.
func Of(ctx context.Context) *Account {
	a, _ := ctx.Value(accountKey{}).(*Account)
	return a
}

// Reserve reserves n more bytes in the account of a context; see Account.Reserve.
func Reserve(ctx context.Context, n int64) error { return Of(ctx).Reserve(ctx, n) }

// Release gives n bytes back to the account of a context.
func Release(ctx context.Context, n int64) { Of(ctx).Release(n) }

// Lease is the part of an account that one step of a request holds. It counts the step's
// reservations, so that Close can release them. It also makes the step end in time; see Check. It
// is for one goroutine.
type Lease struct {
	ctx  context.Context
	held int64
}

// NewLease returns a lease of the context's account, which holds nothing yet.
func NewLease(ctx context.Context) *Lease { return &Lease{ctx: ctx} }

// Reserve reserves n more bytes; see Account.Reserve.
func (l *Lease) Reserve(n int64) error {
	if err := Reserve(l.ctx, n); err != nil {
		return err
	}
	l.held += max(0, n)
	return nil
}

// Grow makes the lease hold n bytes, if it holds fewer. It is for a step that knows its total and
// not the increase.
func (l *Lease) Grow(n int64) error { return l.Reserve(n - l.held) }

// Release gives n bytes back.
func (l *Lease) Release(n int64) {
	n = min(n, l.held)
	l.held -= n
	Release(l.ctx, n)
}

// Check returns the cause of the context's end, nil while the step may continue.
func (l *Lease) Check() error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	return nil
}

// Close gives everything back. A lease that is not closed ends with its account.
func (l *Lease) Close() { l.Release(l.held) }
